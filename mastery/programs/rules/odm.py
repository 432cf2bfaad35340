"""Online data mixing: Albalak et al. 2023, arXiv:2312.02406."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mastery.programs.attention import TimeStep, View

Array = Any  # a NumPy or a JAX array


class Rewards(NamedTuple):
    """The memory of ODM."""

    total: Array  # (N,): R_c
    t: Array  # () int32


class ODM(NamedTuple):
    """The bandit Exp3 with the loss as its reward: train where the loss is high.

        R_c ← R_c + L_c / d_c        where c was seen; d_c is its probability
        ε_t = min(1/N, √(ln N / (N t)))
        a   = (1 − N ε_t) softmax(ε_{t−1} R) + ε_t

    The loss is 1 − p, p being the return between its bounds. With returns −loss and bounds −10 and
    0 that is the loss / 10, as in the authors' code. N is the number of tasks.
    """

    def init(self, like: Array, slots: int) -> Rewards:
        xp = like.__array_namespace__()
        return Rewards(like, xp.zeros((), dtype=xp.int32))

    def advance(self, memory: Rewards, view: View, learned: TimeStep) -> Rewards:
        xp = memory.total.__array_namespace__()
        seen, d = learned.evidence.seen, learned.probabilities
        gain = (1 - learned.rate) / xp.where(d > 0, d, 1.0)
        return Rewards(memory.total + xp.where(seen, gain, 0.0), learned.t)

    def changed(self, memory: Rewards, change: Any, view: View) -> Rewards:
        """Sums only grow, so a new task gets the mean of the others."""
        old = memory.total[~change.new]
        mean = old.mean() if len(old) else 0.0
        return memory._replace(total=np.where(change.new, mean, memory.total))

    def attend(self, memory: Rewards, view: View) -> Array:
        xp = memory.total.__array_namespace__()
        n = memory.total.shape[0]
        now = _exploration(memory.t, n, memory.total)
        scaled = _exploration(memory.t - 1, n, memory.total) * memory.total
        e = xp.exp(scaled - scaled.max())
        return (1 - n * now) * e / e.sum() + now


def _exploration(t: Array, n: int, like: Array) -> Array:
    """ε_t; 1/N before the first time-step."""
    xp = like.__array_namespace__()
    steps = xp.maximum(t, 1).astype(like.dtype)
    return xp.where(t < 1, 1 / n, xp.minimum(1 / n, xp.sqrt(math.log(n) / (n * steps))))
