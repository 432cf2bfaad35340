"""Points of a recorded curve: how many updates each covers, and their sums.

Each of the first updates is a point of its own. From there on points cover 2 updates, then, each
time the number of updates has doubled, twice the number. So there are never many, and which
updates a point covers depends on nothing but the teacher's time-step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.programs.returns import Step

FIRST = 512  # updates that are a point each, unless there are many tasks
ROWS = 4_000_000  # the most points × tasks of half a million updates


def first_points(tasks: int) -> int:
    """The number of updates that are a point each: a power of 2."""
    fitting = ROWS // (8 * tasks)  # doubling adds half as many, some 15 times
    return 1 << (max(2, min(FIRST, fitting)).bit_length() - 1)


def end_of_point(step: int, first: int) -> int:
    """The last time-step of the point that a time-step belongs to.

    Args:
        step: The time-step, from 1.
        first: The number of time-steps that are a point each; a power of 2.
    """
    k = max(0, (step - 1).bit_length() - first.bit_length() + 1)
    return -(-step >> k) << k


class OpenPoint:
    """The sums over the updates of a point that is not finished.

    Attributes:
        begin: The time-step after which it began.
        end: The time-step with which it ends.
        updates: The number of its updates.
        sums: (4, tasks) The sums of the probabilities, the number of returns, their sum, and what
            they cost.
    """

    def __init__(self, tasks: int) -> None:
        self.first = first_points(tasks)
        self.sums: NDArray[np.float64] = np.zeros((4, tasks))
        self.probability, self.count, self.returns, self.cost = self.sums
        self.begin, self.end, self.updates = 0, 1, 0

    def start(self, after: int) -> None:
        """Begin an empty point after a time-step."""
        self.sums[:] = 0.0
        self.begin, self.updates = after, 0
        self.end = end_of_point(after + 1, self.first)

    def resume(self, begin: int, updates: int, sums: Any) -> None:
        """Continue a point."""
        self.start(begin)
        self.updates, self.sums[:] = updates, sums

    def add(self, steps: list[Step], probability: NDArray[np.float64]) -> float:
        """Add an update; return what it cost.

        Args:
            steps: What was observed.
            probability: (tasks,) The probabilities from which its tasks were drawn.
        """
        self.updates += 1
        self.probability += probability
        count, returns, cost = self.count, self.returns, self.cost
        spent = 0.0
        for tasks, evidence in steps:
            mean, n, _, paid = evidence
            count[tasks] += n
            returns[tasks] += mean * n
            cost[tasks] += paid
            if isinstance(tasks, int):
                spent += paid
            else:
                spent += float(np.broadcast_to(paid, tasks.shape).sum())
        return spent
