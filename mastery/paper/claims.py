"""The paper's claims as data, and how the curves decide each.

Where the paper reads a number off a figure, so do we: the median or quartile over seeds of the
return in training, at the same number of frames. Where it says "better", the whole interval of the
probability of improvement must be above one half. A run's score is the area under its curve: the
mean return over tasks and frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.paper.configurations import Bar, configurations
from mastery.paper.curves import Found, PaperCurves, last_known
from mastery.paper.verdicts import Ground, Verdict, above, below, holding, within
from mastery.statistics import Estimate, improvement, interval

Floats = NDArray[np.float64]
# by the ending of a job's name; the paper's world comes first
WORLDS = {
    "-2018": "2018: the paper's MiniGrid and agent",
    "-today": "today's MiniGrid, our agent",
}
NEAR_0 = 0.1  # the paper's "near 0"
SHORT = {"blocked-unlock-pickup": "BUP", "key-corridor": "KC", "obstructed-maze": "OM"}


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and how to judge it."""

    words: str
    where: str  # in the paper
    statistic: str
    threshold: float
    parts: tuple[str, ...]  # the jobs it needs
    judge: Callable[[Found, float], Verdict]  # from the curves of these jobs and the threshold
    figure: str  # the kind of figure that shows it
    several_worlds: bool = True  # judge it in each world
    more: tuple[str, ...] = ()  # jobs to use as well, if they were trained
    in_paper: bool = True  # the paper makes it; else it is ours, to compare


def beats(ours: str, *rivals: str) -> Callable[[Found, float], Verdict]:
    """Judge whether ours is better than each rival on every curriculum."""

    def judge(found: Found, threshold: float) -> Verdict:
        holds, numbers, parts = True, [], []
        for name, curves in found.items():
            for rival in rivals:
                scores = [curves.area(p).mean(1, keepdims=True) for p in (ours, rival)]
                chance = interval(improvement, *scores)
                middle = [np.median(s) for s in scores]
                holds &= chance.low > threshold
                what = f"{SHORT[name]}: P({ours} > {rival})"
                parts.append(above(what, chance, threshold))
                numbers.append(f"{what} = {chance}; medians {middle[0]:.2f}, {middle[1]:.2f}")
        return Verdict(holds, "; ".join(numbers), tuple(parts))

    return judge


def _comparable(found: Found, threshold: float) -> Verdict:
    """Whether gAmax Linreg and gAmax Window score about the same."""
    holds, numbers, parts = True, [], []
    for name, curves in found.items():
        both = [curves.area(p).mean(1, keepdims=True) for p in ("gamax-linreg", "gamax-window")]
        chance = interval(improvement, *both)
        difference = float(np.median(both[0]) - np.median(both[1]))
        holds &= chance.low <= 0.5 <= chance.high and abs(difference) <= threshold
        parts.append(holding(f"{SHORT[name]}: P(linreg > window)", chance, 0.5))
        numbers.append(
            f"{SHORT[name]}: difference {difference:+.2f}, P(linreg > window) = {chance}"
        )
    return Verdict(holds, "; ".join(numbers), tuple(parts))


def _more_stable(found: Found, threshold: float) -> Verdict:
    """Whether the gap between the quartiles of gAmax Linreg is smaller than gAmax Window's."""
    holds, numbers, parts = True, [], []
    for name, curves in found.items():
        gaps = []
        for program in ("gamax-linreg", "gamax-window"):
            low, high = np.quantile(curves.smooth()[:, curves.runs[program]], [0.25, 0.75], axis=1)
            gaps.append(float((high - low).mean()))
        holds &= round(gaps[0] - gaps[1], 9) < threshold  # round: a difference below 1e-9 is a tie
        low, high = _gap_interval(curves, "gamax-linreg", "gamax-window")
        difference = Estimate(gaps[0] - gaps[1], float(low), float(high))
        parts.append(below(f"{SHORT[name]}: linreg − window", difference, threshold))
        numbers.append(
            f"{SHORT[name]}: linreg {gaps[0]:.3f}, window {gaps[1]:.3f}, difference "
            f"{gaps[0] - gaps[1]:+.3f} ({low:+.3f} … {high:+.3f})"
        )
    return Verdict(holds, "; ".join(numbers), tuple(parts))


def _gap_interval(curves: PaperCurves, one: str, other: str, draws: int = 200) -> Floats:
    """95 % bootstrap interval, over seeds, of the difference between two programs' interquartile
    ranges. Uses every fifth point."""
    random, shown = np.random.default_rng(0), curves.smooth()[::5]
    drawn = []
    for program in (one, other):
        own = shown[:, curves.runs[program]]
        which = random.integers(own.shape[1], size=(draws, own.shape[1]))
        low, high = np.quantile(own[:, which], [0.25, 0.75], axis=2)
        drawn.append((high - low).mean((0, 2)))
    found: Floats = np.quantile(drawn[0] - drawn[1], [0.025, 0.975])
    return found


Side = Callable[[str, Estimate, float], Ground]


def quantile_at(
    program: str, quantile: float, frames: float, tasks: Sequence[str], side: Side
) -> Callable[[Found, float], Verdict]:
    """Judge whether the quantile over seeds after `frames` frames is on this side (`above` or
    `below`) of the threshold on each of these tasks; on all tasks if `tasks` is empty."""

    def judge(found: Found, threshold: float) -> Verdict:
        (curves,) = found.values()
        if curves.frames[-1] < frames:
            return Verdict(None, f"trained for {curves.frames[-1]:,} frames only")
        shown = curves.smooth()[curves.at(frames)][:, :]
        wanted = [i for i, task in enumerate(curves.tasks) if not tasks or task in tasks]
        own = shown[curves.runs[program]]
        each = {curves.tasks[i]: interval(_at_quantile(quantile), own[:, [i]]) for i in wanted}
        values = np.array([estimate.value for estimate in each.values()])
        holds = bool(((values > threshold) if side is above else (values < threshold)).all())
        numbers = ", ".join(f"{task} {estimate}" for task, estimate in each.items())
        parts = tuple(side(task, estimate, threshold) for task, estimate in each.items())
        return Verdict(holds, numbers, parts)

    return judge


def _at_quantile(quantile: float) -> Callable[[Floats], Floats]:
    """A function that takes the quantile over the runs of one task, (…, runs, 1)."""
    return lambda scores: np.quantile(scores[..., 0], quantile, axis=-1)


def _median(values: Floats | list[float]) -> Estimate:
    return interval(_at_quantile(0.5), np.asarray(values)[:, None])


def _early(found: Found, threshold: float) -> Verdict:
    """The share of training on the two harder tasks before Unlock's return first reaches NEAR_0."""
    (curves,) = found.values()
    runs = curves.runs["gprop-linreg"]
    begun = last_known(curves.returns)[:, runs, 0] >= NEAR_0
    before = np.cumsum(begun, axis=0) == 0  # (points, runs)
    harder = curves.probability[:, runs, 1:].sum(2)
    each = np.array([harder[before[:, r], r].mean() for r in range(len(runs)) if before[0, r]])
    if not len(each):
        return Verdict(None, "Unlock is begun before the first point")
    middle = _median(each)
    frames = np.median(curves.frames[np.minimum(before.sum(0), len(curves.frames) - 1)])
    first = float(np.median(harder[0]))
    return Verdict(
        abs(middle.value - 0.66) <= threshold,
        f"{_percent(middle)} on them until Unlock is begun (median of {len(each)} runs), after "
        f"{frames / 1e3:,.0f}k frames; {first:.0%} in the first {curves.frames[0] / 1e3:,.0f}k",
        (within("share of training", middle, 0.66 - threshold, 0.66 + threshold),),
    )


def _late(found: Found, threshold: float) -> Verdict:
    """The share of training on the first two tasks while they are learned and the third is not.

    For each run this takes the stretch of 100,000 frames (or slightly more) with the highest share.
    """
    (curves,) = found.values()
    runs = curves.runs["gprop-linreg"]
    known = curves.smooth()[:, runs]
    period = (known[:, :, :2].min(2) >= 0.7) & (known[:, :, 2] < 0.5)
    easier = curves.probability[:, runs, :2].sum(2)
    most = (_most(curves.frames, period[:, r], easier[:, r]) for r in range(len(runs)))
    each = [value for value in most if value is not None]
    if not each:
        return Verdict(None, "no run has learned the first two tasks well before the third")
    middle = _median(each)
    whole = np.concatenate([easier[period[:, r], r] for r in range(len(runs))]).mean()
    return Verdict(
        middle.value >= threshold,
        f"{_percent(middle)} on them when it is most (median of the {len(each)} runs of "
        f"{len(runs)} with such a time, {min(each):.0%} … {max(each):.0%}), {whole:.0%} "
        "over the whole of it",
        (above("share of training", middle, threshold),),
    )


def _percent(x: Estimate) -> str:
    return f"{x.value:.0%} ({x.low:.0%} … {x.high:.0%})"


def _most(frames: NDArray[np.int64], period: NDArray[np.bool_], values: Floats) -> float | None:
    """The highest mean of the values over a stretch of the period: the fewest points that make at
    least 100,000 frames. None if the period has no such stretch."""
    best = None
    lengths = np.diff(frames, prepend=0)
    for first in np.flatnonzero(period):
        for last in range(first, len(frames)):
            if not period[last]:
                break
            here = slice(first, last + 1)
            if lengths[here].sum() >= 100_000:
                mean = float(np.average(values[here], weights=lengths[here]))
                best = mean if best is None else max(best, mean)
                break
    return best


def _addition(batch: int, rivals: Sequence[str] = ()) -> Callable[[Found, float], Verdict]:
    """Judge every MR configuration, with the paper's batch, against the given Teacher-Student
    configurations, or all of them."""

    def judge(found: Found, threshold: float) -> Verdict:
        bars = configurations(found)
        ours = {b.name: b for b in bars if b.group == "MR, batch 128"}
        if batch == 1024:
            ours |= {b.name: b for b in bars if b.group == "MR, batch 64"}
        theirs = [
            b
            for b in bars
            if b.group == f"Teacher-Student, batch {batch}" and (not rivals or b.name in rivals)
        ]
        if not ours or not theirs:
            return Verdict(None, "not trained")
        pairs = [(a, b) for a in ours.values() for b in theirs]
        wins = sum(_sooner(a, b) for a, b in pairs)
        losses = sum(_sooner(b, a) for a, b in pairs)
        undecided = len(pairs) - wins - losses
        could = (wins + undecided) / len(pairs) >= threshold
        # not a confidence interval: from no undecided pair to all of them
        share = Estimate(*(n / len(pairs) for n in (wins, wins, wins + undecided)))
        return Verdict(
            None if could and undecided else could,
            f"faster in {wins} of {len(pairs)} pairs, slower in {losses}"
            + f", {undecided} undecided" * bool(undecided)
            + f"; medians: MR {_medians(list(ours.values()))}; Teacher-Student {_medians(theirs)}",
            (Ground("pairs", share, (threshold,), None if could and undecided else could),),
        )  # fmt: skip

    return judge


def _sooner(a: Bar, b: Bar) -> bool:
    """Whether a's median is surely below b's. An infinite median is above b's budget."""
    return a.median < (b.budget if np.isinf(b.median) else b.median)


def _medians(bars: Sequence[Bar]) -> str:
    """The range of the finite medians, and the number of infinite ones."""
    known = sorted((b for b in bars if np.isfinite(b.median)), key=lambda b: b.median)
    parts = []
    if known:
        ends = [known[0], known[-1]] if len(known) > 1 else known
        parts.append(" to ".join(f"{b.median / 1e6:.1f}M ({b.name})" for b in ends))
    late = [b for b in bars if np.isinf(b.median)]
    if late:
        budget = min(b.budget for b in late) / 1e6
        parts.append(f"{len(late)} of {len(bars)} later than {budget:.0f}M")
    return ", ".join(parts)


PAPERS_TWO = ("Linreg gAmax", "Sampling gAmax")
HARD = ("S4R3", "S5R3", "S6R3")
BOTH = ("blocked-unlock-pickup", "key-corridor")
FIVE = ("1Dl", "1Dlh", "1Dlhb", "2Dl", "2Dlh")
SIX = ("1Dl", "1Dlh", "2Dl", "1Dlhb", "2Dlh", "2Dlhb")  # the six of nine tasks that the paper shows
IMPROVED = "lower end of the 95 % interval of the probability of improvement above the threshold"

CLAIMS = (
    Claim(
        "gAmax Linreg has comparable performances to gAmax Window",
        "section 6.1", "medians of the area under the curve differ by the threshold at most, and "
        "the interval of the probability of improvement holds 0.5", 0.1, BOTH, _comparable,
        "teachers",
    ),
    Claim(
        "gAmax Linreg seems more stable than gAmax Window",
        "section 6.1", "difference of the gaps between quartiles, mean over tasks and frames, "
        "below the threshold", 0.0, BOTH, _more_stable, "teachers",
    ),
    Claim(
        "gProp Linreg performs better than gAmax Linreg and gAmax Window",
        "section 6.1", IMPROVED, 0.5, BOTH,
        beats("gprop-linreg", "gamax-linreg", "gamax-window"), "teachers",
    ),
    Claim(
        "KeyCorridor: the median of gProp Linreg is near 0 at 10M on S4R3, S5R3 and S6R3",
        "section 6.3", "median below the threshold", NEAR_0, ("key-corridor",),
        quantile_at("gprop-linreg", 0.5, 10e6, HARD, below), "mr",
    ),
    Claim(
        "KeyCorridor: the first quartile of MR is higher than 0.8 after 6M on them",
        "section 6.3", "first quartile above the threshold", 0.8, ("key-corridor",),
        quantile_at("mr", 0.25, 6e6, HARD, above), "mr",
    ),
    Claim(
        "ObstructedMaze: the last quartile of gProp Linreg is near 0 after 10M on all tasks",
        "section 6.3", "last quartile below the threshold", NEAR_0, ("obstructed-maze",),
        quantile_at("gprop-linreg", 0.75, 10e6, (), below), "mr",
    ),
    Claim(
        "ObstructedMaze: the last quartile of MR is higher than 0.7 after 5M on 1Dl, 1Dlh, 1Dlhb, "
        "2Dl and 2Dlh",
        "section 6.3", "last quartile above the threshold", 0.7, ("obstructed-maze",),
        quantile_at("mr", 0.75, 5e6, FIVE, above), "mr",
    ),
    Claim(
        "MR outperforms gProp Linreg on KeyCorridor",
        "section 6.3", IMPROVED, 0.5, ("key-corridor",), beats("mr", "gprop-linreg"), "mr",
    ),
    Claim(
        "MR outperforms gProp Linreg on ObstructedMaze",
        "section 6.3", IMPROVED, 0.5, ("obstructed-maze",), beats("mr", "gprop-linreg"), "mr",
    ),
    Claim(
        "MR outperforms gProp Linreg on BlockedUnlockPickup",
        "section 6.3, appendix D.2", IMPROVED, 0.5, ("blocked-unlock-pickup",),
        beats("mr", "gprop-linreg"), "mr",
    ),
    Claim(
        "BlockedUnlockPickup, gProp Linreg: at first it is trained 66 % of the time on "
        "UnlockPickup and BlockedUnlockPickup, which it cannot learn yet",
        "appendix D.1, frame A", "distance from 66 % at most the threshold", 0.05,
        ("blocked-unlock-pickup",), _early, "shortcomings",
    ),
    Claim(
        "BlockedUnlockPickup, gProp Linreg: once Unlock and UnlockPickup are learned, it is still "
        "trained 90 % of the time on them",
        "appendix D.1, frame B", "at least the threshold in 100,000 frames of that time", 0.9,
        ("blocked-unlock-pickup",), _late, "shortcomings",
    ),
    Claim(
        "Addition: MR outperforms Teacher-Student regardless of the attention program and the "
        "converter: against the two of Teacher-Student that the paper has, Linreg gAmax and "
        "Sampling gAmax with batches of 1024",
        "section 6.2", "share of pairs of configurations in which the median of MR is lower", 1.0,
        ("addition-128", "addition-1024-long"), _addition(1024, PAPERS_TWO), "addition",
        several_worlds=False, more=("addition-64", "addition-128-long"),
    ),
    Claim(
        "The same against all twenty of Teacher-Student (not in the paper)",
        "section 6.2", "the same", 1.0,
        ("addition-128", "addition-1024"), _addition(1024), "addition",
        several_worlds=False, in_paper=False,
        more=("addition-64", "addition-128-long", "addition-1024-long"),
    ),
    Claim(
        "The same with the same batch of 128 for both (not in the paper)",
        "section 6.2", "the same", 1.0, ("addition-128",), _addition(128), "addition",
        several_worlds=False, in_paper=False, more=("addition-128-long",),
    ),
)  # fmt: skip


class Judgement(NamedTuple):
    """A claim and its verdict in each world."""

    claim: Claim
    verdicts: dict[str, Verdict]  # by the name of the world; "" if there is only one


def judge(found: Found) -> list[Judgement]:
    """Judge every claim in each world; claims whose jobs were not trained are left out."""
    judgements = []
    for claim in CLAIMS:
        verdicts = {}
        for suffix, world in WORLDS.items() if claim.several_worlds else [("", "")]:
            needed = [part + suffix for part in claim.parts]
            if all(part in found for part in needed):
                more = [part for part in claim.more if part in found]
                own = {part.removesuffix(suffix): shown(found[part]) for part in (*needed, *more)}
                short = [part for part in needed if found[part].about["ended"] is None]
                verdicts[world] = (
                    Verdict(None, f"not trained to the end: {', '.join(short)}")
                    if short
                    else claim.judge(own, claim.threshold)
                )
        if verdicts:
            judgements.append(Judgement(claim, verdicts))
    return judgements


def shown(curves: PaperCurves) -> PaperCurves:
    """The curves without the three ObstructedMaze tasks that the paper does not show."""
    return curves.of_tasks(SIX) if set(SIX) < set(curves.tasks.tolist()) else curves
