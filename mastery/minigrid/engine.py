"""Many environments at once: steps, and a new level for each episode that ends.

Making a level costs more than a step, and under `jit` what is not needed is computed all the same.
So levels are made ahead: every environment has a queue of its next ones, each of a task drawn from
the probabilities given, and `refill` makes them anew, once every hundred steps or so, outside of
the loop over steps. A step only takes.

    key, first = jax.random.split(key)
    pool, state = reset(first, probabilities, num_envs=1024)
    for update in ...:
        for _ in range(128):
            state, pool, outcome = step(state, pool, action)
            image = observe(state)
        key, fresh = jax.random.split(key)
        pool = refill(fresh, pool, probabilities)

These functions take one axis of environments; `jax.vmap` makes more of it (runs, say).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from mastery.errors import MasteryError
from mastery.minigrid.editions import TODAY, Edition
from mastery.minigrid.grid import WORDS, Array, once
from mastery.minigrid.levels import generate
from mastery.minigrid.rules import PAPER_REWARD, Outcome, act
from mastery.minigrid.state import Level, State, start
from mastery.minigrid.tasks import TASKS
from mastery.random_numbers import uniform

AHEAD = 4  # levels in each environment's queue


class Pool(NamedTuple):
    """Each environment's next levels."""

    levels: Level  # each field with two leading axes, (ahead, environments)
    taken: Array  # int32 (environments,): how many were taken since the last refill
    reused_before: Array  # int32: levels given out more than once, up to the last refill

    def reuse(self) -> Array:
        """How many levels were given out more than once, up to now."""
        ahead = self.levels.task.shape[0]
        return self.reused_before + jnp.maximum(self.taken - ahead, 0).sum(dtype=jnp.int32)


def reset(
    key: Array,
    probabilities: Array,
    num_envs: int,
    ahead: int = AHEAD,
    edition: Edition = TODAY,
) -> tuple[Pool, State]:
    """A full pool, and every environment at the start of an episode.

    For the probabilities see `refill`. `num_envs` and `ahead`, the length of each environment's
    queue, are shapes, and `edition` is a choice of program: under `jit` they must be static.
    """
    for name, number in (("num_envs", num_envs), ("ahead", ahead)):
        if number < 1:
            raise MasteryError(f"{name} is {number}: it must be 1 at least")
    pool = _fill(key, probabilities, num_envs, ahead, jnp.zeros((), jnp.int32), edition)
    first = jax.tree.map(lambda x: x[0], pool.levels)
    return pool._replace(taken=pool.taken + 1), start(first)


def empty(num_envs: int, ahead: int) -> tuple[Pool, State]:
    """A pool and environments with nothing in them, which compiles at once: `refill` the one, and
    `begin` episodes in the others."""
    shape = (ahead, num_envs)
    number, cell = jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.uint8)
    levels = Level(jnp.zeros((*shape, WORDS), jnp.uint32), number, number, cell, number - 1)
    state = start(jax.tree.map(lambda x: x[0], levels))
    return Pool(levels, jnp.zeros(num_envs, jnp.int32), jnp.zeros((), jnp.int32)), state


def begin(state: State, pool: Pool) -> tuple[State, Pool]:
    """Begin an episode in the environments that have none; see `empty`."""
    return renew(state, pool, state.task < 0)


def refill(key: Array, pool: Pool, probabilities: Array, edition: Edition = TODAY) -> Pool:
    """A pool of new levels of the same size, of tasks drawn from these probabilities.

    `probabilities`: of the tasks in the order of TASKS, (18,) or (environments, 18); they need not
    sum to one. All levels are new, the ones that were not taken too, so that the next episode's
    task follows these probabilities and no older ones. Their values are not checked, as this may be
    compiled: if none is above zero, it is some task (`make_vec` checks). Give a new key each time.
    """
    ahead, num_envs = _shape(pool)
    return _fill(key, probabilities, num_envs, ahead, pool.reuse(), edition)


def step(
    state: State,
    pool: Pool,
    action: Array,
    reward: Array | int = PAPER_REWARD,
    edition: Edition = TODAY,
) -> tuple[State, Pool, Outcome]:
    """One step of every environment; where an episode ends, the next one begins.

    The state is then the new episode's; the outcome is the old one's, with its task and length
    (and its return: the reward, as there is only one).
    """
    after, outcome = act(state, action, reward, edition)
    after, pool = renew(after, pool, outcome.terminated | outcome.truncated)
    return after, pool, outcome


def renew(state: State, pool: Pool, ended: Array) -> tuple[State, Pool]:
    """Begin a new episode in the environments where one has ended.

    When an environment has taken more levels than its queue holds, it goes round it again; that is
    counted, see `Pool.reuse`.
    """
    ahead, num_envs = _shape(pool)
    # where no level is taken, all look at the same one, which costs no memory traffic
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
    """For each uniform in [0, 1) a task, by the sums of the probabilities up to each."""
    p = jnp.asarray(probabilities, jnp.float32)
    if p.shape not in ((len(TASKS),), (*uniforms.shape[-1:], len(TASKS))):
        raise MasteryError(
            f"probabilities have shape {p.shape}: give one for each of the {len(TASKS)} tasks, or "
            f"such a row for each of the {uniforms.shape[-1]} environments"
        )
    edges = [p[..., 0]]  # one by one, so that a task of probability zero has no width at all
    for c in range(1, p.shape[-1]):
        edges.append(edges[-1] + p[..., c])
    u = uniforms * edges[-1]
    beyond = sum((edge <= u).astype(jnp.int32) for edge in edges)
    last = sum((edge < edges[-1]).astype(jnp.int32) for edge in edges)
    return jnp.minimum(beyond, last)  # a product can round up to the sum itself
