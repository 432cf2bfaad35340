"""Gymnasium: environments that play the tasks a teacher draws.

    env = CurriculumEnv(make_env, teacher)                    one environment
    envs = CurriculumVectorEnv(make_env, teacher, 16)         many, in one process or several

The teacher draws a task at the start of each episode. When the episode ends, terminated or
truncated, the teacher gets its return, once. An episode cut short by a reset does not count.
`info["task"]` holds the task.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mastery.errors import MasteryError, check_whole, needs
from mastery.teacher import Teacher

with needs("mastery.adapters.gymnasium", "gymnasium"):
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorWrapper

from mastery.adapters.ledger import ENDLESS, STEPS, Ledger
from mastery.adapters.sync_envs import SyncEnvs
from mastery.adapters.task_env import KEPT, MakeEnv, Maker, TaskEnv
from mastery.recording.adapters import Recording
from mastery.recording.recorder import Recorder

MODES = {"sync": SyncEnvs, "async": AsyncVectorEnv}
LOOK = 1000  # steps between looks for episodes that do not end
AHEAD = 64  # tasks drawn in advance
if TYPE_CHECKING:
    Wrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:
    Wrapper = VectorWrapper  # not generic before Gymnasium 1.4


class CurriculumEnv(TaskEnv):
    """One environment that switches to a task drawn by the teacher at each reset.

    Args:
        make_env: How to make environments. One of:

            - a function of a task's name that returns the task's environment;
            - a function without arguments, or an environment id, for a single environment that
              plays all tasks and reads the task from `reset(options={"task": name})`;
            - None: each task's `settings["env"]` is an environment id.
        teacher: The teacher. Several environments in one process can share it.
        update_every: Environment steps in one teacher time-step, summed over all environments that
            share the teacher. If None, a time-step ends when you call `update()`.
        keep: The maximum number of environments to keep open.
        record: A folder to record into, as with `mastery.record`, or the Recorder that it returned.

    Raises:
        MasteryError: If an argument is invalid, an environment cannot be made, or the tasks differ
            in their observation or action spaces (observation boxes may differ in bounds).

    Example:
        >>> env = CurriculumEnv(make_env, Teacher(curriculum, "mr"))
        >>> observation, info = env.reset(seed=0)
        >>> task = info["task"]
    """

    def __init__(
        self,
        make_env: MakeEnv,
        teacher: Teacher,
        *,
        update_every: int | None = STEPS,
        keep: int = KEPT,
        record: str | Path | Recorder | None = None,
    ) -> None:
        self.teacher, self._ledger = teacher, Ledger.of(teacher)
        self._recording = Recording(teacher, record, "frames")
        self._ledger.set_every(update_every)
        self._return, self._length, self._running = 0.0, 0, False
        self._steps = 0  # since an episode ended
        super().__init__(Maker(make_env, teacher.curriculum), keep)
        self.check()

    @property
    def recorder(self) -> Recorder | None:
        """The recorder, if `record` was given."""
        return self._recording.recorder

    def choose(self) -> int:
        """Draw the next task from the teacher."""
        return int(self.teacher.curriculum.positions[self.teacher.sample()])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode of a task that the teacher draws, or of `options["task"]` if given."""
        self._running = False
        _ = self.recorder  # begins with the first episode
        observation, info = super().reset(seed=seed, options=options)
        self._return, self._length, self._running = 0.0, 0, True
        return observation, {**info, "task": self.task}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the current task's environment; record the return if the episode ends."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._return += float(reward)
        self._steps += 1
        self._length += 1
        if (terminated or truncated) and self._running:
            self._ledger.add(self.task, self._return, self._length)
            self._running, self._steps = False, 0
        elif self._steps == ENDLESS:
            self._steps = 0
            self._ledger.endless(self.task)
        self._ledger.passed(1)
        info["task"] = self.task
        return observation, reward, terminated, truncated, info

    def update(self) -> dict[str, list[float]]:
        """End the teacher's time-step: pass it the returns since the last one, and return them."""
        return self._ledger.update()

    def close(self) -> None:
        """Close all environments and pass any remaining returns to the teacher."""
        super().close()
        self._ledger.flush()
        self._recording.close()


class CurriculumVectorEnv(Wrapper):
    """A vector environment whose environments switch to a drawn task at each reset.

    All environments share one teacher.

    Args:
        make_env: As in `CurriculumEnv`.
        teacher: The teacher. It stays in this process, in "async" mode too.
        num_envs: The number of environments.
        vectorization_mode: "sync" runs all environments in this process; "async" runs each in its
            own process.
        autoreset_mode: Any of Gymnasium's three modes.
        update_every: As in `CurriculumEnv`.
        keep: As in `CurriculumEnv`, for each of the environments.
        record: As in `CurriculumEnv`.
        **settings: Passed to Gymnasium's SyncVectorEnv or AsyncVectorEnv, e.g. `copy` or `context`.

    Raises:
        MasteryError: As in `CurriculumEnv`.
    """

    def __init__(
        self,
        make_env: MakeEnv,
        teacher: Teacher,
        num_envs: int,
        *,
        vectorization_mode: str = "sync",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        update_every: int | None = STEPS,
        keep: int = KEPT,
        record: str | Path | Recorder | None = None,
        **settings: Any,
    ) -> None:
        check_whole("num_envs", num_envs)
        if vectorization_mode not in MODES:
            raise MasteryError(
                f"vectorization_mode is {vectorization_mode!r}; choose from 'sync', 'async'"
            )
        try:
            mode = AutoresetMode(autoreset_mode)
        except ValueError:
            known = ", ".join(repr(m.value) for m in AutoresetMode)
            raise MasteryError(
                f"autoreset_mode is {autoreset_mode!r}; choose from {known}"
            ) from None
        self.teacher, self._ledger = teacher, Ledger.of(teacher)
        self._recording = Recording(teacher, record, "frames")
        self._ledger.set_every(update_every, num_envs)
        self._maker = Maker(make_env, teacher.curriculum)
        self._names = np.array(self._maker.names, object)
        shared = vectorization_mode == "async"
        if shared:
            probe = BoardEnv(self._maker, Board(1, shared=False), 0, keep)
            try:
                probe.check()
            finally:
                probe.close()
        self._board = Board(num_envs, shared)
        slots = [partial(BoardEnv, self._maker, self._board, i, keep) for i in range(num_envs)]
        try:
            envs: Any = MODES[vectorization_mode](slots, autoreset_mode=mode, **settings)
        finally:
            self._board.forget()
        super().__init__(envs)
        if not shared:
            envs.envs[0].check()
        self._same_step = mode == AutoresetMode.SAME_STEP
        self._disabled = mode == AutoresetMode.DISABLED
        self._all = np.ones(num_envs, bool)
        self._returns = np.zeros(num_envs)
        self._steps = 0
        self._ended_at = np.zeros(num_envs, np.int64)  # the step that last ended an episode
        self._began = np.zeros(num_envs, np.int64)  # the step that began the episode
        self._over: list[int] = []  # environments that await a reset
        self._tasks = self._names[self._board.playing]
        self._ahead: list[int] = []  # tasks drawn but not yet assigned
        self._drawn_at = -1  # the time-step at which they were drawn

    @property
    def recorder(self) -> Recorder | None:
        """The recorder, if `record` was given."""
        return self._recording.recorder

    @property
    def tasks(self) -> list[str]:
        """The current task of each environment."""
        return list(self._tasks)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start new episodes.

        Args:
            seed: As in Gymnasium.
            options: `"reset_mask"`: one boolean per environment; only those that are true restart.
                `"task"`: the task to play, or a list with one task per environment; by default the
                teacher draws.
        """
        _ = self.recorder  # begins with the first episode
        given = {} if options is None else dict(options)
        mask = given.get("reset_mask")
        mask = np.ones(self.num_envs, bool) if mask is None else np.array(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise MasteryError(
                f"options['reset_mask'] must hold {self.num_envs} booleans, one per environment"
            )
        if "reset_mask" in given:
            given["reset_mask"] = mask
        which = mask.nonzero()[0].tolist()
        if "task" in given:
            self._board.next[which] = self._asked(given.pop("task"))[which]
        else:
            self._draw(which)
        observation, infos = self.env.reset(seed=seed, options=None if options is None else given)
        self._returns[which], self._began[which] = 0.0, self._steps
        self._over = [i for i in self._over if not mask[i]]
        self._tasks = self._names[self._board.playing]
        if self._same_step:
            self._draw(which)
        return observation, infos | {"task": self._tasks, "_task": mask}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all environments; record the returns of episodes that end.

        Raises:
            MasteryError: If an episode has ended and autoreset is disabled.
            ReturnsError: If a return is not finite.
        """
        begins = bool(self._over)
        if self._same_step:  # any environment may start an episode in this step
            self._draw(())
        elif begins and self._disabled:
            raise MasteryError(
                f"the episode of environment {self._over[0]} has ended; reset it with "
                "reset(options={'reset_mask': …}), or choose another autoreset_mode"
            )
        elif begins:
            self._draw(self._over)
        observation, rewards, terminated, truncated, infos = self.env.step(actions)
        self._returns += rewards
        over: list[int] = []
        if 1 in terminated.tobytes() or 1 in truncated.tobytes():  # the fastest test
            ended = terminated | truncated
            over = ended.nonzero()[0].tolist()
            for i in over:
                length = self._steps + 1 - self._began.item(i)
                self._ledger.add(self._tasks[i], self._returns.item(i), length)
                self._returns[i] = 0.0
            self._ended_at[over] = self._steps
            self._began[over] = self._steps + 1
            if self._same_step:
                infos["final_info"] |= {"task": self._tasks, "_task": ended}
                self._draw(over)
                begins, over = True, []
        self._over = over
        if begins:
            self._tasks = self._names[self._board.playing]
        infos["task"], infos["_task"] = self._tasks, self._all
        self._ledger.passed(self.num_envs)
        self._steps += 1
        if not self._steps % LOOK:
            for i in np.flatnonzero(self._steps - self._ended_at >= ENDLESS).tolist():
                self._ended_at[i] = self._steps
                self._ledger.endless(self._tasks[i])
        return observation, rewards, terminated, truncated, infos

    def update(self) -> dict[str, list[float]]:
        """End the teacher's time-step: pass it the returns since the last one, and return them."""
        return self._ledger.update()

    def close(self, **kwargs: Any) -> None:
        """Close all environments and pass any remaining returns to the teacher."""
        super().close(**kwargs)
        self._ledger.flush()
        self._recording.close()

    def _draw(self, which: Sequence[int]) -> None:
        """Draw the next task of these environments from the teacher's current probabilities."""
        now = self.teacher.time_step
        if now != self._drawn_at:
            self._drawn_at = now
            self._ahead.clear()
            if self._same_step:  # the tasks of the others are out of date too
                which = range(self.num_envs)
        for i in which:
            if not self._ahead:
                drawn = self.teacher.sample(AHEAD)
                self._ahead += [self._maker.positions[name] for name in drawn]
            self._board.next[i] = self._ahead.pop()

    def _asked(self, tasks: Any) -> NDArray[np.int64]:
        """The positions of the tasks that the caller asked for, one per environment."""
        names = [tasks] * self.num_envs if isinstance(tasks, str) else tasks
        if not isinstance(names, Sequence | np.ndarray) or len(names) != self.num_envs:
            raise MasteryError(
                f"options['task'] is {tasks!r:.80}; it must be a task, or a list of "
                f"{self.num_envs} tasks, one per environment"
            )
        return np.array([self._maker.position(name) for name in names])


class Board:
    """Task positions shared by a vector environment and its environments, across processes too.

    `next` holds the next task of each environment, `playing` its current task.
    """

    def __init__(self, n: int, shared: bool) -> None:
        self._n, self._path = n, ""
        if shared:
            with tempfile.NamedTemporaryFile(prefix="mastery-", delete=False) as file:
                file.write(bytes(16 * n))
            self._path = file.name
        self._open()

    def _open(self) -> None:
        both: NDArray[np.int64] = (
            np.memmap(self._path, np.int64, "r+", shape=(2, self._n))
            if self._path
            else np.zeros((2, self._n), np.int64)
        )
        self.next, self.playing = both

    def forget(self) -> None:
        """Delete the file; call this once all processes have opened it."""
        if self._path:
            with contextlib.suppress(OSError):
                Path(self._path).unlink()

    def __getstate__(self) -> dict[str, Any]:
        return {"_n": self._n, "_path": self._path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


class BoardEnv(TaskEnv):
    """One environment of a vector environment, in this process or another."""

    def __init__(self, maker: Maker, board: Board, number: int, keep: int) -> None:
        self._board, self._number = board, number
        super().__init__(maker, keep)

    def choose(self) -> int:
        """Read the next task from the board."""
        return int(self._board.next[self._number])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        result = super().reset(seed=seed, options=options)
        self._board.playing[self._number] = self.position
        self.__dict__["step"] = self.env.step  # skip one call: this runs at every step
        return result
