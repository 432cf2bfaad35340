"""How long one update and the distribution after it take, and how much memory a task needs.

    python benchmarks/teacher.py

Layered curricula with about three predecessors a task (`Curriculum.random`), program `mr`, one
core. Beside it a plain implementation: a `numpy.polyfit` for each task and a networkx search for
each task at every update, as the paper's authors do it.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import tracemalloc

import networkx as nx
import numpy as np

from mastery import Curriculum, Teacher
from mastery.tree import leaves

RETURNS = 16  # of different tasks in one update; also measured: one, and every task


class Plain:
    """The mastering-rate algorithm written down as the paper has it, one task at a time."""

    def __init__(self, curriculum: Curriculum) -> None:
        self.graph = nx.DiGraph()
        self.graph.add_nodes_from(range(len(curriculum)))
        self.graph.add_edges_from(curriculum.edges.tolist())
        self.past = [([], []) for _ in curriculum.names]
        self.low, self.high = curriculum.minimum.copy(), curriculum.maximum.copy()
        self.mean, self.beta, self.t = self.low.copy(), np.zeros(len(curriculum)), 0

    def update(self, returns: dict[int, float]) -> np.ndarray:
        self.t += 1
        for c, r in returns.items():
            self.past[c][0].append(self.t)
            self.past[c][1].append(r)
        for c, (times, values) in enumerate(self.past):
            if values:
                mean = np.mean(values[-10:])
                if len(values) >= 10:
                    self.low[c] = min(self.low[c], mean)
                    self.high[c] = max(self.high[c], mean)
                self.mean[c] = np.clip(mean, self.low[c], self.high[c])
            if len(values) >= 2:
                self.beta[c] = np.polyfit(times[-10:], values[-10:], 1)[0]
        mastery = (self.mean - self.low) / (self.high - self.low)
        progress = np.abs(self.beta) / (np.abs(self.beta).max() or 1)
        anc, succ = np.ones(len(mastery)), np.zeros(len(mastery))
        for c in self.graph:
            if ancestors := list(nx.ancestors(self.graph, c)):
                anc[c] = mastery[ancestors].min()
            if successors := list(self.graph.successors(c)):
                succ[c] = mastery[successors].min()
        a = anc**6 * (0.6 * (1 - mastery) + 0.4 * progress) * (1 - succ)
        for c in reversed(list(nx.topological_sort(self.graph))):
            for gamma, near in ((0.2, self.graph.predecessors), (0.05, self.graph.successors)):
                given, others = gamma * a[c], list(near(c))
                a[c] -= given
                if others:
                    a[others] += given / len(others)
        return a / a.sum() if a.sum() else np.full(len(a), 1 / len(a))


def seconds(work, repeats: int) -> tuple[float, float]:
    """Median and best time of some work."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), min(times)


def measure(n: int) -> dict[str, object]:
    curriculum = Curriculum.random(n)
    random = np.random.default_rng(0)
    _ = curriculum.positions

    gc.collect()
    tracemalloc.start()
    teacher = Teacher(curriculum, "mr", seed=0)
    names = np.array(curriculum.names)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0] - names.nbytes
    for _ in range(3):
        teacher.update(
            dict(
                zip(
                    random.choice(names, min(RETURNS, n)).tolist(),
                    random.random(RETURNS).tolist(),
                    strict=False,
                )
            )
        )
        _ = teacher.distribution
    peak = tracemalloc.get_traced_memory()[1] - names.nbytes
    tracemalloc.stop()
    index = sys.getsizeof(curriculum.positions) + 32 * n
    arrays = sum(np.asarray(x).nbytes for _, x in leaves((teacher.program, teacher._state)))

    def step(number: int):
        def work() -> None:
            teacher.update(dict(zip(next(picks), values, strict=True)))
            _ = teacher.distribution

        values = random.random(number).tolist()
        chosen = [
            random.choice(n, number, replace=False) if number < n else np.arange(n)
            for _ in range(8)
        ]
        lists = [names[c].tolist() for c in chosen]
        picks = iter(lists * 10_000)
        return work

    repeats = max(7, min(4000, 2_000_000 // n))
    row: dict[str, object] = {
        "tasks": n,
        "edges": len(curriculum.edges),
        "held": (before + index) / n if n >= 1000 else arrays / n,
        "peak": (peak + index) / n if n >= 1000 else float("nan"),
    }
    for label, number in (("one", 1), ("some", min(RETURNS, n)), ("all", n)):
        row[label] = seconds(step(number), repeats if label != "all" else max(5, repeats // 8))
    if n <= 1000:
        plain = Plain(curriculum)
        for _ in range(10):
            plain.update({int(c): float(random.random()) for c in range(n)})
        work = lambda: plain.update({int(c): 0.5 for c in random.choice(n, min(RETURNS, n))})  # noqa: E731
        row["plain"] = seconds(work, 3 if n > 100 else 40)[0]
    return row


def human(s: float) -> str:
    return (
        f"{s * 1e6:.0f} µs" if s < 1e-3 else f"{s * 1e3:.2f} ms" if s < 0.1 else f"{s * 1e3:.0f} ms"
    )


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(
        "One update and the distribution after it, median (best), with returns of 1 task, of "
        f"{RETURNS} tasks, of every task.\nBytes a task: program, state and names, held (at most, "
        "while working). `mr`, one core.\n"
    )
    head = (
        "tasks",
        "edges",
        "1 return",
        f"{RETURNS} returns",
        "every task",
        "bytes",
        "plain",
        "ratio",
    )
    print("| " + " | ".join(head) + " |\n" + "|---:" * len(head) + "|", flush=True)
    for n in (10, 100, 1_000, 10_000, 100_000, 1_000_000):
        row = measure(n)
        times = [f"{human(row[k][0])} ({human(row[k][1])})" for k in ("one", "some", "all")]
        memory = f"{row['held']:.0f} ({row['peak']:.0f})" if n >= 1000 else f"{row['held']:.0f}"
        plain = human(row["plain"]) if "plain" in row else "–"
        ratio = f"{row['plain'] / row['some'][0]:,.0f} ×" if "plain" in row else "–"
        cells = (f"{n:,}", f"{row['edges']:,}", *times, memory, plain, ratio)
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
