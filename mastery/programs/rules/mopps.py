"""MoPPS: Qu et al. 2025, arXiv:2507.04632."""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.attention import TimeStep, View

Array = Any  # a NumPy or a JAX array
_CELLS = 256  # of the grid on which a posterior is inverted


class Posterior(NamedTuple):
    """The memory: the success rate of a task is Beta(A_c, B_c) distributed."""

    successes: Array  # (N,): A_c
    failures: Array  # (N,): B_c


class MoPPS(NamedTuple):
    """A sample of each task's success rate; those nearest to 1/2 get most attention.

        A_c ← λ A_c + (1 − λ) + n p,   B_c ← λ B_c + (1 − λ) + n (1 − p),   first A_c = B_c = 1
        a_c = x_c (1 − x_c),           x_c ~ Beta(A_c, B_c), drawn anew at each time-step

    With `topk`, the tasks with the largest a_c, that is the least |x_c − 1/2|, are drawn with equal
    probability. All tasks are candidates; the source first draws some of them at random.
    """

    decay: Array  # λ

    def init(self, like: Array, slots: int) -> Posterior:
        return Posterior(like + 1.0, like + 1.0)

    def attend(self, memory: Posterior, view: View) -> Array:
        x = beta_quantile(view.uniforms, memory.successes, memory.failures)
        return x * (1 - x)

    def advance(self, memory: Posterior, view: View, learned: TimeStep) -> Posterior:
        xp = memory.successes.__array_namespace__()
        n, p = learned.evidence.count, learned.rate
        kept = 1 - self.decay
        a = self.decay * memory.successes + kept + n * p
        b = self.decay * memory.failures + kept + n * (1 - p)
        seen = learned.evidence.seen
        return Posterior(xp.where(seen, a, memory.successes), xp.where(seen, b, memory.failures))


def beta_quantile(u: Array, a: Array, b: Array) -> Array:
    """(N,): x with P(X ≤ x) = u for X ~ Beta(a, b), a, b ≥ 1; off by at most 0.003 in u.

    Each density is summed over cells within nine standard deviations of its mean, with its value
    in the middle of a cell.
    """
    xp = u.__array_namespace__()
    mean = a / (a + b)
    deviation = xp.sqrt(mean * (1 - mean) / (a + b + 1))
    low = xp.maximum(mean - 9 * deviation, 0.0)
    high = xp.minimum(mean + 9 * deviation, 1.0)
    middle = (xp.arange(_CELLS, dtype=u.dtype)[:, None] + 0.5) / _CELLS
    x = low + (high - low) * middle  # (cells, N)
    log = (a - 1) * xp.log(x) + (b - 1) * xp.log(xp.maximum(1 - x, 1e-30))
    density = xp.exp(log - log.max(axis=0))
    sums = xp.cumulative_sum(density, axis=0)
    wanted = u * sums[-1]
    cell = xp.minimum((sums <= wanted).sum(axis=0), _CELLS - 1)  # the cell of the quantile
    inside = xp.take_along_axis(density, cell[None], axis=0)[0]
    before = xp.take_along_axis(sums, cell[None], axis=0)[0] - inside
    within = (wanted - before) / xp.where(inside > 0, inside, 1.0)
    return low + (high - low) * (cell + xp.minimum(xp.maximum(within, 0.0), 1.0)) / _CELLS
