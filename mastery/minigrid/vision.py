"""What the agent sees: the 7 × 7 cells before it, less those that are hidden.

The view is indexed [i, j] as MiniGrid's: i from left to right, j from far to near; the agent is at
[3, 6] and looks towards j = 0.
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

# of each cell of the view, as one row of 49
_I, _J = (index.ravel().astype(np.int32) for index in np.mgrid[:VIEW, :VIEW])
_OWN = (_I == 3) & (_J == 6)  # the agent's own


def observe(state: State, edition: Edition = TODAY) -> Array:
    """The observation, uint8 (7, 7, 3): type, colour and state of each cell in MiniGrid's numbers.

    The agent's own cell shows what it carries; a cell that it cannot see is all zero.
    """
    return decode(once(seen_cells(state, edition)), edition)


def seen_cells(state: State, edition: Edition = TODAY) -> Array:
    """The observation with one byte for a cell, uint8 (7, 7), for networks that embed it."""
    cells = once(view(state)).reshape(*state.agent.shape, VIEW * VIEW)
    seen = jnp.where(_visible(cells, edition), cells, jnp.uint8(UNSEEN))
    seen = jnp.where(_OWN, state.carrying[..., None], seen)
    return seen.reshape(*state.agent.shape, VIEW, VIEW)


def decode(cells: Array, edition: Edition = TODAY) -> Array:
    """Cells in MiniGrid's numbers: type, colour and state along a new last axis, uint8."""
    return jnp.asarray(edition.decoded).at[cells].get(mode="promise_in_bounds")


def view(state: State) -> Array:
    """The cells before the agent, hidden or not, uint8 (7, 7).

    A position outside of the map is folded back into the grid, whatever is there: the outermost
    cells of a map are wall and never change, so that nothing beyond them is ever seen.
    """
    ahead, right = stride(state.direction)[..., None], stride(state.direction + 1)[..., None]
    position = (state.agent[..., None] + ahead * (VIEW - 1 - _J) + right * (_I - 3)) & 255
    return read(state.grid, position).reshape(*state.agent.shape, VIEW, VIEW)


def visible(cells: Array, edition: Edition = TODAY) -> Array:
    """Which cells of a view are seen, bool (7, 7)."""
    flat = cells.reshape(*cells.shape[:-2], VIEW * VIEW)
    return _visible(flat, edition).reshape(cells.shape)


def _visible(cells: Array, edition: Edition) -> Array:
    """MiniGrid's `process_vis`, on the 49 cells in a row.

    It goes over each row of the view from the agent's outwards, left to right and back. What comes
    of it: light that falls on a cell one can see through fills the whole run of such cells in that
    row, and shines on the neighbours of that run, diagonal ones included, in this row and in the
    next. In an edition that narrows, the farthest row only has the light of the row before it. A
    row of the view is a number of 7 bits here.
    """
    cells = cells.reshape(*cells.shape[:-1], VIEW, VIEW)
    bits = is_transparent(cells).astype(jnp.int32) << np.arange(VIEW, dtype=np.int32)[:, None]
    clear = bits.sum(-2, dtype=jnp.int32)
    light = jnp.full(cells.shape[:-2], 1 << 3, jnp.int32)  # on the agent's own cell
    near, far = jnp.zeros_like(light), jnp.zeros_like(light)  # rows 4 to 6, and 0 to 3
    for j in reversed(range(VIEW)):
        run = _fill(light & clear[..., j], clear[..., j])
        shine = (run | run << 1 | run >> 1) & 127
        if j == 0 and edition.narrows:
            shine = light
        if j >= 4:
            near |= (light | shine) << (VIEW * (j - 4))
        else:
            far |= (light | shine) << (VIEW * j)
        light = shine
    near, far = once((near, far))
    rows = jnp.where(_J >= 4, near[..., None], far[..., None])
    return rows & (1 << (VIEW * (_J & 3) + _I)) != 0


def _fill(seeds: Array, clear: Array) -> Array:
    """The runs of set bits of `clear` that hold a seed, in steps of 1, 2 and 4 to both sides."""
    filled, up, down = seeds, clear, clear
    for step in (1, 2, 4):
        filled = filled | (up & (filled << step)) | (down & (filled >> step))
        up, down = up & (up << step), down & (down >> step)
    return filled
