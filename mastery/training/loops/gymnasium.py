"""Train PPO agents in any Gymnasium environments, one run after the other.

Algorithm 2 of the paper, with the agent and the PPO of `minigrid`. But the environments are Python
objects: a frame of all environments of a run is one compiled call of the agent and one `step` of
each environment. An episode ends when it is terminated or truncated.

Environments cannot be saved. To resume bit for bit, every chunk of updates begins with new
episodes. Episodes that have not ended when the chunk ends are cut off: the agent learns from their
frames, but their returns do not count. All random numbers, also those of the environments, come
from the run's seed and the number of the update. (An environment that ignores the seed of `reset`,
or keeps state from one episode to the next, is not reproducible.)
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mastery.errors import MasteryError
from mastery.learners import ppo
from mastery.learners.adam import new_adam
from mastery.learners.encoders import Space
from mastery.learners.ppo import Agent, PPOHyper, PPOSettings, Trajectory
from mastery.minigrid.editions import TODAY
from mastery.programs.evidence import Evidence
from mastery.programs.side_by_side import Switch, build_switch
from mastery.programs.states import tree_map
from mastery.programs.step import teaching_step
from mastery.rundir.metrics import Evaluation, Metrics
from mastery.training.job import Job
from mastery.training.loops.gymnasium_episodes import Play, Slot, evaluate
from mastery.training.loops.gymnasium_tasks import GymnasiumTasks
from mastery.training.loops.named_arrays import named, restore

Array = Any  # a NumPy or a JAX array

# purposes of random numbers; each stream is seeded by [seed, purpose, update, slot]
EPISODES, ACTIONS, NOISE = range(3)


class GymnasiumLearner(NamedTuple):
    """An agent and the state of its optimiser."""

    agent: Agent
    optimiser: Any


class GymnasiumCarry(NamedTuple):
    """What changes in a run."""

    teacher: Any  # the program's state
    learner: GymnasiumLearner
    update: Any  # () int64: updates so far


@partial(jax.jit, static_argnames=("settings", "space"))
def new_learner(key: Array, settings: PPOSettings, space: Space) -> GymnasiumLearner:
    agent = Agent(key, settings, space)
    return GymnasiumLearner(agent, new_adam(agent))


@partial(jax.jit, static_argnames="settings")
def learn(
    learner: GymnasiumLearner,
    trajectory: Trajectory,
    after: tuple[Array, Array, Array],
    key: Array,
    settings: PPOSettings,
    h: PPOHyper,
) -> GymnasiumLearner:
    """One PPO update. `after` is memory, starts and observation after the last frame."""
    _, _, last = learner.agent(*after)
    frames = ppo.segments(trajectory, last, settings, h)
    return GymnasiumLearner(*ppo.improve(*learner, frames, key, settings, h))


class GymnasiumLoop:
    """The loop of a job on Gymnasium environments; see `mastery.training.loops.loop.Loop`."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.tasks = GymnasiumTasks(job.curriculum, job.settings.actions)
        if self.tasks.space.kind == "cells" and job.settings.edition != TODAY.name:
            raise MasteryError(
                f"edition is {job.settings.edition!r}, and environments of Gymnasium are MiniGrid "
                f"{TODAY.name}: set edition={TODAY.name}, or drop --environments gymnasium"
            )
        frames = job.chunk * job.settings.frames
        for name, limit in zip(self.tasks.names, self.tasks.limits, strict=True):
            if limit is not None and limit > frames:
                raise MasteryError(
                    f"task {name!r}: an episode may have {limit} steps, and after {frames} frames "
                    "new ones begin, so that it would not be counted: give --chunk "
                    f"{math.ceil(limit / job.settings.frames)} or more, or set the task's "
                    f"max_episode_steps to at most {frames}"
                )
        self._runs = job.runs
        # every run has a state of every kind of program, so that all runs have the same arrays
        texts = [run.program for run in job.every_run]
        programs = build_switch(texts, job.curriculum, compiled=False)
        self._programs: list[Switch] = [tree_map(lambda x, i=i: x[i], programs) for i in job.rows]
        self._window = programs.slots
        self._slots = [Slot(self.tasks) for _ in range(job.settings.envs)]

    def prepare(self, new: bool) -> None:
        pass

    def begin(self) -> list[GymnasiumCarry]:
        return [self._begin(run) for run in range(len(self._runs))]

    def _begin(self, run: int) -> GymnasiumCarry:
        seed = self._runs[run].seed
        noise = _random(seed, NOISE, 0, 0).random((3, len(self.tasks.names)))
        teacher = self._programs[run].init(noise, self._window)
        learner = new_learner(_keys(seed)[0], self.job.settings, self.tasks.space)
        return GymnasiumCarry(teacher, learner, np.int64(0))

    def advance(self, carry: list[GymnasiumCarry]) -> tuple[list[GymnasiumCarry], Metrics]:
        after, metrics = zip(*map(self._advance, range(len(carry)), carry), strict=True)
        return list(after), jax.tree.map(lambda *x: np.stack(x, axis=1), *metrics)

    def _advance(self, run: int, carry: GymnasiumCarry) -> tuple[GymnasiumCarry, Metrics]:
        """Train one chunk of one run."""
        teacher, learner, update = carry[0], carry[1], int(carry.update)
        settings, program = self.job.settings, self._programs[run]
        seed, changes = self._runs[run].seed, self._runs[run].changes
        hyper = PPOHyper(*(np.float32(x) for x in PPOHyper.of(settings)._replace(**changes)))
        random = [_random(seed, EPISODES, update, i) for i in range(settings.envs)]
        play = Play(self.tasks, self._slots, random)
        for_order, rows = _keys(seed)[1], []
        probability = program.distribution(teacher)
        for now in range(update, update + self.job.chunk):
            uniforms = _random(seed, ACTIONS, now, 0).random(
                (settings.frames, settings.envs), np.float32
            )
            trajectory, after, played = play.on(learner.agent, probability, uniforms, settings.bptt)
            key = jax.random.fold_in(for_order, now)
            learner = learn(learner, trajectory, after, key, settings, hyper)
            noise = _random(seed, NOISE, now + 1, 0).random((3, len(self.tasks.names)))
            episodes, returns, squares, frames = played
            evidence = Evidence.from_sums(episodes, returns, squares, frames.astype(float))
            teacher, following = teaching_step(program, teacher, evidence, noise)
            mastery, progress = program.mastery(teacher), program.progress(teacher)
            rows.append(Metrics(probability, mastery, episodes, returns, frames, progress=progress))
            probability = following
        metrics = jax.tree.map(lambda *x: _small(np.stack(x)), *rows)
        return GymnasiumCarry(teacher, learner, np.int64(update + self.job.chunk)), metrics

    def evaluate(self, carry: list[GymnasiumCarry], update: int) -> Evaluation:
        each = [
            evaluate(run.learner.agent, self.tasks, self._slots, self.job.episodes, update)
            for run in carry
        ]
        return Evaluation(*(_small(np.stack(x)) for x in zip(*each, strict=True)))

    def save(self, carry: list[GymnasiumCarry], only: str = "") -> dict[str, NDArray[Any]]:
        together = jax.tree.map(lambda *x: np.stack([np.asarray(y) for y in x]), *carry)
        return dict(named(together, only))

    def load(self, arrays: dict[str, NDArray[Any]]) -> list[GymnasiumCarry]:
        like = self._begin(0)  # all runs have arrays of the same names and shapes
        together = restore(arrays, like, len(self._runs))
        carry: list[GymnasiumCarry] = []
        for run in range(len(self._runs)):
            saved = jax.tree.map(lambda x, run=run: x[run], together)
            carry.append(saved._replace(learner=jax.tree.map(jnp.asarray, saved.learner)))
        return carry

    def close(self) -> None:
        """Close the environments; they are made again when needed."""
        for slot in self._slots:
            slot.close()


def _random(seed: int, purpose: int, update: int, slot: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose, update, slot])


def _keys(seed: int) -> Array:
    """Two keys: for the new agent, and for the order of frames in its updates."""
    return jax.random.split(jax.random.key(seed))


def _small(x: NDArray[Any]) -> NDArray[Any]:
    return x.astype({"f": np.float32, "i": np.int32}[x.dtype.kind])
