"""A cell in one byte: what stands there (its kind) and its colour.

    cell = kind << 3 | colour

The kinds are ordered so that each question the rules ask takes few comparisons: what cannot be
seen through comes first, then what can be walked on, then what can be picked up. An unlocked door,
which only MiniGrid of 2018 tells from an open one, can be walked on too, and comes last. A box that
holds a key is a kind of its own for each colour of the key, so that nothing is known of a cell but
its byte. All of it works on NumPy and JAX arrays alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNSEEN = 0
WALL, LOCKED, CLOSED = 1, 2, 3  # cannot be seen through
OPEN, EMPTY = 4, 5  # can be walked on
KEY, BALL, BOX = 6, 7, 8  # can be picked up; a box of kind BOX is empty,
BOX_WITH_KEY = 9  # and one of kind BOX_WITH_KEY + c holds a key of colour c
UNLOCKED = 15  # a locked door that was unlocked and is open; see editions.py
KINDS = 16

COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")  # the package's numbers
RED, GREEN, BLUE, PURPLE, YELLOW, GREY = range(6)

WALL_CELL = WALL << 3 | GREY
EMPTY_CELL = EMPTY << 3  # also "carries nothing": to pick up and to drop are both a swap


def row_of_kinds(special: Mapping[int, int]) -> NDArray[np.uint8]:
    """A number for each kind: these, and the package's types of keys, balls and boxes."""
    numbers = {KEY: 5, BALL: 6, BOX: 7} | dict(special)
    return np.array([numbers.get(k, numbers[BOX]) for k in range(KINDS)], np.uint8)


def number_cells(types: NDArray[np.uint8], states: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Type, colour and state of every cell, (256, 3), from types and states of the kinds."""
    numbers = np.zeros((256, 3), np.uint8)
    numbers[: 8 * KINDS] = np.stack(
        [np.repeat(types, 8), np.tile(np.arange(8), KINDS), np.repeat(states, 8)], axis=-1
    )
    return numbers


# every cell in the package's numbers
DECODED = number_cells(
    row_of_kinds({UNSEEN: 0, EMPTY: 1, WALL: 2, LOCKED: 4, CLOSED: 4, OPEN: 4, UNLOCKED: 4}),
    np.array([{LOCKED: 2, CLOSED: 1}.get(k, 0) for k in range(KINDS)], np.uint8),
)


def kind(cell: Any) -> Any:
    return cell >> 3


def colour(cell: Any) -> Any:
    return cell & 7


def is_transparent(cell: Any) -> Any:
    """Whether the agent sees what is behind."""
    return cell >= OPEN << 3


def is_walkable(cell: Any) -> Any:
    return ((cell >> 4) == OPEN >> 1) | (cell >= UNLOCKED << 3)  # the first: OPEN and EMPTY


def is_movable(cell: Any) -> Any:
    """Whether the agent can pick it up."""
    return (cell >= KEY << 3) & (cell < UNLOCKED << 3)
