"""AdaRFT: Shi et al. 2025, arXiv:2504.05520."""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.attention import TimeStep, View

Array = Any  # a NumPy or a JAX array


class AdaRFT(NamedTuple):
    """The tasks whose difficulty is nearest to a target T: a_c = 1 / (1 + |difficulty_c − T|).

        T ← clip(T + η tanh(α (R − ρ)), least difficulty, greatest difficulty), first 0

    R is the mean p of all returns of the time-step. With `topk`, the nearest tasks are drawn with
    equal probability; ties are broken at random. Difficulties are from 0 to 100: a task's
    `settings.difficulty`, or else its level in the order.
    """

    eta: Array  # η, the size of a step
    sensitivity: Array  # α
    goal: Array  # ρ, the wanted rate of success
    difficulty: Array  # (N,)

    def init(self, like: Array, slots: int) -> Array:
        return like[0]

    def attend(self, target: Array, view: View) -> Array:
        return 1 / (1 + abs(self.difficulty - target)) + 0.0 * view.mastery

    def advance(self, target: Array, view: View, learned: TimeStep) -> Array:
        xp = target.__array_namespace__()
        n = learned.evidence.count
        rate = (n * learned.rate).sum() / xp.maximum(n.sum(), 1)
        step = self.eta * xp.tanh(self.sensitivity * (rate - self.goal))
        moved = xp.minimum(xp.maximum(target + step, self.difficulty.min()), self.difficulty.max())
        return xp.where(n.sum() > 0, moved, target).astype(target.dtype)
