"""The rules and the view as tables, to step a single environment without JAX.

A compiled call costs more than a step, so one environment looks up what the functions of `rules`
and `vision` return. They are called here for every case there is, so there is no second set of
rules.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mastery.minigrid.actions import ACTIONS
from mastery.minigrid.cells import KINDS, is_transparent
from mastery.minigrid.editions import Edition
from mastery.minigrid.rules import effect, stride, turned
from mastery.minigrid.vision import VIEW, positions, spread

CELLS = 8 * KINDS  # all cells are below
OWN = 6 * 8 + 3  # the agent's own cell, among 56


class Tables(NamedTuple):
    """All that may happen in a step. An index `(action * CELLS + seen) * CELLS + carrying` is named
    `case`: the action, the cell ahead and the carried cell.

    The view is 56 cells: seven rows, far to near, of seven cells and one more, which stays unseen.
    """

    left: bytes  # (case): the cell ahead, after the action
    carrying: bytes  # (case): the carried cell, after the action
    touched: bytes  # (case): the goal is reached if it is this cell
    walks: bytes  # (case): whether the agent moves
    turned: bytes  # (action * 4 + direction): the new direction
    stride: tuple[int, ...]  # (direction): from the agent to the cell ahead
    view: NDArray[np.intp]  # (direction * 256 + agent, 56): the positions of the view's cells
    spread: bytes  # (light * 128 + clear): the light of the next row of the view
    narrows: bool  # the farthest row only gets the light of the row before it
    decoded: NDArray[np.uint8]  # (256, 3): a cell in MiniGrid's numbers

    def see(self, grid: NDArray[np.uint8], at: int, carrying: int) -> NDArray[np.uint8]:
        """What the agent sees, uint8 (7, 7, 3); see `vision.observe`.

        Args:
            grid: The cells of the map, (256,).
            at: direction * 256 + agent.
            carrying: What the agent carries.
        """
        cells = grid.take(self.view[at])
        clear = np.packbits(is_transparent(cells), bitorder="little").tobytes()
        light, rows, table = 1 << 3, bytearray(VIEW), self.spread
        for j in (6, 5, 4, 3, 2, 1):
            shine = table[light << 7 | clear[j] & 127]
            rows[j] = light | shine
            light = shine
        rows[0] = light if self.narrows else light | table[light << 7 | clear[0] & 127]
        cells *= np.unpackbits(np.frombuffer(rows, np.uint8), bitorder="little")  # UNSEEN is 0
        cells[OWN] = carrying
        image: NDArray[np.uint8] = self.decoded.take(cells.reshape(VIEW, 8)[:, :VIEW].T, axis=0)
        return image


@lru_cache(maxsize=8)
def tables_of(edition: Edition) -> Tables:
    """The tables of an edition."""
    (left, carrying, touched, walks), new, ahead, view, light = jax.tree.map(
        np.asarray, _tabulate(edition)
    )
    rows = view.reshape(4 * 256, VIEW, VIEW).swapaxes(1, 2)  # j before i
    return Tables(
        left.tobytes(),
        carrying.tobytes(),
        touched.tobytes(),
        walks.tobytes(),
        new.astype(np.uint8).tobytes(),
        tuple(ahead.tolist()),
        np.pad(rows, ((0, 0), (0, 0), (0, 1))).reshape(4 * 256, 8 * VIEW).astype(np.intp),
        light.astype(np.uint8).tobytes(),
        edition.narrows,
        edition.decoded,
    )


def _tabulate(edition: Edition) -> Any:
    action, cell = np.arange(len(ACTIONS)), np.arange(CELLS, dtype=np.uint8)
    directions, lights = np.arange(4), np.arange(1 << VIEW)

    def all_cases() -> Any:
        every = effect(action[:, None, None], cell[:, None], cell, edition)
        shape = (len(action), CELLS, CELLS)
        return (
            tuple(jnp.broadcast_to(x, shape) for x in every),
            turned(directions, action[:, None]),
            stride(directions),
            positions(np.arange(256), directions[:, None]),
            spread(lights[:, None], lights),
        )

    return jax.jit(all_cases)()
