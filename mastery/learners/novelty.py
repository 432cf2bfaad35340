"""What is new in an episode: for each environment, a small set of the views it has shown.

A view is hashed into one of 1024 places, and is new if its place is still empty. Two views may
share a place; then the second is taken for known, more often so the more an episode has shown.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mastery.minigrid.vision import VIEW

Array = Any  # a JAX array
_BITS = 10
PLACES = 2**_BITS
# one factor for each cell, and the highest bits of the sum: any two views meet by chance alone
_FACTORS = np.random.default_rng(0).integers(2**32, size=(VIEW, VIEW), dtype=np.uint32)


def nothing(envs: int) -> Array:
    """The sets of environments that have shown nothing."""
    return jnp.zeros((envs, PLACES), bool)


def look(visited: Array, starts: Array, cells: Array) -> tuple[Array, Array]:
    """The sets with these views in them, and which of the views are new; (envs,) bool.

    starts: (envs,) bool, where an episode begins, with an empty set. cells: uint8 (envs, 7, 7).
    """
    sums = (cells.astype(jnp.uint32) * _FACTORS).sum((-2, -1), dtype=jnp.uint32)
    place = (sums >> (32 - _BITS))[:, None] == jnp.arange(PLACES, dtype=jnp.uint32)
    visited = visited & ~starts[:, None]
    return visited | place, ~(visited & place).any(-1)
