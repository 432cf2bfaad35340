"""Self-evolving curriculum: Chen et al. 2025, arXiv:2505.14970."""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.attention import TimeStep, View

Array = Any  # a NumPy or a JAX array


class SEC(NamedTuple):
    """a_c = Q_c, with Q_c ← α (mean |advantage| of c) + (1 − α) Q_c when c is seen.

    With `boltzmann`, d_c ∝ exp(Q_c / τ). We could not check α and τ against the authors' code.
    """

    alpha: Array  # α

    def init(self, like: Array, slots: int) -> Array:
        return like

    def attend(self, q: Array, view: View) -> Array:
        return q

    def advance(self, q: Array, view: View, learned: TimeStep) -> Array:
        xp = q.__array_namespace__()
        new = self.alpha * learned.advantage + (1 - self.alpha) * q
        return xp.where(learned.evidence.seen, new, q)
