"""A PPO agent in our own MiniGrid: one run.

    Environments   where its environments stand
    with_levels    fresh levels, of tasks drawn from given probabilities
    collect        play with the agent there
    begin          a new agent and its environments
    update         play, and learn from it, once: a time-step of a teacher

Nothing here knows of more than one run: `jax.vmap` over `begin` and `update` makes it many.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from mastery.learners import novelty
from mastery.learners.adam import new_adam
from mastery.learners.encoders import Space
from mastery.learners.ppo import (
    Agent,
    Frames,
    PPOHyper,
    PPOSettings,
    Trajectory,
    choose,
    improve,
    log_probability,
    segments,
)
from mastery.minigrid import engine
from mastery.minigrid.editions import Edition, find_edition
from mastery.minigrid.rules import REWARDS
from mastery.minigrid.tasks import TASKS
from mastery.minigrid.vision import VIEW, seen_cells
from mastery.random_numbers import uniform

Array = Any  # a JAX array


class Environments(NamedTuple):
    """The state of a run's environments."""

    state: Any
    pool: engine.Pool
    memory: Array  # (memory_size, envs)
    starts: Array  # (envs,) bool: the next frame is the first of an episode
    visited: Array  # views the episode has shown; see `novelty`


class Totals(NamedTuple):
    """Totals for each of the eighteen tasks; each field is (18,)."""

    episodes: Array  # episodes that ended
    returns: Array  # sum of returns
    squares: Array  # sum of their squares
    frames: Array


def with_levels(
    envs: Environments, key: Array, probabilities: Array, edition: Edition
) -> Environments:
    """Refill the levels for coming episodes, and begin an episode where there is none."""
    pool = engine.refill(key, envs.pool, probabilities, edition)
    state, pool = engine.begin(envs.state, pool)
    return envs._replace(state=state, pool=pool)


def collect(
    agent: Agent, envs: Environments, key: Array, settings: PPOSettings, h: PPOHyper
) -> tuple[Environments, Frames, Totals]:
    """Play `settings.frames` steps in every environment, with actions drawn from the policy."""
    reward, edition = REWARDS[settings.reward], find_edition(settings.edition)
    act = agent.player(settings.envs)

    def one(envs: Environments, uniforms: Array) -> Any:
        state, pool, memory, starts, visited = envs
        cells = seen_cells(state, edition)
        visited, new = novelty.look(visited, starts, cells)
        after, logits, value = act(memory, starts[None], cells)
        action = choose(logits, uniforms)
        state, pool, outcome = engine.step(state, pool, action, reward, edition)
        ended = outcome.terminated | outcome.truncated
        chosen = log_probability(logits, action)
        seen = (starts, action, chosen, value, outcome.reward, ended, new, outcome.task)
        # as one array: each that the loop fills costs a kernel on a GPU
        numbers = jnp.stack([x.astype(jnp.float32) for x in seen])
        return Environments(state, pool, after, ended, visited), (cells, numbers, memory)

    uniforms = uniform(key, (settings.frames, settings.envs))
    envs, (seen, numbers, memory) = lax.scan(one, envs, uniforms)
    starts, action, chosen, value, rewards, ended, new, task = jnp.swapaxes(numbers, 0, 1)
    cells = seen_cells(envs.state, edition)
    _, _, last = act(envs.memory, envs.starts[None], cells)
    _, after = novelty.look(envs.visited, envs.starts, cells)
    trajectory = Trajectory(
        observation=seen,
        starts=starts > 0,
        action=action.astype(jnp.int32),
        log_probability=chosen,
        value=value,
        reward=rewards,
        ended=ended > 0,
        # a frame's action leads to the next frame's view
        new=jnp.concatenate([new[1:] > 0, after[None]]),
        memory=memory[:: settings.bptt],
    )
    which = task[..., None] == jnp.arange(len(TASKS))
    rewards = jnp.where(which, rewards[..., None], 0.0)
    totals = Totals(
        episodes=(which & trajectory.ended[..., None]).sum((0, 1)),
        returns=rewards.sum((0, 1)),
        squares=(rewards * rewards).sum((0, 1)),  # an episode has its only reward at its end
        frames=which.sum((0, 1)),
    )
    return envs, segments(trajectory, last, settings, h), totals


class MinigridLearner(NamedTuple):
    """A run: the agent, the optimiser's state, the environments and the random key."""

    agent: Agent
    optimiser: Any
    envs: Environments
    key: Array


def begin(key: Array, settings: PPOSettings) -> MinigridLearner:
    """Make a new agent and environments without episodes; `update` begins the episodes."""
    key, for_agent = jax.random.split(key)
    agent = Agent(for_agent, settings, Space("cells", (VIEW, VIEW), settings.actions))
    pool, state = engine.empty(settings.envs, settings.ahead)
    memory = jnp.zeros((agent.memory_size, settings.envs))
    first = jnp.ones(settings.envs, bool)
    envs = Environments(state, pool, memory, first, novelty.nothing(settings.envs))
    return MinigridLearner(agent, new_adam(agent), envs, key)


def update(
    learner: MinigridLearner, probabilities: Array, settings: PPOSettings, h: PPOHyper
) -> tuple[MinigridLearner, Totals]:
    """Do one update: refill the levels, play, learn.

    Args:
        learner: The run.
        probabilities: (18,), task probabilities of the episodes that begin in this update.
        settings: How to train; static under `jit`.
        h: The settings that may differ from run to run.

    Returns:
        The run after the update, and what was played.
    """
    agent, optimiser, envs, key = learner
    key, for_levels, for_actions, for_order = jax.random.split(key, 4)
    envs = with_levels(envs, for_levels, probabilities, find_edition(settings.edition))
    envs, frames, played = collect(agent, envs, for_actions, settings, h)
    agent, optimiser = improve(agent, optimiser, frames, for_order, settings, h)
    return MinigridLearner(agent, optimiser, envs, key), played
