"""Statistics to compare programs with few runs, some of which never reach the threshold.

Scores are (runs, tasks), or many such tables in one array, (…, runs, tasks). Intervals are 95 %
percentile bootstrap intervals. The runs of each task are resampled separately (stratified), as
Agarwal et al. 2021 recommend for few runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.errors import MasteryError

Floats = NDArray[np.float64]
DRAWS = 2000


class Estimate(NamedTuple):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} … {self.high:.2f})"


def interquartile_mean(scores: Floats) -> Floats:
    """The mean of the scores without the lowest and the highest quarter."""
    ordered = np.sort(scores.reshape(*scores.shape[:-2], -1))
    cut = ordered.shape[-1] // 4
    found: Floats = ordered[..., cut : ordered.shape[-1] - cut].mean(-1)
    return found


def improvement(ours: Floats, theirs: Floats) -> Floats:
    """The probability of improvement: that a run of ours scores higher than a run of theirs, mean
    over tasks. A tie counts half."""
    ours, theirs = ours[..., :, None, :], theirs[..., None, :, :]
    found: Floats = ((ours > theirs) + 0.5 * (ours == theirs)).mean((-3, -2, -1))
    return found


def interval(statistic: Callable[..., Floats], *scores: Floats, draws: int = DRAWS) -> Estimate:
    """A statistic of one or more groups of runs, each (runs, tasks), with its interval.

    Raises:
        MasteryError: If a score is NaN, such as of a task that was not evaluated.
    """
    for s in scores:
        if np.isnan(s).any():
            raise MasteryError(
                f"{int(np.isnan(s).sum())} of {s.size} scores are NaN; leave out tasks and times "
                "without a score before you compare"
            )
    random = np.random.default_rng(0)
    drawn = []
    for s in scores:
        which = random.integers(len(s), size=(draws, *s.shape))
        drawn.append(s[which, np.arange(s.shape[1])])
    low, high = np.quantile(statistic(*drawn), [0.025, 0.975])
    return Estimate(float(statistic(*scores)), float(low), float(high))


def share(count: int, of: int) -> Estimate:
    """The share count / of, with Wilson's interval."""
    z, p = 1.959964, count / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return Estimate(p, max(middle - half, 0.0), min(middle + half, 1.0))


def first_time(frames: NDArray[np.int64], values: Floats, threshold: float) -> Floats:
    """The frames until each run's curve first reaches the threshold; infinite if it never does.

    `values` is (points, runs).
    """
    reached = values >= threshold
    found: Floats = np.where(reached.any(0), frames[reached.argmax(0)], np.inf)
    return found


def median_time(times: Floats) -> Estimate:
    """The upper median of times, with its interval. Infinite times are allowed and count as the
    slowest; the median and both ends may be infinite."""
    random = np.random.default_rng(0)
    drawn = times[random.integers(len(times), size=(DRAWS, len(times)))]
    found = np.sort(upper_median(drawn))
    low, high = (share * (len(found) - 1) for share in (0.025, 0.975))
    return Estimate(
        float(upper_median(times)), float(found[math.floor(low)]), float(found[math.ceil(high)])
    )


def upper_median(times: Floats) -> Floats:
    """The median; of an even number the higher of the middle two.

    So it is always a time that was observed, and if it is infinite, it is later than the budget of
    the runs. The mean of the middle two may be earlier, if one of them is infinite.
    """
    ordered = np.sort(times, axis=-1)
    found: Floats = ordered[..., times.shape[-1] // 2]
    return found
