"""A cell in one byte: its kind and its colour.

    cell = kind << 3 | colour

The order of the kinds keeps the rules short: opaque kinds come first, then walkable ones, then
those that can be picked up. An unlocked door comes last: it is walkable too, and only the 2018
edition tells it from an open one. For each colour of key there is a kind of box that holds it, so
the byte says everything about a cell. All functions work on both NumPy and JAX arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNSEEN = 0
WALL, LOCKED, CLOSED = 1, 2, 3  # cannot be seen through
OPEN, EMPTY = 4, 5  # can be walked on
KEY, BALL, BOX = 6, 7, 8  # can be picked up; BOX is an empty box
BOX_WITH_KEY = 9  # BOX_WITH_KEY + c is a box that holds a key of colour c
UNLOCKED = 15  # a locked door that was unlocked and is open; see editions.py
KINDS = 16

COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")  # the package's numbers
RED, GREEN, BLUE, PURPLE, YELLOW, GREY = range(6)

WALL_CELL = WALL << 3 | GREY
EMPTY_CELL = EMPTY << 3  # also "carries nothing": picking up and dropping are both a swap


def row_of_kinds(special: Mapping[int, int]) -> NDArray[np.uint8]:
    """A type for each kind: `special`, plus the package's for keys, balls and boxes."""
    numbers = {KEY: 5, BALL: 6, BOX: 7} | dict(special)
    return np.array([numbers.get(k, numbers[BOX]) for k in range(KINDS)], np.uint8)


def number_cells(types: NDArray[np.uint8], states: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Type, colour and state of every cell, (256, 3), given the type and state of each kind."""
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
    """Whether the agent sees through it."""
    return cell >= OPEN << 3


def is_walkable(cell: Any) -> Any:
    return ((cell >> 4) == OPEN >> 1) | (cell >= UNLOCKED << 3)  # the first: OPEN and EMPTY


def is_movable(cell: Any) -> Any:
    """Whether the agent can pick it up."""
    return (cell >= KEY << 3) & (cell < UNLOCKED << 3)
