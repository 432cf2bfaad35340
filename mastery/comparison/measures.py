"""What a comparison measures, with intervals: programs at equal tokens.

Runs differ in the tokens that they generate per completion, so their curves are read at equal
tokens, up to the most that every run has generated. Intervals are 95 % bootstrap intervals over
seeds. Two programs are resampled independently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.comparison.curves import TokenCurves
from mastery.statistics import DRAWS, Estimate, improvement, interval, median_time

Floats = NDArray[np.float64]
HARD, LEARNED = 0.1, 0.5  # pass rates: of a hard task at the first point, of one that is learned
STUCK = 0.02  # a task that never passes this in any run of `uniform` has stayed at 0
GRID = 200


class Row(NamedTuple):
    """A program of the comparison."""

    program: str
    last: Estimate  # pass rate at the end of the budget, mean over tasks
    better: Estimate  # minus that of the reference
    area: Estimate  # mean pass rate over all tokens
    chance: Estimate  # that a run's area is above that of one of the reference
    time: Estimate  # tokens until the reference's last pass rate; infinite if never
    reached: int  # runs that got there
    runs: int
    saved: Estimate  # share of the tokens that the reference needs to get there
    flat: Estimate  # share of groups without signal
    hard: Estimate  # hard tasks that were learned
    stuck: float  # share of training on tasks that stay at 0
    rarest: float  # times a task that stays at 0 was visited, per 1000 completions: the least


def budget(curves: TokenCurves) -> float:
    """The most tokens that every run has generated."""
    return float(curves.generated[-1].min())


def grid(curves: TokenCurves) -> Floats:
    """Numbers of tokens at which curves are compared."""
    found: Floats = np.linspace(float(curves.generated[0].max()), budget(curves), GRID)
    return found


def at_tokens(curves: TokenCurves, values: Floats, tokens: Floats) -> Floats:
    """Curves (points, runs) at numbers of generated tokens, between points by a line."""
    found: Floats = np.stack(
        [np.interp(tokens, x, y) for x, y in zip(curves.generated.T, values.T, strict=True)], 1
    )
    return found


def rows(curves: TokenCurves, reference: str = "uniform") -> list[Row]:
    """Every program beside the reference."""
    tokens = grid(curves)
    means = at_tokens(curves, curves.passed.mean(2), tokens)  # (grid, runs)
    theirs = curves.runs[reference]
    goal = float(means[-1, theirs].mean())
    flat = curves.flat.mean(0)
    hard = hard_tasks(curves)
    final = (
        np.stack([at_tokens(curves, curves.passed[:, :, task], tokens[-1:])[0] for task in hard], 1)
        if len(hard)
        else np.zeros((len(curves.programs), 0))
    )
    visits = curves.share.mean(0)[:, stuck_tasks(curves, reference)]
    found = []
    for program, own in curves.runs.items():
        times = first_time(tokens, means[:, own], goal)
        areas = [means[:, runs].mean(0)[:, None] for runs in (own, theirs)]
        ends = [means[-1, runs] for runs in (own, theirs)]
        found.append(
            Row(
                program,
                bootstrap(mean, ends[0]),
                bootstrap(lambda a, b: a.mean(-1) - b.mean(-1), *ends),
                bootstrap(mean, areas[0][:, 0]),
                interval(improvement, *areas),
                median_time(times),
                int(np.isfinite(times).sum()),
                len(own),
                saved(tokens, means[:, own], means[:, theirs]),
                bootstrap(mean, flat[own]),
                bootstrap(mean, (final[own] >= LEARNED).sum(1).astype(np.float64)),
                float(visits[own].sum(1).mean()) if visits.size else float("nan"),
                1000 * float(visits[own].min()) if visits.size else float("nan"),
            )
        )
    return found


def first_time(tokens: Floats, values: Floats, goal: float) -> Floats:
    """(runs,): tokens until each curve (grid, runs) stays at the goal or above on average.

    A curve of evaluations is noisy, so its running best of the mean of five points is used.
    """
    smooth = smoothed(values)
    reached = smooth >= goal
    found: Floats = np.where(reached.any(0), tokens[reached.argmax(0)], np.inf)
    return found


def smoothed(values: Floats, width: int = GRID // 20) -> Floats:
    """The mean over the last points of the grid, a twentieth of the budget."""
    sums = np.cumsum(np.concatenate([np.zeros((1, *values.shape[1:])), values]), 0)
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - width, 0)
    found: Floats = (sums[ends] - sums[starts]) / (ends - starts)[:, None]
    return found


def saved(tokens: Floats, ours: Floats, theirs: Floats) -> Estimate:
    """The share of the reference's tokens that a program saves, at an equal pass rate.

    The mean curve of the reference ends at a pass rate; the mean curve of the program reaches it
    after a share of the budget, and saves the rest. If it never does, nothing is saved, and the
    saving is negative by as much as its curve is behind: the tokens after which the reference had
    the program's last pass rate, minus the budget, over the budget.
    """

    def one(a: Floats, b: Floats) -> float:
        own, other = (
            np.maximum.accumulate(smoothed(x.mean(1, keepdims=True))[:, 0]) for x in (a, b)
        )
        if own[-1] >= other[-1]:
            return 1 - float(tokens[int((own >= other[-1]).argmax())] / tokens[-1])
        return float(tokens[int((other >= own[-1]).argmax())] / tokens[-1]) - 1

    random = np.random.default_rng(0)
    drawn = []
    for _ in range(DRAWS // 2):
        a = ours[:, random.integers(ours.shape[1], size=ours.shape[1])]
        b = theirs[:, random.integers(theirs.shape[1], size=theirs.shape[1])]
        drawn.append(one(a, b))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(float(one(ours, theirs)), float(low), float(high))


def mean(scores: Floats) -> Floats:
    """Over the runs, the last axis."""
    found: Floats = scores.mean(-1)
    return found


def bootstrap(statistic: Callable[..., Floats], *scores: Floats) -> Estimate:
    """A statistic of groups of runs, each (…, runs), with its interval."""
    random = np.random.default_rng(0)
    drawn = [s[random.integers(len(s), size=(DRAWS, len(s)))] for s in scores]
    low, high = np.quantile(statistic(*drawn), [0.025, 0.975])
    return Estimate(float(statistic(*scores)), float(low), float(high))


def hard_tasks(curves: TokenCurves) -> NDArray[np.int64]:
    """The tasks that at the first point are passed by few completions, on average over runs."""
    return np.flatnonzero(curves.passed[0].mean(0) < HARD)


def stuck_tasks(curves: TokenCurves, reference: str) -> NDArray[np.int64]:
    """The tasks that stay near 0 under the reference, in every run and at every point."""
    return np.flatnonzero(curves.passed[:, curves.runs[reference]].max((0, 1)) < STUCK)
