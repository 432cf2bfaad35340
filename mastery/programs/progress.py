"""Returns -> learning progress β (sections 2.2 and 3).

A task's past is kept by itself, so all of this is element-wise over tasks, the last axis of every
array, and written for tasks that have just got a return: who calls it takes only the tasks that
were seen (or keeps the old values of the others). Arrays are NumPy's or JAX's. An estimator is a
NamedTuple of hyper-parameters with three pure functions:

    init(history)                           -> memory
    observe(memory, history, n, t, K)       -> memory, once the return of time-step t is in history
    estimate(memory, history, uniforms, K)  -> β, one number a task

with n (N,) the number of returns that history holds of each task.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = Any  # a NumPy or a JAX array


class History(NamedTuple):
    """The last K ≥ 2 returns of each task: a ring, so that a return is one write."""

    returns: Array  # (K, N) float: r_{t_1}, …, r_{t_K}, not in order; 0 where empty
    times: Array  # (K, N) int32: t_1, …, t_K; 0 where empty
    count: Array  # (N,) int32: how many returns there have been

    def write(self, returns: Array, t: Array, K: Array) -> History:
        """One more return for every task."""
        xp = self.returns.__array_namespace__()
        here = _slots(self.returns) == self.count % K
        return History(
            xp.where(here, returns, self.returns), xp.where(here, t, self.times), self.count + 1
        )

    def write_over(self, returns: Any, t: Array, K: int) -> History:
        """The same, over its own rings: faster; NumPy only, and only for one's own copy."""
        slot = self.count % K
        at = slot if self.returns.ndim == 1 else (slot, np.arange(len(slot)))
        self.returns[at] = returns
        self.times[at] = t
        return History(self.returns, self.times, self.count + 1)

    def size(self, K: Array) -> Array:
        """(N,) float: how many returns are held."""
        xp = self.count.__array_namespace__()
        return xp.minimum(self.count, K).astype(self.returns.dtype)

    def change(self, K: Array) -> Array:
        """(N,): the last return less the one before it; 0 with fewer than two."""
        last, before = (_pick(self.returns, (self.count - i) % K) for i in (1, 2))
        return (last - before) * (self.count > 1)


def slope(history: History, t: Array, held: Array, n: Array) -> Array:
    """β^Linreg, the slope of the linear regression of (t_1, r_{t_1}), …, (t_K, r_{t_K}).

        β = Σ (t_i − t̄)(r_i − r̄) / Σ (t_i − t̄)²      over the n ≥ 1 slots that are `held`;

    0 with fewer than two time-steps. Times are taken relative to t and times n, so that they stay
    whole numbers, and returns relative to one of them: a late t costs no digits, and equal returns
    give exactly 0, which matters since eq. 1 divides by the largest |β|.
    """
    xp = history.returns.__array_namespace__()
    x = (history.times - t) * held
    x = (n * x - x.sum(axis=0)) * held  # n (t_i − t̄), so that Σ x = 0 and r̄ drops out
    y = history.returns - history.returns[0]
    return n * _dot(x, y) / xp.maximum(_dot(x, x), 1.0)


class Window(NamedTuple):
    """β_c ← α β_c^Linreg + (1 − α) β_c, when c was seen (section 2.2). Linreg is α = 1."""

    alpha: Array

    def init(self, history: History) -> Array:
        return history.returns[0] * 0.0

    def observe(self, beta: Array, history: History, n: Array, t: Array, K: Array) -> Array:
        held = (_slots(history.returns) < n).astype(beta.dtype)
        return self.alpha * slope(history, t, held, n) + (1 - self.alpha) * beta

    def estimate(self, beta: Array, history: History, uniforms: Array, K: Array) -> Array:
        return beta


class Online(NamedTuple):
    """β_c ← α (r_t^c − r_{t'}^c) + (1 − α) β_c, with t' when c was seen before; 0 until then."""

    alpha: Array

    def init(self, history: History) -> Array:
        return history.returns[0] * 0.0

    def observe(self, beta: Array, history: History, n: Array, t: Array, K: Array) -> Array:
        return self.alpha * history.change(K) + (1 - self.alpha) * beta

    def estimate(self, beta: Array, history: History, uniforms: Array, K: Array) -> Array:
        return beta


class Naive(NamedTuple):
    """Train on one task for K time-steps, then β_c ← α β_c^Linreg + (1 − α) β_c over those.

    The program draws and holds the task, and calls `close` when its K time-steps are over.
    """

    alpha: Array

    def init(self, history: History) -> Array:
        return history.returns[0] * 0.0

    def observe(self, beta: Array, history: History, n: Array, t: Array, K: Array) -> Array:
        return beta

    def close(self, beta: Array, history: History, task: Array, t: Array, K: Array) -> Array:
        xp = beta.__array_namespace__()
        block = (_slots(history.returns) < history.size(K)) & (history.times > t - K)
        block = block.astype(beta.dtype)
        n = xp.maximum(block.sum(axis=0), 1.0)
        new = self.alpha * slope(history, t, block, n) + (1 - self.alpha) * beta
        return xp.where(xp.arange(beta.shape[0]) == task, new, beta)

    def estimate(self, beta: Array, history: History, uniforms: Array, K: Array) -> Array:
        return beta


class Sampling(NamedTuple):
    """β_c is drawn from the last K changes of the return, r_{t_i} − r_{t_{i−1}}; 1 before any."""

    def init(self, history: History) -> Array:
        return history.returns * 0.0

    def observe(self, changes: Array, history: History, n: Array, t: Array, K: Array) -> Array:
        return _write_change(changes, history, K)

    def estimate(self, changes: Array, history: History, uniforms: Array, K: Array) -> Array:
        xp = changes.__array_namespace__()
        n = xp.minimum(history.count - 1, K)
        drawn = _pick(changes, xp.minimum(xp.floor(uniforms * n), n - 1))
        return xp.where(n > 0, drawn, 1.0)


class Change(NamedTuple):
    """β_c is the last change of the return: the gain of Graves et al. 2017, in returns."""

    def init(self, history: History) -> Array:
        return history.returns * 0.0

    def observe(self, changes: Array, history: History, n: Array, t: Array, K: Array) -> Array:
        return _write_change(changes, history, K)

    def estimate(self, changes: Array, history: History, uniforms: Array, K: Array) -> Array:
        return _pick(changes, (history.count - 2) % K)  # still 0 before two returns


class Competence(NamedTuple):
    """Competence progress (Fournier et al. 2018): the mean of the newer half of the last K
    returns less the mean of the older half. An odd one out, the oldest, is left out."""

    def init(self, history: History) -> Array:
        return history.returns[0] * 0.0

    def observe(self, beta: Array, history: History, n: Array, t: Array, K: Array) -> Array:
        xp = beta.__array_namespace__()
        age = (history.count - 1 - _slots(history.returns)) % K
        half = n // 2
        sign = xp.where(age < half, 1.0, xp.where(age < 2 * half, -1.0, 0.0))
        change = sign * (
            history.returns - history.returns[0]
        )  # relative to one: equal gives exactly 0
        return (change * (_slots(change) < K)).sum(axis=0) / xp.maximum(half, 1)

    def estimate(self, beta: Array, history: History, uniforms: Array, K: Array) -> Array:
        return beta


Estimator = Window | Online | Naive | Sampling | Change | Competence


def _slots(ring: Array) -> Array:
    """(K, 1): the positions in a ring; (K,) in the ring of a single task."""
    slots = ring.__array_namespace__().arange(ring.shape[0])
    return slots[:, None] if ring.ndim > 1 else slots


def _dot(x: Array, y: Array) -> Array:
    """(N,): Σ x y over the slots. For one task under NumPy as a dot product, which is faster."""
    return x @ y if x.ndim == 1 and isinstance(x, np.ndarray) else (x * y).sum(axis=0)


def _pick(ring: Array, slot: Array) -> Array:
    """(N,): from each task's ring, what stands in its slot."""
    xp = ring.__array_namespace__()
    return xp.where(_slots(ring) == slot, ring, 0.0).sum(axis=0)


def _write_change(changes: Array, history: History, K: Array) -> Array:
    """The ring of changes with the last one written, if there is one."""
    xp = changes.__array_namespace__()
    here = (_slots(changes) == (history.count - 2) % K) & (history.count > 1)
    return xp.where(here, history.change(K), changes)
