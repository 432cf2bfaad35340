"""A cell in one byte: what stands there (its kind) and its colour.

    cell = kind << 3 | colour

The kinds are ordered so that each question the rules ask is one comparison: what cannot be seen
through comes first, then what can be walked on, then what can be picked up. A box that holds a key
is a kind of its own for each colour of the key, so that nothing is known of a cell but its byte.
All of it works on NumPy and JAX arrays alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNSEEN = 0
WALL, LOCKED, CLOSED = 1, 2, 3  # cannot be seen through
OPEN, EMPTY = 4, 5  # can be walked on
KEY, BALL, BOX = 6, 7, 8  # can be picked up; a box of kind BOX is empty,
BOX_WITH_KEY = 9  # and one of kind BOX_WITH_KEY + c holds a key of colour c
KINDS = 15

COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")  # the package's numbers
RED, GREEN, BLUE, PURPLE, YELLOW, GREY = range(6)

WALL_CELL = WALL << 3 | GREY
EMPTY_CELL = EMPTY << 3  # also "carries nothing": to pick up and to drop are both a swap

# the package's numbers for the type and the state of each kind, and for every cell
TYPES = np.array([0, 2, 4, 4, 4, 1, 5, 6, 7, 7, 7, 7, 7, 7, 7], np.uint8)
STATES = np.array([0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], np.uint8)
DECODED = np.zeros((256, 3), np.uint8)
DECODED[: 8 * KINDS] = np.stack(
    [np.repeat(TYPES, 8), np.tile(np.arange(8), KINDS), np.repeat(STATES, 8)], axis=-1
)

# and back: by type, colour and state; what is in a box is not seen
_ENCODED = np.zeros((11, 8, 4), np.uint8)
_ENCODED[tuple(DECODED[: (BOX + 1) << 3].T)] = np.arange((BOX + 1) << 3)


def encode(image: Any) -> Any:
    """The package's images, (…, 3), as cells, uint8 (…); NumPy only."""
    image = np.asarray(image)
    return _ENCODED[image[..., 0], image[..., 1], image[..., 2]]


def kind(cell: Any) -> Any:
    return cell >> 3


def colour(cell: Any) -> Any:
    return cell & 7


def is_transparent(cell: Any) -> Any:
    """Whether the agent sees what is behind."""
    return cell >= OPEN << 3


def is_walkable(cell: Any) -> Any:
    return (cell >> 4) == OPEN >> 1  # OPEN and EMPTY


def is_movable(cell: Any) -> Any:
    """Whether the agent can pick it up."""
    return cell >= KEY << 3
