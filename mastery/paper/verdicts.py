"""A claim's verdict, the estimates it rests on, and its mark on the scorecard."""

from __future__ import annotations

from typing import NamedTuple

from mastery.statistics import Estimate

REPRODUCED, NOT_REPRODUCED, UNDECIDED = MARKS = ("✓", "✗", "≈")


class Ground(NamedTuple):
    """An estimate that a verdict rests on, and whether its whole interval agrees with the claim."""

    name: str
    estimate: Estimate
    thresholds: tuple[float, ...]  # one, or both ends of a range
    agrees: bool | None  # None: a threshold lies inside the interval


class Verdict(NamedTuple):
    """Whether a claim holds, or None if the training leaves it open; and the numbers."""

    holds: bool | None
    numbers: str
    parts: tuple[Ground, ...] = ()  # all must hold

    @property
    def mark(self) -> str:
        """✓ or ✗ if other seeds would hardly change the verdict, else ≈.

        A claim holds if all its parts do. So it is ≈ if it is open, if it holds although a part
        is undecided, or if it fails and no part surely does, but at least one is undecided.
        """
        agree = [part.agrees for part in self.parts]
        if self.holds is None or (None in agree and (self.holds or False not in agree)):
            return UNDECIDED
        return REPRODUCED if self.holds else NOT_REPRODUCED


def above(name: str, x: Estimate, threshold: float) -> Ground:
    """The claim says: above the threshold."""
    return Ground(name, x, (threshold,), _surely(x.low > threshold, x.high < threshold))


def below(name: str, x: Estimate, threshold: float) -> Ground:
    """The claim says: below the threshold."""
    return Ground(name, x, (threshold,), _surely(x.high < threshold, x.low > threshold))


def within(name: str, x: Estimate, low: float, high: float) -> Ground:
    """The claim says: between the two."""
    inside = low <= x.low and x.high <= high
    return Ground(name, x, (low, high), _surely(inside, x.high < low or x.low > high))


def holding(name: str, x: Estimate, value: float) -> Ground:
    """The claim says: the interval holds the value, so nothing is left undecided."""
    return Ground(name, x, (value,), x.low <= value <= x.high)


def _surely(yes: bool, no: bool) -> bool | None:
    return True if yes else False if no else None
