"""What an episode is made of: the level it starts from, and its state at each step.

Every array may have leading axes, one for a batch of environments or more (more than one only
through `jax.vmap` in `engine`); a field's shape below is that of one environment.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from mastery.minigrid.cells import EMPTY_CELL
from mastery.minigrid.grid import Array


class Level(NamedTuple):
    """Where an episode starts."""

    grid: Array  # uint32 (64,): the cells, four to a word; see grid.py
    agent: Array  # int32: 16 * y + x
    direction: Array  # int32: 0 right, 1 down, 2 left, 3 up
    target: Array  # uint8: the cell to pick up, or the open door to make
    task: Array  # int32: which of TASKS


class State(NamedTuple):
    """An episode after some steps."""

    grid: Array  # uint32 (64,)
    agent: Array  # int32
    direction: Array  # int32
    target: Array  # uint8
    task: Array  # int32
    carrying: Array  # uint8: a cell, EMPTY_CELL for nothing
    steps: Array  # int32: since the episode began


def start(level: Level) -> State:
    """The state before the first step."""
    return State(
        *level,
        carrying=jnp.full_like(level.target, EMPTY_CELL),
        steps=jnp.zeros_like(level.task),
    )
