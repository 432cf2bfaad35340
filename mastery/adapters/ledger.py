"""Ledger: the returns of the episodes that have ended since a teacher's last time-step.

All environments of a teacher write to the same ledger, so they share its time-steps.
"""

from __future__ import annotations

import math
import os
import threading
import weakref

from mastery.errors import MasteryError, ReturnsError, check_whole
from mastery.teacher import Teacher

STEPS = 2048  # per time-step, as in the paper: 16 environments × 128 frames


class Ledger:
    """Collects returns and updates the teacher. Get one with `Ledger.of(teacher)`.

    Attributes:
        every: Environment steps between updates of the teacher; if None, only `update()` updates
            it.
        last: The returns of the last time-step.
    """

    def __init__(self, teacher: Teacher) -> None:
        self._teacher = weakref.ref(teacher)
        self._lock = threading.RLock()
        self._steps = 0
        self._returns: dict[str, list[float]] = {}
        self.every: int | None = STEPS
        self.last: dict[str, list[float]] = {}

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

    def set_every(self, every: int | None) -> None:
        """Set `every`; MasteryError unless it is None or a whole number from 1."""
        self.every = None if every is None else check_whole("update_every", every)

    def add(self, task: str, total: float) -> None:
        """Record the return of an episode that has ended."""
        if not math.isfinite(total):
            raise ReturnsError(f"task {task!r}: a return is {total}; it must be a finite number")
        with self._lock:
            self._returns.setdefault(task, []).append(total)

    def passed(self, steps: int) -> None:
        """Count environment steps, and update the teacher if a time-step is over."""
        self._steps += steps
        if self.every is not None and self._steps >= self.every:
            self.update()

    def update(self) -> dict[str, list[float]]:
        """Update the teacher with the returns since the last time-step, and return them."""
        with self._lock:
            self._steps, self.last, self._returns = 0, self._returns, {}
            teacher = self._teacher()
            if teacher is not None:
                teacher.update(self.last)
            return self.last

    def flush(self) -> None:
        """Update the teacher if any returns remain."""
        with self._lock:
            if self._returns:
                self.update()


_LEDGERS: weakref.WeakKeyDictionary[Teacher, Ledger] = weakref.WeakKeyDictionary()
_LOCK = threading.Lock()
