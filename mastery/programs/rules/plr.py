"""Prioritised level replay: Jiang et al. 2021, arXiv:2010.03934."""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.attention import TimeStep, View
from mastery.programs.distribution import ranks

Array = Any  # a NumPy or a JAX array


class Replay(NamedTuple):
    """The memory of PLR."""

    score: Array  # (N,): S_c
    best: Array  # (N,): the best rate so far
    last: Array  # (N,) int32: the time-step in which the task was last seen; 0 for never
    t: Array  # () int32


class PLR(NamedTuple):
    """The probability of replaying a task or of trying a new one, as attention.

        S_c ← (1 − α) S_c + α s_c, where c was seen and s_c = (its best p so far) − p
        P_S ∝ (1 / rank of S_c)^{1/β} and P_C ∝ (time-steps since c was seen), over the seen tasks
        a   = r [(1 − ρ) P_S + ρ P_C] + (1 − r) (uniform over the tasks never seen)

    r is 0 while the share f of tasks seen is less than `fill`, then min(f, ν), and 1 once all are
    seen. Without a critic, s is the regret against the best return (MaxMC). Tasks that were not
    seen yet are not ranked. The source counts staleness in episodes, we in time-steps.
    """

    alpha: Array  # α, the weight of the newest score
    beta: Array  # β, the temperature of the ranks
    staleness: Array  # ρ
    nu: Array  # ν, the largest probability of a replay while tasks are unseen
    fill: Array  # the share of tasks to see before the first replay

    def init(self, like: Array, slots: int) -> Replay:
        xp = like.__array_namespace__()
        never = xp.zeros_like(like, dtype=xp.int32)
        return Replay(like, like + 0.0, never, xp.zeros((), dtype=xp.int32))

    def advance(self, memory: Replay, view: View, learned: TimeStep) -> Replay:
        xp = memory.score.__array_namespace__()
        seen, p = learned.evidence.seen, learned.rate
        best = xp.where(seen, xp.maximum(memory.best, p), memory.best)
        score = (1 - self.alpha) * memory.score + self.alpha * (best - p)
        return Replay(
            xp.where(seen, score, memory.score),
            best,
            xp.where(seen, learned.t, memory.last).astype(memory.last.dtype),
            learned.t,
        )

    def attend(self, memory: Replay, view: View) -> Array:
        xp = memory.score.__array_namespace__()
        known = memory.last > 0
        n = known.sum()
        place = ranks(xp.where(known, memory.score, -xp.inf))
        # relative to the first rank, so that no sum is 0
        by_score = _shared(xp.where(known, (1.0 + place) ** (-1 / self.beta), 0.0), known)
        by_age = _shared(
            xp.where(known, (memory.t - memory.last).astype(by_score.dtype), 0.0), known
        )
        replay = (1 - self.staleness) * by_score + self.staleness * by_age
        share = n / memory.score.shape[0]
        r = xp.where(share < self.fill, 0.0, xp.minimum(share, self.nu))
        r = xp.where(share >= 1, 1.0, r)
        new = ~known / xp.maximum((~known).sum(), 1)
        return r * replay + (1 - r) * new


def _shared(weights: Array, known: Array) -> Array:
    """Weights with sum 1; equal for all known tasks if all are 0."""
    xp = weights.__array_namespace__()
    total = weights.sum()
    equal = known / xp.maximum(known.sum(), 1)
    return xp.where(total > 0, weights / xp.where(total > 0, total, 1.0), equal)
