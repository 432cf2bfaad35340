"""Train PPO agents in our own MiniGrid: teacher, environments and agent are compiled.

Algorithm 2 of the paper: the teacher gives the probabilities of the tasks. Each environment draws
its next task from them when an episode ends. After each PPO update (a time-step) the teacher sees,
for each task, the mean return of the episodes that ended in it.

The code describes one run; `compiled` makes it many.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mastery.learners import ppo, ppo_minigrid
from mastery.learners.ppo import Agent, PPOSettings
from mastery.learners.ppo_minigrid import MinigridLearner
from mastery.minigrid.editions import find_edition
from mastery.minigrid.levels import generate
from mastery.minigrid.rules import REWARDS, act
from mastery.minigrid.state import start
from mastery.minigrid.tasks import TASKS
from mastery.minigrid.vision import seen_cells
from mastery.random_numbers import uniform
from mastery.rundir.metrics import POLICIES, Evaluation
from mastery.training.job import Job, minigrid_tasks
from mastery.training.loops.compiled import CompiledLoop, Learned, Student, each_run

Array = Any  # a JAX array


def evaluate(
    agents: Agent, key: Array, tasks: Array, minimum: Array, episodes: int, settings: PPOSettings
) -> Evaluation:
    """Play `episodes` episodes of every task with every run's agent, greedy and sampled. All play
    the same levels. Runs are the first axis of `agents`."""
    for_levels, for_actions = jax.random.split(key)
    once = jnp.repeat(jnp.asarray(tasks), episodes)
    edition = find_edition(settings.edition)
    first = start(generate(for_levels, once, edition))
    runs = jax.tree.leaves(agents)[0].shape[0]
    count = len(POLICIES) * len(once)

    def for_all(x: Array) -> Array:  # for every run and both policies
        return jnp.broadcast_to(jnp.concatenate([x] * len(POLICIES)), (runs, count, *x.shape[1:]))

    greedy = jnp.arange(count) < len(once)
    reward = REWARDS[settings.reward]

    def more(carry: Any) -> Array:
        return ~carry[2].all()

    def one(carry: Any) -> Any:
        state, memory, over, returns, length = carry
        t = length.max()
        uniforms = uniform(jax.random.fold_in(for_actions, t), (count,))
        starts = jnp.broadcast_to(t == 0, (count,))

        def step(agent: Agent, state: Any, memory: Array) -> Any:
            memory, logits, _ = agent(memory, starts, seen_cells(state, edition))
            action = jnp.where(greedy, logits.argmax(-1), ppo.choose(logits, uniforms))
            return (*act(state, action, reward, edition), memory)

        state, outcome, memory = each_run(step, agents, state, memory)
        returns = returns + jnp.where(over, 0.0, outcome.reward)
        length = length + ~over
        return state, memory, over | outcome.terminated | outcome.truncated, returns, length

    memory = jnp.zeros((runs, agents.memory_size, count))
    nothing = jnp.zeros((runs, count))
    state = jax.tree.map(for_all, first)
    carry = (state, memory, nothing > 0, nothing, nothing.astype(jnp.int32))
    _, _, _, returns, length = lax.while_loop(more, one, carry)
    shape = (runs, len(POLICIES), len(tasks), episodes)
    returns, length = returns.reshape(shape), length.reshape(shape).astype(jnp.float32)
    success = returns > minimum[:, None]
    return Evaluation(returns.mean(-1), success.mean(-1), length.mean(-1))


class MiniGridLoop(CompiledLoop):
    """The loop of a job on our own MiniGrid."""

    def __init__(self, job: Job, devices: list[Any] | None = None) -> None:
        settings = job.settings
        tasks = np.array(minigrid_tasks(job.curriculum), np.int32)
        minimum = job.curriculum.minimum.astype(np.float32)

        def learn(learner: MinigridLearner, probabilities: Array, hyper: ppo.PPOHyper) -> Any:
            learner, played = ppo_minigrid.update(learner, probabilities, settings, hyper)
            return learner, Learned(*played)

        student = Student(
            # the teacher uses the first two keys
            begin=lambda key: ppo_minigrid.begin(jax.random.split(key, 3)[2], settings),
            learn=learn,
            evaluate=lambda learner, key: evaluate(
                learner.agent, key, tasks, minimum, job.episodes, settings
            ),
            tasks=tasks,
            known=len(TASKS),
        )
        super().__init__(job, student, devices)
