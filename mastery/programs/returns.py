"""From what `Teacher.update` is given to evidence: checks, and warnings about what looks wrong."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mastery.curriculum import Curriculum
from mastery.curriculum.task import LARGEST
from mastery.errors import MasteryWarning, ReturnsError, did_you_mean
from mastery.programs.evidence import Evidence

Step = tuple[Any, Evidence]  # the positions of the seen tasks, or a single one; their evidence


class ReturnsReader:
    """Reads the returns for one curriculum."""

    def __init__(self, curriculum: Curriculum) -> None:
        self._curriculum = curriculum
        span = curriculum.maximum - curriculum.minimum
        # no task's bounds are missed by more than their distance inside these
        self._low = float((curriculum.minimum - span).max())
        self._high = float((curriculum.maximum + span).min())
        self._warned = False

    def read(self, returns: Any, cost: Any, per_episode: bool) -> list[Step]:
        """The time-steps in what `update` was given. Changes nothing but what was warned about.

        Raises:
            ReturnsError: If a task is unknown, or a return or a cost is not a usable number.
        """
        if not isinstance(returns, Mapping):
            raise ReturnsError(f"update takes {{task: return}}, not {returns!r:.60}")
        rows: list[int] = []
        means: list[float] = []
        groups: dict[int, Sequence[float]] = {}  # by place in `rows`: returns that are several
        positions, low, high = self._curriculum.positions, self._low, self._high
        for name, given in returns.items():
            row = positions.get(name)
            if row is None:
                hint = did_you_mean(str(name), positions)
                raise ReturnsError(f"there is no task {name!r}{hint}")
            if type(given) is float and low <= given <= high:  # the usual case
                rows.append(row)
                means.append(given)
                continue
            several = numbers(name, given, "return")
            for value in several:
                if not low <= value <= high:
                    self._outside(name, row, value)
            if len(several) == 1:
                means.append(several[0])
            elif several:
                groups[len(rows)] = several
                means.append(math.fsum(several) / len(several))
            else:
                continue
            rows.append(row)
        costs = None if cost is None else self._costs(cost, rows, groups)
        if per_episode:
            return _single(rows, means, groups, costs)
        return [_together(rows, means, groups, costs)]

    def _costs(
        self, cost: Any, rows: list[int], groups: Mapping[int, Sequence[float]]
    ) -> list[Sequence[float]]:
        """What each task's returns cost, in the order of `rows`."""
        if not isinstance(cost, Mapping):
            raise ReturnsError(f"cost takes {{task: cost}}, not {cost!r:.60}")
        places = {self._curriculum.names[row]: place for place, row in enumerate(rows)}
        found: list[Sequence[float]] = [
            (float(len(groups[place])),) if place in groups else (1.0,)
            for place in range(len(rows))
        ]
        for name, given in cost.items():
            if name not in places:
                raise ReturnsError(f"task {name!r} has a cost but no return; give both or neither")
            place = places[name]
            several, n = numbers(name, given, "cost"), len(groups.get(place, (1,)))
            if len(several) not in (1, n):
                raise ReturnsError(
                    f"task {name!r} has {len(several)} costs and {n} returns; give one cost for "
                    "all of them, or one for each"
                )
            if bad := [value for value in several if not 0 <= value <= LARGEST]:
                raise ReturnsError(
                    f"task {name!r}: a cost is {bad[0]}; it must be from 0 to {LARGEST:g}"
                )
            found[place] = several
        return found

    def _outside(self, name: str, row: int, value: float) -> None:
        """Raise or warn if a return is far from the task's bounds."""
        if not -LARGEST <= value <= LARGEST:
            raise ReturnsError(
                f"task {name!r}: a return is {value}; it must be within ±{LARGEST:g}"
            )
        low, high = self._curriculum.minimum[row], self._curriculum.maximum[row]
        if self._warned or low - (high - low) <= value <= high + (high - low):
            return
        self._warned = True
        warnings.warn(far_outside(name, value, low, high), MasteryWarning, stacklevel=4)


def far_outside(name: str, value: float, low: float, high: float) -> str:
    """What a warning says about a return that is far outside the task's bounds."""
    percent = 0 <= low < high <= 1 and 1 < value <= 100
    remedy = "if your scores are in percent, divide them by 100; otherwise " if percent else ""
    remedy += "check the return, or set the task's minimum and maximum to what it can reach"
    return (
        f"task {name!r}: a return of {value:g} is far outside its bounds, {low:g} to {high:g}, so "
        f"its mastery says little; {remedy}. Bounds follow the median of the last returns, so a "
        "single one does not move them. Further returns like it are not reported"
    )


def _together(
    rows: list[int],
    means: list[float],
    groups: Mapping[int, Sequence[float]],
    costs: list[Sequence[float]] | None,
) -> Step:
    """All returns as one time-step."""
    if len(rows) == 1:
        group = groups.get(0, (0.0,))
        cost = len(group) if costs is None else math.fsum(costs[0])
        return rows[0], Evidence(means[0], len(group), _variance(group), cost)
    if not groups and costs is None:
        return np.array(rows, np.int64), Evidence(np.array(means), 1.0, 0.0, 1.0)
    count, variance = np.ones(len(rows)), np.zeros(len(rows))
    for place, group in groups.items():
        count[place], variance[place] = len(group), _variance(group)
    spent = count if costs is None else np.array([math.fsum(cost) for cost in costs])
    return np.array(rows, np.int64), Evidence(np.array(means), count, variance, spent)


def _single(
    rows: list[int],
    means: list[float],
    groups: Mapping[int, Sequence[float]],
    costs: list[Sequence[float]] | None,
) -> list[Step]:
    """Each return as its own time-step, in order."""
    steps: list[Step] = []
    for place, row in enumerate(rows):
        group = groups.get(place, means[place : place + 1])
        cost = (1.0,) * len(group) if costs is None else costs[place]
        if len(cost) < len(group):
            cost = (cost[0] / len(group),) * len(group)
        steps += [
            (row, Evidence(value, 1, 0.0, spent)) for value, spent in zip(group, cost, strict=True)
        ]
    return steps


def _variance(group: Sequence[float]) -> float:
    if len(group) < 2 or min(group) == max(group):
        return 0.0
    mean = math.fsum(group) / len(group)
    return math.fsum((value - mean) ** 2 for value in group) / len(group)


def numbers(name: str, given: Any, what: str) -> Sequence[float]:
    """One or several numbers of a task as floats.

    Raises:
        ReturnsError: If they are not numbers.
    """
    try:
        if getattr(given, "requires_grad", False):  # a torch tensor that NumPy refuses
            given = given.detach()
        array = np.asarray(given)
        if array.size == 0:
            array = array.astype(np.float64)
        if array.dtype.kind not in "biuf" or array.ndim > 1:
            raise TypeError
    except Exception:  # foreign objects may raise anything when converted
        raise ReturnsError(
            f"task {name!r}: a {what} must be a number or a list of numbers, not {given!r:.60}"
        ) from None
    return array.reshape(-1).astype(np.float64).tolist()
