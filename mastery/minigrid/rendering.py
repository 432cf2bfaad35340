"""Draw a level, pixel for pixel as MiniGrid's `get_frame`.

To get the same pixels, a tile is drawn with the package's float operations in the same order, at
three times its size, and every conversion to uint8 truncates. The package tests each pixel against
a shape; here a shape returns the mask of a whole tile at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mastery.errors import MasteryError
from mastery.minigrid.cells import (
    BALL,
    BOX,
    CLOSED,
    COLOURS,
    EMPTY_CELL,
    KEY,
    KINDS,
    LOCKED,
    OPEN,
    UNLOCKED,
    WALL,
    colour,
    kind,
)
from mastery.minigrid.tasks import NORTH, SIDE

Image = NDArray[np.uint8]
Floats = NDArray[np.float64]
Shape = Callable[[Floats, Floats], NDArray[np.bool_]]  # x, y (0 to 1 over a tile) → mask

_VIEW = 7  # the view is 7 × 7 cells, with the agent in the middle of the last row
_MIDDLE, _LAST = _VIEW // 2, _VIEW - 1
_STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # x, y of a step in each direction
_SUPERSAMPLING = 3
_NO_AGENT = -1


def render(
    grid: ArrayLike,
    agent: int,
    direction: int,
    *,
    width: int = SIDE,
    height: int = SIDE,
    visible: ArrayLike | None = None,
    tile: int = 32,
) -> Image:
    """Draw the whole map from above.

    Args:
        grid: uint8 (16, 16) cells indexed [y, x]. The top left `height` × `width` is the map.
        agent: The agent's position, 16 y + x.
        direction: 0 right, 1 down, 2 left, 3 up.
        width: Width of the map in cells.
        height: Height of the map in cells.
        visible: Cells to draw lighter because the agent sees them, bool (7, 7) indexed [i, j] as
            its view. None highlights nothing.
        tile: Width of a cell in pixels.

    Returns:
        The picture, uint8 (height · tile, width · tile, 3).

    Raises:
        MasteryError: If an argument is invalid.

    Example:
        >>> render(unpack(state.grid), int(state.agent), int(state.direction), width=11, height=6)
    """
    cells = _array("grid", grid, SIDE, np.uint8)
    for name, size in (("width", width), ("height", height)):
        if not 1 <= size <= SIDE:
            raise MasteryError(f"{name} is {size}: a map has 1 to {SIDE} cells a side")
    direction = int(direction)
    y, x = divmod(int(agent), SIDE)
    if not (0 <= y < height and 0 <= x < width):
        raise MasteryError(
            f"agent is {agent}, that is x = {x}, y = {y}, outside of the {width} × {height} map; "
            f"give {SIDE} y + x, and the width and height of its task"
        )
    if direction not in range(4):
        raise MasteryError(f"direction is {direction}: give 0 right, 1 down, 2 left or 3 up")
    highlight = np.zeros((height, width), bool)
    if visible is not None:
        ahead_x, ahead_y = _STEPS[direction]
        i, j = np.nonzero(_array("visible", visible, _VIEW, np.bool_))
        ahead, right = _LAST - j, i - _MIDDLE
        xs = x + ahead_x * ahead - ahead_y * right
        ys = y + ahead_y * ahead + ahead_x * right
        inside = (xs >= 0) & (xs < width) & (ys >= 0) & (ys < height)
        highlight[ys[inside], xs[inside]] = True
    return _assemble(cells[:height, :width], highlight, (y, x), direction, tile)


def render_view(
    cells: ArrayLike, visible: ArrayLike, carrying: int = EMPTY_CELL, *, tile: int = 32
) -> Image:
    """Draw the agent's view, with the agent facing up.

    Args:
        cells: uint8 (7, 7) indexed [i, j]: from left to right, from far to near.
        visible: bool (7, 7), indexed in the same way. Cells that the agent cannot see are drawn
            empty.
        carrying: The cell that the agent carries. It is drawn in the agent's own cell, even if the
            agent stands in an open door.
        tile: Width of a cell in pixels.

    Returns:
        The picture, uint8 (7 · tile, 7 · tile, 3).

    Raises:
        MasteryError: If an argument is invalid.
    """
    seen = _array("visible", visible, _VIEW, np.bool_)
    shown = np.where(seen, _array("cells", cells, _VIEW, np.uint8), EMPTY_CELL)
    shown[_MIDDLE, _LAST] = carrying
    return _assemble(shown.T, seen.T, (_LAST, _MIDDLE), NORTH, tile)


def _array(name: str, value: ArrayLike, side: int, dtype: type[np.generic]) -> NDArray[Any]:
    array = np.asarray(value)
    if array.shape != (side, side) or array.dtype != dtype:
        raise MasteryError(
            f"{name} is {array.dtype} of shape {array.shape}: "
            f"give {np.dtype(dtype)} of shape {(side, side)}"
        )
    return array


def _assemble(
    cells: NDArray[Any],
    highlight: NDArray[np.bool_],
    agent: tuple[int, int],
    direction: int,
    tile: int,
) -> Image:
    """Draw cells indexed [y, x]; each distinct tile is looked up once."""
    if tile < 1:
        raise MasteryError(f"tile is {tile}: a tile is at least 1 pixel a side")
    looks = cells.astype(np.int64) << 1 | highlight
    row, column = agent
    own, looks[row, column] = looks[row, column], -1  # the one tile with the agent on it
    different, numbers = np.unique(looks, return_inverse=True)
    tiles = [_draw_tile(int(own) >> 1, direction, bool(own & 1), tile)]  # −1 comes first
    tiles += [
        _draw_tile(look >> 1, _NO_AGENT, bool(look & 1), tile) for look in different.tolist()[1:]
    ]
    height, width = cells.shape
    atlas = np.stack(tiles).reshape(-1, 3 * tile)  # the pixel rows of all tiles
    rows = numbers.reshape(height, 1, width) * tile + np.arange(tile)[:, None]
    image: Image = atlas.take(rows, axis=0).reshape(height * tile, width * tile, 3)
    return image


def _rectangle(left: float, right: float, top: float, bottom: float) -> Shape:
    return lambda x, y: (x >= left) & (x <= right) & (y >= top) & (y <= bottom)


def _circle(cx: float, cy: float, r: float) -> Shape:
    return lambda x, y: (x - cx) * (x - cx) + (y - cy) * (y - cy) <= r * r


def _agent(direction: int) -> Shape:
    """The agent's triangle abc, rotated to its direction, in barycentric coordinates u, v."""
    a, b, c = np.array([(0.12, 0.19), (0.87, 0.50), (0.12, 0.81)], np.float32)
    theta = 0.5 * math.pi * direction
    cos, sin = math.cos(-theta), math.sin(-theta)

    def mask(x: Floats, y: Floats) -> NDArray[np.bool_]:
        x, y = np.broadcast_arrays(x - 0.5, y - 0.5)
        turned = np.stack([0.5 + x * cos - y * sin, 0.5 + y * cos + x * sin], axis=-1)
        # vecdot is np.dot per pixel: multiplying and summing ourselves could round differently
        v0, v1, v2 = c - a, b - a, turned - a
        dot00, dot01, dot11 = np.dot(v0, v0), np.dot(v0, v1), np.dot(v1, v1)
        dot02, dot12 = np.vecdot(v0, v2), np.vecdot(v1, v2)
        scale = 1 / (dot00 * dot11 - dot01 * dot01)
        u = (dot11 * dot02 - dot01 * dot12) * scale
        v = (dot00 * dot12 - dot01 * dot02) * scale
        return np.asarray((u >= 0) & (v >= 0) & (u + v < 1))

    return mask


_RGB = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "purple": (112, 39, 195),
    "yellow": (255, 255, 0),
    "grey": (100, 100, 100),
}
_GRID_LINES = (_rectangle(0, 0.031, 0, 1), _rectangle(0, 1, 0, 0.031))
_FULL = _rectangle(0, 1, 0, 1)

# how to draw each kind: shapes from bottom to top, each with its share of the cell's colour
_DRAWINGS: dict[int, tuple[tuple[Shape, float], ...]] = {
    WALL: ((_FULL, 1),),
    LOCKED: (
        (_FULL, 1),
        (_rectangle(0.06, 0.94, 0.06, 0.94), 0.45),
        (_rectangle(0.52, 0.75, 0.50, 0.56), 1),
    ),
    CLOSED: (
        (_FULL, 1),
        (_rectangle(0.04, 0.96, 0.04, 0.96), 0),
        (_rectangle(0.08, 0.92, 0.08, 0.92), 1),
        (_rectangle(0.12, 0.88, 0.12, 0.88), 0),
        (_circle(0.75, 0.50, 0.08), 1),
    ),
    OPEN: (
        (_rectangle(0.88, 1.00, 0.00, 1.00), 1),
        (_rectangle(0.92, 0.96, 0.04, 0.96), 0),
    ),
    KEY: (
        (_rectangle(0.50, 0.63, 0.31, 0.88), 1),
        (_rectangle(0.38, 0.50, 0.59, 0.66), 1),
        (_rectangle(0.38, 0.50, 0.81, 0.88), 1),
        (_circle(0.56, 0.28, 0.190), 1),
        (_circle(0.56, 0.28, 0.064), 0),
    ),
    BALL: ((_circle(0.5, 0.5, 0.31), 1),),
    BOX: (
        (_rectangle(0.12, 0.88, 0.12, 0.88), 1),
        (_rectangle(0.18, 0.82, 0.18, 0.82), 0),
        (_rectangle(0.16, 0.84, 0.47, 0.53), 1),
    ),
}
_DRAWINGS[UNLOCKED] = _DRAWINGS[OPEN]


@lru_cache(maxsize=1024)
def _draw_tile(cell: int, direction: int, highlight: bool, tile: int) -> Image:
    """Draw one cell, with the agent on it unless `direction` is `_NO_AGENT`."""
    if kind(cell) >= KINDS or colour(cell) >= len(COLOURS):
        raise MasteryError(f"cell {cell} is of no kind and colour that there is; see cells.py")
    size = _SUPERSAMPLING * tile
    x = (np.arange(size) + 0.5) / size
    x, y = x[None, :], x[:, None]
    image = np.zeros((size, size, 3), np.uint8)
    for line in _GRID_LINES:
        image[line(x, y)] = _RGB["grey"]
    rgb = np.array(_RGB[COLOURS[colour(cell)]])
    # a box looks the same whatever it holds; unseen and empty cells have no drawing
    what = BOX if BOX < kind(cell) < UNLOCKED else kind(cell)
    for shape, share in _DRAWINGS.get(what, ()):
        image[shape(x, y)] = (share * rgb).astype(np.uint8)
    if direction != _NO_AGENT:
        image[_agent(direction)(x, y)] = _RGB["red"]
    if highlight:
        image = (image + 0.30 * (255 - image)).astype(np.uint8)
    blocks = image.reshape(tile, _SUPERSAMPLING, tile, _SUPERSAMPLING, 3)
    drawn: Image = blocks.mean(axis=3).mean(axis=1).astype(np.uint8)
    drawn.flags.writeable = False  # the cache shares this array
    return drawn
