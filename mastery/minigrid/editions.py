"""Editions of MiniGrid: today's package, and the version behind the paper's runs.

An edition is static under `jit`: each one compiles separately, so `2018` does not slow down today's
edition. `3.2.0` equals the package bit for bit. `2018` is gym-minigrid of 19 September 2018 (commit
8518802). The others mix the two, to tell which difference matters in a reproduction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mastery.errors import MasteryError
from mastery.minigrid.cells import (
    BOX,
    CLOSED,
    DECODED,
    EMPTY,
    KINDS,
    LOCKED,
    OPEN,
    UNLOCKED,
    UNSEEN,
    WALL,
    number_cells,
    row_of_kinds,
)
from mastery.minigrid.tasks import NAMES, TASKS, MiniGridTask


@dataclass(frozen=True)
class Edition:
    """The differences between editions. Each field names what `2018` does."""

    name: str
    # rules: unlocking a door uses up its key, and the door stays open forever
    uses_up_keys: bool = False
    # levels: in a maze the ball before a door is placed after the key's box, and can replace it
    buries_keys: bool = False
    # view: an unlocked door looks different from other open doors
    marks_unlocked: bool = False
    # view: in the farthest row, light does not spread sideways
    narrows: bool = False
    # view: types and states have the numbers of 2018
    old_numbers: bool = False
    tasks: tuple[MiniGridTask, ...] = TASKS

    @property
    def unlocked(self) -> int:
        """The kind of cell that a locked door becomes when it is unlocked."""
        return UNLOCKED if self.uses_up_keys or self.marks_unlocked else OPEN

    @cached_property
    def decoded(self) -> NDArray[np.uint8]:
        """Type, colour and state of each cell, uint8 (256, 3), in the edition's numbers."""
        if not self.old_numbers:
            return DECODED
        marked = 4 if self.marks_unlocked else 3
        special = {UNSEEN: 0, EMPTY: 0, WALL: 1, CLOSED: 3, OPEN: 3, LOCKED: 4, UNLOCKED: marked}
        types = row_of_kinds(special)
        return number_cells(types, np.isin(np.arange(KINDS), (OPEN, UNLOCKED)).astype(np.uint8))

    def encode(self, image: ArrayLike) -> NDArray[np.uint8]:
        """Convert observations back to cells.

        Args:
            image: Type, colour and state in the edition's numbers, (…, 3).

        Returns:
            uint8 (…). What a box holds is lost and, in the numbers of 2018, so is the difference
            between unseen and empty: both become empty.
        """
        image = np.asarray(image)
        found: NDArray[np.uint8] = self._encoded[image[..., 0], image[..., 1], image[..., 2]]
        return found

    @cached_property
    def _encoded(self) -> NDArray[np.uint8]:
        """Cells by type, colour and state, uint8 (11, 8, 4). Boxes are of kind BOX; where unseen
        and empty share a number, as in 2018, it means empty."""
        found = np.zeros((11, 8, 4), np.uint8)
        cells = np.arange((BOX + 1) << 3)
        if self.marks_unlocked:
            cells = np.append(cells, np.arange(8) + (UNLOCKED << 3))
        found[tuple(self.decoded[cells].T)] = cells
        return found


TODAY = Edition("3.2.0")
_RULES = Edition(
    "2018-rules",
    uses_up_keys=True,
    buries_keys=True,
    # in 2Q the agent started in the middle room
    tasks=tuple(
        replace(task, agent_room=(1, 1)) if task.name == "ObstructedMaze-2Q" else task
        for task in TASKS
    ),
)
_VIEW = Edition("2018-view", marks_unlocked=True, narrows=True, old_numbers=True)
SEPTEMBER_2018 = replace(
    _VIEW, name="2018", uses_up_keys=True, buries_keys=True, tasks=_RULES.tasks
)
EDITIONS = {
    edition.name: edition
    for edition in (
        TODAY,
        SEPTEMBER_2018,
        _RULES,  # rules and levels of 2018, view of today
        _VIEW,  # view of 2018, rules and levels of today
        # 2018, but an unlocked door looks like any open door
        replace(SEPTEMBER_2018, name="2018-plain-doors", marks_unlocked=False),
    )
}
"""All editions by name: `3.2.0`, `2018`, and three mixtures of them."""
assert {len(edition.tasks) for edition in EDITIONS.values()} == {len(NAMES)}


def find_edition(name: str | Edition) -> Edition:
    """Find an edition by name; raise a `MasteryError` if there is none."""
    if isinstance(name, Edition):
        return name
    if name not in EDITIONS:
        known = ", ".join(map(repr, EDITIONS))
        raise MasteryError(f"there is no edition {name!r} of MiniGrid; choose from {known}")
    return EDITIONS[name]
