"""Adaptive data optimisation: Jiang et al. 2024, arXiv:2410.11820."""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.attention import TimeStep, View

Array = Any  # a NumPy or a JAX array
EXPONENTS = tuple(0.05 * i for i in range(1, 17))  # the values of α that are tried


class Fits(NamedTuple):
    """The memory of ADO; with G exponents. Sums are about the running means."""

    samples: Array  # (): D, the returns of all tasks so far
    n: Array  # (N,): the time-steps in which the task was seen
    x: Array  # (G, N): the mean of D^−α
    y: Array  # (N,): the mean loss
    xx: Array  # (G, N): Σ (D^−α − x)²
    xy: Array  # (G, N): Σ (D^−α − x)(L − y)
    yy: Array  # (N,): Σ (L − y)²
    share: Array  # (N,): h, the moving average of the task's share of the returns
    average: Array  # (N,): the mean of g so far
    wanted: Array  # (N,): g


class ADO(NamedTuple):
    """Train where a fitted scaling law says that the loss falls fastest.

        L_c(D) = e^A D^−α + e^E, fitted to each task's losses; D counts the returns of all tasks
        g_c ∝ max(α, 0.05) e^A D^−α / D · √h_c, at least 0.01
        a   = 0.9 (mean of g so far) + 0.1 g

    Before the time-step `start`, a is uniform. The loss is 1 − p. We fit by least squares for each
    of 16 exponents, at every time-step, from sums; the source smooths the losses and fits by
    L-BFGS with a Huber loss every 1,000 steps. h_c is a moving average of c's share of the returns.
    """

    start: Array  # the first time-step that uses the fits

    def init(self, like: Array, slots: int) -> Fits:
        xp = like.__array_namespace__()
        grid = xp.zeros((len(EXPONENTS), like.shape[0]), dtype=like.dtype)
        equal = like + 1 / like.shape[0]
        zero = like + 0.0
        return Fits(
            like.sum(), like, grid, zero, grid + 0.0, grid + 0.0, zero + 0.0, equal, equal + 0.0,
            equal + 0.0,
        )  # fmt: skip

    def attend(self, memory: Fits, view: View) -> Array:
        return 0.9 * memory.average + 0.1 * memory.wanted

    def advance(self, memory: Fits, view: View, learned: TimeStep) -> Fits:
        xp = memory.y.__array_namespace__()
        count, seen = learned.evidence.count, learned.evidence.seen
        every = count.sum()
        samples = memory.samples + every
        x = xp.maximum(samples, 1) ** -_exponents(memory.y)  # (G, 1)
        loss = 1 - learned.rate
        n = xp.maximum(memory.n + seen, 1)
        dx, dy = (x - memory.x) * seen, (loss - memory.y) * seen
        sums = memory._replace(
            samples=samples,
            n=memory.n + seen,
            x=memory.x + dx / n,
            y=memory.y + dy / n,
            xx=memory.xx + dx * dx * (n - 1) / n,
            xy=memory.xy + dx * dy * (n - 1) / n,
            yy=memory.yy + dy * dy * (n - 1) / n,
        )
        shares = 0.9 * memory.share + 0.1 * count / xp.maximum(every, 1)
        share = xp.where(every > 0, shares, memory.share)
        g = _fastest(sums, share)
        use = (learned.t >= self.start) & (sums.n >= 3).all()
        t = learned.t.astype(loss.dtype)
        average = memory.average + (g - memory.average) / (t + 1)
        return sums._replace(
            share=share,
            average=xp.where(use, average, memory.average),
            wanted=xp.where(use, g, memory.wanted),
        )


def _fastest(sums: Fits, share: Array) -> Array:
    """g: how fast each task's loss falls with the number of samples, as shares."""
    xp = share.__array_namespace__()
    exponents = _exponents(share)
    n = xp.maximum(sums.n, 1)
    slope = xp.maximum(sums.xy / xp.where(sums.xx > 0, sums.xx, 1.0), 0.0)  # e^A ≥ 0
    through = (sums.xy + n * sums.x * sums.y) / xp.maximum(sums.xx + n * sums.x**2, 1e-30)
    slope = xp.where(sums.y - slope * sums.x < 0, through, slope)  # e^E ≥ 0
    floor = xp.maximum(sums.y - slope * sums.x, 0.0)
    off = sums.y - slope * sums.x - floor
    squares = sums.yy - 2 * slope * sums.xy + slope**2 * sums.xx + n * off**2
    best = squares == squares.min(axis=0)
    best = best & (xp.cumulative_sum(best.astype(xp.int32), axis=0) == 1)  # the first of equals
    now = xp.maximum(sums.samples, 1)
    speed = xp.maximum(exponents, 0.05) * slope * now**-exponents / now
    g = (best * speed).sum(axis=0) * xp.sqrt(share)
    total = g.sum()
    g = xp.where(total > 0, g / xp.where(total > 0, total, 1.0), 1 / g.shape[0])
    g = xp.maximum(g, min(0.01, 0.5 / g.shape[0]))
    return g / g.sum()


def _exponents(like: Array) -> Array:
    xp = like.__array_namespace__()
    return xp.asarray(EXPONENTS, dtype=like.dtype)[:, None]
