"""Explanation: why each task has its probability, as a table and as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 40  # maximum number of rows to print


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

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield one dictionary per task."""
        columns = [getattr(self, f.name) for f in fields(self)]
        for row in zip(*columns, strict=True):
            yield {
                f.name: value if isinstance(value, str) else float(value)
                for f, value in zip(fields(self), row, strict=True)
            }

    def __len__(self) -> int:
        return len(self.task)

    def __str__(self) -> str:
        shown = np.arange(len(self))
        if len(self) > _MOST:
            shown = np.sort(np.argsort(-self.probability, kind="stable")[:_MOST])
        width = max(4, *(len(self.task[i]) for i in shown))
        names = [f.name for f in fields(self)][1:]
        lines = ["task".ljust(width) + "".join(f"{name:>14}" for name in names)]
        for i in shown:
            numbers = "".join(f"{getattr(self, name)[i]:14.4g}" for name in names)
            lines.append(self.task[i].ljust(width) + numbers)
        if len(self) > _MOST:
            lines.append(f"… the {_MOST} most probable of {len(self)} tasks")
        return "\n".join(lines)
