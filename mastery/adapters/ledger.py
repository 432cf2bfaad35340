"""Ledger: the returns of the episodes that have ended since a teacher's last time-step.

All environments of a teacher write to the same ledger, so they share its time-steps.
"""

from __future__ import annotations

import math
import os
import threading
import warnings
import weakref

from mastery.errors import MasteryError, MasteryWarning, ReturnsError, check_whole
from mastery.teacher import Teacher

ENDLESS = 10_000  # steps of one environment without an ended episode, before a warning
UNUSED = 1_000  # ended episodes without an update, before a warning
STEPS = 2048  # per time-step, as in the paper: 16 environments × 128 frames


class Ledger:
    """Collects returns and updates the teacher. Get one with `Ledger.of(teacher)`.

    Attributes:
        every: Environment steps between updates of the teacher; if None, only `update()` updates
            it.
        last: The returns of the last time-step.
        patience: Ended episodes before a warning that nobody calls `update`; 0 for no warning.
    """

    def __init__(self, teacher: Teacher) -> None:
        self._teacher = weakref.ref(teacher)
        self._lock = threading.RLock()
        self._steps = 0
        self._returns: dict[str, list[float]] = {}
        self._lengths: dict[str, list[int]] = {}
        self.every: int | None = STEPS
        self.last: dict[str, list[float]] = {}
        self.patience = 0
        self._waiting, self._time_step = 0, 0  # ended episodes, since this time-step
        self._ended: set[str] = set()  # tasks of which an episode has ended
        self._endless = False  # whether the warning was given

    @classmethod
    def of(cls, teacher: Teacher) -> Ledger:
        """The teacher's ledger; there is one per teacher.

        Raises:
            MasteryError: If this is not a teacher, or it was made in another process.
        """
        if not isinstance(teacher, Teacher):
            raise MasteryError(f"a curriculum needs a Teacher, not {teacher!r:.80}")
        if teacher._process != os.getpid():
            raise MasteryError(
                "the teacher was made in another process and cannot receive returns from this one; "
                "use CurriculumVectorEnv(…, vectorization_mode='async'), which shares one teacher "
                "between processes, or make the teacher in this process"
            )
        with _LOCK:
            if teacher not in _LEDGERS:
                _LEDGERS[teacher] = cls(teacher)
            return _LEDGERS[teacher]

    def set_every(self, every: int | None, envs: int = 1) -> None:
        """Set `every`; MasteryError unless it is None or a whole number from 1.

        Args:
            every: Environment steps between updates, or None: the user calls `update`.
            envs: The number of environments; many may end many episodes before the first update.
        """
        self.every = None if every is None else check_whole("update_every", every)
        self.patience = max(UNUSED, 100 * envs) if every is None else 0
        teacher = self._teacher()
        self._waiting, self._time_step = 0, 0 if teacher is None else teacher.time_step

    def add(self, task: str, total: float, length: int) -> None:
        """Record the return and the number of steps of an episode that has ended."""
        if not math.isfinite(total):
            raise ReturnsError(f"task {task!r}: a return is {total}; it must be a finite number")
        with self._lock:
            self._returns.setdefault(task, []).append(total)
            self._lengths.setdefault(task, []).append(length)
            self._ended.add(task)
            self._waiting += 1
            if self._waiting == self.patience:
                self._warn_unused()

    def passed(self, steps: int) -> None:
        """Count environment steps, and update the teacher if a time-step is over."""
        self._steps += steps
        if self.every is not None and self._steps >= self.every:
            self.update()

    def update(self) -> dict[str, list[float]]:
        """Update the teacher with the returns since the last time-step, and return them."""
        with self._lock:
            self._steps, self.last, self._returns = 0, self._returns, {}
            lengths, self._lengths = self._lengths, {}
            self.patience = 0
            teacher = self._teacher()
            if teacher is not None:
                teacher.update(self.last, cost=lengths)
            return self.last

    def endless(self, task: str) -> None:
        """Warn, once, that an environment ends no episode, unless one of this task has ended."""
        if not self._endless and task not in self._ended:
            self._endless = True
            warnings.warn(
                f"task {task!r}: no episode has ended in {ENDLESS:,} steps of one environment, so "
                "the teacher gets no return; limit its episodes, with "
                "gymnasium.make(…, max_episode_steps=1000) or max_episode_steps in the task's "
                "settings (an episode that a reset cuts short does not count)",
                MasteryWarning,
                stacklevel=3,  # the caller of the environment's step
            )

    def _warn_unused(self) -> None:
        teacher = self._teacher()
        if teacher is not None and teacher.time_step == self._time_step:
            warnings.warn(
                f"{self._waiting:,} episodes have ended and the teacher was never updated; with "
                "update_every=None, call the environment's update() after each rollout, or set "
                "update_every to a number of steps",
                MasteryWarning,
                stacklevel=4,  # the caller of the environment's step
            )

    def flush(self) -> None:
        """Update the teacher if any returns remain."""
        with self._lock:
            if self._returns:
                self.update()


_LEDGERS: weakref.WeakKeyDictionary[Teacher, Ledger] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()
