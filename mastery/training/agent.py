"""load_agent(): use a trained policy from Python.

agent = mastery.load_agent("runs/key-corridor-mr")
observation, _ = env.reset()
agent.reset()
action = agent.act(observation)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mastery import checkpoint
from mastery.errors import CheckpointError, MasteryError
from mastery.learners import addition
from mastery.learners.addition import Network
from mastery.learners.encoders import Space
from mastery.learners.ppo import Agent, choose
from mastery.minigrid.editions import TODAY, find_edition
from mastery.rundir.database import best_run, checkpoints, open_database
from mastery.rundir.store import KIND
from mastery.training.job import Job, Run, digits_of, read_job
from mastery.training.loops.named_arrays import restore


class TrainedAgent:
    """A trained policy with its memory. Call `reset` at the start of every episode.

    An agent trained on MiniGrid also takes a batch: one observation per environment.
    """

    def __init__(
        self, agent: Agent, space: Space, job: Job, run: Run, seed: int, tasks: Any
    ) -> None:
        self.agent, self.space, self.job, self.run = agent, space, job, run
        self._tasks = tasks  # GymnasiumTasks, or None for our own MiniGrid
        self._random = np.random.default_rng(seed)
        self._call = jax.jit(lambda agent, *given: agent(*given))
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
        self._memory, logits, _ = self._call(self.agent, self._memory, np.zeros(n, bool), batch)
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


def load_agent(
    directory: str | Path, run: int | None = None, seed: int = 0
) -> TrainedAgent | TrainedAdder:
    """Load a trained agent from the last good checkpoint of a job.

    Args:
        directory: The run directory.
        run: Index of the run, from 0, in the order of `mastery report`. By default the run with
            the highest mean return in the last evaluation.
        seed: Seed of the actions that the agent samples.

    Returns:
        The agent, or the network of an addition job.

    Raises:
        MasteryError: If there is no such job or run, or no checkpoint yet.
        CheckpointError: If no checkpoint can be read, or it does not fit the job.

    Example:
        >>> agent = mastery.load_agent("runs/key-corridor-mr")
        >>> env = agent.make("S3R1")
        >>> observation, _ = env.reset()
        >>> agent.reset()
        >>> action = agent.act(observation)
    """
    job = read_job(directory)
    runs = job.runs
    if run is None:
        with open_database(Path(directory)) as db:
            run = best_run(db)
    if not 0 <= run < len(runs):
        raise MasteryError(f"there is no run {run}: {directory} has runs 0 to {len(runs) - 1}")
    arrays = _last_arrays(Path(directory))

    def filled(like: Any, prefix: str) -> Any:
        own = {
            name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)
        }
        return jax.tree.map(lambda x: jnp.asarray(x[run]), restore(own, like, len(runs)))

    key = jax.random.key(0)
    if job.environments == "addition":
        adder = jax.eval_shape(lambda key: Network(key, job.settings.width), key)
        return TrainedAdder(filled(adder, "learner.network."), job, runs[run])
    tasks, space = None, Space("cells", (7, 7), job.settings.actions)
    if job.environments == "gymnasium":
        from mastery.training.loops.gymnasium_tasks import GymnasiumTasks

        tasks = GymnasiumTasks(job.curriculum, job.settings.actions)
        space = tasks.space
    like = jax.eval_shape(lambda key: Agent(key, job.settings, space), key)
    return TrainedAgent(filled(like, "learner.agent."), space, job, runs[run], seed, tasks)


def _last_arrays(directory: Path) -> dict[str, NDArray[Any]]:
    """The arrays of the newest checkpoint that can be read."""
    with open_database(directory) as db:
        rows = checkpoints(db)
    error: MasteryError = MasteryError(f"{directory} has no checkpoint yet; train it for longer")
    for _, name in rows:
        try:
            return checkpoint.read(directory / "checkpoints" / name, KIND)[1]
        except CheckpointError as damaged:
            error = damaged
    raise error
