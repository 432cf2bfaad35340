"""What `mastery.Prompts` costs: time per call, memory, and whether a resumed run is exact.

    python benchmarks/prompts_object.py

Prompts in tasks under `auto`, each call on one core: `next(64)`, then the report of 64 groups of 8
rewards. Median and 99th percentile over 500 calls, from the first on. Bytes per prompt are those of
`Prompts`, without the dataset and its labels. Then 200 calls with late, doubled and unknown reports
and with prompts and tasks that come and go, saved and resumed in the middle.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np

from mastery import Curriculum, Prompts, Task, Teacher

BATCH, GROUP, CALLS = 64, 8, 500


def make(prompts: int, tasks: int) -> Prompts:
    curriculum = Curriculum([Task(f"task-{i}") for i in range(tasks)])
    labels = [f"task-{i % tasks}" for i in range(prompts)]
    return Prompts(range(prompts), Teacher(curriculum, "auto", seed=0), labels, seed=0)


def rewards(ids: np.ndarray, random: np.random.Generator) -> list[list[float]]:
    """Each prompt has its own pass rate, a fixed one."""
    rate = (ids * 0.618) % 1
    return (random.random((len(ids), GROUP)) < rate[:, None]).astype(float).tolist()


def bytes_per_prompt(prompts: int, tasks: int) -> float:
    gc.collect()
    tracemalloc.start()
    made = make(prompts, tasks)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0]
    del made
    gc.collect()
    tracemalloc.stop()
    few = 2 * tasks  # what does not depend on the number of prompts
    tracemalloc.start()
    small = make(few, tasks)
    gc.collect()
    base = tracemalloc.get_traced_memory()[0]
    del small
    tracemalloc.stop()
    return (used - base) / (prompts - few)


def measure(prompts: int, tasks: int) -> str:
    began = time.perf_counter()
    own = make(prompts, tasks)
    made = time.perf_counter() - began
    random = np.random.default_rng(0)
    drawn, reported = [], []
    for _ in range(CALLS):
        a = time.perf_counter()
        batch = own.next(BATCH)
        b = time.perf_counter()
        given = rewards(batch.ids, random)
        c = time.perf_counter()
        own.report(batch, given, tokens=[100.0] * BATCH)
        reported.append(time.perf_counter() - c)
        drawn.append(b - a)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "prompts")
        a = time.perf_counter()
        own.save(path)
        b = time.perf_counter()
        loaded = Prompts.load(path)
        c = time.perf_counter()
        size = path.stat().st_size / 1e6
    assert np.array_equal(own.next(BATCH).ids, loaded.next(BATCH).ids)
    cells = [f"{prompts:,}", f"{tasks}", f"{made:.2f} s"]
    for times in (drawn, reported):
        cells.append(f"{np.median(times) * 1e3:.2f} ({np.quantile(times, 0.99) * 1e3:.2f}) ms")
    cells += [f"{bytes_per_prompt(prompts, tasks):.0f}"]
    cells += [f"{(b - a) * 1e3:.0f} ms, {size:.1f} MB", f"{(c - b) * 1e3:.0f} ms"]
    return "| " + " | ".join(cells) + " |"


def rough(own: Prompts, calls: int, seed: int) -> list[list[int]]:
    """Late, doubled and unknown reports; prompts and tasks come and go."""
    random, late, drawn = np.random.default_rng(seed), [], []
    for i in range(calls):
        batch = own.next(BATCH)
        drawn.append(batch.ids.tolist())
        late += [(draw.id, draw.ticket) for draw in batch]
        chosen = random.permutation(len(late))[: BATCH - 4]
        some = [late[j] for j in chosen]
        late = [late[j] for j in sorted(set(range(len(late))) - set(chosen.tolist()))]
        for _ in range(2):  # the second time, each is doubled
            rows, tickets = np.array(some).T
            values = rewards(rows, np.random.default_rng(i))
            own.report(rows, values, tickets=tickets)
        own.report([0], [[1.0]], tickets=[10**9])
        if i % 10 == 0:
            own.retire(random.integers(1000, size=5))
            own.add([own.teacher.curriculum.names[0]] * 5)
        if i % 50 == 25:
            tasks = list(own.teacher.curriculum)
            own.teacher.change(Curriculum([*tasks[1:], Task(f"new-{seed}-{i}")]))
            own.add([f"new-{seed}-{i}"] * 100)
    return drawn


def check() -> None:
    warnings.simplefilter("ignore")
    own = make(100_000, 100)
    rough(own, 100, 1)
    with tempfile.TemporaryDirectory() as folder:
        own.save(Path(folder, "prompts"))
        loaded = Prompts.load(Path(folder, "prompts"))
    same = rough(own, 100, 2) == rough(loaded, 100, 2)
    states = [x.state_dict() for x in (own, loaded)]
    arrays = [s["arrays"] | s["teacher"]["state"] for s in states]
    exact = all(array.tobytes() == arrays[1][name].tobytes() for name, array in arrays[0].items())
    print(
        f"\n200 calls of {BATCH}: {own._tickets.next:,} draws, {own.waiting} wait for a report, "
        f"{own.ignored:,} reports ignored (doubled or unknown), {len(own):,} prompts now; resumed "
        f"in the middle, the same prompts follow: {same}; the states are equal bit for bit: {exact}"
    )


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    head = ("prompts", "tasks", "made", "next(64)", "report of 64 groups", "bytes per prompt")
    head += ("saved", "loaded")
    print("| " + " | ".join(head) + " |\n" + "|---:" * len(head) + "|", flush=True)
    for prompts, tasks in (
        (1_000, 10),
        (10_000, 50),
        (100_000, 50),
        (100_000, 100),
        (1_000_000, 100),
    ):
        print(measure(prompts, tasks), flush=True)
    check()


if __name__ == "__main__":
    main()
