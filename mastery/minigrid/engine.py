"""Step many environments at once, with a new level for each new episode.

Generating a level costs more than a step, and under `jit` it would run on every step. So levels are
generated ahead: every environment has a queue of its next levels, each of a task drawn from the
given probabilities. `refill` replaces the queues outside the loop over steps, about every hundred
steps. A step only takes levels from the queue.

    key, first = jax.random.split(key)
    pool, state = reset(first, probabilities, num_envs=1024)
    for update in ...:
        for _ in range(128):
            state, pool, outcome = step(state, pool, action)
            image = observe(state)
        key, fresh = jax.random.split(key)
        pool = refill(fresh, pool, probabilities)

These functions take one axis of environments; use `jax.vmap` for more axes, such as runs.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from mastery.errors import MasteryError
from mastery.minigrid.editions import TODAY, Edition
from mastery.minigrid.grid import WORDS, Array, once
from mastery.minigrid.levels import generate
from mastery.minigrid.rules import PAPER_REWARD, StepResult, act
from mastery.minigrid.state import Level, State, start
from mastery.minigrid.tasks import TASKS
from mastery.programs.distribution import cumulative, draw
from mastery.random_numbers import uniform

AHEAD = 4  # levels in each environment's queue


class Pool(NamedTuple):
    """The queue of next levels of each environment."""

    levels: Level  # each field with two leading axes, (ahead, environments)
    taken: Array  # int32 (environments,): levels taken since the last refill
    reused_before: Array  # int32: levels reused, up to the last refill

    def reuse(self) -> Array:
        """Number of levels reused so far, because a queue ran out before its refill."""
        ahead = self.levels.task.shape[0]
        return self.reused_before + jnp.maximum(self.taken - ahead, 0).sum(dtype=jnp.int32)


def reset(
    key: Array,
    probabilities: Array,
    num_envs: int,
    ahead: int = AHEAD,
    edition: Edition = TODAY,
) -> tuple[Pool, State]:
    """Fill a pool of levels and begin an episode in every environment.

    Args:
        key: A JAX random key.
        probabilities: Task probabilities; see `refill`.
        num_envs: Number of environments; static under `jit`.
        ahead: Levels in each environment's queue; static under `jit`.
        edition: The edition whose levels to generate; static under `jit`.

    Returns:
        The pool and the states.

    Raises:
        MasteryError: If `num_envs` or `ahead` is less than 1, or if the shape of `probabilities` is
            wrong.
    """
    for name, number in (("num_envs", num_envs), ("ahead", ahead)):
        if number < 1:
            raise MasteryError(f"{name} is {number}: it must be 1 at least")
    pool = _fill(key, probabilities, num_envs, ahead, jnp.zeros((), jnp.int32), edition)
    first = jax.tree.map(lambda x: x[0], pool.levels)
    return pool._replace(taken=pool.taken + 1), start(first)


def empty(num_envs: int, ahead: int) -> tuple[Pool, State]:
    """Make an empty pool and environments without episodes, which compiles fast. Then `refill` the
    pool and `begin` the episodes."""
    shape = (ahead, num_envs)
    number, cell = jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.uint8)
    levels = Level(jnp.zeros((*shape, WORDS), jnp.uint32), number, number, cell, number - 1)
    state = start(jax.tree.map(lambda x: x[0], levels))
    return Pool(levels, jnp.zeros(num_envs, jnp.int32), jnp.zeros((), jnp.int32)), state


def begin(state: State, pool: Pool) -> tuple[State, Pool]:
    """Begin an episode in each environment that has none; see `empty`."""
    return renew(state, pool, state.task < 0)


def refill(key: Array, pool: Pool, probabilities: Array, edition: Edition = TODAY) -> Pool:
    """Replace all levels of a pool by new ones, of tasks drawn from given probabilities.

    Levels that were not taken are replaced too, so the next episode's task follows these
    probabilities, not older ones.

    Args:
        key: A JAX random key; pass a new one each time.
        pool: The pool to refill.
        probabilities: Task probabilities in the order of TASKS, (18,) or (environments, 18). They
            need not sum to 1. Their values are not checked, as this may run under `jit`: if none is
            above 0, the task is arbitrary. (`make_vec` checks them.)
        edition: The edition whose levels to generate; static under `jit`.

    Returns:
        A pool of the same size.

    Raises:
        MasteryError: If the shape of `pool` or of `probabilities` is wrong.
    """
    ahead, num_envs = _shape(pool)
    return _fill(key, probabilities, num_envs, ahead, pool.reuse(), edition)


def step(
    state: State,
    pool: Pool,
    action: Array,
    reward: Array | int = PAPER_REWARD,
    edition: Edition = TODAY,
) -> tuple[State, Pool, StepResult]:
    """Step every environment; where an episode ends, begin the next one.

    Args:
        state: The states.
        pool: The pool that new levels are taken from.
        action: (environments,) actions.
        reward: PAPER_REWARD or MINIGRID_REWARD, for all environments or one each.
        edition: The edition whose rules apply; static under `jit`.

    Returns:
        The new states, the pool, and the outcome. Where an episode ended, the state is the new
        episode's, and the outcome has the task, length and reward of the old one. That reward is
        also its return, as only success gives a reward.

    Raises:
        MasteryError: If the shape of `action` or the value of `reward` is wrong.
    """
    after, outcome = act(state, action, reward, edition)
    after, pool = renew(after, pool, outcome.terminated | outcome.truncated)
    return after, pool, outcome


def renew(state: State, pool: Pool, ended: Array) -> tuple[State, Pool]:
    """Begin a new episode in each environment whose episode has ended.

    An environment that has used up its queue starts the queue again; `Pool.reuse` counts this.
    """
    ahead, num_envs = _shape(pool)
    # environments that take no level all read the same one, which costs no memory traffic
    index = jnp.where(ended, (pool.taken % ahead) * num_envs + jnp.arange(num_envs), 0)
    index, ended = once((index, ended))
    level = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[index], pool.levels)

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(ended.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    fresh = jax.tree.map(choose, start(level), state)
    return fresh, pool._replace(taken=pool.taken + ended.astype(jnp.int32))


def _fill(
    key: Array,
    probabilities: Array,
    num_envs: int,
    ahead: int,
    reused_before: Array,
    edition: Edition,
) -> Pool:
    which, make = jax.random.split(key)
    tasks = _choose_tasks(probabilities, uniform(which, (ahead, num_envs)))
    return Pool(generate(make, tasks, edition), jnp.zeros(num_envs, jnp.int32), reused_before)


def _shape(pool: Pool) -> tuple[int, int]:
    if pool.levels.task.ndim != 2:
        raise MasteryError(
            f"a pool of shape {pool.levels.task.shape} has more axes than (ahead, environments); "
            "use jax.vmap over the others"
        )
    ahead, num_envs = pool.levels.task.shape
    return ahead, num_envs


def _choose_tasks(probabilities: Array, uniforms: Array) -> Array:
    """Draw a task for each uniform in [0, 1)."""
    p = jnp.asarray(probabilities, jnp.float32)
    if p.shape not in ((len(TASKS),), (*uniforms.shape[-1:], len(TASKS))):
        raise MasteryError(
            f"probabilities have shape {p.shape}: give one for each of the {len(TASKS)} tasks, or "
            f"such a row for each of the {uniforms.shape[-1]} environments"
        )
    if p.ndim == 1:
        return draw(cumulative(p), uniforms)
    return jax.vmap(lambda p, u: draw(cumulative(p), u), (0, 1), 1)(p, uniforms)
