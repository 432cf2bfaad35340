"""What the agent sees: the 7 × 7 cells ahead of it, except hidden ones.

The view is indexed [i, j] as in MiniGrid: i from left to right, j from far to near. The agent is at
[3, 6] and faces j = 0.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from mastery.minigrid.cells import UNSEEN, is_transparent
from mastery.minigrid.editions import TODAY, Edition
from mastery.minigrid.grid import Array, once, read
from mastery.minigrid.rules import stride
from mastery.minigrid.state import State

VIEW = 7

# i and j of each of the 49 cells, flattened
_I, _J = (index.ravel().astype(np.int32) for index in np.mgrid[:VIEW, :VIEW])
_OWN = (_I == 3) & (_J == 6)  # the agent's own cell


def observe(state: State, edition: Edition = TODAY) -> Array:
    """Return what the agent sees, in MiniGrid's numbers.

    Args:
        state: The states.
        edition: The edition whose view and numbers apply; static under `jit`.

    Returns:
        uint8 (…, 7, 7, 3): type, colour and state of each cell. The agent's own cell shows what it
        carries; a cell that it cannot see is all zeros.
    """
    return decode(once(seen_cells(state, edition)), edition)


def seen_cells(state: State, edition: Edition = TODAY) -> Array:
    """Return what the agent sees, with one byte per cell, for networks that embed it.

    Args:
        state: The states.
        edition: The edition whose view applies; static under `jit`.

    Returns:
        uint8 (…, 7, 7).
    """
    cells = once(view(state)).reshape(*state.agent.shape, VIEW * VIEW)
    seen = jnp.where(_visible(cells, edition), cells, jnp.uint8(UNSEEN))
    seen = jnp.where(_OWN, state.carrying[..., None], seen)
    return seen.reshape(*state.agent.shape, VIEW, VIEW)


def decode(cells: Array, edition: Edition = TODAY) -> Array:
    """Convert cells to MiniGrid's numbers.

    Args:
        cells: uint8, of any shape.
        edition: The edition whose numbers to use; static under `jit`.

    Returns:
        uint8, with type, colour and state along a new last axis.
    """
    return jnp.asarray(edition.decoded).at[cells].get(mode="promise_in_bounds")


def view(state: State) -> Array:
    """The cells ahead of the agent, hidden or not, uint8 (7, 7).

    A position off the grid wraps around to some other cell. That does no harm: the outermost cells
    of a map are always wall, so the agent never sees beyond them.
    """
    cells = read(state.grid, positions(state.agent, state.direction))
    return cells.reshape(*state.agent.shape, VIEW, VIEW)


def positions(agent: Array, direction: Array) -> Array:
    """The positions of the view's cells, flattened along a new last axis."""
    ahead, right = stride(direction)[..., None], stride(direction + 1)[..., None]
    return (agent[..., None] + ahead * (VIEW - 1 - _J) + right * (_I - 3)) & 255


def visible(cells: Array, edition: Edition = TODAY) -> Array:
    """Which cells of a view the agent sees, bool (7, 7)."""
    flat = cells.reshape(*cells.shape[:-2], VIEW * VIEW)
    return _visible(flat, edition).reshape(cells.shape)


def _visible(cells: Array, edition: Edition) -> Array:
    """MiniGrid's `process_vis`, on the 49 cells as one flat row.

    MiniGrid scans each row of the view, from the agent's row outwards, left to right and back. The
    result: light that falls on a transparent cell fills the whole run of transparent cells in that
    row, and lights the neighbours of that run, diagonal ones included, in this row and the next. If
    the edition `narrows`, the farthest row only gets the light of the row before it. Here a row of
    the view is a 7-bit number.
    """
    cells = cells.reshape(*cells.shape[:-1], VIEW, VIEW)
    bits = is_transparent(cells).astype(jnp.int32) << np.arange(VIEW, dtype=np.int32)[:, None]
    clear = bits.sum(-2, dtype=jnp.int32)
    light = jnp.full(cells.shape[:-2], 1 << 3, jnp.int32)  # on the agent's own cell
    near, far = jnp.zeros_like(light), jnp.zeros_like(light)  # rows 4 to 6, and 0 to 3
    for j in reversed(range(VIEW)):
        shine = light if j == 0 and edition.narrows else spread(light, clear[..., j])
        if j >= 4:
            near |= (light | shine) << (VIEW * (j - 4))
        else:
            far |= (light | shine) << (VIEW * j)
        light = shine
    near, far = once((near, far))
    rows = jnp.where(_J >= 4, near[..., None], far[..., None])
    return rows & (1 << (VIEW * (_J & 3) + _I)) != 0


def spread(light: Array, clear: Array) -> Array:
    """Where the light on a row of the view goes, in that row and on to the next. Both are 7-bit
    numbers, with the transparent cells in `clear`."""
    run = _fill(light & clear, clear)
    return (run | run << 1 | run >> 1) & 127


def _fill(seeds: Array, clear: Array) -> Array:
    """The runs of set bits in `clear` that hold a seed, found in steps of 1, 2 and 4 both ways."""
    filled, up, down = seeds, clear, clear
    for step in (1, 2, 4):
        filled = filled | (up & (filled << step)) | (down & (filled >> step))
        up, down = up & (up << step), down & (down >> step)
    return filled
