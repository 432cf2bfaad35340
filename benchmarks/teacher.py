"""How long one update and the distribution after it take, and how much memory a task needs.

    python benchmarks/teacher.py
    python benchmarks/teacher.py --program auto    # another program, beside `mr` in turns

Layered curricula with about three predecessors a task (`Curriculum.random`), program `mr`, one
core. Beside it a plain implementation: a `numpy.polyfit` for each task and a networkx search for
each task at every update, as the paper's authors do it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import time
import tracemalloc

import networkx as nx
import numpy as np

from mastery import Curriculum, Teacher

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


def memory(n: int, program: str = "mr") -> str:
    """Bytes a task: of the teacher, of the teacher at most while it works, and of both with the
    curriculum (names, their index, bounds, edges)."""
    gc.collect()
    tracemalloc.start()
    curriculum = Curriculum.random(n)
    _ = curriculum.positions
    gc.collect()
    alone = tracemalloc.get_traced_memory()[0]
    teacher = Teacher(curriculum, program, seed=0)
    gc.collect()
    tracemalloc.reset_peak()
    for i in range(3):
        teacher.update(dict.fromkeys(curriculum.names[: min(RETURNS, n)], 0.1 * i))
        _ = teacher.distribution
    both, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return f"{(both - alone) / n:.0f}, {(peak - alone) / n:.0f}, {both / n:.0f}"


def measure(n: int) -> dict[str, tuple[float, float]]:
    curriculum = Curriculum.random(n)
    teacher = Teacher(curriculum, "mr", seed=0)
    random = np.random.default_rng(0)
    repeats = max(7, min(4000, 2_000_000 // n))
    row = {}
    for label, number in (("one", 1), ("some", min(RETURNS, n)), ("all", n)):
        updates = [
            {curriculum.names[i]: float(random.random()) for i in random.permutation(n)[:number]}
            for _ in range(8 if number < n or n < 10_000 else 2)
        ]
        turn = itertools.cycle(updates)

        def work(turn=turn) -> None:
            teacher.update(next(turn))
            _ = teacher.distribution

        row[label] = seconds(work, repeats if number < n else max(5, repeats // 8))
    if n <= 1000:
        plain = Plain(curriculum)
        for _ in range(10):
            plain.update({c: float(random.random()) for c in range(n)})
        some = min(RETURNS, n)
        row["plain"] = seconds(
            lambda: plain.update({int(c): 0.5 for c in random.permutation(n)[:some]}),
            3 if n > 100 else 40,
        )
    return row


def compare(program: str) -> None:
    """Another program beside `mr`: the same updates in turns."""
    head = ("tasks", f"`{program}`, {RETURNS} returns", "`mr`", "ratio", "bytes")
    print("| " + " | ".join(head) + " |\n" + "|---:" * len(head) + "|", flush=True)
    for n in (10, 100, 1_000, 10_000, 100_000, 1_000_000):
        curriculum = Curriculum.random(n)
        teachers = [Teacher(curriculum, name, seed=0) for name in (program, "mr")]
        random = np.random.default_rng(0)
        times: list[list[float]] = [[], []]
        for _ in range(max(9, min(2000, 1_000_000 // n))):
            some = random.permutation(n)[:RETURNS]
            update = {curriculum.names[i]: float(random.random()) for i in some}
            for teacher, own in zip(teachers, times, strict=True):
                start = time.perf_counter()
                teacher.update(update)
                _ = teacher.distribution
                own.append(time.perf_counter() - start)
        ours, theirs = (float(np.median(own)) for own in times)
        cells = [f"{n:,}", human(ours), human(theirs), f"{ours / theirs:.2f}"]
        cells.append(memory(n, program) if n >= 1000 else "–")
        print("| " + " | ".join(cells) + " |", flush=True)


def human(s: float) -> str:
    return (
        f"{s * 1e6:.0f} µs" if s < 1e-3 else f"{s * 1e3:.2f} ms" if s < 0.1 else f"{s * 1e3:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="compare this program with `mr`")
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if given.program:
        compare(given.program)
        return
    print(
        f"One update and the distribution after it: median (best). An update has the returns of 1 "
        f"task, of {RETURNS} tasks,\nor of every task; the plain implementation gets {RETURNS}. "
        "`mr`, one core. Bytes a task: the teacher's, the teacher's\nat most while it works, and "
        "with the curriculum's own.\n"
    )
    head = ("tasks", "1 return", f"{RETURNS} returns", "every task", "bytes", "plain", "ratio")
    print("| " + " | ".join(head) + " |\n" + "|---:" * len(head) + "|", flush=True)
    for n in (10, 100, 1_000, 10_000, 100_000, 1_000_000):
        row = measure(n)
        cells = [f"{human(row[k][0])} ({human(row[k][1])})" for k in ("one", "some", "all")]
        cells.append(memory(n) if n >= 1000 else "–")
        if "plain" in row:
            cells += [human(row["plain"][0]), f"{row['plain'][0] / row['some'][0]:,.0f} ×"]
        print("| " + " | ".join([f"{n:,}", *cells, *["–"] * (6 - len(cells))]) + " |", flush=True)


if __name__ == "__main__":
    main()
