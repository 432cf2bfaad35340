"""DUMP: Wang et al. 2025, arXiv:2504.09710."""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.attention import TimeStep, View

Array = Any  # a NumPy or a JAX array


class Rollouts(NamedTuple):
    """The memory of DUMP."""

    advantage: Array  # (K, N): the sum of |advantage| over the returns of a time-step
    count: Array  # (K, N): the number of these returns
    total: Array  # (N,): all returns so far


class DUMP(NamedTuple):
    """Mean |advantage| plus an upper confidence bonus; with `boltzmann`, d_c ∝ exp(a_c / τ).

        a_c = μ_c + √(2 ln(N + 1) / (N_c + 1))

    μ_c is the mean over the returns of the last K time-steps (the source: the last 300 returns),
    N_c the number of returns so far, N = max(1, Σ N_c). The bonus fades as N_c grows.
    """

    def init(self, like: Array, slots: int) -> Rollouts:
        xp = like.__array_namespace__()
        ring = xp.zeros((slots, like.shape[0]), dtype=like.dtype)
        return Rollouts(ring, ring + 0.0, like)

    def advance(self, memory: Rollouts, view: View, learned: TimeStep) -> Rollouts:
        xp = memory.total.__array_namespace__()
        n = learned.evidence.count
        slots = xp.arange(memory.count.shape[0])[:, None]
        here = (slots == (learned.count - 1) % learned.window) & (n > 0)
        return Rollouts(
            xp.where(here, n * learned.advantage, memory.advantage),
            xp.where(here, n, memory.count).astype(memory.count.dtype),
            memory.total + n,
        )

    def attend(self, memory: Rollouts, view: View) -> Array:
        xp = memory.total.__array_namespace__()
        mean = memory.advantage.sum(axis=0) / xp.maximum(memory.count.sum(axis=0), 1)
        every = xp.maximum(memory.total.sum(), 1)
        return mean + xp.sqrt(2 * xp.log(every + 1) / (memory.total + 1))
