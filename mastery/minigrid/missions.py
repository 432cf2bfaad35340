"""The agent's mission, as text and as a number."""

from __future__ import annotations

from mastery.minigrid.cells import BALL, BOX, COLOURS, OPEN, UNLOCKED
from mastery.minigrid.grid import Array

MISSIONS = (
    "open the door",
    *(f"pick up the {colour} {thing}" for thing in ("ball", "box") for colour in COLOURS),
)
"""The texts of all missions. An observation has the index of its mission."""


def mission_number(target: Array) -> Array:
    """The index of a target's mission in MISSIONS."""
    kind, colour = target >> 3, target & 7
    is_thing = (kind != OPEN) & (kind != UNLOCKED)
    return is_thing * (1 + 6 * (kind - BALL) + colour)


def mission(target: int) -> str:
    kind = int(target) >> 3
    assert kind in (OPEN, UNLOCKED, BALL, BOX), target
    return MISSIONS[int(mission_number(int(target)))]
