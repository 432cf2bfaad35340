"""Returns -> learning progress β (sections 2.2 and 3).

Each task has its own history, so all functions are element-wise over tasks, the last axis of every
array. They assume that every task has just received a return: the caller passes only the seen
tasks, or keeps the old values of the others. Arrays are NumPy's or JAX's. An estimator is a
NamedTuple of hyper-parameters with three pure functions:

    init(history)                           -> memory
    observe(memory, history, n, t, K)       -> memory, once the return of time-step t is in history
    estimate(memory, history, uniforms, K)  -> β, one number per task

where n (N,) is the number of returns that the history holds for each task.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = Any  # a NumPy or a JAX array


class History(NamedTuple):
    """The last K ≥ 2 returns of each task, as a ring buffer: a new return is one write."""

    returns: Array  # (K, N) float: r_{t_1}, …, r_{t_K}, not in order; 0 where empty
    times: Array  # (K, N) int32: t_1, …, t_K; 0 where empty
    count: Array  # (N,) int32: the number of returns so far

    def write(self, returns: Array, t: Array, K: Array) -> History:
        """Add one return for every task."""
        xp = self.returns.__array_namespace__()
        here = _slots(self.returns) == self.count % K
        return History(
            xp.where(here, returns, self.returns), xp.where(here, t, self.times), self.count + 1
        )

    def write_over(self, returns: Any, t: Array, slot: Any) -> History:
        """Like `write`, but in place and faster. NumPy only, for a history the caller owns.

        `slot` is count % K.
        """
        at = slot if self.returns.ndim == 1 else (slot, np.arange(len(slot)))
        self.returns[at] = returns
        self.times[at] = t
        return History(self.returns, self.times, self.count + 1)

    def at(self, slot: Any) -> tuple[Any, Any]:
        """The return and the time-step in the given slot of each task; NumPy only."""
        at = slot if self.returns.ndim == 1 else (slot, np.arange(len(slot)))
        return self.returns[at], self.times[at]

    def size(self, K: Array) -> Array:
        """(N,) float: the number of returns in the ring."""
        xp = self.count.__array_namespace__()
        return xp.minimum(self.count, K).astype(self.returns.dtype)

    def median(self, n: Array) -> Array:
        """(N,): the median of the n returns in the ring."""
        xp = self.returns.__array_namespace__()
        ordered = xp.sort(xp.where(_slots(self.returns) < n, self.returns, xp.inf), axis=0)
        return (_pick(ordered, (n - 1) // 2) + _pick(ordered, n // 2)) / 2

    def change(self, K: Array) -> Array:
        """(N,): the last return minus the one before it; 0 with fewer than two returns."""
        last, before = (_pick(self.returns, (self.count - i) % K) for i in (1, 2))
        return (last - before) * (self.count > 1)


def slope(history: History, t: Array, held: Array, n: Array) -> Array:
    """β^Linreg, the slope of the linear regression of (t_1, r_{t_1}), …, (t_K, r_{t_K}).

        β = Σ (t_i − t̄)(r_i − r̄) / Σ (t_i − t̄)²      over the n ≥ 1 slots where `held` is 1

    and 0 with fewer than two time-steps. Times are relative to t and multiplied by n, so that they
    stay integers; returns are relative to one of them. A large t therefore costs no precision, and
    equal returns give exactly 0, which matters since eq. 1 divides by the largest |β|. For the same
    reason β is 0 where rounding alone could have made it: otherwise the last bit, in which machines
    differ, would decide where training goes when no task makes progress.
    """
    xp = history.returns.__array_namespace__()
    x = (history.times - t) * held
    x = (n * x - x.sum(axis=0)) * held  # n (t_i − t̄), so that Σ x = 0 and r̄ drops out
    y = history.returns - history.returns[0]
    xy = _dot(x, y)
    rounding = n * xp.finfo(y.dtype).eps * abs(x).sum(axis=0) * abs(history.returns).max(axis=0)
    return xp.where(abs(xy) > rounding, n * xy, 0.0) / xp.maximum(_dot(x, x), 1.0)


class Window(NamedTuple):
    """β_c ← α β_c^Linreg + (1 − α) β_c when c is seen (section 2.2). Linreg is α = 1."""

    alpha: Array

    def init(self, history: History) -> Array:
        return history.returns[0] * 0.0

    def observe(self, beta: Array, history: History, n: Array, t: Array, K: Array) -> Array:
        held = (_slots(history.returns) < n).astype(beta.dtype)
        return self.alpha * slope(history, t, held, n) + (1 - self.alpha) * beta

    def estimate(self, beta: Array, history: History, uniforms: Array, K: Array) -> Array:
        return beta


class Online(NamedTuple):
    """β_c ← α (r_t^c − r_{t'}^c) + (1 − α) β_c, where t' is the previous time c was seen.

    β_c is 0 until c has been seen twice.
    """

    alpha: Array

    def init(self, history: History) -> Array:
        return history.returns[0] * 0.0

    def observe(self, beta: Array, history: History, n: Array, t: Array, K: Array) -> Array:
        return self.alpha * history.change(K) + (1 - self.alpha) * beta

    def estimate(self, beta: Array, history: History, uniforms: Array, K: Array) -> Array:
        return beta


class Naive(NamedTuple):
    """Train on one task for K time-steps, then β_c ← α β_c^Linreg + (1 − α) β_c over them.

    The program draws and holds the task, and calls `close` after its K time-steps.
    """

    alpha: Array

    def init(self, history: History) -> Array:
        return history.returns[0] * 0.0

    def observe(self, beta: Array, history: History, n: Array, t: Array, K: Array) -> Array:
        return beta

    def close(self, beta: Array, history: History, task: Array, t: Array, K: Array) -> Array:
        """Update β of the held task with its returns of the last K time-steps."""
        xp = beta.__array_namespace__()
        block = (_slots(history.returns) < history.size(K)) & (history.times > t - K)
        block = block.astype(beta.dtype)
        n = xp.maximum(block.sum(axis=0), 1.0)
        new = self.alpha * slope(history, t, block, n) + (1 - self.alpha) * beta
        return xp.where(xp.arange(beta.shape[0]) == task, new, beta)

    def estimate(self, beta: Array, history: History, uniforms: Array, K: Array) -> Array:
        return beta


class Sampling(NamedTuple):
    """β_c is drawn from the last K changes of the return, r_{t_i} − r_{t_{i−1}}; 1 without any."""

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
        return _pick(changes, (history.count - 2) % K)  # 0 with fewer than two returns


class Competence(NamedTuple):
    """Competence progress (Fournier et al. 2018).

    β_c is the mean of the newer half of the last K returns minus the mean of the older half. If
    their number is odd, the oldest return is omitted.
    """

    def init(self, history: History) -> Array:
        return history.returns[0] * 0.0

    def observe(self, beta: Array, history: History, n: Array, t: Array, K: Array) -> Array:
        xp = beta.__array_namespace__()
        age = (history.count - 1 - _slots(history.returns)) % K
        half = n // 2
        sign = xp.where(age < half, 1.0, xp.where(age < 2 * half, -1.0, 0.0))
        # relative to one return, so that equal returns give exactly 0
        change = sign * (history.returns - history.returns[0])
        return (change * (_slots(change) < K)).sum(axis=0) / xp.maximum(half, 1)

    def estimate(self, beta: Array, history: History, uniforms: Array, K: Array) -> Array:
        return beta


Estimator = Window | Online | Naive | Sampling | Change | Competence


def _slots(ring: Array) -> Array:
    """The slot numbers of a ring: (K, 1), or (K,) for the ring of a single task."""
    slots = ring.__array_namespace__().arange(ring.shape[0])
    return slots[:, None] if ring.ndim > 1 else slots


def _dot(x: Array, y: Array) -> Array:
    """(N,): Σ x y over the slots; for one task under NumPy a dot product, which is faster."""
    return x @ y if x.ndim == 1 and isinstance(x, np.ndarray) else (x * y).sum(axis=0)


def _pick(ring: Array, slot: Array) -> Array:
    """(N,): the value in the given slot of each task's ring."""
    xp = ring.__array_namespace__()
    return xp.where(_slots(ring) == slot, ring, 0.0).sum(axis=0)


def _write_change(changes: Array, history: History, K: Array) -> Array:
    """Write the last change, if there is one, to the ring of changes."""
    xp = changes.__array_namespace__()
    here = (_slots(changes) == (history.count - 2) % K) & (history.count > 1)
    return xp.where(here, history.change(K), changes)
