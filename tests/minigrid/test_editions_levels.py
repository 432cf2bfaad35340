"""Levels of the editions of MiniGrid: what differs, how often, and that the planner solves them."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mastery import MasteryError
from mastery.minigrid.actions import DONE
from mastery.minigrid.cells import (
    BALL,
    BOX_WITH_KEY,
    CLOSED,
    GREEN,
    KEY,
    LOCKED,
    UNLOCKED,
    WALL,
)
from mastery.minigrid.editions import find_edition
from mastery.minigrid.grid import unpack
from mastery.minigrid.levels import generate
from mastery.minigrid.planner import plan
from mastery.minigrid.rules import act
from mastery.minigrid.state import start
from mastery.minigrid.tasks import NAMES, TASKS

TODAY, OLD, OLD_RULES, OLD_VIEW, PLAIN_DOORS = map(
    find_edition, ("3.2.0", "2018", "2018-rules", "2018-view", "2018-plain-doors")
)
GREEN_BALL = BALL << 3 | GREEN
new_levels = jax.jit(generate, static_argnums=2)
AT_ONCE = 720  # so that each edition is compiled once

MAZES_WITH_BALLS = ("1Dlhb", "2Dlhb", "1Q", "2Q", "Full")
# How often no key of a door to the goal is left. A room has 16 cells. Where it has one key, that
# is where its ball comes with probability 1/16. Where it has two, the first is under one of two
# balls with 2/16; the second, which is never on the first key or ball, is under the second ball
# with 1/16 · 1/15 (the first key is under the first ball) + 14/16 · 1/14 (it is under none).
FIRST, SECOND = Fraction(1, 8), Fraction(1, 16) * Fraction(1, 15) + Fraction(1, 16)
UNSOLVABLE = {
    "1Dlhb": Fraction(1, 16),
    "2Dlhb": FIRST,
    "1Q": FIRST,
    # one corner has one door; the other has two, with the keys of two rooms
    "2Q": (FIRST + SECOND * FIRST) / 2,
    # each corner has two doors, and some doors have the colour of a third or fourth key
    "Full": (
        FIRST * SECOND
        + SECOND * FIRST * FIRST
        + SECOND * FIRST * FIRST * SECOND
        + SECOND * FIRST * SECOND
    )
    / 4,
}


def made(tasks, edition, seed=0):
    """Levels of these tasks, on the host."""
    parts = np.asarray(tasks, np.int32).reshape(-1, AT_ONCE)
    keys = jax.random.split(jax.random.key(seed), len(parts))
    levels = [new_levels(key, jnp.asarray(p), edition) for key, p in zip(keys, parts, strict=True)]
    return jax.tree.map(lambda *x: np.concatenate(x), *levels)


def buried(grid: np.ndarray, target: int) -> bool:
    """Whether no door to the goal's room has a key: all are under balls. Rooms are 6 × 6."""
    y, x = (int(n) for n in np.argwhere(grid == target)[0])
    x, y = x // 5 * 5, y // 5 * 5
    around = grid[y : y + 6, x : x + 6]
    doors = {int(cell & 7) for cell in around[around >> 3 == LOCKED]}
    kinds = grid >> 3
    keys = {int(cell & 7) for cell in grid[kinds == KEY]}
    hidden = kinds[(kinds >= BOX_WITH_KEY) & (kinds < UNLOCKED)]
    keys |= {int(kind) - BOX_WITH_KEY for kind in hidden}
    return not doors & keys


def is_near(count: int, n: int, p: Fraction) -> bool:
    """Within four standard deviations of a binomial count."""
    return abs(count - n * p) <= 4 * (n * p * (1 - p)) ** 0.5


def test_in_2018_a_ball_replaces_the_key_of_some_blocked_mazes():
    n = 5 * AT_ONCE
    ids = [NAMES.index(f"ObstructedMaze-{name}") for name in MAZES_WITH_BALLS]
    ids.append(NAMES.index("BlockedUnlockPickup"))
    tasks = np.repeat(ids, n)
    for edition in (OLD, TODAY):
        levels = made(tasks, edition, seed=1)
        grids = unpack(levels.grid)
        found = [buried(g, t) for g, t in zip(grids, levels.target, strict=True)]
        counts = np.reshape(found, (-1, n)).sum(1).tolist()
        assert counts[-1] == 0  # BlockedUnlockPickup's key keeps off the ball
        if edition is TODAY:
            assert counts == [0] * 6
        else:
            for count, name in zip(counts, MAZES_WITH_BALLS, strict=False):
                assert is_near(count, n, UNSOLVABLE[name]), name
            kinds = grids[:n] >> 3  # 1Dlhb has one box, or the ball that came over it
            boxes = ((kinds >= BOX_WITH_KEY) & (kinds < UNLOCKED)).sum((1, 2))
            assert np.array_equal(boxes == 0, found[:n])
            assert boxes.max() == 1
            assert ((grids[:n] == GREEN_BALL).sum((1, 2)) == 1).all()


def test_where_the_agent_of_2q_starts():
    two_quarters = np.full(AT_ONCE, NAMES.index("ObstructedMaze-2Q"))
    for edition, (left, top) in (
        (TODAY, (10, 5)), (OLD_VIEW, (10, 5)),
        (OLD, (5, 5)), (OLD_RULES, (5, 5)), (PLAIN_DOORS, (5, 5)),
    ):  # fmt: skip
        y, x = np.divmod(made(two_quarters, edition).agent, 16)
        assert set(x) == set(range(left + 1, left + 5))
        assert set(y) == set(range(top + 1, top + 5))


def test_nothing_else_about_levels_differs():
    tasks = np.arange(AT_ONCE) % 18
    today, old, rules, view, plain = (
        made(tasks, e, seed=2) for e in (TODAY, OLD, OLD_RULES, OLD_VIEW, PLAIN_DOORS)
    )
    is_unlock = tasks == NAMES.index("Unlock")
    is_blocked_maze = np.array([TASKS[t].maze and TASKS[t].blocked for t in tasks])
    assert is_blocked_maze.sum() == 5 * 40
    target = np.where(is_unlock, today.target & 7 | UNLOCKED << 3, today.target)
    for other in (rules, plain):
        assert all(np.array_equal(a, b) for a, b in zip(old, other, strict=True))
    for other, same in ((old, ~is_blocked_maze), (view, np.ones_like(is_unlock))):
        assert np.array_equal(other.target, target)
        for name in ("grid", "agent", "direction", "task"):
            assert np.array_equal(getattr(other, name)[same], getattr(today, name)[same])
    # in blocked mazes only keys and the agent are elsewhere: walls, doors, balls and goal are not
    ours, theirs = unpack(old.grid), unpack(today.grid)
    for kinds in ((WALL, LOCKED, CLOSED), (BALL,)):
        here = np.isin(theirs >> 3, kinds)
        assert np.array_equal(ours[here], theirs[here])
        assert np.array_equal(np.isin(ours >> 3, kinds), here)


# ---- the planner


@partial(jax.jit, static_argnums=2)
def success(state, actions, edition):
    """Where each step reached the goal, (steps, levels)."""

    def one(state, action):
        state, outcome = act(state, action, edition=edition)
        return state, outcome.terminated

    return jax.lax.scan(one, state, actions)[1]


def unsolved(levels, edition, longest=1024) -> np.ndarray:
    """Which levels the planner finds no way through. What it finds reaches the goal with its last
    step and not before."""
    grids, failed = unpack(levels.grid), np.zeros(len(levels.task), bool)
    actions = np.full((longest, len(levels.task)), DONE, np.int32)
    ends = np.zeros(len(levels.task), int)
    for n, grid in enumerate(grids):
        where = int(levels.agent[n]), int(levels.direction[n]), int(levels.target[n])
        try:
            found = plan(grid, *where, edition=edition)
        except MasteryError:
            failed[n] = True
            continue
        assert len(found) <= TASKS[levels.task[n]].n_max
        actions[: len(found), n], ends[n] = found, len(found) - 1
    won = np.asarray(success(jax.tree.map(jnp.asarray, start(levels)), actions, edition))
    assert np.array_equal(won.argmax(0)[~failed], ends[~failed])
    assert won.any(0)[~failed].all()
    return failed


def hopeless(levels) -> np.ndarray:
    """Which levels are blocked mazes with the keys to the goal under balls."""
    found = np.zeros(len(levels.task), bool)
    for n, task in enumerate(levels.task):
        if TASKS[task].maze and TASKS[task].blocked:
            found[n] = buried(unpack(levels.grid[n]), int(levels.target[n]))
    return found


@pytest.mark.parametrize("edition", [OLD, OLD_VIEW], ids=lambda e: e.name)
def test_the_planner_solves_every_level_that_can_be_solved(edition):
    tasks = np.arange(AT_ONCE) % 18
    levels = made(tasks, edition, seed=3)
    failed = unsolved(levels, edition)
    assert np.array_equal(failed, hopeless(levels))
    assert failed.any() == (edition is OLD)


@pytest.mark.slow
@pytest.mark.parametrize("task", range(18), ids=NAMES)
def test_the_planner_solves_ten_thousand_levels_but_those_without_a_key(task):
    n, name = 14 * AT_ONCE, NAMES[task].removeprefix("ObstructedMaze-")
    levels = made(np.full(n, task), OLD, seed=4)
    failed = unsolved(levels, OLD)
    share = UNSOLVABLE.get(name, Fraction(0))
    print(f"{name}: {failed.mean():.2%} of levels unsolved; {float(share):.2%} expected")
    assert np.array_equal(failed, hopeless(levels))
    assert is_near(int(failed.sum()), n, share)
