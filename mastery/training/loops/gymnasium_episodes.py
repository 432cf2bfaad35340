"""Play episodes in Gymnasium environments side by side, with one call of the agent per frame.

Slot        plays one episode after the other
Play        the training episodes of a run in one chunk
evaluate    episodes of every task, outside training
"""

from __future__ import annotations

from itertools import islice, product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mastery.curriculum.environments import Env, said
from mastery.curriculum.task import LARGEST
from mastery.errors import MasteryError
from mastery.learners import ppo
from mastery.learners.ppo import Agent, Trajectory
from mastery.programs.distribution import cumulative, draw
from mastery.rundir.metrics import POLICIES, Evaluation
from mastery.training.loops.gymnasium_tasks import GymnasiumTasks
from mastery.training.loops.loop import EVALUATION_SEED

Array = Any  # a NumPy or a JAX array
LONGEST = 10_000  # most steps of an evaluation episode if the environment has no limit


@jax.jit
def act(
    agent: Agent, memory: Array, starts: Array, observation: Array, uniforms: Array, greedy: Array
) -> tuple[Array, Array, Array, Array]:
    """The new memory; and the action, its log-probability and the value, per environment."""
    memory, logits, value = agent(memory, starts, observation)
    action = jnp.where(greedy, logits.argmax(-1), ppo.choose(logits, uniforms))
    return memory, action, ppo.log_probability(logits, action), value


class Slot:
    """Plays one episode after the other. Makes an environment when a task first needs it."""

    def __init__(self, tasks: GymnasiumTasks) -> None:
        self._tasks = tasks
        self._envs: dict[int, Env] = {}
        self.task, self.total, self.length = (
            0,
            0.0,
            0,
        )  # of the episode; total: its return, length: its frames
        self.shown: set[bytes] = set()  # views in the episode

    def begin(self, task: int, seed: int) -> NDArray[Any]:
        """Start an episode and return its first view."""
        self.task, self.total, self.length = task, 0.0, 0
        self.shown.clear()
        if task not in self._envs:
            self._envs[task] = self._tasks.make(task)
        try:
            observation, _ = self._envs[task].reset(seed=seed)
            return self._seen(observation)
        except Exception as error:  # user code may raise anything
            raise self._failed("reset", error) from error

    def step(self, action: int) -> tuple[NDArray[Any], float, bool]:
        """Take an action; return the next view, the reward and whether the episode ended."""
        try:
            observation, given, terminated, truncated, _ = self._envs[self.task].step(
                action + self._tasks.first_action
            )
            reward = float(given)
            if not -LARGEST <= reward <= LARGEST:
                raise ValueError(f"its reward is {reward}")
            self.total, self.length = self.total + reward, self.length + 1
            return self._seen(observation), reward, bool(terminated or truncated)
        except Exception as error:  # user code may raise anything
            raise self._failed("step", error) from error

    def new(self, seen: NDArray[Any]) -> bool:
        """Whether a view is new in this episode; remembers it."""
        if self._tasks.space.kind != "cells":
            return False  # pixels and vectors hardly ever repeat
        before = len(self.shown)
        self.shown.add(seen.tobytes())
        return len(self.shown) > before

    def close(self) -> None:
        """Close the environments."""
        while self._envs:
            self._envs.popitem()[1].close()

    def _seen(self, observation: Any) -> NDArray[Any]:
        """Encode an observation and check its shape, dtype and finiteness."""
        view = self._tasks.views[self.task]
        x = view.encode(observation)
        if x.shape != view.shape or x.dtype != view.dtype:
            raise ValueError(
                f"it shows {x.dtype}{list(x.shape)}, where its space says "
                f"{view.dtype}{list(view.shape)}"
            )
        if x.dtype == np.float32 and not np.isfinite(x).all():
            raise ValueError("it shows something that is not finite")
        return x

    def _failed(self, what: str, error: Exception) -> MasteryError:
        return MasteryError(
            f"task {self._tasks.names[self.task]!r}: its environment failed in {what}(): "
            f"{said(error)}; repair the environment, or leave the task out"
        )


class Played(NamedTuple):
    """What was played in an update; each (tasks,)."""

    episodes: NDArray[np.int32]  # that ended
    returns: NDArray[np.float64]  # their sum
    squares: NDArray[np.float64]  # the sum of their squares
    frames: NDArray[np.int32]


class Play:
    """The training episodes of one run in one chunk.

    Args:
        tasks: The tasks.
        slots: One slot per environment.
        random: One generator per slot, for the tasks and seeds of its episodes.
    """

    def __init__(
        self, tasks: GymnasiumTasks, slots: list[Slot], random: list[np.random.Generator]
    ) -> None:
        self._tasks, self._slots, self._random = tasks, slots, random
        self._after: tuple[Array, Array, Array] | None = None

    def on(
        self, agent: Agent, probability: NDArray[Any], uniforms: NDArray[Any], bptt: int
    ) -> tuple[Trajectory, tuple[Array, Array, Array], Played]:
        """Play the frames of one update.

        Args:
            agent: The agent.
            probability: (tasks,), to draw the tasks of new episodes.
            uniforms: (frames, envs), to draw actions.
            bptt: Frames between saved memories.

        Returns:
            The trajectory; memory, starts and observation after it; and what was played.
        """
        frames, envs = uniforms.shape
        sums = cumulative(probability)
        # new arrays each time: arrays passed to JAX must not be overwritten
        observation = np.empty((frames + 1, envs, *self._tasks.space.shape), self._tasks.dtype)
        starts = np.empty((frames + 1, envs), bool)
        new = np.empty((frames, envs), bool)
        action = np.empty((frames, envs), np.int32)
        log_probability, value, reward = np.empty((3, frames, envs), np.float32)
        memories = []
        n = len(self._tasks.names)
        played = Played(np.zeros(n, np.int32), np.zeros(n), np.zeros(n), np.zeros(n, np.int32))
        if self._after is None:
            memory: Array = np.zeros((agent.memory_size, envs), np.float32)
            starts[0] = True
            for i in range(envs):
                observation[0, i] = self._begin(i, sums)
                self._slots[i].new(observation[0, i])
        else:
            memory, starts[0], observation[0] = self._after
        greedy = np.zeros(envs, bool)
        for t in range(frames):
            if t % bptt == 0:
                memories.append(memory)
            memory, action[t], log_probability[t], value[t] = act(
                agent, memory, starts[t], observation[t], uniforms[t], greedy
            )
            for i, chosen in enumerate(action[t].tolist()):
                seen, reward[t, i], starts[t + 1, i] = self._step(i, chosen, sums, played)
                new[t, i] = self._slots[i].new(seen)
                observation[t + 1, i] = seen
        self._after = memory, starts[-1], observation[-1]
        trajectory = Trajectory(
            observation=observation[:-1],
            starts=starts[:-1],
            action=action,
            log_probability=log_probability,
            value=value,
            reward=reward,
            ended=starts[1:],
            new=new,
            memory=np.stack(memories),
        )
        return trajectory, self._after, played

    def _step(
        self, i: int, action: int, sums: NDArray[Any], played: Played
    ) -> tuple[NDArray[Any], float, bool]:
        """Step a slot and count it; where its episode ends, begin the next one."""
        slot = self._slots[i]
        seen, given, ended = slot.step(action)
        reward = given * self._tasks.scale[slot.task]
        played.frames[slot.task] += 1
        if ended:
            played.episodes[slot.task] += 1
            played.returns[slot.task] += slot.total
            played.squares[slot.task] += slot.total**2
            seen = self._begin(i, sums)
        return seen, reward, ended

    def _begin(self, i: int, sums: NDArray[Any]) -> NDArray[Any]:
        random = self._random[i]
        return self._slots[i].begin(int(draw(sums, random.random())), int(random.integers(2**31)))


def evaluate(
    agent: Agent, tasks: GymnasiumTasks, slots: list[Slot], episodes: int, update: int
) -> Evaluation:
    """Play `episodes` episodes per task and policy; the means are (policies, tasks).

    All agents get the same seeds. A slot starts the next episode when its episode ends.
    """
    shape = (len(POLICIES), len(tasks.names), episodes)
    returns, length = np.zeros((2, *shape))
    waiting = product(*map(range, shape))
    playing: dict[int, tuple[tuple[int, ...], np.random.Generator]] = {}  # by slot
    envs = len(slots)
    observation = np.zeros((envs, *tasks.space.shape), tasks.dtype)
    memory: Array = np.zeros((agent.memory_size, envs), np.float32)
    starts, greedy = np.zeros((2, envs), bool)
    uniforms = np.zeros(envs, np.float32)

    def begin_next(i: int) -> None:
        playing.pop(i, None)
        for policy, task, episode in islice(waiting, 1):
            random = np.random.default_rng([EVALUATION_SEED, update, task, episode])
            playing[i] = (policy, task, episode), random
            observation[i] = slots[i].begin(task, int(random.integers(2**31)))
            greedy[i], starts[i] = POLICIES[policy] == "greedy", True

    for i in range(envs):
        begin_next(i)
    while playing:
        for i, (_, random) in playing.items():
            uniforms[i] = random.random(dtype=np.float32)
        memory, action, _, _ = act(agent, memory, starts, observation, uniforms, greedy)
        chosen = np.asarray(action).tolist()  # waits for JAX; then the arrays may be overwritten
        starts[:] = False
        for i, (which, _) in list(playing.items()):
            slot = slots[i]
            observation[i], _, ended = slot.step(chosen[i])
            if ended or slot.length >= (tasks.limits[slot.task] or LONGEST):
                returns[which], length[which] = slot.total, slot.length
                begin_next(i)
    success = returns > tasks.minimum[:, None]
    return Evaluation(returns.mean(-1), success.mean(-1), length.mean(-1))
