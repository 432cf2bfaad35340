"""What a comparison measures, with intervals: each program beside a reference at equal tokens.

Runs differ in the tokens that they generate per completion. So two programs are compared up to the
most tokens that every run of both has generated. Intervals are 95 % bootstrap intervals over seeds;
two programs are resampled independently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.comparison.curves import TokenCurves
from mastery.statistics import DRAWS, Estimate, improvement, interval, median_time

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
HARD, LEARNED = 0.1, 0.5  # pass rates: of a hard task at the first point, of one that is learned
STUCK = 0.02  # a task whose mean over the reference's runs never passes this has stayed at 0
GRID = 200  # numbers of tokens at which curves are read
SMOOTH = GRID // 10  # a tenth of the budget


class Row(NamedTuple):
    """A program of the comparison."""

    program: str
    budget: float  # tokens up to which it is compared
    last: Estimate  # pass rate there, mean over tasks
    better: Estimate  # minus that of the reference
    chance: Estimate  # that a run's mean pass rate up to there is above one of the reference
    saved: Estimate  # tokens saved, as a share of the budget; see `saved`
    flat: Estimate  # share of groups without signal
    hard: Estimate  # hard tasks that were learned
    stuck: float  # share of training on tasks that stay at 0
    rarest: float  # completions of the rarest such task, per 1000


def rows(curves: TokenCurves, reference: str = "uniform") -> list[Row]:
    """Every program beside the reference."""
    passed = means(curves)
    flat, hard = curves.flat.mean(0), hard_tasks(curves)
    visits = curves.share.mean(0)[:, stuck_tasks(curves, reference)]
    found = []
    for program, own in curves.runs.items():
        tokens = grid(curves, program, reference)
        ours, theirs = (
            smoothed(at_tokens(curves, passed, runs, tokens))
            for runs in (own, curves.runs[reference])
        )
        learned = [
            at_tokens(curves, curves.passed[:, :, task], own, tokens[-SMOOTH:]).mean(0) >= LEARNED
            for task in hard
        ]
        found.append(
            Row(
                program,
                float(tokens[-1]),
                bootstrap(mean, ours[-1]),
                bootstrap(lambda a, b: mean(a) - mean(b), ours[-1], theirs[-1]),
                interval(improvement, ours.mean(0)[:, None], theirs.mean(0)[:, None]),
                saved(tokens, ours, theirs),
                bootstrap(mean, flat[own]),
                bootstrap(mean, np.sum(learned, 0, dtype=np.float64) * np.ones(len(own))),
                float(visits[own].sum(1).mean()) if visits.size else float("nan"),
                1000 * float(visits[own].min()) if visits.size else float("nan"),
            )
        )
    return found


def times(curves: TokenCurves, goals: tuple[float, ...]) -> dict[str, list[tuple[Estimate, int]]]:
    """Per program and goal: the median of the tokens until a run's pass rate first reaches it, and
    how many runs do. A run that does not counts as later than all."""
    passed, found = means(curves), {}
    for program, own in curves.runs.items():
        tokens = grid(curves, program, program)
        values = smoothed(at_tokens(curves, passed, own, tokens))
        every = [first_time(tokens, values, goal) for goal in goals]
        found[program] = [(median_time(t), int(np.isfinite(t).sum())) for t in every]
    return found


def means(curves: TokenCurves) -> Floats:
    """(points, runs): the pass rate, mean over tasks, as if all evaluations were equally hard.

    All runs are evaluated on the same problems at a point; in the curves that ship, on others at
    the next, so some points are easier for all. The mean over all runs shows by how much: its
    distance from a smooth curve (a parabola in the logarithm of the completions) is taken off every
    run.
    """
    passed: Floats = curves.passed.mean(2)
    if len(passed) < 6:
        return passed
    x, middle = np.log(curves.completions), passed.mean(1)
    luck = middle - np.polyval(np.polyfit(x, middle, 2), x)
    found: Floats = passed - luck[:, None]
    return found


def grid(curves: TokenCurves, program: str, reference: str) -> Floats:
    """Numbers of tokens that all runs of two programs have, from the first evaluation on."""
    both = curves.generated[:, np.append(curves.runs[program], curves.runs[reference])]
    found: Floats = np.linspace(float(both[0].max()), float(both[-1].min()), GRID)
    return found


def at_tokens(curves: TokenCurves, values: Floats, runs: Whole, tokens: Floats) -> Floats:
    """Curves (points, runs) of some runs at numbers of tokens; between points a line."""
    every = zip(curves.generated[:, runs].T, values[:, runs].T, strict=True)
    found: Floats = np.stack([np.interp(tokens, x, y) for x, y in every], 1)
    return found


def first_time(tokens: Floats, values: Floats, goal: float) -> Floats:
    """(runs,): tokens until each curve (grid, runs) reaches the goal; infinite if it never does."""
    reached = values >= goal
    found: Floats = np.where(reached.any(0), tokens[reached.argmax(0)], np.inf)
    return found


def smoothed(values: Floats) -> Floats:
    """The mean over the last tenth of the budget, at each of its points (grid, runs)."""
    sums = np.cumsum(np.concatenate([np.zeros((1, *values.shape[1:])), values]), 0)
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - SMOOTH, 0)
    found: Floats = (sums[ends] - sums[starts]) / (ends - starts)[:, None]
    return found


def saved(tokens: Floats, ours: Floats, theirs: Floats) -> Estimate:
    """The tokens that a program saves at an equal pass rate, as a share of the budget.

    The mean curve of the program reaches the reference's last pass rate after some tokens; the rest
    of the budget is saved. If it never does, the saving is negative: the reference had the
    program's best pass rate that much earlier.

    Args:
        tokens: (grid,).
        ours: (grid, runs) Pass rates of the program.
        theirs: (grid, runs) Those of the reference.
    """

    def one(a: Floats, b: Floats) -> float:
        own, other = (np.maximum.accumulate(x.mean(1)) for x in (a, b))
        slower, goal = (own, other[-1]) if own[-1] >= other[-1] else (other, own[-1])
        rest = 1 - float(tokens[int((slower >= goal).argmax())] / tokens[-1])
        return rest if own[-1] >= other[-1] else -rest

    random = np.random.default_rng(0)

    def drawn(x: Floats) -> Floats:
        found: Floats = x[:, random.integers(x.shape[1], size=x.shape[1])]
        return found

    low, high = np.quantile([one(drawn(ours), drawn(theirs)) for _ in range(1000)], [0.025, 0.975])
    return Estimate(one(ours, theirs), float(low), float(high))


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


def hard_tasks(curves: TokenCurves) -> Whole:
    """The tasks that few completions pass at the first point, on average over runs."""
    return np.flatnonzero(curves.passed[0].mean(0) < HARD)


def stuck_tasks(curves: TokenCurves, reference: str) -> Whole:
    """The tasks that stay near 0 under the reference."""
    return np.flatnonzero(curves.passed[:, curves.runs[reference]].mean(1).max(0) < STUCK)
