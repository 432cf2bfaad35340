"""The prompts of a curriculum: what is known of each, and of each task. Both only grow.

A prompt is a row, and its id is the number of its row. Tasks are numbered as they come, apart from
the curriculum, so a curriculum may change while prompts stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.prompts.estimates import estimate, task_rate

MEMORY = 64  # returns that a prompt's own statistics are of, about
TASK_MEMORY = 200  # and those of a task

_PROMPT = {  # arrays with a row per prompt
    "task": np.int32,  # the number of its task
    "returns": np.float32,  # n_i
    "passed": np.float32,  # s_i
    "expected": np.float32,  # n_i q_i
    "flat": np.uint8,  # groups in a row, up to now, that were all alike
    "retired": np.bool_,
}
_TASK = {  # and with a row per task
    "total": np.float64,  # S
    "count": np.float64,  # N
    "turn": np.int64,  # passes over its prompts that have begun
    "at": np.int64,  # prompts of this pass that had their turn
}


class PromptPool:
    """Statistics of prompts and tasks; the arrays are described above.

    Attributes:
        names: The name of each task.
        members: For each task the rows of its prompts that are not retired, in order.
        order: For each task these rows in the order of the present pass.
        flying: (prompts,) int16, how many draws of a prompt wait for their report.
    """

    task: NDArray[np.int32]
    returns: NDArray[np.float32]
    passed: NDArray[np.float32]
    expected: NDArray[np.float32]
    flat: NDArray[np.uint8]
    retired: NDArray[np.bool_]
    total: NDArray[np.float64]
    count: NDArray[np.float64]
    turn: NDArray[np.int64]
    at: NDArray[np.int64]

    def __init__(self) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}  # of tasks, by name
        self.members: list[NDArray[np.int32]] = []
        self.order: list[NDArray[np.int32]] = []
        self.flying = np.zeros(0, np.int16)
        for name, dtype in (_PROMPT | _TASK).items():
            setattr(self, name, np.zeros(0, dtype))

    def __len__(self) -> int:
        return len(self.task)

    def add_tasks(self, names: Sequence[str]) -> None:
        """Number the tasks that are new."""
        new = [name for name in names if name not in self.numbers]
        for name in new:
            self.numbers[name] = len(self.names)
            self.names.append(name)
            self.members.append(np.zeros(0, np.int32))
            self.order.append(np.zeros(0, np.int32))
        self._grow(_TASK, len(new))

    def add(self, tasks: NDArray[Any], random: np.random.Generator) -> NDArray[np.int64]:
        """Add prompts with the given numbers of tasks; they join the present passes."""
        rows = np.arange(len(self), len(self) + len(tasks), dtype=np.int32)
        self._grow(_PROMPT, len(tasks))
        self.flying = np.concatenate([self.flying, np.zeros(len(tasks), np.int16)])
        self.task[rows] = tasks
        for k in np.unique(tasks).tolist():
            new = rows[tasks == k]
            self.members[k] = np.concatenate([self.members[k], new])
            at = int(self.at[k])
            rest = random.permutation(np.concatenate([self.order[k][at:], new]))
            self.order[k] = np.concatenate([self.order[k][:at], rest])
        return rows.astype(np.int64)

    def retire(self, rows: NDArray[np.int64]) -> None:
        """Take prompts out of every choice; what is known of them stays."""
        self.retired[rows] = True
        for k in np.unique(self.task[rows]).tolist():
            had_turn = self.order[k][: self.at[k]]
            self.at[k] = np.count_nonzero(~self.retired[had_turn])
            for lists in (self.members, self.order):
                lists[k] = lists[k][~self.retired[lists[k]]]

    def rate(self, k: int) -> float:
        """P of a task."""
        return float(task_rate(float(self.total[k]), float(self.count[k])))

    def estimates(self, rows: NDArray[Any], strength: float) -> NDArray[np.float64]:
        """p_i of prompts."""
        tasks = self.task[rows]
        rates = task_rate(self.total[tasks], self.count[tasks])
        return self._estimates(rows, rates, strength)

    def member_estimates(self, k: int, strength: float) -> NDArray[np.float64]:
        """p_i of the members of a task."""
        return self._estimates(self.members[k], self.rate(k), strength)

    def _estimates(self, rows: NDArray[Any], rate: Any, strength: float) -> NDArray[np.float64]:
        n, s, e = (x[rows].astype(np.float64) for x in (self.returns, self.passed, self.expected))
        found: NDArray[np.float64] = estimate(rate, n, s, e, strength)
        return found

    def observe(self, row: int, shares: Sequence[float], weight: float) -> None:
        """Add a group of returns.

        Args:
            row: The prompt.
            shares: Its returns as shares of the task's bounds, within [0, 1].
            weight: How much the group counts for the task's rate: the inverse of the share of
                even turns that the prompt takes, or 0 if it was chosen for what it teaches.
        """
        m, total, k = len(shares), float(sum(shares)), int(self.task[row])
        kept = (1 - 1 / MEMORY) ** m
        self.expected[row] = float(self.expected[row]) * kept + m * self.rate(k)
        self.passed[row] = float(self.passed[row]) * kept + total
        self.returns[row] = float(self.returns[row]) * kept + m
        if m > 1:
            alike = max(shares) - min(shares) <= 1e-6
            self.flat[row] = min(int(self.flat[row]) + 1, 255) if alike else 0
        if weight:
            kept = (1 - 1 / TASK_MEMORY) ** (m * weight)
            self.total[k] = self.total[k] * kept + weight * total
            self.count[k] = self.count[k] * kept + weight * m

    def state(self) -> dict[str, NDArray[Any]]:
        """All arrays, as copies."""
        found = {name: np.array(getattr(self, name)) for name in _PROMPT | _TASK}
        order = np.concatenate([np.zeros(0, np.int32), *self.order])
        return found | {"order": order}

    def load(self, names: Sequence[str], arrays: dict[str, NDArray[Any]]) -> None:
        """Set all arrays; `ValueError` if they do not fit together."""
        sizes = {name: len(arrays["task"]) for name in _PROMPT} | dict.fromkeys(_TASK, len(names))
        for name, dtype in (_PROMPT | _TASK).items():
            array = arrays[name]
            if array.dtype != dtype or array.shape != (sizes[name],):
                raise ValueError(f"{name} is {array.dtype}{list(array.shape)}")
        task, order = arrays["task"], arrays["order"]
        if len(task) and not 0 <= task.min() <= task.max() < len(names):
            raise ValueError("a prompt is of no task")
        active = np.flatnonzero(~arrays["retired"]).astype(np.int32)
        if order.dtype != np.int32 or not np.array_equal(np.sort(order), active):
            raise ValueError("the order of a pass is not one of its prompts")
        grouped = active[np.argsort(task[active], kind="stable")]
        if not np.array_equal(task[order], task[grouped]):
            raise ValueError("a pass has prompts of another task")
        ends = np.cumsum(np.bincount(task[active], minlength=len(names)))[:-1]
        members, orders = (np.split(rows, ends) if names else [] for rows in (grouped, order))
        for name in _PROMPT | _TASK:
            setattr(self, name, np.array(arrays[name]))
        self.names = list(names)
        self.numbers = {name: k for k, name in enumerate(names)}
        self.members, self.order = ([np.array(x) for x in part] for part in (members, orders))
        self.flying = np.zeros(len(task), np.int16)

    def _grow(self, columns: dict[str, Any], n: int) -> None:
        for name, dtype in columns.items():
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros(n, dtype)]))
