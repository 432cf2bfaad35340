"""Explanation: why each task has its probability, as a table and as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.programs.automatic import LEARNED, Findings

_MOST = 40  # maximum number of rows to print
_NAMED = 8  # maximum number of names or edges in a line
_ALONE = 0.9  # the share of attention from which a task has nearly all training
_LAG = 0.02  # how far a best may lag behind the mean

AGREES, CONTRADICTS, OPEN = "agrees", "contradicts", "open"


@dataclass(frozen=True, eq=False)
class FoundOrder:
    """What `auto` has found out about the order of the tasks. Print it for a summary."""

    task: tuple[str, ...]
    learned: NDArray[np.int64]  # the time-step in which `auto` counted a task as learned; or 0
    given: NDArray[np.int64]  # (edges, 2): the positions of the tasks of each given edge
    trust: float  # how much the given order counts, in (0, 1); 1/2 at first
    block: str | None  # the task of the current block, which matters while nothing succeeds
    best: NDArray[np.float64]  # the highest mean of each task: 0 at its minimum, 1 at its maximum
    still: NDArray[np.int64]  # time-steps with the task since its mean last rose

    @property
    def order(self) -> list[str]:
        """The tasks that count as learned, in that order; those that are set aside among them."""
        return [self.task[i] for i in self._ordered(self.learned > 0)]

    @property
    def set_aside(self) -> list[str]:
        """The tasks that count as learned only because they make no progress: their best mean is
        far below the maximum, and it has not risen for long."""
        return [self.task[i] for i in self._ordered(self._stands_still)]

    @property
    def _stands_still(self) -> NDArray[np.bool_]:
        return (self.learned > 0) & (self.best < LEARNED - _LAG)

    def _ordered(self, which: NDArray[np.bool_]) -> list[int]:
        known = np.flatnonzero(which)
        return known[np.argsort(self.learned[known], kind="stable")].tolist()  # type: ignore[no-any-return]

    @property
    def edges(self) -> list[tuple[str, str, str]]:
        """Each given edge, predecessor and task, with what was seen of it: `"agrees"` if both are
        learned and the predecessor was first, `"contradicts"` if the task is learned and the
        predecessor is not, or was later; else `"open"`."""
        return [(self.task[a], self.task[b], self._state(a, b)) for a, b in self.given.tolist()]

    def _state(self, before: int, after: int) -> str:
        first, then = int(self.learned[before]), int(self.learned[after])
        if not then:
            return OPEN
        return AGREES if 0 < first <= then else CONTRADICTS

    def __str__(self) -> str:
        aside = self._stands_still
        order = [self.task[i] for i in self._ordered((self.learned > 0) & ~aside)]
        lines = [f"learned so far: {self._some(order) or 'nothing'}"]
        if aside.any():
            stuck = [
                f"{self.task[i]} (best {self.best[i]:.2f}, no rise for {self.still[i]} time-steps)"
                for i in self._ordered(aside)
            ]
            lines.append(f"set aside, no progress: {self._some(stuck)}")
        if len(self.given):
            edges = self.edges
            counts = [sum(state == s for *_, state in edges) for s in (AGREES, CONTRADICTS, OPEN)]
            lines.append(
                f"given order: {counts[0]} of {len(edges)} edges agree with this, {counts[1]} "
                f"contradict it, {counts[2]} are open; trust {self.trust:.2f}"
            )
            against = [f"{a} → {b}" for a, b, state in edges if state == CONTRADICTS]
            if against:
                dots = ", …" if len(against) > _NAMED else ""
                lines.append(f"contradicted: {', '.join(against[:_NAMED])}{dots}")
        return "\n".join(lines)

    def _some(self, names: list[str]) -> str:
        more = f", … ({len(names)} of {len(self.task)})" if len(names) > _NAMED else ""
        return ", ".join(names[:_NAMED]) + more


def found_order(state: Any, curriculum: Curriculum) -> FoundOrder | None:
    """What a program has found out about the order; None if it is not `auto`."""
    memory = getattr(state, "attention", None)
    if not isinstance(memory, Findings):
        return None
    task = int(memory.task)
    span = curriculum.maximum - curriculum.minimum
    low = (np.array(state.tasks.minimum) - curriculum.minimum) / span
    mean = np.array(memory.total) / np.maximum(memory.returns, 1e-9)
    best = (np.maximum(memory.best, mean) - low) / (1 - low)
    return FoundOrder(
        curriculum.names,
        np.array(memory.learned, np.int64),
        curriculum.edges.astype(np.int64),
        float(memory.trust),
        None if task < 0 else curriculum.names[task],
        best,
        np.array(memory.still, np.int64),
    )


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why each task has its probability. Print it for a table; iterate over it for rows.

    Each field is a column with one entry per task. For your own programs (`ProgramLike`) the
    attention is not known and is NaN.
    """

    task: tuple[str, ...]
    returns: NDArray[np.float64]  # about how many returns the mastering rate rests on
    mastery: NDArray[np.float64]  # M_c, the mastering rate
    learnability: NDArray[np.float64]  # M_{Anc c}, the lowest mastery among its ancestors
    progress: NDArray[np.float64]  # β_c, learning progress
    attention: NDArray[np.float64]  # a_c (eq. 1)
    redistributed: NDArray[np.float64]  # a''_c (eq. 2 and 3)
    probability: NDArray[np.float64]  # d_c, the probability of being trained on next
    found: FoundOrder | None = None  # of the program `auto`: what it has found about the order

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield one dictionary per task."""
        columns = [getattr(self, name) for name in _COLUMNS]
        for row in zip(*columns, strict=True):
            yield {
                name: value if isinstance(value, str) else float(value)
                for name, value in zip(_COLUMNS, row, strict=True)
            }

    def __len__(self) -> int:
        return len(self.task)

    def __str__(self) -> str:
        shown = np.arange(len(self))
        if len(self) > _MOST:
            shown = np.sort(np.argsort(-self.probability, kind="stable")[:_MOST])
        width = max(4, *(len(self.task[i]) for i in shown))
        names = _COLUMNS[1:]
        lines = ["task".ljust(width) + "".join(f"{name:>14}" for name in names)]
        for i in shown:
            numbers = "".join(f"{getattr(self, name)[i]:14.4g}" for name in names)
            lines.append(self.task[i].ljust(width) + numbers)
        if len(self) > _MOST:
            lines.append(f"… the {_MOST} most probable of {len(self)} tasks")
        if self.found is not None:
            lines.append(str(self.found))
            block, share = self.found.block, self.attention / self.attention.sum()
            if block is not None and share[self.task.index(block)] > _ALONE:
                lines.append(f"nearly all training goes to {block}: no other task makes progress")
        return "\n".join(lines)


_COLUMNS = [f.name for f in fields(Explanation) if f.name != "found"]
