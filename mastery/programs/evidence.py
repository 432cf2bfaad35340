"""Evidence: what a time-step tells a program about each task."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any  # a NumPy or a JAX array
COSTS_KEPT = 0.99  # how much of the costs programs remember at each time-step


class Evidence(NamedTuple):
    """What happened in a time-step; each field is (N,), or a number for a single task."""

    mean: Array  # the mean of the task's returns; ignore it where `count` is 0
    count: Array  # the number of its returns
    variance: Array  # the mean squared distance of its returns from their mean
    cost: Array  # what was spent on the task: frames, tokens, seconds; its count if unknown

    @property
    def seen(self) -> Array:
        """Whether the task has a return."""
        return self.count > 0

    @classmethod
    def single(cls, returns: Array, seen: Array) -> Evidence:
        """The evidence of at most one return per task.

        Args:
            returns: (N,) The return of each task; ignored where `seen` is false.
            seen: (N,) bool, the tasks with a return.
        """
        count = seen.astype(returns.dtype)
        return cls(returns, count, 0.0 * count, count)

    @classmethod
    def from_sums(cls, count: Array, total: Array, squares: Array, cost: Array) -> Evidence:
        """The evidence from sums over a task's returns.

        Args:
            count: (N,) The number of returns.
            total: (N,) Their sum.
            squares: (N,) The sum of their squares.
            cost: (N,) What was spent on the task, also on returns that are still to come.
        """
        xp = total.__array_namespace__()
        at_least_one = xp.maximum(count, 1)
        mean = total / at_least_one
        variance = xp.maximum(squares / at_least_one - mean * mean, 0.0)
        return cls(mean, count, variance, cost)

    def spread_out(self, tasks: Any, like: Array) -> Evidence:
        """Evidence of some tasks as evidence of all; NumPy only.

        Args:
            tasks: The positions of the tasks that this evidence is about.
            like: An array (N,) of the wanted size and type.
        """
        xp = like.__array_namespace__()
        fields = []
        for value in self:
            field = xp.zeros_like(like)
            field[tasks] = value
            fields.append(field)
        return Evidence(*fields)


def relative_cost(spent: Array, made: Array) -> Array:
    """(N,): the cost of a task's return, relative to that of all; 1 if nothing cost anything.

    One return at the mean cost of all is added to each task, for tasks with few.

    Args:
        spent: (N,) The cost of recent time-steps.
        made: (N,) The number of their returns.
    """
    xp = spent.__array_namespace__()
    returns = made.sum()
    overall = xp.where(returns > 0, spent.sum() / xp.maximum(returns, 1e-30), 0.0)
    cost = (spent + overall) / (made + 1) / xp.where(overall > 0, overall, 1.0)
    return xp.where(overall > 0, cost, 1.0)
