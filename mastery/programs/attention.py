"""Learning progress and mastery -> attention (section 4).

Attention is a non-negative number for each task. Each kind of attention is a NamedTuple of
hyper-parameters with pure functions over arrays:

    init(like)                     -> memory (often empty); `like` is an (N,) array of zeros
    attend(memory, view)           -> attention of each task
    advance(memory, view, learned) -> memory after a time-step, for kinds that learn
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.graph import Graph

Array = Any  # a NumPy or a JAX array


class View(NamedTuple):
    """The inputs of attention."""

    mastery: Array  # (N,): M_c
    progress: Array  # (N,): β_c
    graph: Graph


def mastering_rate(mean: Array, minimum: Array, maximum: Array) -> Array:
    """M_c = (r̄_c − m̄_c) / (M̄_c − m̄_c), in [0, 1] (section 4.1)."""
    return (mean - minimum) / (maximum - minimum)


class MasteringRate(NamedTuple):
    """The attention of the mastering-rate algorithm, eq. 1; see the graph for eq. 2 and 3."""

    delta: Array
    power: Array  # 0 leaves the first factor out
    unlearned: Array = 1.0  # 0 leaves the second factor out
    successors: Array = 1.0  # 0 leaves the third factor out

    def init(self, like: Array) -> tuple[()]:
        return ()

    def attend(self, memory: tuple[()], view: View) -> Array:
        """Eq. 1:  a_c = [(M_{Anc c})^p] [δ (1 − M_c) + (1 − δ) |β̂_c|] [1 − M_{Succ c}],

        with β̂_c = β_c / max_c' |β_c'|, or 0 if that maximum is 0.
        """
        mastery, beta, graph = view
        beta = abs(beta)
        largest = beta.max()
        beta_hat = beta / (largest + (largest == 0))
        m_anc, m_succ = graph.anc_succ(mastery)
        unlearned = self.delta * (1 - mastery) + (1 - self.delta) * beta_hat
        unlearned = self.unlearned * unlearned + (1 - self.unlearned)
        return m_anc**self.power * unlearned * (1 - self.successors * m_succ)


class LearningProgress(NamedTuple):
    """a_c = |β_c|^exponent. Teacher-Student uses exponent 1 (section 2.2)."""

    exponent: Array

    def init(self, like: Array) -> tuple[()]:
        return ()

    def attend(self, memory: tuple[()], view: View) -> Array:
        return abs(view.progress) ** self.exponent


class Exp3S(NamedTuple):
    """The bandit of Graves et al. 2017: a_c = exp(w_c); with gProp, π = (1 − ε) softmax(w) + ε u.

    After time-step t, with r_c in [−1, 1] the rescaled gain of each seen task,

        w_c ← log[(1 − 1/t) exp(w_c + η r̃_c) + 1/(t (N − 1)) Σ_{c'≠c} exp(w_c' + η r̃_c')],
        r̃_c = r_c / π_c where c was seen, 0 elsewhere.

    Gains are rescaled linearly so that the 20th and 80th percentiles of past gains map to −1 and 1,
    and clipped there. We use the last K gains of each task; they used a reservoir of all gains.
    """

    eta: Array

    def init(self, like: Array) -> Array:
        return like

    def attend(self, w: Array, view: View) -> Array:
        xp = w.__array_namespace__()
        return xp.exp(w - w.max())

    def advance(self, w: Array, view: View, learned: TimeStep) -> Array:
        xp = w.__array_namespace__()
        t, seen, probabilities, gains, n = learned
        low, high = _percentiles(gains, n, 0.2, 0.8)
        gain = view.progress
        inside = 2 * (gain - low) / xp.where(high > low, high - low, 1.0) - 1
        r = xp.where(high > low, xp.minimum(xp.maximum(inside, -1.0), 1.0), xp.sign(gain - low))
        r = xp.where(seen & (n > 0), r, 0.0)
        v = w + self.eta * r / xp.where(probabilities > 0, probabilities, 1.0)
        others = w.shape[0] - 1
        if not others:
            return v
        top = v.max()
        e = xp.exp(v - top)
        mixed = (1 - 1 / t) * e + (e.sum() - e) / (t * others)
        return top + xp.log(xp.maximum(mixed, xp.finfo(w.dtype).tiny))


class TimeStep(NamedTuple):
    """The further inputs of `advance`: what happened in a time-step."""

    t: Array  # () int32: the time-step
    seen: Array  # (N,) bool: the tasks with a return
    probabilities: Array  # (N,): the distribution the tasks were drawn from
    gains: Array  # (K, N) float: the last changes of each task's return
    n: Array  # (N,) int32: the number of gains of each task


class Constant(NamedTuple):
    """Constant attention: `uniform`, and `target` (the tasks without successors)."""

    weights: Array  # (N,)

    def init(self, like: Array) -> tuple[()]:
        return ()

    def attend(self, memory: tuple[()], view: View) -> Array:
        return self.weights + view.mastery * 0.0


class Sequential(NamedTuple):
    """The hand-made program: equal attention to all tasks of one level of the order.

    Once each of them has M_c ≥ threshold, it moves on to the next level and does not go back.
    """

    threshold: Array
    level: Array  # (N,) int32: the level of each task

    def init(self, like: Array) -> Array:
        xp = like.__array_namespace__()
        return xp.zeros_like(like[0], dtype=xp.int32)

    def attend(self, current: Array, view: View) -> Array:
        return (self.level == current) + view.mastery * 0.0

    def advance(self, current: Array, view: View, learned: TimeStep) -> Array:
        xp = view.mastery.__array_namespace__()
        mastered = (self.level != current) | (view.mastery >= self.threshold)
        return xp.minimum(current + mastered.all(), self.level.max()).astype(current.dtype)


Attention = MasteringRate | LearningProgress | Exp3S | Constant | Sequential
LEARNING = (Exp3S, Sequential)  # the kinds that have `advance`


def _percentiles(gains: Array, n: Array, *shares: float) -> list[Array]:
    """Percentiles of all gains; each task has its gains in its first n slots."""
    xp = gains.__array_namespace__()
    K = gains.shape[0]
    held = xp.arange(K)[:, None] < n
    ordered = xp.sort(xp.where(held, gains, xp.inf).reshape(-1))
    last = held.sum() - 1
    at = [xp.floor(share * xp.maximum(last, 0)).astype(xp.int32) for share in shares]
    return [xp.where(last < 0, 0.0, ordered[i]) for i in at]
