"""Bidirectional learning progress: Kanitscheider et al. 2021, arXiv:2106.14876."""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.attention import TimeStep, View

Array = Any  # a NumPy or a JAX array


class Averages(NamedTuple):
    """The memory; each (N,)."""

    base: Array  # the first rate, at most 0.75
    fast: Array  # F: the moving average of the rate above `base`
    slow: Array  # W: the moving average of F
    rate: Array  # Q: the moving average of the rate


class Bidirectional(NamedTuple):
    """The change of the success rate, up or down, with low rates magnified.

        p' = max(p − b, 0) / (1 − b), with b the first p of the task, at most 0.75
        F ← α p' + (1 − α) F,   W ← α F + (1 − α) W,   Q ← α p + (1 − α) Q
        LP = |f(F) − f(W)|,     f(x) = (1 − θ) x / (x + θ (1 − 2x))
        a  = 1 / (1 + exp(−z)), z = (LP − mean) / (standard deviation), over the active tasks

    Tasks with LP = 0 and Q = 0 are not active and get a = 0, unless all are. The averages of a
    task move when it is seen; the source evaluates all tasks each time.
    """

    alpha: Array  # α
    theta: Array  # θ

    def init(self, like: Array, slots: int) -> Averages:
        return Averages(like, like + 0.0, like + 0.0, like + 0.0)

    def advance(self, memory: Averages, view: View, learned: TimeStep) -> Averages:
        xp = memory.rate.__array_namespace__()
        p, seen, first = learned.rate, learned.evidence.seen, learned.count == 1
        base = xp.where(first, xp.minimum(p, 0.75), memory.base)
        above = xp.maximum(p - base, 0.0) / (1 - base)

        def average(new: Array, old: Array) -> Array:
            return xp.where(first, new, self.alpha * new + (1 - self.alpha) * old)

        fast = average(above, memory.fast)
        moved = Averages(base, fast, average(fast, memory.slow), average(p, memory.rate))
        return Averages(*(xp.where(seen, x, y) for x, y in zip(moved, memory, strict=True)))

    def attend(self, memory: Averages, view: View) -> Array:
        xp = memory.rate.__array_namespace__()
        progress = abs(self._magnified(memory.fast) - self._magnified(memory.slow))
        active = (progress > 0) | (memory.rate > 0)
        active = active | ~active.any()
        n = active.sum()
        mean = (progress * active).sum() / n
        deviation = xp.sqrt(((progress - mean) ** 2 * active).sum() / n)
        z = (progress - mean) / xp.where(deviation > 0, deviation, 1.0)
        return active / (1 + xp.exp(-z))

    def _magnified(self, x: Array) -> Array:
        return (1 - self.theta) * x / (x + self.theta * (1 - 2 * x))
