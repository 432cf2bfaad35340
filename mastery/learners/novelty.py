"""Find views that are new in an episode, with a small hash set per environment.

A view is hashed to one of 1024 places, and is new if its place is empty. If two views share a
place, the second counts as known; this happens more often the more views an episode has shown.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mastery.minigrid.vision import VIEW

Array = Any  # a JAX array
_BITS = 10
PLACES = 2**_BITS
# one factor per cell, and the highest bits of the sum: views collide only by chance
_FACTORS = np.random.default_rng(0).integers(2**32, size=(VIEW, VIEW), dtype=np.uint32)


def nothing(envs: int) -> Array:
    """Make an empty set for each environment."""
    return jnp.zeros((envs, PLACES), bool)


def look(visited: Array, starts: Array, cells: Array) -> tuple[Array, Array]:
    """Add each environment's view to its set.

    Args:
        visited: The sets, bool (envs, PLACES).
        starts: bool (envs,), True where an episode begins, with an empty set.
        cells: The views, uint8 (envs, 7, 7).

    Returns:
        The new sets, and which views are new, bool (envs,).
    """
    sums = (cells.astype(jnp.uint32) * _FACTORS).sum((-2, -1), dtype=jnp.uint32)
    place = (sums >> (32 - _BITS))[:, None] == jnp.arange(PLACES, dtype=jnp.uint32)
    visited = visited & ~starts[:, None]
    return visited | place, ~(visited & place).any(-1)
