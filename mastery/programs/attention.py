"""Learning progress and mastery -> attention (section 4).

Attention is a non-negative number for each task. Each kind of attention is a NamedTuple of
hyper-parameters with pure functions over arrays:

    init(like, slots)              -> memory (often empty); `like` is an (N,) array of zeros, and
                                      `slots` the number of time-steps that a ring may hold
    attend(memory, view)           -> attention of each task
    advance(memory, view, learned) -> memory after a time-step, for kinds that learn
    changed(memory, change, view)  -> memory after other tasks have come, for kinds that need it

Equations 1, 2 and 3 of the paper are those of `MasteringRate`. The kinds of other papers are in
`rules`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mastery.programs.evidence import Evidence
from mastery.programs.graph import Dense, Graph, Layered, put

Array = Any  # a NumPy or a JAX array


class Attention(Protocol):
    """The interface of all kinds; those that learn from a time-step also have `advance`."""

    def init(self, like: Array, slots: int) -> Any: ...

    def attend(self, memory: Any, view: View) -> Array: ...


class View(NamedTuple):
    """The inputs of attention."""

    mastery: Array  # (N,): M_c
    progress: Array  # (N,): β_c
    graph: Graph
    uniforms: Array = ()  # (N,) uniforms of this time-step, if the program uses noise
    mean: Array = ()  # (N,): r̄_c
    returns: Array = ()  # (N,): about how many returns r̄_c is the mean of
    minimum: Array = ()  # (N,): m̄_c


class TimeStep(NamedTuple):
    """The further inputs of `advance`: what happened in a time-step."""

    t: Array  # () int32: the time-step
    evidence: Evidence
    rate: Array  # (N,): the mean return between the given bounds, in [0, 1]; 0 where not seen
    deviation: Array  # (N,): the standard deviation of the returns, relative to these bounds
    probabilities: Array  # (N,): what the tasks were drawn from; () for kinds that do not use it
    count: Array  # (N,) int32: the number of time-steps in which the task was seen, with this one
    window: Array  # () int: K
    gains: Array  # (K, N) or (N,): the estimator's memory; with `change` the last changes

    @property
    def advantage(self) -> Array:
        """(N,): the mean |advantage| of a group of n returns, as GRPO normalises them.

        Of returns that succeed or fail this is exactly 2 σ √((n − 1) / n).
        """
        n = self.evidence.count
        xp = self.rate.__array_namespace__()
        return 2 * self.deviation * xp.sqrt(xp.maximum(n - 1, 0) / xp.maximum(n, 1))


def mastering_rate(mean: Array, minimum: Array, maximum: Array) -> Array:
    """M_c = (r̄_c − m̄_c) / (M̄_c − m̄_c), in [0, 1] (section 4.1)."""
    rate = (mean - minimum) / (maximum - minimum)
    if hasattr(rate, "at"):  # JAX: some devices round a quotient to just above 1
        xp = rate.__array_namespace__()
        rate = xp.minimum(xp.maximum(rate, 0.0), 1.0)
    return rate


class MasteringRate(NamedTuple):
    """The attention of the mastering-rate algorithm: equations 1, 2 and 3."""

    delta: Array  # δ
    power: Array  # p; 0 disables the first factor
    gamma_pred: Array  # γ_pred: the share of its attention that a task gives to its predecessors
    gamma_succ: Array  # γ_succ: the share that it gives to its successors
    unlearned: Array = 1.0  # 0 disables the second factor
    successors: Array = 1.0  # 0 disables the third factor
    solution: Array | tuple[()] = ()  # (N, N): equations 2 and 3 as one matrix, for a dense graph

    def init(self, like: Array, slots: int) -> tuple[()]:
        return ()

    def attend(self, memory: tuple[()], view: View) -> Array:
        """Eq. 1:  a_c = [(M_{Anc c})^p] [δ (1 − M_c) + (1 − δ) |β̂_c|] [1 − M_{Succ c}],

        with β̂_c = β_c / max_c' |β_c'|, or 0 if that maximum is 0.
        """
        mastery, graph = view.mastery, view.graph
        beta = abs(view.progress)
        largest = beta.max()
        beta_hat = beta / (largest + (largest == 0))
        m_anc, m_succ = graph.anc_succ(mastery)
        unlearned = self.delta * (1 - mastery) + (1 - self.delta) * beta_hat
        unlearned = self.unlearned * unlearned + (1 - self.unlearned)
        return m_anc**self.power * unlearned * (1 - self.successors * m_succ)

    def redistribute(self, a: Array, graph: Graph) -> Array:
        """Eq. 2:  a'_c  = (1 − γ_pred) a_c  + Σ_{c→c'} γ_pred / n_{→c'} a'_c'
        Eq. 3:  a''_c = (1 − γ_succ) a'_c + Σ_{c'→c} γ_succ / n_{c'→} a'_c'

        Returns a''. The predecessors of a task may also get attention for its own successors, so
        eq. 2 is a linear system. For a dense graph it is solved beforehand.
        """
        if isinstance(graph, Layered):
            return _redistribute(a, graph, self.gamma_pred, self.gamma_succ)
        # not `@` under JAX: some devices compute it with lower precision
        return (self.solution * a).sum(axis=-1) if hasattr(a, "at") else self.solution @ a

    def solved(self, graph: Graph) -> MasteringRate:
        """Solve equations 2 and 3, if the graph is dense."""
        if isinstance(graph, Layered):
            return self
        return self._replace(solution=_solution(graph, self.gamma_pred, self.gamma_succ))


def _redistribute(a: Array, graph: Layered, gamma_pred: Array, gamma_succ: Array) -> Array:
    """Equations 2 and 3, level by level: eq. 2 from the last level to the first."""
    xp = a.__array_namespace__()
    none = xp.zeros_like(a[:1])
    given = xp.concat([(1 - gamma_pred) * a / graph.before, none])  # a'_c / n_{→c}
    for tasks, successors in graph.successors:
        more = gamma_pred * given[successors].sum(axis=0) / graph.before[tasks]
        given = put(given, tasks, given[tasks] + more)
    a = given[:-1] * graph.before
    given = xp.concat([a / graph.after, none])
    collected = xp.zeros_like(a)
    for tasks, predecessors in graph.predecessors:
        collected = put(collected, tasks, given[predecessors].sum(axis=0))
    return (1 - gamma_succ) * a + gamma_succ * collected


def _solution(graph: Dense, gamma_pred: float, gamma_succ: float) -> NDArray[np.float64]:
    """The matrix with a'' = matrix · a:

    a'  = (1 − γ_pred) a  + γ_pred P a',  P[c, c'] = 1 / n_{→c'} where c → c'
    a'' = (1 − γ_succ) a' + γ_succ S a',  S[c, c'] = 1 / n_{c'→} where c' → c
    """
    successors = graph.near[1]
    P = successors / np.maximum(successors.sum(axis=0), 1)
    S = (successors / np.maximum(successors.sum(axis=1, keepdims=True), 1)).T
    one = np.eye(len(successors))
    eq2 = np.linalg.solve(one - gamma_pred * P, (1 - gamma_pred) * one)
    eq3 = (1 - gamma_succ) * one + gamma_succ * S
    return eq3 @ eq2  # type: ignore[no-any-return]


class LearningProgress(NamedTuple):
    """a_c = |β_c|^exponent. Teacher-Student uses exponent 1 (section 2.2).

    With another exponent, |β_c| is first divided by the largest, so that float32 can hold it.
    """

    exponent: Array

    def init(self, like: Array, slots: int) -> tuple[()]:
        return ()

    def attend(self, memory: tuple[()], view: View) -> Array:
        beta = abs(view.progress)
        xp = beta.__array_namespace__()
        largest = beta.max()
        power = (beta / (largest + (largest == 0))) ** self.exponent
        return xp.where(self.exponent == 1, beta, power)


class Exp3S(NamedTuple):
    """The bandit of Graves et al. 2017: a_c = exp(w_c); with gProp, π = (1 − ε) softmax(w) + ε u.

    After time-step t, with r_c in [−1, 1] the rescaled gain of each seen task,

        w_c ← log[(1 − 1/t) exp(w_c + η r̃_c) + 1/(t (N − 1)) Σ_{c'≠c} exp(w_c' + η r̃_c')],
        r̃_c = r_c / π_c where c was seen, 0 elsewhere.

    Gains are rescaled linearly so that the 20th and 80th percentiles of past gains map to −1 and 1,
    and clipped there. We use the last K gains of each task; they used a reservoir of all gains.
    """

    eta: Array

    def init(self, like: Array, slots: int) -> Array:
        return like

    def attend(self, w: Array, view: View) -> Array:
        xp = w.__array_namespace__()
        return xp.exp(w - w.max())

    def advance(self, w: Array, view: View, learned: TimeStep) -> Array:
        xp = w.__array_namespace__()
        t, probabilities, seen = learned.t, learned.probabilities, learned.evidence.seen
        n = xp.minimum(learned.count - 1, learned.window)
        low, high = _percentiles(learned.gains, n, 0.2, 0.8)
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
        # t (N − 1) as a float: as an int32 it overflows after 2³¹ / N time-steps
        mixed = (1 - 1 / t) * e + (e.sum() - e) / (t.astype(w.dtype) * others)
        return top + xp.log(xp.maximum(mixed, xp.finfo(w.dtype).tiny))

    def changed(self, w: Array, change: Any, view: View) -> Array:
        """Weights have no scale, so a new task gets the mean weight exp(w) of the others."""
        old = w[~change.new]
        if not len(old):
            return w
        mean = old.max() + np.log(np.exp(old - old.max()).mean())
        return np.where(change.new, mean, w)


class Constant(NamedTuple):
    """Constant attention: `uniform`, and `target` (the tasks without successors)."""

    weights: Array  # (N,)

    def init(self, like: Array, slots: int) -> tuple[()]:
        return ()

    def attend(self, memory: tuple[()], view: View) -> Array:
        return self.weights + view.mastery * 0.0


class Sequential(NamedTuple):
    """Equal attention to all tasks of one level of the order.

    Once each of them has M_c ≥ threshold, it moves on to the next level and does not go back.
    """

    threshold: Array
    level: Array  # (N,) int32: the level of each task

    def init(self, like: Array, slots: int) -> Array:
        xp = like.__array_namespace__()
        return xp.zeros_like(like[0], dtype=xp.int32)

    def attend(self, current: Array, view: View) -> Array:
        return (self.level == current) + view.mastery * 0.0

    def advance(self, current: Array, view: View, learned: TimeStep) -> Array:
        xp = view.mastery.__array_namespace__()
        mastered = (self.level != current) | (view.mastery >= self.threshold)
        return xp.minimum(current + mastered.all(), self.level.max()).astype(current.dtype)

    def changed(self, current: Array, change: Any, view: View) -> Array:
        """The first level that is not mastered: a new task may be on an earlier one."""
        open_levels = self.level[view.mastery < self.threshold]
        return np.array(open_levels.min(initial=self.level.max()), current.dtype)


def _percentiles(gains: Array, n: Array, *shares: float) -> list[Array]:
    """Percentiles of all gains; each task has its gains in its first n slots."""
    xp = gains.__array_namespace__()
    K = gains.shape[0]
    held = xp.arange(K)[:, None] < n
    ordered = xp.sort(xp.where(held, gains, xp.inf).reshape(-1))
    last = held.sum() - 1
    at = [xp.floor(share * xp.maximum(last, 0)).astype(xp.int32) for share in shares]
    return [xp.where(last < 0, 0.0, ordered[i]) for i in at]
