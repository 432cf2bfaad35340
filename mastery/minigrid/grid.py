"""A map of 16 × 16 cells, stored as 64 words of four cells for fast memory access."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from mastery.minigrid.tasks import SIDE

Array = Any  # a JAX array

WORDS = SIDE * SIDE // 4

# marks values to compute once and keep: otherwise the GPU compiler repeats the computation for
# every cell that uses them
once: Any = lax.optimization_barrier


def pack(cells: Array) -> Array:
    """Convert uint8 (16, 16), indexed [y, x], to uint32 (64,)."""
    fours = jnp.asarray(cells, jnp.uint8).reshape(*cells.shape[:-2], WORDS, 4)
    return lax.bitcast_convert_type(fours, jnp.uint32)


def unpack(grid: Array) -> NDArray[np.uint8]:
    """Convert uint32 (64,) to a NumPy array, uint8 (16, 16), indexed [y, x]."""
    words = np.ascontiguousarray(np.asarray(grid)).astype("<u4")
    return words.view(np.uint8).reshape(*words.shape[:-1], SIDE, SIDE)


def read(grid: Array, position: Array) -> Array:
    """Read cells at positions 16 · y + x, an array with one axis more than the environments."""
    position = position.astype(jnp.uint32)
    words = jnp.take_along_axis(grid, position >> 2, -1, mode="promise_in_bounds")
    return (words >> _shift(position)).astype(jnp.uint8)


def write(grid: Array, position: Array, cell: Array) -> Array:
    """Write a cell at a position; a position off the grid changes nothing."""
    position, cell = position.astype(jnp.uint32), cell.astype(jnp.uint32)
    shift = _shift(position)
    here = np.arange(WORDS, dtype=np.uint32) == (position >> 2)[..., None]
    cleared = grid & ~(jnp.uint32(0xFF) << shift)[..., None]
    return jnp.where(here, cleared | (cell << shift)[..., None], grid)


def _shift(position: Array) -> Array:
    return (position & 3) << 3
