"""Why each prompt is as likely as it is, as a table and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.programs.explanation import Explanation
from mastery.prompts.choice import Choice
from mastery.prompts.estimates import task_rate
from mastery.prompts.pool import PromptPool

_MOST = 40  # maximum number of rows to print


@dataclass(frozen=True, eq=False)
class PromptExplanation:
    """Why prompts are as likely as they are. Print it for a table; iterate over it for rows.

    Each field is a column with one entry per prompt; `tasks` explains the tasks.
    """

    id: NDArray[np.int64]
    task: tuple[str, ...]
    returns: NDArray[np.float64]  # n_i, about how many returns are remembered
    own: NDArray[np.float64]  # their mean, as a share of the task's bounds; NaN without any
    rate: NDArray[np.float64]  # P, the rate of the task
    estimate: NDArray[np.float64]  # p_i, the estimate from both
    alike: NDArray[np.int64]  # groups in a row, up to now, that were all right or all wrong
    waiting: NDArray[np.int64]  # draws that wait for a report
    probability: NDArray[np.float64]  # of being drawn next; 0 if retired
    tasks: Explanation

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield one dictionary per prompt."""
        columns = [_plain(getattr(self, name)) for name in _COLUMNS]
        for row in zip(*columns, strict=True):
            yield dict(zip(_COLUMNS, row, strict=True))

    def __len__(self) -> int:
        return len(self.id)

    def __str__(self) -> str:
        shown = np.arange(len(self))
        if len(self) > _MOST:
            shown = np.argsort(-self.probability, kind="stable")[:_MOST]
        width = max(4, *(len(self.task[i]) for i in shown)) if len(shown) else 4
        names = _COLUMNS[2:]
        lines = ["      id  " + "task".ljust(width) + "".join(f"{name:>13}" for name in names)]
        for i in shown:
            cells = "".join(f"{getattr(self, name)[i]:13.4g}" for name in names)
            lines.append(f"{self.id[i]:>8}  " + self.task[i].ljust(width) + cells)
        if len(self) > _MOST:
            lines.append(f"… the {_MOST} most probable of {len(self)} prompts")
        return "\n".join(lines)


_COLUMNS = [f.name for f in fields(PromptExplanation) if f.name != "tasks"]


def _plain(column: Any) -> list[Any]:
    return list(column) if isinstance(column, tuple) else column.tolist()


def explained(
    pool: PromptPool,
    choice: Choice,
    rows: NDArray[np.int64],
    tasks: Mapping[int, float],
    teacher: Explanation,
) -> PromptExplanation:
    """Explain some prompts.

    Args:
        pool: All prompts.
        choice: How they are chosen within a task.
        rows: The prompts to explain.
        tasks: The probability of each task that has prompts, by its number.
        teacher: The explanation of the tasks.
    """
    every = np.zeros(len(pool))
    for k in np.unique(pool.task[rows]).tolist():
        if len(pool.members[k]):
            every[pool.members[k]] = tasks.get(k, 0.0) * choice.probabilities(pool, k)
    n, k = pool.returns[rows].astype(np.float64), pool.task[rows]
    return PromptExplanation(
        rows,
        tuple(pool.names[i] for i in k.tolist()),
        n,
        np.where(n > 0, pool.passed[rows] / np.where(n > 0, n, 1.0), np.nan),
        task_rate(pool.total[k], pool.count[k]),
        pool.estimates(rows, choice.strength),
        pool.flat[rows].astype(np.int64),
        pool.flying[rows].astype(np.int64),
        every[rows],
        teacher,
    )
