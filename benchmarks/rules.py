"""All rules on two curricula of MiniGrid, one table: which of them teach, with our default agent.

    python benchmarks/rules.py                    # as in docs/rules.md; minutes on a GPU
    python benchmarks/rules.py --scale 0.01       # a small version, to see that it works
    python benchmarks/rules.py --redraw FOLDER    # the table of a folder that was trained before

Every program trains the same number of runs with the same seeds, in one job per curriculum. A seed
counts as learned if its return in training, smoothed, is above 0.5 on every task at the end; the
frames are those until the mean over tasks reaches 0.8.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from mastery.curriculum import Curriculum
from mastery.paper import curves
from mastery.paper.curves import PaperCurves
from mastery.paper.learned import measure
from mastery.paper.run import keep_curves
from mastery.programs.recipe import Recipe
from mastery.statistics import interquartile_mean, interval
from mastery.training.devices import prepare
from mastery.training.job import Job
from mastery.training.train import Progress, TrainOptions, resume, train

WITHOUT = "mr:power=0,successors=0,gamma_pred=0,gamma_succ=0"  # equal to `mr` without an order
PROGRAMS = (
    "mr",
    WITHOUT,
    "gprop-linreg",
    "gprop-linreg:window=50",
    "learnability",
    "learnability-topk",
    "plr",
    "bidirectional",
    "sec",
    "dump",
    "adarft",
    "greso",
    "mopps",
    "odm",
    "ado",
    "uniform",
    "mr:gate=zero-variance",
    "mr:reprobe=0.05",
    "mr:by_cost=1",
    "learnability:by_cost=1",
    "uniform:by_cost=1",
)
CURRICULA = {"obstructed-maze": 6_000_000, "key-corridor": 4_000_000}
FIRST_SEED = 7000


def job(curriculum: str, seeds: int, scale: float, programs: tuple[str, ...] = PROGRAMS) -> Job:
    return Job(
        Curriculum.load(curriculum),
        programs,
        seeds=seeds,
        seed=FIRST_SEED,
        frames=max(int(CURRICULA[curriculum] * scale), 1),
    )


def run(name: str, folder: Path, new: Job, scale: float, minutes: float | None) -> None:
    """Train or resume one curriculum's job, with a line now and then."""
    last = [time.monotonic()]

    def report(progress: Progress) -> None:
        if time.monotonic() - last[0] > 20 or progress.update == progress.updates:
            last[0] = time.monotonic()
            print(
                f"{name}: update {progress.update:,} of {progress.updates:,}, "
                f"{progress.speed / 1e6:.2f}M frames/s",
                flush=True,
            )

    options = TrainOptions(minutes=minutes, report=report, checkpoint_seconds=240)
    directory = folder / name
    if (directory / "run.db").exists():
        resume(directory, options)
    else:
        train(new, directory, options)
    keep_curves(directory, folder, scale)


def cell(found: PaperCurves, program: str) -> str:
    """`9 of 10; 3.1M (2.8M … 3.5M); 0.62`: learned, frames to 0.8, area under the curve."""
    own = measure(found, (), (program,))[program]
    area = interval(interquartile_mean, found.area(program))
    low, high = (f"{x / 1e6:.1f}M" if x < float("inf") else "–" for x in own.good[1:])
    middle = f"{own.good.value / 1e6:.1f}M" if own.good.value < float("inf") else "–"
    return f"{own.learned} of {own.runs} | {middle} ({low} … {high}) | {area}"


def table(folder: Path) -> None:
    found = {
        name: curves.load(folder / "curves" / f"{name}.npz")
        for name in CURRICULA
        if (folder / "curves" / f"{name}.npz").exists()
    }
    heads = [
        f"{name}: learned at {c.frames[-1] / 1e6:.1f}M | frames to 0.8 | area"
        for name, c in found.items()
    ]
    print("| program | " + " | ".join(heads) + " |")
    print("| --- |" + " --- | --- | --- |" * len(found))
    for program in PROGRAMS:
        label = "`mr` without order" if program == WITHOUT else f"`{program}`"
        name = str(Recipe.parse(program))
        cells = [cell(c, name) for c in found.values() if name in c.runs]
        if cells:
            print(f"| {label} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/rules"), help="folder of the runs")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the frames")
    parser.add_argument("--minutes", type=float, help="time limit for each curriculum")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, help="by default all")
    parser.add_argument("--only", choices=list(CURRICULA), help="one curriculum")
    parser.add_argument("--redraw", type=Path, metavar="FOLDER", help="only print the table")
    given = parser.parse_args()
    if given.redraw:
        table(given.redraw)
        return
    prepare(os.cpu_count() or 1)
    given.out.mkdir(parents=True, exist_ok=True)
    for name in [given.only] if given.only else CURRICULA:
        new = job(name, given.seeds, given.scale, tuple(given.programs))
        run(name, given.out, new, given.scale, given.minutes)
    table(given.out)


if __name__ == "__main__":
    main()
