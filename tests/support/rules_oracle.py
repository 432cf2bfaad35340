"""An independent and slow way to compute the rules: one task at a time, in plain Python.

Written from the formulas of the rules alone. Each oracle observes a `Step` and gives the
distribution. `clear` says whether that distribution is certain: where two values that decide (a
rank, a place among the best) are closer than `margin`, rounding may decide either way.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import networkx as nx
import numpy as np
from oracle import order
from scipy.stats import beta


class Step(NamedTuple):
    """What happened in a time-step; each field has a number for each task."""

    mean: np.ndarray
    count: np.ndarray
    variance: np.ndarray
    cost: np.ndarray
    noise: np.ndarray  # (3, N), drawn for this time-step


class Oracle:
    """Keeps p, σ and mean |advantage| of the time-step just observed.

    Args:
        curriculum: The curriculum.
        noise: (3, N) The noise given to `init`.
        margin: Values closer than this may come out in either order.
        exact: Whether equal values are equal in any arithmetic, so that a tie is certain.
        settings: Override the class's constants of the same name.
    """

    def __init__(self, curriculum, noise, margin=1e-9, exact=False, **settings):
        assert all(hasattr(type(self), name) for name in settings), settings
        vars(self).update(settings)
        self.curriculum, self.tasks, self.noise = curriculum, list(curriculum), noise
        self.n = len(self.tasks)
        self.margin, self.exact = margin, exact
        self.t = 0
        self.clear = True
        self.ever = [0] * self.n  # time-steps in which the task was seen
        self.start()

    def start(self):
        pass

    def observe(self, step):
        self.t += 1
        self.noise, self.step = step.noise, step
        self.seen = [c for c in range(self.n) if step.count[c] > 0]
        self.p, self.sigma, self.advantage = {}, {}, {}
        for c in self.seen:
            task, count = self.tasks[c], step.count[c]
            span = task.maximum - task.minimum
            self.p[c] = min(max((step.mean[c] - task.minimum) / span, 0.0), 1.0)
            self.sigma[c] = math.sqrt(step.variance[c]) / span
            self.advantage[c] = 2 * self.sigma[c] * math.sqrt((count - 1) / count)
            self.ever[c] += 1
        self.update()

    def update(self):
        pass

    def distribution(self):
        raise NotImplementedError

    def best(self, a, keys):
        """The k tasks with the largest a; of equal ones, those with the smaller noise.

        Args:
            a: The value of each task.
            keys: Tasks with equal keys have equal values in any arithmetic.
        """
        k = max(1, round(0.2 * self.n))
        ranked = sorted(range(self.n), key=lambda c: (-a[c], self.noise[1][c]))
        chosen, rest = ranked[:k], ranked[k:]
        self.clear = all(
            keys[i] == keys[j] or a[i] - a[j] > self.margin for i in chosen for j in rest
        )
        return chosen


def uniform(n):
    return [1 / n] * n


def normalised(weights):
    total = sum(weights)
    return [w / total for w in weights] if total > 0 else uniform(len(weights))


def softmax(values):
    top = max(values)
    return normalised([math.exp(v - top) for v in values])


def reprobed(d, share=0.05):
    return [(1 - share) * x + share / len(d) for x in d]


def evenly(chosen, n):
    return [1 / len(chosen) if c in chosen else 0.0 for c in range(n)]


class Uniform(Oracle):
    def distribution(self):
        return uniform(self.n)


class Learnability(Oracle):
    window = 50

    def start(self):
        self.means = [[] for _ in range(self.n)]

    def update(self):
        for c in self.seen:
            self.means[c].append(float(self.step.mean[c]))

    def mastery(self, c):
        task, last = self.tasks[c], self.means[c][-int(self.window) :]
        if not last:
            return 0.0
        mean = min(max(sum(last) / len(last), task.minimum), task.maximum)
        return (mean - task.minimum) / (task.maximum - task.minimum)

    def distribution(self):
        M = [self.mastery(c) for c in range(self.n)]
        a = [m * (1 - m) for m in M]
        self.clear = sum(a) > self.margin or sum(a) == 0  # else rounding decides
        return reprobed(normalised(a))


class LearnabilityTopK(Learnability):
    def distribution(self):
        M = [self.mastery(c) for c in range(self.n)]
        a = [m * (1 - m) for m in M]
        keys = [
            0.0 if a[c] == 0 else (M[c], task.minimum, task.maximum)
            for c, task in enumerate(self.tasks)
        ]
        return reprobed(evenly(self.best(a, keys), self.n), 0.5)


class PLR(Oracle):
    alpha, beta, staleness, fill, nu = 1.0, 0.1, 0.1, 1.0, 0.5

    def start(self):
        self.S = [0.0] * self.n
        self.top = [0.0] * self.n
        self.last = [0] * self.n

    def update(self):
        for c in self.seen:
            self.top[c] = max(self.top[c], self.p[c])
            score = self.top[c] - self.p[c]
            self.S[c] = (1 - self.alpha) * self.S[c] + self.alpha * score
            self.last[c] = self.t

    def replayed(self, known):
        """P over the tasks ever seen."""
        ranked = sorted(known, key=lambda c: (-self.S[c], c))
        weight = {c: (1 / (i + 1)) ** (1 / self.beta) for i, c in enumerate(ranked)}
        stale = {c: self.t - self.last[c] for c in known}
        for i, j in pairwise(ranked):
            gap = self.S[i] - self.S[j]
            tie = gap == 0 and (self.S[i] == 0 or (self.exact and self.alpha == 1))
            self.clear = self.clear and (tie or gap > self.margin)
        P_S = {c: weight[c] / sum(weight.values()) for c in known}
        if sum(stale.values()) == 0:
            P_C = {c: 1 / len(known) for c in known}
        else:
            P_C = {c: stale[c] / sum(stale.values()) for c in known}
        return {c: (1 - self.staleness) * P_S[c] + self.staleness * P_C[c] for c in known}

    def distribution(self):
        self.clear = True
        known = [c for c in range(self.n) if self.ever[c]]
        new = [c for c in range(self.n) if not self.ever[c]]
        f = len(known) / self.n
        r = 0.0 if f < self.fill else min(f, self.nu)
        if not new:
            r = 1.0
        d = [0.0] * self.n
        if known and r > 0:
            for c, P in self.replayed(known).items():
                d[c] += r * P
        for c in new:
            d[c] += (1 - r) / len(new)
        return d


class Bidirectional(Oracle):
    al, th, u = 0.1, 0.1, 0.25

    def start(self):
        self.base = [0.0] * self.n
        self.F, self.W, self.Q = [0.0] * self.n, [0.0] * self.n, [0.0] * self.n

    def update(self):
        for c in self.seen:
            p = self.p[c]
            first = self.ever[c] == 1
            if first:
                self.base[c] = min(p, 0.75)
            above = max(p - self.base[c], 0) / (1 - self.base[c])
            if first:
                self.F[c] = self.W[c] = above
                self.Q[c] = p
            else:
                self.F[c] = self.al * above + (1 - self.al) * self.F[c]
                self.W[c] = self.al * self.F[c] + (1 - self.al) * self.W[c]
                self.Q[c] = self.al * p + (1 - self.al) * self.Q[c]

    def f(self, x):
        return (1 - self.th) * x / (x + self.th * (1 - 2 * x))

    def distribution(self):
        LP = [abs(self.f(self.F[c]) - self.f(self.W[c])) for c in range(self.n)]
        active = [c for c in range(self.n) if LP[c] > 0 or self.Q[c] > 0] or list(range(self.n))
        values = [LP[c] for c in active]
        mean = sum(values) / len(values)
        # equal values are equal whatever the rounding of their mean
        std = 0.0 if len(set(values)) == 1 else float(np.std(values))
        self.clear = std > self.margin or set(values) == {0.0} or len(active) == 1
        weight = [0.0] * self.n
        for c in active:
            z = 0.0 if std == 0 else (LP[c] - mean) / std
            weight[c] = 1 / (1 + math.exp(-z))
        return reprobed(normalised(weight), self.u)


class SEC(Oracle):
    alpha, tau = 0.5, 1.0

    def start(self):
        self.Q = [0.0] * self.n

    def update(self):
        for c in self.seen:
            self.Q[c] = self.alpha * self.advantage[c] + (1 - self.alpha) * self.Q[c]

    def distribution(self):
        return softmax([q / self.tau for q in self.Q])


class DUMP(Oracle):
    window, tau = 40, 0.1

    def start(self):
        self.chunks = [[] for _ in range(self.n)]  # (n, mean |advantage|)

    def update(self):
        for c in self.seen:
            self.chunks[c].append((float(self.step.count[c]), self.advantage[c]))

    def distribution(self):
        N = [sum(n for n, _ in chunks) for chunks in self.chunks]
        total = max(1, sum(N))
        S = []
        for c in range(self.n):
            last = self.chunks[c][-int(self.window) :]
            mu = sum(n * a for n, a in last) / sum(n for n, _ in last) if last else 0.0
            S.append(mu + math.sqrt(2 * math.log(total + 1) / (N[c] + 1)))
        return softmax([s / self.tau for s in S])


class AdaRFT(Oracle):
    eta, al, be = 50.0, 2.0, 0.5

    def start(self):
        self.T = 0.0
        graph, level = order(self.curriculum), {}
        for c in nx.topological_sort(graph):
            level[c] = max((level[b] + 1 for b in graph.predecessors(c)), default=0)
        deepest = max(level.values())
        self.difficulty = [
            task.settings.get("difficulty", 100 * level[c] / deepest if deepest else 0.0)
            for c, task in enumerate(self.curriculum)
        ]

    def update(self):
        if not self.seen:
            return
        n = self.step.count
        R = sum(n[c] * self.p[c] for c in self.seen) / sum(n[c] for c in self.seen)
        moved = self.T + self.eta * math.tanh(self.al * (R - self.be))
        self.T = min(max(moved, min(self.difficulty)), max(self.difficulty))

    def distribution(self):
        a = [1 / (1 + abs(d - self.T)) for d in self.difficulty]
        return reprobed(evenly(self.best(a, self.difficulty), self.n))


class GRESO(Oracle):
    tau = 0.25

    def start(self):
        self.p_e = self.p_h = 0.5
        self.z_e, self.z_h = [0] * self.n, [0] * self.n

    def update(self):
        easy = [c for c in self.seen if self.p[c] >= 0.98]
        hard = [c for c in self.seen if self.p[c] <= 0.11]
        for c in self.seen:
            self.z_e[c] = self.z_e[c] + 1 if c in easy else 0
            self.z_h[c] = self.z_h[c] + 1 if c in hard else 0
        if self.seen and all(self.ever):
            self.p_e += -0.01 if len(easy) >= self.tau / 3 * len(self.seen) else 0.01
            self.p_h += -0.01 if len(hard) >= 2 * self.tau / 3 * len(self.seen) else 0.01
            self.p_e = min(max(self.p_e, 0.05), 0.95)
            self.p_h = min(max(self.p_h, 0.05), 0.95)

    def distribution(self):
        return normalised(
            [
                max(self.p_e ** self.z_e[c], 0.01) * max(self.p_h ** self.z_h[c], 0.01) / self.n
                for c in range(self.n)
            ]
        )


class MoPPS(Oracle):
    decay = 0.5
    error = 0.003  # in probability, of the library's quantile

    def start(self):
        self.A, self.B = [1.0] * self.n, [1.0] * self.n

    def update(self):
        for c in self.seen:
            n, s = self.step.count[c], self.p[c]
            self.A[c] = self.decay * self.A[c] + (1 - self.decay) + s * n
            self.B[c] = self.decay * self.B[c] + (1 - self.decay) + (1 - s) * n

    def distribution(self):
        u = np.asarray(self.noise[0], float)
        x = beta.ppf(u, self.A, self.B)
        a = list(x * (1 - x))
        chosen = self.best(a, [None] * self.n)
        low = beta.ppf(np.maximum(u - self.error, 0), self.A, self.B)
        high = beta.ppf(np.minimum(u + self.error, 1), self.A, self.B)
        least = np.minimum(low * (1 - low), high * (1 - high))
        most = np.maximum(low * (1 - low), high * (1 - high))
        most[(low <= 0.5) & (high >= 0.5)] = 0.25
        same = list(zip(self.A, self.B, u, strict=True))
        self.clear = all(
            same[i] == same[j] or least[i] - most[j] > self.margin
            for i in chosen
            for j in range(self.n)
            if j not in chosen
        )
        return reprobed(evenly(chosen, self.n))


class ODM(Oracle):
    def start(self):
        self.R, self.e, self.P = [0.0] * self.n, 1 / self.n, uniform(self.n)

    def update(self):
        for c in self.seen:
            self.R[c] += (1 - self.p[c]) / self.P[c]
        before, self.e = self.e, min(1 / self.n, math.sqrt(math.log(self.n) / (self.n * self.t)))
        soft = softmax([before * r for r in self.R])
        self.P = [(1 - self.n * self.e) * s + self.e for s in soft]

    def distribution(self):
        return self.P


ALPHAS = np.arange(1, 17) / 20  # 0.05, 0.10, …, 0.80


def power_laws(D, y):
    """Fit y = u·D^−α + v with u, v ≥ 0 for each α by least squares over the whole history.

    Returns:
        u, v and the squared error, for each α.
    """
    D, y = np.asarray(D, float), np.asarray(y, float)
    if (y == y[0]).all():
        return np.zeros(16), np.full(16, y[0]), np.zeros(16)
    x = D[None, :] ** -ALPHAS[:, None]
    x_mean, y_mean = x.mean(1), y.mean()
    xc, yc = x - x_mean[:, None], y - y_mean
    u = (xc * yc).sum(1) / (xc * xc).sum(1)
    u = np.where(u < 0, 0.0, u)
    v = y_mean - u * x_mean
    origin = (x * y).sum(1) / (x * x).sum(1)
    u, v = np.where(v < 0, origin, u), np.where(v < 0, 0.0, v)
    error = ((y - u[:, None] * x - v[:, None]) ** 2).sum(1)
    return u, v, error


class ADO(Oracle):
    first = 100  # `start` in the recipe

    def start(self):
        self.D = 0.0
        self.past = [([], []) for _ in range(self.n)]
        self.h, self.average, self.d = uniform(self.n), uniform(self.n), uniform(self.n)

    def update(self):
        total = sum(float(self.step.count[c]) for c in self.seen)
        self.D += total
        for c in self.seen:
            self.past[c][0].append(self.D)
            self.past[c][1].append(1 - self.p[c])
        if self.seen:
            self.h = [
                0.9 * h + 0.1 * float(n) / total
                for h, n in zip(self.h, self.step.count, strict=True)
            ]
        if self.t >= self.first and min(self.ever) >= 3:
            g = self.gains()
            self.average = [
                b + (x - b) / (self.t + 1) for b, x in zip(self.average, g, strict=True)
            ]
            self.d = [0.9 * b + 0.1 * x for b, x in zip(self.average, g, strict=True)]

    def gains(self):
        g = []
        for c in range(self.n):
            u, _, error = power_laws(*self.past[c])
            gain = np.maximum(ALPHAS, 0.05) * u * self.D**-ALPHAS / self.D * math.sqrt(self.h[c])
            near = gain[error <= error.min() + 1e-3 * self.margin]
            g.append(float(gain[int(np.argmin(error))]))
            if near.max() - near.min() > 1e-12 * near.max():
                self.clear = False  # for good, since the average keeps it
        floor = min(0.01, 0.5 / self.n)
        return normalised([max(x, floor) for x in normalised(g)])

    def distribution(self):
        return self.d
