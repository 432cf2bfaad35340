"""`auto` without an order, with the true one and with wrong ones, beside other programs.

    python benchmarks/auto.py                    # as in docs/auto.md; on a GPU
    python benchmarks/auto.py --scale 0.01       # a small version, to see that it works
    python benchmarks/auto.py --redraw FOLDER    # the tables of a folder that was trained before
    python benchmarks/auto.py --only addition-9 --out FOLDER

One job per curriculum: every program trains the same number of runs with the same seeds. A seed
counts as learned if its return in training, smoothed, is above 0.5 on every task at the end; the
frames are those until the mean over tasks reaches 0.8. Addition: examples until 99 % of every
task's validation examples are right three epochs running.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from rules import WITHOUT, run  # beside this file

from mastery.comparison.orders import ordered
from mastery.curriculum import Curriculum
from mastery.paper import curves
from mastery.paper.curves import PaperCurves
from mastery.paper.learned import measure
from mastery.programs.own import read_program
from mastery.statistics import Estimate, improvement, interquartile_mean, interval, median_time
from mastery.training.devices import prepare
from mastery.training.job import Job

FIRST_SEED = 8000
NONE = "auto:hint=0"  # equal to `auto` without an order
BEST_MR = "mr:progress=sampling,distribution=boltzmann"  # on addition; see docs/paper.md
BESIDE = {
    NONE: "`auto`, no order",
    "auto": "`auto`, true order",
    "mr": "`mr`, true order",
    WITHOUT: "`mr`, no order",
    "gprop-linreg": "`gprop-linreg`",
    "learnability": "`learnability`",
    "uniform": "`uniform`",
}
SHUFFLED = [f"shuffled:{seed}" for seed in range(1, 6)]
WRONG = {"auto": ["reversed", *SHUFFLED, "half:1", "one:1"]}
WRONG["mr"] = [order for order in WRONG["auto"] if order not in SHUFFLED[2:]]
PARTS = {
    f"{NONE},dark=0.0": "blocks in the dark",
    f"{NONE},cheap=0.0": "costs in the choice of a block",
    f"{NONE},patience=1000000000.0": "patience: the given maximum is believed",
    f"{NONE},sigma=1000000000.0": "replacing a rate that has changed",
    f"{NONE},pool=0.0": "drawing signals towards their mean",
}
CURRICULA = {
    "obstructed-maze": 6_000_000,
    "key-corridor": 3_000_000,
    "blocked-unlock-pickup": 1_500_000,
    "addition-9": 18_000_000,
}


def text(program: str, order: str) -> str:
    """The text of a program with another order."""
    return f"benchmarks/auto.py:{ordered.__name__}:program={program},order={order}"


def programs(curriculum: str) -> tuple[str, ...]:
    if curriculum == "addition-9":
        rest = [p for p in BESIDE if p not in ("auto", "mr")]
        return (rest[0], BEST_MR, *rest[1:])
    wrong = [text(program, order) for program, orders in WRONG.items() for order in orders]
    return (*BESIDE, *wrong, *(PARTS if curriculum == "obstructed-maze" else ()))


def job(curriculum: str, seeds: int, scale: float) -> Job:
    return Job(
        Curriculum.load(curriculum),
        programs(curriculum),
        seeds=seeds,
        seed=FIRST_SEED,
        frames=max(int(CURRICULA[curriculum] * scale), 1),
        chunk=20 if curriculum == "addition-9" else 10,
        evaluate_every=0,
    )


def millions(time: Estimate) -> str:
    low, middle, high = (
        f"{x / 1e6:.1f}M" if np.isfinite(x) else "–" for x in (time.low, time.value, time.high)
    )
    return f"{middle} ({low} … {high})"


def name(program: str) -> str:
    return str(read_program(program))


def row(found: PaperCurves, program: str, reference: str) -> str:
    """`9 of 10 | 3.1M (2.8M … 3.5M) | 0.62 (…) | 0.55 (…)`: the last is the probability that its
    area is above that of the reference."""
    own = measure(found, (), (name(program),))[name(program)]
    areas = [found.area(name(p)).mean(1, keepdims=True) for p in (program, reference)]
    area = interval(interquartile_mean, areas[0])
    better = interval(improvement, *areas)
    return f"{own.learned} of {own.runs} | {millions(own.good)} | {area} | {better}"


def head(found: PaperCurves, first: str, last: str) -> None:
    end = found.frames[-1] / 1e6
    print(f"| {first} | learned at {end:.1f}M | frames to 0.8 | area | {last} |")
    print("| --- | --- | --- | --- | --- |")


def wrong_orders(found: PaperCurves) -> None:
    """Areas with wrong orders, relative to the program's own without one and to `uniform`."""
    mean = {p: found.area(p).mean() for p in found.runs}
    print(
        "| order | `auto`: area | to its own without | to `uniform` | `mr`: area | to `uniform` |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for order in WRONG["auto"]:
        own, other = name(text("auto", order)), name(text("mr", order))
        area = interval(interquartile_mean, found.area(own).mean(1, keepdims=True))
        cells = [
            f"{area}",
            f"{mean[own] / mean[name(NONE)]:.2f}",
            f"{mean[own] / mean['uniform']:.2f}",
        ]
        if other in mean:
            theirs = interval(interquartile_mean, found.area(other).mean(1, keepdims=True))
            cells += [f"{theirs}", f"{mean[other] / mean['uniform']:.2f}"]
        print(f"| {order} | " + " | ".join(cells + ["–"] * (5 - len(cells))) + " |")
    every = [name(text("auto", order)) for order in SHUFFLED]
    both = np.mean([mean[p] for p in every])
    print(f"| mean of the five shuffled | {both:.2f} | {both / mean[name(NONE)]:.2f} | "
          f"{both / mean['uniform']:.2f} | – | – |")  # fmt: skip


def addition(found: PaperCurves) -> None:
    print(f"| program | learned by {found.frames[-1] / 1e6:.0f}M | examples to 99 % | each run |")
    print("| --- | --- | --- | --- |")
    for program in programs("addition-9"):
        if name(program) not in found.runs:
            continue
        solved = found.solved[found.runs[name(program)]]
        times = np.where(np.isfinite(solved) & (solved > 0), solved, np.inf)
        each = ", ".join(f"{t / 1e6:.1f}" if np.isfinite(t) else "–" for t in np.sort(times))
        label = BESIDE.get(program, f"`{program}`, true order")
        print(
            f"| {label} | {np.isfinite(times).sum()} of {len(times)} | "
            f"{millions(median_time(times))} | {each} |"
        )


def tables(folder: Path) -> None:
    for curriculum in CURRICULA:
        path = folder / "curves" / f"{curriculum}.npz"
        if not path.exists():
            continue
        found = curves.load(path)
        print(f"\n**{curriculum}**\n")
        if curriculum == "addition-9":
            addition(found)
            continue
        head(found, "program", "better than `mr`")
        for program, label in BESIDE.items():
            print(f"| {label} | {row(found, program, 'mr')} |")
        print()
        wrong_orders(found)
        if curriculum == "obstructed-maze":
            print()
            head(found, "`auto`, no order, without", "better than with")
            for program, label in PARTS.items():
                print(f"| {label} | {row(found, program, NONE)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/auto"), help="folder of the runs")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the frames")
    parser.add_argument("--minutes", type=float, help="time limit for each curriculum")
    parser.add_argument("--only", choices=list(CURRICULA), help="one curriculum")
    parser.add_argument("--redraw", type=Path, metavar="FOLDER", help="only print the tables")
    given = parser.parse_args()
    if given.redraw:
        tables(given.redraw)
        return
    prepare(os.cpu_count() or 1)
    given.out.mkdir(parents=True, exist_ok=True)
    for curriculum in [given.only] if given.only else CURRICULA:
        new = job(curriculum, given.seeds, given.scale)
        run(curriculum, given.out, new, given.scale, given.minutes)
    tables(given.out)


if __name__ == "__main__":
    main()
