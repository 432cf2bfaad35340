"""The level that an episode starts from, and its state at each step.

Comments give the shape for one environment. Arrays may have leading axes for batches of
environments; `engine` takes one such axis, and `jax.vmap` adds more.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from mastery.minigrid.cells import EMPTY_CELL
from mastery.minigrid.grid import Array


class Level(NamedTuple):
    """The start of an episode."""

    grid: Array  # uint32 (64,): the cells, four to a word; see grid.py
    agent: Array  # int32: 16 * y + x
    direction: Array  # int32: 0 right, 1 down, 2 left, 3 up
    target: Array  # uint8: the cell to pick up, or the door to open, as an open one
    task: Array  # int32: index into TASKS


class State(NamedTuple):
    """The state of an episode."""

    grid: Array  # uint32 (64,)
    agent: Array  # int32
    direction: Array  # int32
    target: Array  # uint8
    task: Array  # int32
    carrying: Array  # uint8: a cell; EMPTY_CELL for nothing
    steps: Array  # int32: since the episode began


def start(level: Level) -> State:
    """Return the state of a level before its first step."""
    return State(
        *level,
        carrying=jnp.full_like(level.target, EMPTY_CELL),
        steps=jnp.zeros_like(level.task),
    )
