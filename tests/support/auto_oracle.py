"""An independent and slow way to compute the program `auto`, and histories to compare it on.

One task at a time, in plain Python, written from the program's specification alone. The mean and
the minimum of the last K time-steps of a task come from the oracle of the paper's algorithm.
"""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
from oracle import SlowProgram, order
from rules_oracle import normalised, reprobed
from traces import Trace, make_step, noise

from mastery import Curriculum, Recipe, Task

SETTINGS = {
    "block": 200,
    "dark": 0.1,
    "hint": 4.0,
    "cheap": 2.0,
    "pool": 4.0,
    "memory": 200.0,
    "fade": 100.0,
    "patience": 30.0,
    "sigma": 3.0,
    "epsilon": 0.1,
    "window": 10,
}


class SlowAuto:
    """Observes one `Step` after the other.

    `clear` says whether the last distribution is certain. Where two values that decide are closer
    than `margin`, rounding may decide either way, and all that follows may differ.

    Args:
        curriculum: The curriculum.
        margin: Values closer than this, relative to their size, may come out in either order.
        settings: Those of the program that are not the default.
    """

    def __init__(self, curriculum, margin=1e-9, **settings):
        assert set(settings) <= set(SETTINGS), settings
        self.s = SETTINGS | settings
        self.margin, self.decided, self.clear = margin, True, True
        self.N = len(curriculum)
        graph = order(curriculum)
        self.ancestors = [sorted(nx.ancestors(graph, c)) for c in range(self.N)]
        self.highest = [task.maximum for task in curriculum]  # M̂
        # `competence`, since it is quick to compute; the estimate of progress is not used
        recent = Recipe.parse("mr", progress="competence", window=self.s["window"])
        self.recent = SlowProgram(curriculum, recent)
        self.t = 0
        self.few, self.times = self.zeros(), self.zeros()
        self.total, self.returns, self.still, self.risen = (self.zeros() for _ in range(4))
        self.lowest = [task.minimum for task in curriculum]
        self.best = list(self.lowest)
        self.spent, self.made, self.tried, self.learned = (self.zeros() for _ in range(4))
        self.task, self.steps, self.length, self.vain = -1, 0, 0, 0
        self.agree = self.against = 0

    def zeros(self):
        return [0.0] * self.N

    def above(self, a, b, size=None):
        """Whether a > b; notes if that is not certain."""
        size = max(abs(a), abs(b)) if size is None else size
        self.decided = self.decided and (abs(a - b) > self.margin * size or a == b)
        return a > b

    def observe(self, step):
        self.t += 1
        n = [float(x) for x in step.count]
        self.recent.observe({c: float(step.mean[c]) for c in range(self.N) if n[c] > 0})
        for c in range(self.N):
            if n[c] > 0:
                self.few[c] = self.fewer(c) + n[c]
            self.remember(c, n[c], float(step.mean[c]))
            self.spent[c] = 0.99 * self.spent[c] + float(step.cost[c])
            self.made[c] = 0.99 * self.made[c] + n[c]
        M = [self.mastery(c) for c in range(self.N)]
        self.judge_the_order(M)
        if self.block_is_over(n, step.mean) and self.t >= 10:
            self.choose_a_block(M, step.noise[0])

    def fewer(self, c):
        """What is left of the returns of the last K time-steps when there is one more."""
        self.times[c] += 1
        K = self.s["window"]
        return self.few[c] * (1 - 1 / K) if self.times[c] > K else self.few[c]

    def remember(self, c, n, r):
        """Update the mean return of a task, and how long it has not risen."""
        kept = (1 - 1 / self.s["memory"]) ** n * (1 - 1 / self.s["fade"])
        self.total[c] = self.total[c] * kept + (n * r if n > 0 else 0.0)
        self.returns[c] = self.returns[c] * kept + n
        if n == 0:
            return
        low, fast = self.recent.low[c], self.recent.mean[c]
        mean = self.total[c] / self.returns[c]
        changed = False
        if self.above(self.returns[c], self.few[c]):
            limit = self.s["sigma"] * self.error(c, mean, low)
            changed = self.above(abs(fast - mean), limit, self.highest[c] - low)
        if changed:
            self.total[c], self.returns[c] = fast * self.few[c], self.few[c]
        mean = self.total[c] / self.returns[c]
        span = self.highest[c] - low
        rose = self.above(self.returns[c], 10) and self.above(
            mean, self.best[c] + 0.02 * span, span
        )
        if rose:
            self.best[c] = mean
        if rose or changed:
            self.risen[c] += self.still[c] + 1
            self.still[c] = 0
        else:
            self.still[c] += 1

    def error(self, c, mean, low):
        """The standard error of the mean of the last K time-steps."""
        top = max(mean, self.highest[c])
        p = ((mean - low) / (top - low) * self.returns[c] + 1) / (self.returns[c] + 2)
        p = min(max(p, 0.0), 1.0)
        return (top - low) * math.sqrt(p * (1 - p) / max(self.few[c], 1))

    def rate(self, c):
        """x: the mean return between the bounds; what may be rounding is 0."""
        if self.returns[c] <= 1e-6:
            return 0.0
        low = self.recent.low[c]
        x = (self.total[c] / self.returns[c] - low) / (self.highest[c] - low)
        return x if self.above(x, 1e-6, 0.05) else 0.0

    def mastery(self, c):
        """M: the part of what the task can give that it has given."""
        x, low = self.rate(c), self.recent.low[c]
        best = (self.best[c] - low) / (self.highest[c] - low)
        e = 1.0
        if self.above(x, 0.1):
            e = 2 ** (-self.still[c] / (self.s["patience"] + self.risen[c] / 2))
        g = max(0.0, best - x, (max(1.0, best) - x) * e)
        return x / (x + g + 0.01 * x + 1e-9)

    def mastery_of_ancestors(self, M, c):
        return min((M[b] for b in self.ancestors[c]), default=1.0)

    @property
    def trust(self):
        return (self.agree + 1) / (self.agree + self.against + 2)

    def judge_the_order(self, M):
        for c in range(self.N):
            if self.learned[c] == 0 and not self.above(0.6, M[c]):
                self.learned[c] = self.t
                if self.ancestors[c]:
                    if self.above(0.5, self.mastery_of_ancestors(M, c)):
                        self.against += 1
                    else:
                        self.agree += 1
            elif self.learned[c] > 0 and self.above(0.3, M[c]):
                self.learned[c] = 0

    def block_is_over(self, n, mean):
        """Count this time-step in the block."""
        c = self.task
        if c < 0:
            return True
        self.steps += 1
        self.length += n[c]
        low = self.recent.low[c]
        span = self.highest[c] - low
        succeeds = n[c] > 0 and self.above((float(mean[c]) - low) / span, 0.001, 1.0)
        self.vain = 0 if succeeds else self.vain + n[c]
        enough = self.steps >= self.s["block"] or self.length >= 2000 or self.vain >= 500
        return enough or self.learned[c] > 0

    def choose_a_block(self, M, u):
        if self.task >= 0 and self.learned[self.task] == 0:
            self.tried[self.task] += 1
        promise = {
            c: self.promise(M, c, cost) + math.log2(1 + 0.001 * float(u[c]))
            for c, cost in self.costs()
            if self.learned[c] == 0
        }
        self.task = max(promise, key=lambda c: (promise[c], -c), default=0)
        for c in promise:
            if c != self.task:
                self.above(promise[self.task], promise[c], 1.0)
        self.steps = self.length = self.vain = 0

    def costs(self):
        """Each task and what a return of it costs, relative to that of a mean task."""
        o = sum(self.spent) / sum(self.made) if sum(self.made) > 0 else 0.0
        for c in range(self.N):
            yield c, ((self.spent[c] + o) / (self.made[c] + 1)) / o if o > 0 else 1.0

    def promise(self, M, c, cost):
        """log₂ of what a block on the task is expected to give."""
        success = (self.rate(c) * self.returns[c] + 0.4) / (self.returns[c] + 40)
        later = self.s["hint"] * self.trust * (1 - self.mastery_of_ancestors(M, c))
        gain = math.log2((1 - M[c]) * success) - self.s["cheap"] * math.log2(cost)
        return gain - self.tried[c] - later

    def signals(self, M):
        """s': the signal of each task, drawn towards their mean."""
        signal = [m * (1 - m) ** 2 for m in M]
        seen = [signal[c] for c in range(self.N) if self.returns[c] > 1e-6]
        mean = sum(seen) / len(seen) if seen else 0.0
        pool, pooled = self.s["pool"], []
        for c in range(self.N):
            weight = self.returns[c] + pool
            pooled.append((self.returns[c] * signal[c] + pool * mean) / weight if weight else 0.0)
        return pooled

    def darkness(self, M, signals, light):
        """The part of attention that the block's task gets."""
        if self.task < 0 or self.learned[self.task] > 0 or self.s["dark"] == 0:
            return 0.0
        life = 0.0
        for c in range(self.N):
            if self.learned[c] == 0:
                sure = M[c] * self.returns[c] / (self.returns[c] + 40)
                life = max(life, sure * (1 - sure) ** 2)
        known = [c for c in range(self.N) if self.learned[c] > 0]
        share = sum(light[c] for c in known)
        if share > 0:
            life = max(life, sum(light[c] * signals[c] for c in known) / share)
        return max(0.0, 1 - (life / self.s["dark"]) ** 2)

    def distribution(self):
        M = [self.mastery(c) for c in range(self.N)]
        signals = self.signals(M)
        light = normalised([s**2 for s in signals])
        dark = self.darkness(M, signals, light)
        a = [(1 - dark) * light[c] + dark * (c == self.task) for c in range(self.N)]
        # where signals are about as large as their errors, these have a part in the shares
        exact = dark == 1 or max(signals) == 0 or max(signals) > 1000 * self.margin
        self.clear = self.decided and exact
        return reprobed(a, self.s["epsilon"])


BOUNDS = {  # those of the curriculum, where the returns are from 0 to 1
    "right": (0.0, 1.0),
    "a low maximum": (0.0, 0.5),
    "a high maximum": (0.0, 2.0),
    "returns below the minimum": (0.25, 1.0),
    "all returns far below": (3.0, 4.0),
}


def make_history(seed, *, size=None, length=None, exact=None, bounds=None, graph=None):
    """A learner that begins to succeed on each task at some time, some at once, some never.

    Args:
        seed: The seed of all that is random.
        size: The number of tasks; from 1 to 8 if not given.
        length: The number of time-steps; from 30 to 120 if not given.
        exact: Whether the numbers are few binary digits long; every second history if not given.
        bounds: One of `BOUNDS`; if not given, the right ones in half of the histories.
        graph: "none", "chain" or "random"; any if not given.

    Returns:
        A `Trace`.
    """
    random = np.random.default_rng([seed, 88])
    exact = seed % 2 == 0 if exact is None else exact
    size = size or int(random.integers(1, 9))
    length = length or int(random.integers(30, 121))
    bounds = bounds or str(random.choice(["right"] * 4 + list(BOUNDS)[1:]))
    graph = graph or str(random.choice(["none", "chain", "random"]))
    curriculum, low, span = _tasks(random, size, exact, BOUNDS[bounds], graph)
    cost = random.choice([0, 1, 2, 3, 5, 9], size) * random.integers(0, 2) + random.integers(0, 2)
    known = random.random(size) < random.choice([0.0, 0.3, 1.0])
    skill = np.where(known, random.random(size), 0.0)
    begins = random.integers(0, 2 * length, size)
    begins = np.sort(begins) if random.random() < 0.5 else begins  # as the order says
    speed, best = random.choice([0.01, 0.05, 0.2], size), random.choice([0.5, 1.0], size)
    share = random.choice([0.15, 0.4, 0.7, 1.0])
    successes, beyond = random.random() < 0.5, random.choice([0.0, 0.0, 0.25])
    steps = []
    for t in range(length):
        skill = np.where(t >= begins, np.minimum(skill + speed * random.random(size), best), skill)
        skill = skill * (0.3 if random.random() < 0.01 else 1.0)  # it forgets
        seen = (random.random(size) < share) & (random.random() < 0.9)
        shown = skill if successes else np.where(skill > 0, skill, -10.0)
        kind = (exact, successes, beyond)
        steps.append(make_step(random, low, span, shown, seen, cost, kind))
        steps[-1].noise[0] = random.permutation(size) / size  # no two are close
    return Trace(curriculum, noise(random, size), steps, exact)


def _tasks(random, size, exact, bounds, graph):
    """A curriculum, and the bounds that the returns have."""
    if exact:
        low, span = random.choice([-1.0, 0.0, 0.25], size), random.choice([0.5, 1.0, 2.0], size)
    else:
        low, span = random.normal(0, 2, size), random.uniform(0.1, 5, size)
    first, last = low + bounds[0] * span, low + bounds[1] * span
    density = {"none": 0.0, "chain": 0.0, "random": random.choice([0.2, 0.6])}[graph]
    tasks = []
    for i in range(size):
        after = {f"t{i - 1}"} if graph == "chain" and i else set()
        after |= {f"t{j}" for j in range(i) if random.random() < density}
        tasks.append(Task(f"t{i}", float(first[i]), float(last[i]), tuple(sorted(after))))
    curriculum = Curriculum([tasks[i] for i in random.permutation(size)])
    order = [int(name[1:]) for name in curriculum.names]
    return curriculum, low[order], span[order]
