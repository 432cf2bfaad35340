"""Auto: teach without a known order, and without harm from a wrong one. Ours; see docs/auto.md."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mastery.programs.attention import TimeStep, View
from mastery.programs.evidence import COSTS_KEPT, relative_cost

Array = Any  # a NumPy or a JAX array

LEARNED, FORGOTTEN = 0.6, 0.3  # mastery from which a task counts as learned, and below as forgotten
_FIRST = 10  # time-steps before the first block
_MOST = 2000  # returns in a block
_VAIN = 500  # returns in a block without a success that end it
_DOUBT = 40.0  # failures that are added before a success counts as a sign of life
_LUCK = 0.01  # the success rate that those have in the choice of a block
_ROSE = 0.02  # how far a rate must exceed its best to have risen
_ALIVE = 0.1  # the rate above which a task that does not rise is expected to have reached its best
_REST = 0.01  # what a mastered task can still gain, so that it is never quite without signal
_FEW = 1e-6  # fewer returns are none, and a lower rate is rounding
_TINY = 1e-9


class Findings(NamedTuple):
    """What `auto` remembers and has found out."""

    total: Array  # (N,): the sum of recent returns, each as (r − m̂) / (M̂ − m̂)
    returns: Array  # (N,): about how many there are
    best: Array  # (N,): the highest mean of them so far
    still: Array  # (N,): time-steps with the task since its mean last rose
    risen: Array  # (N,): time-steps with the task before that
    spent: Array  # (N,): the cost of recent time-steps
    made: Array  # (N,): the number of their returns
    tried: Array  # (N,): blocks in which the task was not learned
    learned: Array  # (N,): the time-step in which the task was learned; 0 if it is not
    task: Array  # () int32: the task of the current block; -1 before the first
    steps: Array  # (): time-steps in this block
    length: Array  # (): returns in this block
    vain: Array  # (): returns since its last success
    agree: Array  # (): tasks that were learned after all their ancestors
    against: Array  # (): tasks that were learned before one of them

    @property
    def trust(self) -> Array:
        """How much the given order is believed, in (0, 1); 1/2 before anything is learned."""
        return (self.agree + 1) / (self.agree + self.against + 2)


class Auto(NamedTuple):
    """Attention to what answers to training; while nothing does, blocks on one task at a time.

    A task's rate x is the mean of its last returns between its bounds; it may exceed 1. Its mastery
    is relative to what it can still gain. The longer x has not risen, the less that is; but what
    was lost can be gained again:

        M = x / (x + g + 0.01 x),
        g = max(0, best − x, (max(1, best) − x) · 2^(−still / (patience + risen / 2)))

    (without the power of 2 up to x = 0.1: a task that never succeeded may still begin to).

    **In the light**, attention is s², with the signal s = M (1 − M)². Signals are drawn towards
    their mean over all tasks seen, which counts for `pool` returns, so that a task that is rarely
    seen counts as average.

    **In the dark**, where nothing shows a signal of `dark`, all attention goes to one task that is
    not learned (its M was never 0.6, or fell below 0.3 again): the one with the greatest

        (1 − M) · (success rate) / cost^cheap · 2^(−tried − hint · trust · (1 − M_Anc))

    so cheap tasks with signs of life come first; each block in vain halves a task's chance; and a
    given order decides for some blocks, as many as it has earned. A block ends after `block`
    time-steps, 2,000 returns, or 500 without a success.

    Between light and dark the two are mixed: dark = max(0, 1 − (life / `dark`)²), where `life` is
    the greatest signal of a task that is not learned, with 40 failures added to its returns, so
    that a lucky success is no sign of life; or the mean signal of the learned tasks, if greater.
    """

    block: Array  # the most time-steps of a block
    dark: Array  # the signal below which there are blocks; 0 for none
    hint: Array  # the weight of the given order
    cheap: Array  # the power of a task's cost in the choice of a block
    pool: Array  # the number of returns that the mean signal of all tasks counts for
    memory: Array  # returns that a rate is the mean of, unless it changes
    fade: Array  # time-steps in which what was seen is forgotten
    patience: Array  # time-steps; if large, the maximum is believed
    sigma: Array  # standard errors by which the last K time-steps must differ to replace a rate
    minimum: Array  # (N,): m̂_c
    maximum: Array  # (N,): M̂_c

    def init(self, like: Array, slots: int) -> Findings:
        xp = like.__array_namespace__()
        found = Findings(*(like + 0.0 for _ in range(9)), *(like[0] + 0.0 for _ in range(6)))
        return found._replace(task=xp.zeros((), dtype=xp.int32) - 1)

    def attend(self, found: Findings, view: View) -> Array:
        xp = found.total.__array_namespace__()
        mastery = self._mastery(found, self._low(view))
        signal = self._signal(found, mastery)
        a = signal**2
        total = a.sum()
        a = xp.where(total > 0, a / xp.where(total > 0, total, 1.0), 1.0 / a.shape[0])
        life = self._life(found, mastery, signal, a)
        dark = xp.maximum(1 - (life / xp.maximum(self.dark, _TINY)) ** 2, 0.0)
        chosen = xp.arange(a.shape[0]) == found.task
        # there is no block before the first, nor when every task is learned
        block = (chosen & (found.learned == 0)).any() & (self.dark > 0)
        dark = xp.where(block, dark, 0.0)
        return (1 - dark) * a + dark * chosen

    def advance(self, found: Findings, view: View, learned: TimeStep) -> Findings:
        now = self._observe(found, view, learned)
        mastery = self._mastery(now, self._low(view))
        m_anc = view.graph.anc_succ(mastery)[0]
        now = self._judge(now, mastery, m_anc, learned.t)
        now = self._choose(now, mastery, m_anc, view, learned)
        return Findings(*(new.astype(old.dtype) for new, old in zip(now, found, strict=True)))

    def changed(self, found: Findings, change: Any, view: View) -> Findings:
        """The block goes on where its task is now; if it is gone, the next one begins."""
        task = found.task if found.task < 0 else change.place[found.task]
        return found._replace(task=np.array(task, found.task.dtype))

    def _unit(self, returns: Array) -> Array:
        """Returns as shares of the given bounds: 0 at m̂, 1 at M̂."""
        return (returns - self.minimum) / (self.maximum - self.minimum)

    def _low(self, view: View) -> Array:
        """The lowest mean so far, m̄; 0 if it is not below the given minimum."""
        return self._unit(view.minimum)

    def _rate(self, found: Findings, low: Array) -> Array:
        """x_c, between the lowest mean so far and the given maximum."""
        xp = found.total.__array_namespace__()
        mean = found.total / xp.maximum(found.returns, _TINY)
        x = (mean - low) / (1 - low)
        return xp.where((found.returns > _FEW) & (x > _FEW), x, 0.0)

    def _mastery(self, found: Findings, low: Array) -> Array:
        """M_c."""
        xp = found.total.__array_namespace__()
        x = self._rate(found, low)
        best = (found.best - low) / (1 - low)
        expected = 2.0 ** (-found.still / (self.patience + found.risen / 2))
        expected = xp.where(x > _ALIVE, expected, 1.0)
        gap = xp.maximum((xp.maximum(best, 1.0) - x) * expected, best - x)
        return x / (x + xp.maximum(gap, 0.0) + _REST * x + _TINY)

    def _signal(self, found: Findings, mastery: Array) -> Array:
        """s_c, drawn towards the mean of all tasks."""
        xp = found.total.__array_namespace__()
        n = found.returns
        signal = mastery * (1 - mastery) ** 2
        seen = n > _FEW
        mean = xp.where(seen, signal, 0.0).sum() / xp.maximum(seen.sum(), 1)
        return (n * signal + self.pool * mean) / xp.maximum(n + self.pool, _TINY)

    def _life(self, found: Findings, mastery: Array, signal: Array, a: Array) -> Array:
        """The greatest signal of a task that is not learned, if _DOUBT failures are added to its
        returns; or, if that is more, the mean signal of the others."""
        xp = mastery.__array_namespace__()
        learned = found.learned > 0
        sure = mastery * found.returns / (found.returns + _DOUBT)
        new = xp.where(learned, 0.0, sure * (1 - sure) ** 2).max()
        known = xp.where(learned, a, 0.0)
        return xp.maximum(new, (known * signal).sum() / xp.maximum(known.sum(), _TINY))

    def _observe(self, found: Findings, view: View, learned: TimeStep) -> Findings:
        """Update means and costs. A mean has a long memory, which rare successes need; but where
        the last K time-steps clearly differ from it, theirs replaces it."""
        xp = found.total.__array_namespace__()
        evidence, low, last = learned.evidence, self._low(view), self._unit(view.mean)
        seen, n = evidence.seen, evidence.count
        kept = (1 - 1 / self.memory) ** n * (1 - 1 / self.fade)
        total = found.total * kept + xp.where(seen, n * self._unit(evidence.mean), 0.0)
        returns = found.returns * kept + n
        mean = total / xp.maximum(returns, _TINY)
        # the standard error of the last returns, as if they were successes and failures
        top = xp.maximum(mean, 1.0)
        p = ((mean - low) / (top - low) * returns + 1) / (returns + 2)
        p = xp.minimum(xp.maximum(p, 0.0), 1.0)
        error = (top - low) * xp.sqrt(p * (1 - p) / xp.maximum(view.returns, 1.0))
        differs = abs(last - mean) > self.sigma * error
        changed = seen & (view.returns < returns) & differs
        total = xp.where(changed, last * view.returns, total)
        returns = xp.where(changed, view.returns, returns)
        mean = total / xp.maximum(returns, _TINY)
        rose = seen & (returns > 10) & (mean > found.best + _ROSE * (1 - low))
        up = rose | changed
        return found._replace(
            total=total,
            returns=returns,
            best=xp.where(rose, mean, found.best),
            still=xp.where(up, 0.0, found.still + seen),
            risen=xp.where(up, found.risen + found.still + seen, found.risen),
            spent=COSTS_KEPT * found.spent + evidence.cost,
            made=COSTS_KEPT * found.made + n,
        )

    def _judge(self, found: Findings, mastery: Array, m_anc: Array, t: Array) -> Findings:
        """Note which tasks are learned, and whether the given order agrees."""
        xp = mastery.__array_namespace__()
        new = (mastery >= LEARNED) & (found.learned == 0)
        follows = new & (m_anc < 1)  # without ancestors M_Anc is 1, and the order says nothing
        at = xp.where(mastery < FORGOTTEN, 0, found.learned)
        return found._replace(
            learned=xp.where(new, t, at),
            agree=found.agree + (follows & (m_anc >= 0.5)).sum(),
            against=found.against + (follows & (m_anc < 0.5)).sum(),
        )

    def _choose(
        self, found: Findings, mastery: Array, m_anc: Array, view: View, learned: TimeStep
    ) -> Findings:
        """End the block if it is time, and choose the task of the next."""
        xp = mastery.__array_namespace__()
        chosen = xp.arange(mastery.shape[0]) == found.task
        evidence, low = learned.evidence, self._low(view)
        own = xp.where(chosen, evidence.count, 0).sum()
        steps, length = found.steps + (found.task >= 0), found.length + own
        success = chosen & evidence.seen & (self._unit(evidence.mean) - low > 1e-3 * (1 - low))
        vain = xp.where(success.any(), 0, found.vain + own)
        known = (chosen & (found.learned > 0)).any()
        over = (steps >= self.block) | (length >= _MOST) | (vain >= _VAIN) | known
        over = (over | (found.task < 0)) & (learned.t >= _FIRST)
        tried = found.tried + (chosen & over & ~known)
        luck = self._rate(found, low) * found.returns + _DOUBT * _LUCK
        promise = (1 - mastery) * luck / (found.returns + _DOUBT) * (1 + 1e-3 * view.uniforms)
        # as a logarithm, which stays finite after thousands of blocks
        promise = xp.log2(promise) - self.cheap * xp.log2(relative_cost(found.spent, found.made))
        promise = promise - tried - self.hint * found.trust * (1 - m_anc)
        best = xp.argmax(xp.where(found.learned > 0, -xp.inf, promise))
        return found._replace(
            tried=tried,
            task=xp.where(over, best, found.task),
            steps=xp.where(over, 0, steps),
            length=xp.where(over, 0, length),
            vain=xp.where(over, 0, vain),
        )
