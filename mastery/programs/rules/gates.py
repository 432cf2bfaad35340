"""Gates: which tasks are worth a visit. A gate goes with any program.

A gate multiplies a program's probabilities by `keep`, from 0 to 1; then they are normalised. Each
is a NamedTuple of hyper-parameters with pure functions over arrays:

    init(like)                -> memory; `like` is an (N,) array of zeros
    advance(memory, learned)  -> memory after a time-step
    keep(memory)              -> (N,): the share of its visits that a task keeps
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.attention import TimeStep

Array = Any  # a NumPy or a JAX array
_EQUAL = 1e-6  # relative standard deviation below which returns count as equal


class ZeroVariance(NamedTuple):
    """Skip a task while its last group of returns was all equal, so that it teaches nothing.

    The dynamic sampling of DAPO (Yu et al. 2025, arXiv:2503.14476) discards such groups after
    they were made; a gate skips the task beforehand, and `reprobe` visits it again. A single
    return does not close the gate.
    """

    def init(self, like: Array) -> Array:
        return like

    def advance(self, closed: Array, learned: TimeStep) -> Array:
        xp = closed.__array_namespace__()
        flat = (learned.deviation <= _EQUAL).astype(closed.dtype)
        return xp.where(learned.evidence.count > 1, flat, closed)

    def keep(self, closed: Array) -> Array:
        return 1 - closed


class Retire(NamedTuple):
    """Skip a task once its mean return in a time-step has reached a rate of success.

    The rule of open-instruct excludes it for ever; here a visit by `reprobe` with a lower rate
    brings it back.
    """

    pass_rate: Array

    def init(self, like: Array) -> Array:
        return like

    def advance(self, retired: Array, learned: TimeStep) -> Array:
        xp = retired.__array_namespace__()
        passed = (learned.rate >= self.pass_rate).astype(retired.dtype)
        return xp.where(learned.evidence.seen, passed, retired)

    def keep(self, retired: Array) -> Array:
        return 1 - retired


class Runs(NamedTuple):
    """The memory of GRESO."""

    easy: Array  # (N,): how many visits in a row had nothing but successes
    hard: Array  # (N,): how many had nothing but failures
    visited: Array  # (N,): 1 for tasks that were seen
    p_easy: Array  # ()
    p_hard: Array  # ()


class GRESO(NamedTuple):
    """Skip tasks whose groups were all right or all wrong several times running (Zheng et al.
    2025, arXiv:2506.02177).

        keep_c = max(p_easy^easy_c, 0.01) · max(p_hard^hard_c, 0.01)

    easy_c and hard_c count visits in a row with p ≥ 0.98 and with p ≤ 0.11. Once every task was
    seen, p_easy falls by 0.01 in a time-step in which at least target / 3 of the visits were easy,
    else it rises; p_hard likewise with 2 target / 3; both within [0.05, 0.95]. The source counts
    only groups with a reward of 0.1 for p_hard, and refills the batch; a gate has no batch.
    """

    target: Array

    def init(self, like: Array) -> Runs:
        half = like.sum() + 0.5
        return Runs(like, like + 0.0, like + 0.0, half, half + 0.0)

    def advance(self, memory: Runs, learned: TimeStep) -> Runs:
        xp = memory.easy.__array_namespace__()
        seen, p = learned.evidence.seen, learned.rate
        right, wrong = seen & (p >= 0.98), seen & (p <= 0.11)
        visited = xp.maximum(memory.visited, seen.astype(p.dtype))
        n = seen.sum()
        later = (visited.min() > 0) & (n > 0)

        def moved(now: Array, these: Array, limit: Array) -> Array:
            step = xp.where(these.sum() >= limit * n, -0.01, 0.01)
            return xp.where(later, xp.minimum(xp.maximum(now + step, 0.05), 0.95), now)

        return Runs(
            xp.where(seen, xp.where(right, memory.easy + 1, 0.0), memory.easy),
            xp.where(seen, xp.where(wrong, memory.hard + 1, 0.0), memory.hard),
            visited,
            moved(memory.p_easy, right, self.target / 3),
            moved(memory.p_hard, wrong, 2 * self.target / 3),
        )

    def keep(self, memory: Runs) -> Array:
        xp = memory.easy.__array_namespace__()
        easy = xp.maximum(memory.p_easy**memory.easy, 0.01)
        return easy * xp.maximum(memory.p_hard**memory.hard, 0.01)
