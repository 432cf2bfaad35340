"""Many environments: fresh levels, reuse, probabilities, one compile."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mastery import MasteryError
from mastery.minigrid import NAMES, engine
from mastery.minigrid.cells import LOCKED
from mastery.minigrid.engine import refill, renew, reset
from mastery.minigrid.grid import unpack
from mastery.minigrid.rules import N_MAX
from mastery.minigrid.vision import observe

UNIFORM = np.ones(18, np.float32)

jit_reset = partial(jax.jit, static_argnums=(2, 3))(reset)
jit_renew, jit_refill = jax.jit(renew), jax.jit(refill)
jit_step = jax.jit(engine.step)


def rows(grid):
    return [row.tobytes() for row in np.asarray(grid).reshape(-1, 64)]


def test_levels_are_taken_in_turn_and_going_round_is_counted():
    pool, state = jit_reset(jax.random.key(0), UNIFORM, 4, 3)
    assert np.array_equal(state.grid, pool.levels.grid[0])  # the first of the queue is taken
    assert pool.taken.tolist() == [1, 1, 1, 1]
    ended = np.array([True, False, False, True])
    for turn in (1, 2):
        state, pool = jit_renew(state, pool, ended)
        assert np.array_equal(np.asarray(state.grid)[ended], pool.levels.grid[turn][ended])
        assert np.array_equal(np.asarray(state.grid)[~ended], pool.levels.grid[0][~ended])
    assert int(pool.reuse()) == 0
    state, pool = jit_renew(state, pool, ended)  # the queue is used up in two environments
    assert np.array_equal(np.asarray(state.grid)[ended], pool.levels.grid[0][ended])
    assert int(pool.reuse()) == 2
    pool = jit_refill(jax.random.key(1), pool, UNIFORM)
    assert pool.taken.tolist() == [0, 0, 0, 0]
    assert int(pool.reuse()) == 2  # what happened is not forgotten
    state, pool = jit_renew(state, pool, ended)
    assert np.array_equal(np.asarray(state.grid)[ended], pool.levels.grid[0][ended])
    assert int(pool.reuse()) == 2


def test_episodes_begin_where_there_are_none_and_nowhere_else():
    pool, state = engine.empty(4, 3)
    pool = jit_refill(jax.random.key(0), pool, UNIFORM)
    begun, pool = jax.jit(engine.begin)(state, pool)
    assert np.array_equal(begun.grid, pool.levels.grid[0])  # as after `reset`
    assert np.array_equal(begun.task, pool.levels.task[0])
    assert pool.taken.tolist() == [1, 1, 1, 1]
    assert int(pool.reuse()) == 0
    again, pool = jax.jit(engine.begin)(begun, pool)
    assert pool.taken.tolist() == [1, 1, 1, 1]
    assert all(np.array_equal(a, b) for a, b in zip(again, begun, strict=True))


def test_a_refill_makes_new_levels():
    pool, _ = jit_reset(jax.random.key(0), np.eye(18, dtype=np.float32)[17], 50, 4)
    again = jit_refill(jax.random.key(1), pool, np.eye(18, dtype=np.float32)[17])
    both = rows(pool.levels.grid) + rows(again.levels.grid)
    assert len(set(both)) == len(both) == 400


def test_a_new_episode_starts_from_nothing():
    pool, state = jit_reset(jax.random.key(0), UNIFORM, 8, 2)
    state = state._replace(steps=state.steps + 7, carrying=jnp.full(8, 50, jnp.uint8))
    ended = np.arange(8) < 4
    state, _ = jit_renew(state, pool, ended)
    assert state.steps.tolist() == [0] * 4 + [7] * 4
    assert state.carrying.tolist() == [40] * 4 + [50] * 4


def test_tasks_are_drawn_from_the_probabilities():
    p = np.zeros(18, np.float32)
    p[[0, 4, 17]] = 1, 2, 5  # need not sum to one
    pool, _ = jit_reset(jax.random.key(0), p, 5000, 4)
    share = np.bincount(np.asarray(pool.levels.task).ravel(), minlength=18) / 20_000
    expected = p / p.sum()
    assert np.array_equal(np.flatnonzero(share), [0, 4, 17])
    assert (np.abs(share - expected) <= 4 * np.sqrt(expected * (1 - expected) / 20_000)).all()


def test_every_environment_can_have_its_own_probabilities():
    p = np.eye(18, dtype=np.float32)[np.arange(36) % 18] * 3
    pool, state = jit_reset(jax.random.key(0), p, 36, 2)
    assert np.array_equal(state.task, np.arange(36) % 18)
    assert np.array_equal(pool.levels.task, np.tile(np.arange(36) % 18, (2, 1)))


def test_tasks_of_probability_zero_are_never_drawn():
    """Not even by rounding: the uniform number nearest to one, with sums that are not exact."""
    p = np.zeros(18, np.float32)
    p[[2, 9]] = 0.1, 0.7
    draw = jax.jit(partial(engine._choose_tasks, p))
    u = np.array([0.0, 0.125, np.nextafter(np.float32(1), np.float32(0))], np.float32)
    assert draw(u).tolist() == [2, 9, 9]


@pytest.mark.parametrize("bad", [np.nan, 0.0])
def test_probabilities_that_make_no_sense_give_some_task_under_jit(bad):
    _, state = jit_reset(jax.random.key(0), np.full(18, bad, np.float32), 4, 1)
    assert ((np.asarray(state.task) >= 0) & (np.asarray(state.task) < 18)).all()


def test_steps_of_a_mix_of_tasks_need_one_compile():
    count = 0

    @jax.jit
    def run(state, pool, action):
        nonlocal count
        count += 1
        return engine.step(state, pool, action)

    pool, state = jit_reset(jax.random.key(0), UNIFORM, 32, 2)
    for p in (UNIFORM, np.eye(18, dtype=np.float32)[3], np.eye(18, dtype=np.float32)[17]):
        pool = jit_refill(jax.random.key(1), pool, p)
        for action in range(7):
            state, pool, _ = run(state, pool, np.full(32, action, np.int32))
    assert count == 1


def test_an_episode_that_ends_is_followed_by_a_fresh_one_in_the_same_step():
    pool, state = jit_reset(jax.random.key(0), UNIFORM, 36, 2)
    state = state._replace(steps=jnp.asarray(N_MAX)[state.task] - 1 - (jnp.arange(36) % 2))
    after, pool, outcome = jit_step(state, pool, np.full(36, 6, np.int32))
    even = np.arange(36) % 2 == 0
    assert np.array_equal(outcome.truncated, even)
    assert not np.asarray(outcome.terminated).any()
    assert (np.asarray(after.steps)[even] == 0).all()
    assert np.array_equal(np.asarray(after.grid)[even], np.asarray(pool.levels.grid)[1][even])
    assert np.array_equal(np.asarray(after.grid)[~even], np.asarray(state.grid)[~even])


def test_a_whole_rollout_is_one_scan():
    @jax.jit
    def rollout(state, pool, key):
        def one(carry, key):
            state, pool = carry
            action = jax.random.randint(key, (64,), 0, 7)
            state, pool, outcome = engine.step(state, pool, action)
            return (state, pool), (observe(state), outcome)

        return jax.lax.scan(one, (state, pool), jax.random.split(key, 700))

    pool, state = jit_reset(jax.random.key(0), np.eye(18, dtype=np.float32)[0], 64, 8)
    (state, pool), (images, outcome) = rollout(state, pool, jax.random.key(1))
    assert images.shape == (700, 64, 7, 7, 3)
    ends = np.asarray(outcome.terminated | outcome.truncated)
    assert (ends.sum(0) >= 2).all()  # 700 steps are more than two episodes of 288
    assert np.array_equal(pool.taken, 1 + ends.sum(0))
    assert int(pool.reuse()) == 0
    rewards = np.asarray(outcome.reward)
    assert ((rewards > 0) == np.asarray(outcome.terminated)).all()
    assert NAMES[int(state.task[0])] == "Unlock"


def test_what_does_not_fit_is_refused_even_under_jit():
    key = jax.random.key(0)
    with pytest.raises(MasteryError, match=r"shape \(2,\): give one for each of the 18 tasks"):
        jit_reset(key, np.ones(2), 4, 1)
    with pytest.raises(MasteryError, match=r"shape \(3, 18\)"):
        jit_reset(key, np.ones((3, 18)), 4, 1)
    with pytest.raises(MasteryError, match="num_envs is 0"):
        reset(key, UNIFORM, 0)
    with pytest.raises(MasteryError, match="ahead is 0"):
        reset(key, UNIFORM, 4, 0)
    pool, _ = jit_reset(key, UNIFORM, 4, 2)
    many = jax.tree.map(lambda x: jnp.stack([x, x]), pool)
    with pytest.raises(MasteryError, match=r"use jax\.vmap"):
        refill(key, many, UNIFORM)


def test_runs_side_by_side_are_runs_one_by_one():
    keys = jax.random.split(jax.random.key(0), 3)

    def run(key):
        pool, state = reset(key, UNIFORM, 4, 2)
        state, pool, outcome = engine.step(state, pool, jnp.full(4, 2, jnp.int32))
        return state, refill(key, pool, UNIFORM), outcome, observe(state)

    together, single = jax.jit(jax.vmap(run))(keys), jax.jit(run)
    for n in range(3):
        alone = single(keys[n])
        same = jax.tree.map(lambda a, b, n=n: np.array_equal(a[n], b), together, alone)
        assert all(jax.tree.leaves(same))


def test_levels_do_not_depend_on_the_draw_of_their_tasks():
    """Tasks and levels come from different random numbers. If they shared them, a task drawn by
    a small number would have doors of the first colours: of six, a third of the first."""
    p = np.zeros(18, np.float32)
    p[[NAMES.index("ObstructedMaze-1Dl"), NAMES.index("ObstructedMaze-1Dlh")]] = 1
    _, state = jit_reset(jax.random.key(0), p, 4000, 1)
    first = unpack(state.grid)[np.asarray(state.task) == NAMES.index("ObstructedMaze-1Dl")]
    colours = first[first >> 3 == LOCKED] & 7
    assert len(colours) == len(first)
    counts, expected = np.bincount(colours, minlength=6), len(first) / 6
    assert (np.abs(counts - expected) < 4 * np.sqrt(expected)).all()


def test_jaxs_modes_change_nothing():
    """In double precision, and with strict types, a rollout is the same to the bit."""
    code = """
import hashlib, jax, jax.numpy as jnp, numpy as np
from mastery.minigrid import observe, refill, reset, step
p = np.ones(18, np.float32)
def run(key):
    pool, state = reset(key, p, 64, 2)
    def one(carry, action):
        state, pool = carry
        pool = refill(key, pool, p)
        state, pool, outcome = step(state, pool, action)
        return (state, pool), (outcome, observe(state))
    actions = jnp.asarray(np.random.default_rng(0).integers(0, 7, (50, 64)), jnp.int32)
    return jax.lax.scan(one, (state, pool), actions)
result = jax.tree.leaves(jax.jit(run)(jax.random.key(3)))
print(hashlib.sha256(b"".join(str(x.dtype).encode() + np.asarray(x).tobytes() for x in result))
      .hexdigest())
"""
    digests = set()
    for setting in ({}, {"JAX_ENABLE_X64": "1"}, {"JAX_NUMPY_DTYPE_PROMOTION": "strict"}):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=os.environ | setting,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1
