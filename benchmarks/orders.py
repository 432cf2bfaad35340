"""Programs that know no order, on synthetic learners that need a hidden one, one table.

    python benchmarks/orders.py                                   # everything; takes hours
    python benchmarks/orders.py --tasks 20 --variations default   # a part of it
    python benchmarks/orders.py --programs auto/none auto/half:3  # these, and mr/true
    python benchmarks/orders.py --out FILE.csv                    # also write a line per learner
    python benchmarks/orders.py --redraw FILE.csv                 # print the table of a file

A cell has the median of the time-steps until a learner has mastered every task, its 95 % interval,
and how many times the median of `mr` with the true order that is. `> 9,000 (3 of 10)` says that
only three of ten learners got there in 9,000 time-steps. That limit is `--budget` times the median
of `mr` with the true order, or, if most of its learners do not get there, its own limit.

Every seed has a hidden order of its own, which its learner needs. A share of the tasks is learnable
at first (at least one task):

    chain         parallel chains of equal length, one from each task that is learnable at first
    layers        the other tasks are in n^⅓ layers of equal size; each needs one to three tasks of
                  the layer before it
    independent   all tasks are learnable at first

The tasks have random names. Without an order a program sees them sorted by name. `reversed`, `half`
and `one` are wrong orders, made from the true one; see `mastery.simulation.order`. Programs are
tuned on the hidden orders with seeds below 1000, so the first seed here is 9000.

A simulated time-step takes 0.1 ms with 20 tasks, 0.2 ms with 200 and 5 ms with 2,000, on one core.
So that 2,000 tasks take hours and not days, the learners of larger curricula play more episodes a
time-step and need fewer per task (`SIZES`), and 2,000 tasks have three seeds and only the first
variation, unless `--seeds` and `--variations` say otherwise.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mastery import Curriculum, Task, simulate
from mastery.simulation.order import true_order, without_order
from mastery.simulation.simulate import Learner
from mastery.statistics import Estimate, median_time

SHAPES = ("chain", "layers", "independent")
SHARES = (0.02, 0.1, 0.5)
VARIATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "noise=0": {"noise": 0.0},
    "forgetting=2e-4": {"forgetting": 2e-4},
    "ceiling=0.6": {"ceiling": 0.6},  # the maximum in the curriculum is wrong
}
BEST = "mr/true"  # what the others are compared with
CONTESTANTS = (
    "auto/none",
    "auto/true",
    "auto/reversed",
    "mr/none",
    "mr/reversed",
    "gprop-linreg/none",
    "learnability/none",
    "uniform/none",
)


class Size(NamedTuple):
    """What depends on the number of tasks."""

    tasks: int  # up to this number
    episodes: int  # per time-step
    effort: float  # episodes to learn a task
    seeds: int
    variations: tuple[str, ...]


SIZES = (
    Size(50, 16, 1000.0, 10, tuple(VARIATIONS)),
    Size(500, 64, 400.0, 10, tuple(VARIATIONS)),
    Size(5000, 256, 100.0, 3, ("default",)),
)


class Situation(NamedTuple):
    """One line of the table."""

    shape: str
    share: float
    tasks: int
    variation: str


class Run(NamedTuple):
    """One learner: a line of the csv file."""

    situation: Situation
    contestant: str  # PROGRAM/ORDER
    seed: int
    steps: float  # inf if it did not master every task
    budget: int


def size_of(n: int) -> Size:
    return next(size for size in SIZES if n <= size.tasks)


def learnable(n: int, share: float) -> int:
    """The number of tasks that are learnable at first."""
    return max(round(share * n), 1)


def hidden(shape: str, n: int, share: float, seed: int) -> Curriculum:
    """A hidden order; see the module's docstring."""
    random = np.random.default_rng([seed, n])
    names = [f"task-{i:04d}" for i in random.permutation(n)]
    first = n if shape == "independent" else learnable(n, share)
    after: list[tuple[str, ...]] = [()] * n
    if shape == "chain":
        after[first:] = [(name,) for name in names[: n - first]]
    elif shape == "layers":
        before = names[:first]
        for layer in np.array_split(np.arange(first, n), round(n ** (1 / 3))):
            for i in layer:
                number = min(int(random.integers(1, 4)), len(before))
                after[i] = tuple(random.choice(before, number, replace=False).tolist())
            before = [names[i] for i in layer] or before
    tasks = sorted(zip(names, after, strict=True))
    return Curriculum((Task(name, after=a) for name, a in tasks), name=f"{shape}-{n}-{seed}")


def seen(order: str, true: Curriculum) -> Curriculum:
    """The tasks with the order that a program gets."""
    if order == "true":
        return true
    if order == "none":  # by name, since a curriculum has its tasks in the sequence of its order
        return Curriculum(sorted(without_order(true), key=lambda task: task.name))
    return true_order(order, true)


def measure(
    at: Situation, contestant: str, seeds: Iterable[int], budget: int | None = None
) -> list[Run]:
    program, _, order = contestant.rpartition("/")
    size = size_of(at.tasks)
    runs = []
    for seed in seeds:
        true = hidden(at.shape, at.tasks, at.share, seed)
        learner = Learner(
            episodes=size.episodes, effort=size.effort, order=true, **VARIATIONS[at.variation]
        )
        (found,) = simulate(
            seen(order, true),
            [program],
            seeds=1,
            seed=seed,
            steps=budget,
            learner=learner,
            backend="numpy",  # as fast as JAX here, where every learner has another order
        )
        runs.append(Run(at, contestant, seed, float(found.steps[0]), found.budget))
    return runs


def compare(
    at: Situation, contestants: Iterable[str], seeds: range, budget: float
) -> Iterator[list[Run]]:
    """The runs of `mr` with the true order, then those of the others."""
    runs = measure(at, BEST, seeds)
    yield runs
    best = median(runs).value
    limit = math.ceil(budget * best) if best < math.inf else runs[0].budget
    for contestant in contestants:
        if at.shape != "independent" or contestant.endswith("/none"):  # else there is no order
            yield measure(at, contestant, seeds, limit)


def median(runs: list[Run]) -> Estimate:
    return median_time(np.array([run.steps for run in runs]))


def cell(runs: list[Run], best: float) -> str:
    """`1,831 (1,810 … 1,850); 1.00`: the median, its interval, and its ratio to the best."""
    if not runs:
        return "–"
    value, low, high = median(runs)
    if value < math.inf:
        more, end = "", f"{high:,.0f}" if high < math.inf else "∞"
        text = f"{value:,.0f} ({low:,.0f} … {end})"
    else:
        more, value = "> ", runs[0].budget
        finished = sum(run.steps < math.inf for run in runs)
        text = f"> {value:,} ({finished} of {len(runs)})"
    return f"{text}; {more}{value / best:.2f}" if best < math.inf else text


def heading(contestants: Iterable[str]) -> str:
    cells = ["order", "tasks", "learnable at first", "learner"]
    for program, _, order in (contestant.rpartition("/") for contestant in contestants):
        cells.append(f"`{program}`, {'no' if order == 'none' else order} order")
    return f"| {' | '.join(cells)} |\n|{' --- |' * len(cells)}"


def line(at: Situation, runs: list[Run], contestants: Iterable[str]) -> str:
    by = {c: [run for run in runs if run.contestant == c] for c in contestants}
    best = median(by[BEST]).value
    first = at.tasks if at.shape == "independent" else learnable(at.tasks, at.share)
    cells = [at.shape, f"{at.tasks:,}", f"{first:,}", at.variation]
    return f"| {' | '.join(cells + [cell(own, best) for own in by.values()])} |"


def read(path: Path) -> list[Run]:
    with path.open(newline="") as file:
        return [
            Run(
                Situation(r["shape"], float(r["share"]), int(r["tasks"]), r["variation"]),
                r["contestant"],
                int(r["seed"]),
                float(r["steps"]),
                int(r["budget"]),
            )
            for r in csv.DictReader(file)
        ]


def redraw(path: Path) -> None:
    runs = read(path)
    contestants = list(dict.fromkeys(run.contestant for run in runs))
    print(heading(contestants))
    for at, own in groupby(runs, lambda run: run.situation):
        print(line(at, list(own), contestants))


def situations(given: argparse.Namespace) -> Iterator[tuple[Situation, int]]:
    """The lines of the table, and the number of seeds."""
    for n in given.tasks:
        size = size_of(n)
        for variation in given.variations or size.variations:
            for shape in given.shapes:
                for share in [1.0] if shape == "independent" else given.shares:
                    yield Situation(shape, share, n, variation), given.seeds or size.seeds


def contestant(text: str) -> str:
    if "/" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} has no order; write PROGRAM/ORDER: {text}/none")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[20, 200, 2000])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES)
    parser.add_argument(
        "--shares", type=float, nargs="+", default=SHARES, help="shares of tasks learnable at first"
    )
    parser.add_argument("--variations", nargs="+", choices=list(VARIATIONS))
    parser.add_argument(
        "--programs", type=contestant, nargs="+", default=CONTESTANTS, metavar="PROGRAM/ORDER"
    )
    parser.add_argument("--seeds", type=int, help="learners per cell; 10, with 2,000 tasks 3")
    parser.add_argument("--seed", type=int, default=9000, help="the first seed")
    parser.add_argument(
        "--budget", type=float, default=5.0, help="limit, in times of mr with the true order"
    )
    parser.add_argument("--out", type=Path, metavar="CSV", help="write a line per learner")
    parser.add_argument("--redraw", type=Path, metavar="CSV", help="only print the table")
    given = parser.parse_args()
    if not all(1 <= n <= SIZES[-1].tasks for n in given.tasks):
        parser.error(f"--tasks must be from 1 to {SIZES[-1].tasks:,}")
    if given.redraw:
        redraw(given.redraw)
        return
    warnings.simplefilter("ignore")  # mr warns that there is no order
    contestants = [BEST, *(c for c in given.programs if c != BEST)]
    lines: list[list[object]] = [[*Situation._fields, *Run._fields[1:]]]
    started = time.monotonic()
    print(heading(contestants), flush=True)
    for at, number in situations(given):
        runs: list[Run] = []
        seeds = range(given.seed, given.seed + number)
        for own in compare(at, contestants[1:], seeds, given.budget):
            runs += own
        print(line(at, runs, contestants), flush=True)
        lines += [[*run.situation, *run[1:]] for run in runs]
        if given.out:
            with given.out.open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(lines)
    print(f"{(time.monotonic() - started) / 60:.1f} minutes", file=sys.stderr)


if __name__ == "__main__":
    main()
