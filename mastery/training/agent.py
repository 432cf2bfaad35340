"""load_agent(): use a trained policy from Python.

agent = mastery.load_agent("runs/key-corridor-mr")
observation, _ = env.reset()
agent.reset()
action = agent.act(observation)
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mastery import checkpoint
from mastery.errors import CheckpointError, MasteryError
from mastery.learners import addition
from mastery.learners.addition import Network
from mastery.learners.encoders import Space
from mastery.learners.grpo import new_model
from mastery.learners.ppo import Agent, PPOSettings, choose
from mastery.learners.transformer import Transformer, sample
from mastery.minigrid.editions import TODAY, find_edition
from mastery.reasoning.alphabet import ANSWER, decode, encode
from mastery.rundir.database import agents, best_runs, checkpoints, open_database
from mastery.rundir.milestones import KIND as AGENTS_KIND
from mastery.rundir.split import find_part, is_split, read_split, split_parts
from mastery.rundir.store import KIND
from mastery.training.job import Job, Run, digits_of, read_job
from mastery.training.loops.named_arrays import AGENT, restore

_call = jax.jit(lambda agent, *given: agent(*given))  # compiled once for agents of one shape


class TrainedAgent:
    """A trained policy with its memory. Call `reset` at the start of every episode.

    An agent trained on MiniGrid also takes a batch: one observation per environment.

    Attributes:
        frames: The frames that it was trained for.
    """

    def __init__(
        self, agent: Agent, space: Space, job: Job, run: Run, seed: int, tasks: Any, frames: int
    ) -> None:
        self.agent, self.space, self.job, self.run = agent, space, job, run
        self.frames = frames
        self._tasks = tasks  # GymnasiumTasks, or None for our own MiniGrid
        self._random = np.random.default_rng(seed)
        self.reset()

    def reset(self, where: Any = None) -> None:
        """Clear the memory.

        Args:
            where: Booleans, one per environment: clear only where true. By default, clear all.
        """
        if where is None or self._memory is None:
            self._memory: Any = None
        else:
            self._memory = jnp.where(jnp.asarray(where, bool), 0.0, self._memory)

    def act(self, observation: Any, greedy: bool = False) -> Any:
        """Choose an action.

        Args:
            observation: What the environment returned, or a batch of MiniGrid images.
            greedy: Take the likeliest action instead of sampling one from the policy.

        Returns:
            The action, or an array of actions for a batch.

        Raises:
            MasteryError: If the observation has the wrong shape, or the number of environments
                changed without a `reset`.
        """
        batch, single = self._batch(observation)
        n = len(batch)
        if self._memory is None:
            self._memory = jnp.zeros((self.agent.memory_size, n))
        if self._memory.shape[1] != n:
            raise MasteryError(
                f"there were {self._memory.shape[1]} observations, and now there are {n}; "
                "reset() comes before another number of environments"
            )
        self._memory, logits, _ = _call(self.agent, self._memory, np.zeros(n, bool), batch)
        uniforms = self._random.random(n, np.float32)
        action = np.asarray(logits.argmax(-1) if greedy else choose(logits, uniforms))
        if self._tasks is not None:
            action = action + self._tasks.first_action
        return int(action[0]) if single else action

    def make(self, task: str, render_mode: str | None = None) -> Any:
        """Make a Gymnasium environment.

        Args:
            task: The name of one of the job's tasks.
            render_mode: Gymnasium's `render_mode`.

        Returns:
            A new environment of this task.
        """
        number = self.job.curriculum.index(task)
        if self._tasks is None:
            from mastery.minigrid import make

            env = self.job.curriculum[task].settings["env"]
            settings = self.job.settings
            return make(
                env, reward=settings.reward, edition=settings.edition, render_mode=render_mode
            )
        return self._tasks.make(number, render_mode)

    def _batch(self, observation: Any) -> tuple[NDArray[Any], bool]:
        """Encode an observation for the network and add an axis of environments if it has none;
        also return whether it had none."""
        if self.space.kind != "cells":
            encoded = self._tasks.views[0].encode(observation)
            return encoded[None], True
        seen = observation["image"] if isinstance(observation, Mapping) else observation
        image = np.asarray(seen)
        if image.shape[-3:] != (*self.space.shape, 3):
            raise MasteryError(
                f"an observation has shape {image.shape}; this agent sees MiniGrid's images, "
                "(7, 7, 3), or several of them"
            )
        # Gymnasium environments are those of the minigrid package
        edition = self.job.settings.edition if self._tasks is None else TODAY
        encoded = find_edition(edition).encode(image)
        single = encoded.ndim == len(self.space.shape)
        return encoded[None] if single else encoded, single


class TrainedAdder:
    """A trained network that adds two numbers of up to `length` digits."""

    def __init__(self, network: Network, job: Job, run: Run) -> None:
        self.network, self.job, self.run = network, job, run
        self.length = max(digits_of(job.curriculum))
        self._call = jax.jit(lambda network, given: network(given))

    def add(self, a: int, b: int) -> int:
        """The network's answer for a + b.

        Raises:
            MasteryError: If a number is negative or has more digits than the network was
                trained on.
        """
        if not (0 <= a < 10**self.length and 0 <= b < 10**self.length):
            raise MasteryError(f"it adds numbers from 0 to {10**self.length - 1:,}")
        text = f"{a:0{self.length}d}{b:0{self.length}d}"
        given = [int(digit) for digit in text]
        given.insert(self.length, addition.PLUS)
        logits = self._call(self.network, np.array(given, np.int8)[:, None])
        return int("".join(str(digit) for digit in np.asarray(logits)[:, :, 0].argmax(1)))


class TrainedReasoner:
    """A trained transformer that answers prompts such as `12+34=`."""

    def __init__(self, model: Transformer, job: Job, run: Run, seed: int) -> None:
        self.model, self.job, self.run = model, job, run
        self._random = np.random.default_rng(seed)
        self._call = jax.jit(sample, static_argnames="greedy")

    def answer(self, prompt: str, greedy: bool = True) -> str:
        """The model's answer.

        Args:
            prompt: A problem as `mastery.reasoning.families` writes it, such as `12+34=`.
            greedy: Take the likeliest symbols instead of drawing them.

        Raises:
            MasteryError: If the prompt is too long or has an unknown character.
        """
        uniforms = self._random.random((ANSWER, 1, 1), np.float32)
        given = np.array([encode(prompt)], np.int32)
        return decode(np.asarray(self._call(self.model, given, uniforms, greedy=greedy)[0])[0, 0])


class Moment(NamedTuple):
    """A moment of training whose agents can be loaded."""

    frames: int  # per run; examples in addition, completions in reasoning
    path: Path
    kind: str  # of the file: a checkpoint, or only agents
    runs: Sequence[int]  # that the file is expected to hold


def load_agent(
    directory: str | Path, run: int | None = None, seed: int = 0, at: int | None = None
) -> TrainedAgent | TrainedAdder | TrainedReasoner:
    """Load a trained agent from a job: of its last good checkpoint, or of an earlier moment.

    Args:
        directory: The run directory.
        run: Index of the run, from 0, in the order of `mastery report`. By default the run with
            the highest mean return in the last evaluation (with `at`, of those kept).
        seed: Seed of the actions that the agent samples.
        at: The agent after this many frames: the last that was kept until then. Its `frames` says
            which it is; 0 is the untrained agent. A job keeps agents at 6 to 12 moments, of the
            first two seeds of each program. By default the last checkpoint.

    Returns:
        The agent; the network of an addition job; the model of a reasoning job.

    Raises:
        MasteryError: If there is no such job or run, no checkpoint yet, or no agent of that time.
        CheckpointError: If no checkpoint can be read, or it does not fit the job.

    Example:
        >>> agent = mastery.load_agent("runs/key-corridor-mr")
        >>> env = agent.make("S3R1")
        >>> observation, _ = env.reset()
        >>> agent.reset()
        >>> action = agent.act(observation)
    """
    directory = Path(directory)
    if is_split(directory):
        whole = _best_of_all(directory, at) if run is None else run
        return load_agent(*find_part(directory, whole), seed, at)
    job = read_job(directory)
    found = moments(directory, job)
    runs = job.runs
    if run is None:
        run = _best(directory, found[-1].runs if at is not None and found else range(len(runs)))
    if not 0 <= run < len(runs):
        raise MasteryError(f"there is no run {run}: {directory} has runs 0 to {len(runs) - 1}")
    frames, held, arrays = _arrays(directory, found, job, run, at)

    def filled(like: Any, prefix: str) -> Any:
        own = {
            name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)
        }
        whole = restore(own, like, len(held))
        return jax.tree.map(lambda x: jnp.asarray(x[held.index(run)]), whole)

    if job.environments == "addition":
        adder = jax.eval_shape(lambda key: Network(key, job.settings.width), jax.random.key(0))
        return TrainedAdder(filled(adder, "learner.network."), job, runs[run])
    if job.environments == "reasoning":
        model = jax.eval_shape(lambda key: new_model(key, job.settings), jax.random.key(0))
        return TrainedReasoner(filled(model, "learner.model."), job, runs[run], seed)
    tasks, space = None, Space("cells", (7, 7), job.settings.actions)
    if job.environments == "gymnasium":
        from mastery.training.loops.gymnasium_tasks import GymnasiumTasks

        tasks = GymnasiumTasks(job.curriculum, job.settings.actions)
        space = tasks.space
    like = _like(job.settings, space)
    return TrainedAgent(filled(like, AGENT), space, job, runs[run], seed, tasks, frames)


@functools.cache
def _like(settings: PPOSettings, space: Space) -> Any:
    """The shapes of an agent's arrays."""
    return jax.eval_shape(lambda key: Agent(key, settings, space), jax.random.key(0))


def moments(directory: Path, job: Job) -> list[Moment]:
    """The moments of training whose agents can be loaded, newest first; checkpoints before agents
    of the same time."""
    each, every = job.frames_of_update, range(len(job.runs))
    with open_database(directory) as db:
        found = [
            Moment(step * each, directory / "checkpoints" / name, KIND, every)
            for step, name in checkpoints(db)
        ] + [
            Moment(step * each, directory / "agents" / name, AGENTS_KIND, job.kept)
            for step, name in agents(db)
        ]
    return sorted(found, key=lambda moment: -moment.frames)


def _best(directory: Path, among: Sequence[int]) -> int:
    """The best of some runs in the last evaluation; the first if there was none."""
    with open_database(directory) as db:
        return next((run for run in best_runs(db) if run in among), among[0])


def _best_of_all(folder: Path, at: int | None) -> int:
    """The best run of a job in parts; with `at`, of those whose agents are kept."""
    returns = np.full(len(read_job(folder).runs), -np.inf)
    for part, (first, _) in zip(split_parts(folder), read_split(folder).runs, strict=True):
        job = read_job(part)
        with open_database(part) as db:
            scores = best_runs(db)
        among = range(len(job.runs)) if at is None else job.kept
        returns[[first + run for run in among]] = [scores.get(run, -np.inf) for run in among]
    return int(returns.argmax())


def _arrays(
    directory: Path, found: Sequence[Moment], job: Job, run: int, at: int | None
) -> tuple[int, list[int], dict[str, NDArray[Any]]]:
    """Frames, runs and arrays of the newest moment that has the run and can be read."""
    have = [m for m in found if run in m.runs and (at is not None or m.kind == KIND)]
    error = MasteryError(f"{directory} has no checkpoint yet; train it for longer")
    if have and at is not None:
        error = MasteryError(
            f"{directory} has no agent of run {run} from the first {at:,} {job.settings.unit}; its "
            f"first is after {have[-1].frames:,}"
        )
    for moment in have:
        if at is not None and moment.frames > at:
            continue
        try:
            meta, arrays = checkpoint.read(moment.path, moment.kind)
            held = list(moment.runs) if moment.kind == KIND else [int(r) for r in meta["runs"]]
            if run in held:
                return moment.frames, held, arrays
        except CheckpointError as damaged:
            error = damaged
    raise error
