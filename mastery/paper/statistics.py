"""The statistics of a comparison: few runs, and some of them never get there.

Scores are (runs, tasks), or many such tables in one array, (…, runs, tasks). Intervals are of the
percentile bootstrap with 95 %, in which the runs of each task are drawn anew by themselves
(stratified), as Agarwal et al. 2021 recommend for few runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DRAWS = 2000


class Estimate(NamedTuple):
    """A number with the interval in which it lies with 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} … {self.high:.2f})"


def interquartile_mean(scores: Floats) -> Floats:
    """The mean of all scores without the lowest and the highest quarter of them."""
    ordered = np.sort(scores.reshape(*scores.shape[:-2], -1))
    cut = ordered.shape[-1] // 4
    found: Floats = ordered[..., cut : ordered.shape[-1] - cut].mean(-1)
    return found


def improvement(ours: Floats, theirs: Floats) -> Floats:
    """The probability that a run of ours has a higher score than one of theirs, the mean over
    tasks; a tie counts half."""
    ours, theirs = ours[..., :, None, :], theirs[..., None, :, :]
    found: Floats = ((ours > theirs) + 0.5 * (ours == theirs)).mean((-3, -2, -1))
    return found


def interval(statistic: Callable[..., Floats], *scores: Floats, draws: int = DRAWS) -> Estimate:
    """A statistic of one or several groups of runs, each (runs, tasks)."""
    random = np.random.default_rng(0)
    drawn = []
    for s in scores:
        which = random.integers(len(s), size=(draws, *s.shape))
        drawn.append(s[which, np.arange(s.shape[1])])
    low, high = np.quantile(statistic(*drawn), [0.025, 0.975])
    return Estimate(float(statistic(*scores)), float(low), float(high))


def share(count: int, of: int) -> Estimate:
    """A share of runs, with Wilson's interval."""
    z, p = 1.959964, count / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return Estimate(p, max(middle - half, 0.0), min(middle + half, 1.0))


def first_time(frames: NDArray[np.int64], values: Floats, threshold: float) -> Floats:
    """Frames until a curve first reaches a threshold, for each run; infinite if it never does.

    values (points, runs).
    """
    reached = values >= threshold
    found: Floats = np.where(reached.any(0), frames[reached.argmax(0)], np.inf)
    return found


def median_time(times: Floats) -> Estimate:
    """The median of times of which some may be infinite: such a run counts as slower than all that
    got there. With its interval, whose ends may be infinite too."""
    random = np.random.default_rng(0)
    drawn = times[random.integers(len(times), size=(DRAWS, len(times)))]
    found = np.sort(upper_median(drawn))
    at = (0.025 * (len(found) - 1), 0.975 * (len(found) - 1))
    return Estimate(float(upper_median(times)), found[int(at[0])], found[round(at[1] + 0.5)])


def upper_median(times: Floats) -> Floats:
    """Of an even number the higher one of the two in the middle: nothing is said that was not
    seen."""
    ordered = np.sort(times, axis=-1)
    found: Floats = ordered[..., times.shape[-1] // 2]
    return found
