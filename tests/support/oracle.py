"""An independent and slow way to compute what the programs compute.

Whole histories in lists, networkx for the graph, numpy.polyfit for slopes, and the equations of the
paper written down as they stand, one task at a time. Nothing of `mastery`'s maths is used.
"""

from __future__ import annotations

from statistics import median

import networkx as nx
import numpy as np


def order(curriculum):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(curriculum)))
    for i, task in enumerate(curriculum):
        for before in task.after:
            graph.add_edge(curriculum.names.index(before), i)
    return graph


def linreg(points):
    """Slope of the points; polyfit's rounding error where the exact slope is 0 is taken away."""
    if len({t for t, _ in points}) < 2:
        return 0.0
    t = np.array([t for t, _ in points], float)
    r = np.array([r for _, r in points], float)
    t, r = t - t[-1], r - r[0]
    slope = np.polyfit(t, r, 1)[0]
    spread = np.abs((t - t.mean()) * (r - r.mean())).sum() / ((t - t.mean()) ** 2).sum()
    return 0.0 if abs(slope) <= 1e-13 * spread else slope


class SlowProgram:
    """Sees returns one time-step after the other, as a program does."""

    def __init__(self, curriculum, recipe):
        self.curriculum, self.recipe, self.s = curriculum, recipe, recipe.settings
        self.graph = order(curriculum)
        self.n = len(curriculum)
        self.t = 0
        self.past = [[] for _ in range(self.n)]  # (t, r) of each task
        self.beta = [0.0] * self.n
        self.mean = [task.minimum for task in curriculum]
        self.low = [task.minimum for task in curriculum]
        self.high = [task.maximum for task in curriculum]

    def observe(self, returns):
        self.t += 1
        K = self.s["window"]
        for c, r in returns.items():
            self.past[c].append((self.t, r))
            last = self.past[c][-K:]
            mean = sum(r for _, r in last) / len(last)
            if len(last) == K:  # the bounds follow the mean as far as the median goes with it
                middle = median(r for _, r in last)
                self.low[c] = min(self.low[c], max(mean, middle))
                self.high[c] = max(self.high[c], min(mean, middle))
            self.mean[c] = min(max(mean, self.low[c]), self.high[c])
            self.beta[c] = self.progress(c, last)

    def progress(self, c, last):
        kind, values = self.recipe.progress, [r for _, r in last]
        if kind == "linreg":
            return linreg(last)
        if kind == "window":
            return self.s["alpha"] * linreg(last) + (1 - self.s["alpha"]) * self.beta[c]
        if kind == "online":
            change = values[-1] - values[-2] if len(self.past[c]) > 1 else 0.0
            return self.s["alpha"] * change + (1 - self.s["alpha"]) * self.beta[c]
        if kind == "competence":
            half = len(values) // 2
            if not half:
                return 0.0
            return sum(values[-half:]) / half - sum(values[-2 * half : -half]) / half
        raise NotImplementedError(kind)

    def mastery(self, c):
        return (self.mean[c] - self.low[c]) / (self.high[c] - self.low[c])

    def attention(self):
        if self.recipe.attention == "learning-progress":
            if self.s["exponent"] == 1:
                return [abs(b) for b in self.beta]
            top = max(abs(b) for b in self.beta) or 1.0
            return [(abs(b) / top) ** self.s["exponent"] for b in self.beta]
        delta, p = self.s["delta"], self.s["power"]
        top = max(abs(b) for b in self.beta)
        a = []
        for c in range(self.n):
            ancestors = nx.ancestors(self.graph, c)
            m_anc = min((self.mastery(k) for k in ancestors), default=1.0)
            m_succ = min((self.mastery(k) for k in self.graph.successors(c)), default=0.0)
            beta_hat = abs(self.beta[c]) / top if top > 0 else 0.0
            a.append(
                m_anc**p * (delta * (1 - self.mastery(c)) + (1 - delta) * beta_hat) * (1 - m_succ)
            )
        return a

    def redistributed(self):
        a = self.attention()
        if self.recipe.attention != "mastering-rate":
            return a
        pred, succ, graph = self.s["gamma_pred"], self.s["gamma_succ"], self.graph
        a1 = [0.0] * self.n
        for c in reversed(list(nx.topological_sort(graph))):  # eq. 2
            a1[c] = (1 - pred) * a[c] + sum(
                pred / graph.in_degree(k) * a1[k] for k in graph.successors(c)
            )
        return [  # eq. 3
            (1 - succ) * a1[c]
            + sum(succ / graph.out_degree(k) * a1[k] for k in graph.predecessors(c))
            for c in range(self.n)
        ]

    def distribution(self):
        a, kind = np.array(self.redistributed()), self.recipe.distribution
        if kind == "boltzmann":
            e = np.exp((a - max(a)) / self.s["temperature"])
            return e / sum(e)
        epsilon = self.s.get("epsilon", 0.0)
        if kind in ("prop", "gprop"):
            prop = a / sum(a) if sum(a) > 0 else np.full(self.n, 1 / self.n)
            return (1 - epsilon) * prop + epsilon / self.n
        raise NotImplementedError(kind)
