"""Levels: each can be solved, and they follow the same law as the package's."""

from __future__ import annotations

import gymnasium
import jax
import jax.numpy as jnp
import minigrid  # noqa: F401  (registers its environments)
import numpy as np
import pytest
from scipy.stats import chi2

from mastery.minigrid import cells as c
from mastery.minigrid.grid import unpack
from mastery.minigrid.levels import generate
from mastery.minigrid.planner import plan
from mastery.minigrid.rules import act
from mastery.minigrid.state import start
from mastery.minigrid.tasks import NAMES, TASKS

ids = pytest.mark.parametrize("task", range(len(NAMES)), ids=NAMES)
jitted = jax.jit(generate)


def our_levels(task: int, count: int, seed: int):
    """Levels of ours on the host, made in parts of one size, so that there is one compile."""
    parts = [
        jax.tree.map(np.asarray, jitted(key, jnp.full(500, task, jnp.int32)))
        for key in jax.random.split(jax.random.key(seed), -(-count // 500))
    ]
    return jax.tree.map(lambda *x: np.concatenate(x)[:count], *parts)


# ---- they can be solved


def solved(task: int, count: int, seed: int) -> tuple[int, int]:
    """How many levels the planner solves, as the engine sees it; and the longest plan."""
    levels = our_levels(task, count, seed)
    grids = unpack(levels.grid)
    plans = [
        plan(grids[i], int(levels.agent[i]), int(levels.direction[i]), int(levels.target[i]))
        for i in range(count)
    ]
    longest = max(map(len, plans))
    actions = np.full((max(longest, 128), count), 6, np.int32)
    for i, steps in enumerate(plans):
        actions[: len(steps), i] = steps
    _, outcome = jax.lax.scan(act, jax.tree.map(jnp.asarray, start(levels)), actions)
    won = np.asarray(outcome.terminated)
    at = np.array([len(steps) - 1 for steps in plans])
    return int(won[at, np.arange(count)].sum()), longest


@ids
def test_every_level_can_be_solved(task):
    count, longest = solved(task, 500, seed=0)
    assert count == 500
    assert longest <= TASKS[task].n_max


@pytest.mark.slow
@ids
def test_ten_thousand_levels_can_be_solved(task):
    count, longest = solved(task, 10_000, seed=1)
    print(f"{NAMES[task]}: {count:,} of 10,000 levels solved, the longest plan has {longest} steps")
    assert count == 10_000


# ---- they follow the package's law


class Sample:
    """Levels as plain arrays: bytes of the grid, agent and direction."""

    def __init__(self, grid, agent, direction) -> None:
        self.grid = np.asarray(grid, np.uint8).reshape(-1, 256)
        self.agent, self.direction = np.asarray(agent), np.asarray(direction)


def package_sample(task: int, count: int, seed: int) -> Sample:
    env = gymnasium.make(TASKS[task].id, disable_env_checker=True).unwrapped
    simple = {"wall": c.WALL, "key": c.KEY, "ball": c.BALL, "box": c.BOX}
    grid = np.full((count, 16, 16), c.WALL_CELL, np.uint8)
    agent, direction = np.zeros(count, int), np.zeros(count, int)
    for n in range(count):
        env.reset(seed=seed * 1_000_003 + n)
        for place, thing in enumerate(env.grid.grid):
            y, x = divmod(place, env.width)
            if thing is None:
                grid[n, y, x] = c.EMPTY_CELL
            elif thing.type != "wall":
                kind = simple.get(thing.type, c.LOCKED)
                if thing.type == "door":
                    kind = c.LOCKED if thing.is_locked else c.CLOSED
                elif thing.contains is not None:
                    kind = c.BOX_WITH_KEY + c.COLOURS.index(thing.contains.color)
                grid[n, y, x] = kind << 3 | c.COLOURS.index(thing.color)
        agent[n] = env.agent_pos[1] * 16 + env.agent_pos[0]
        direction[n] = env.agent_dir
    return Sample(grid, agent, direction)


def our_sample(task: int, count: int, seed: int) -> Sample:
    levels = our_levels(task, count, seed)
    return Sample(unpack(levels.grid), levels.agent, levels.direction)


def features(task: int, sample: Sample) -> dict[str, np.ndarray]:
    """What is compared: for each feature one whole number a level."""
    kind, colour = sample.grid >> 3, sample.grid & 7
    hidden = kind >= c.BOX_WITH_KEY
    found = {
        "agent": sample.agent,
        "direction": sample.direction,
        "agent and direction": sample.agent * 4 + sample.direction,
    }
    groups = {
        "key": (kind == c.KEY) | hidden,
        "box": kind >= c.BOX,
        "ball": kind == c.BALL,
        "blue ball": (kind == c.BALL) & (colour == c.BLUE),
        "locked door": kind == c.LOCKED,
        "closed door": kind == c.CLOSED,
    }
    for name, here in groups.items():
        first = np.where(here.any(1), here.argmax(1), 256)
        last = np.where(here.any(1), 255 - here[:, ::-1].argmax(1), 256)
        found[f"first {name}"] = first
        found[f"last {name}"] = last
        found[f"how many: {name}"] = here.sum(1)
        rows = np.arange(len(here)), np.minimum(first, 255)
        found[f"cell of the first {name}"] = np.where(here.any(1), sample.grid[rows], 0)
        rows = np.arange(len(here)), np.minimum(last, 255)
        found[f"cell of the last {name}"] = np.where(here.any(1), sample.grid[rows], 0)
        found[f"from agent to {name}"] = first - sample.agent
    found["colours of the locked doors"] = _several(sample.grid, groups["locked door"])
    found["from key to door"] = found["first key"] * 257 + found["first locked door"]
    found["from key to goal"] = found["first key"] * 257 + found["last ball"]
    door = (kind == c.LOCKED) | (kind == c.CLOSED)
    found["walls with doors"] = (door * _wall_bits(TASKS[task].room_size - 1)).sum(1)
    for place in range(256):
        found[f"cell {place}"] = kind[:, place]
    return found


def _several(grid: np.ndarray, here: np.ndarray) -> np.ndarray:
    """The colours of the first two things, in the order of their places, as one number."""
    order = np.argsort(~here, axis=1, kind="stable")[:, :2]
    rows = np.arange(len(grid))[:, None]
    colours = np.where(here[rows, order], (grid & 7)[rows, order], 7)
    return colours @ np.array([1, 8])


def _wall_bits(step: int) -> np.ndarray:
    """For each cell a bit for the wall between two rooms that it is part of, 0 inside a room."""
    y, x = np.mgrid[:16, :16]
    beside = np.where(x % step == 0, 1 << (4 * (y // step) + x // step), 0)
    below = np.where(y % step == 0, 1 << (16 + 4 * (y // step) + x // step), 0)
    return np.where(beside > 0, beside, below).ravel()


def p_value(a: np.ndarray, b: np.ndarray) -> float | None:
    """χ² of two samples of the same size; what is seen fewer than ten times is one category.

    None when there is nothing to compare: the same value in all levels.
    """
    values, index = np.unique(np.concatenate([a, b]), return_inverse=True)
    counts = np.stack(
        [np.bincount(part, minlength=len(values)) for part in (index[: len(a)], index[len(a) :])]
    )
    rare = counts.sum(0) < 10
    counts = np.concatenate([counts[:, ~rare], counts[:, rare].sum(1, keepdims=True)], axis=1)
    counts = counts[:, counts.sum(0) >= 10]
    if counts.shape[1] < 2:
        return None
    expected = counts.sum(0) * counts.sum(1, keepdims=True) / counts.sum()
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.shape[1] - 1))


def smallest(task: int, a: Sample, b: Sample) -> tuple[float, str, int]:
    """The smallest p-value of all features times how many there are (Bonferroni), and which."""
    first, second = features(task, a), features(task, b)
    values = {name: p_value(first[name], second[name]) for name in first}
    known = {name: value for name, value in values.items() if value is not None}
    worst = min(known, key=known.__getitem__)
    return known[worst] * len(known), worst, len(known)


LEVEL = 0.01 / len(NAMES)  # one false alarm in a hundred runs of all tasks


@ids
def test_levels_follow_the_law_of_the_package(task):
    p, worst, _ = smallest(task, package_sample(task, 500, seed=0), our_sample(task, 500, seed=0))
    assert p > LEVEL, worst


@pytest.mark.slow
@ids
def test_twenty_thousand_levels_follow_the_law_of_the_package(task):
    theirs, ours = package_sample(task, 20_000, seed=1), our_sample(task, 20_000, seed=1)
    p, worst, tests = smallest(task, theirs, ours)
    print(f"{NAMES[task]}: {tests} tests, smallest corrected p {min(p, 1):.3f} ({worst})")
    assert p > LEVEL


def test_a_wrong_law_is_noticed():
    """Without what MiniGrid does by accident, its goal never beside the middle, the test fails."""
    task = NAMES.index("UnlockPickup")
    ours = our_sample(task, 500, seed=0)
    rng = np.random.default_rng(0)
    for n in range(500):  # the box anywhere in the right room
        box = np.flatnonzero(ours.grid[n] >> 3 == c.BOX)[0]
        cell, ours.grid[n, box] = ours.grid[n, box], c.EMPTY_CELL
        ours.grid[n, 16 * rng.integers(1, 5) + rng.integers(6, 10)] = cell
    p, worst, _ = smallest(task, package_sample(task, 500, seed=0), ours)
    assert p < 1e-9
    assert "box" in worst or "cell" in worst


def test_the_same_key_gives_the_same_levels_and_another_key_others():
    a, b, other = (our_levels(17, 50, seed) for seed in (3, 3, 4))
    assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert not np.array_equal(a.grid, other.grid)


def test_tasks_can_be_mixed_in_one_batch():
    tasks = jnp.arange(360) % 18
    levels = jax.tree.map(np.asarray, jax.jit(generate)(jax.random.key(0), tasks))
    assert np.array_equal(levels.task, tasks)
    for n, task in enumerate(levels.task):
        shape = TASKS[task]
        grid = unpack(levels.grid[n])
        outside = np.ones((16, 16), bool)
        outside[1 : shape.height - 1, 1 : shape.width - 1] = False
        assert (grid[outside] == c.WALL_CELL).all()
        goal = {"door": c.OPEN, "box": c.BOX, "ball": c.BALL}[shape.goal]
        assert levels.target[n] >> 3 == goal
        assert (grid == levels.target[n]).sum() == (shape.goal != "door")
        assert grid.ravel()[levels.agent[n]] == c.EMPTY_CELL


def test_a_batch_can_have_more_axes_than_one():
    tasks = jnp.array([[0, 5, 9], [12, 15, 17]])
    square = jax.jit(generate)(jax.random.key(0), tasks)
    assert square.grid.shape == (2, 3, 64)
    assert square.agent.shape == square.target.shape == (2, 3)
