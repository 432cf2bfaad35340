"""Programs that choose prompts for a synthetic language model, one table: are they worth it?

    python benchmarks/prompts.py                    # the whole table: 6 minutes on one core
    python benchmarks/prompts.py --programs auto    # some rows anew; the others as they were saved
    python benchmarks/prompts.py --redraw FILE      # the table of runs that were saved

2,000 prompts in 20 categories, and 200 time-steps with 64 groups of 8 completions; the model is in
mastery/simulation/prompts.py. The tasks are the prompts, or the categories, with prompts drawn
evenly in them, or both: `mastery.Prompts`, where prompts are chosen within a category too. With
categories also with the true chain, and with a random one, for programs that follow an order. Pass
rates are on held-out prompts: their mean over training (the area), and at half and at the end of
it. The difference is that of the area from that of `uniform` in the same world and with the same
tasks, seed by seed: if its interval is above 0, the program is better. Values are means of the
middle half of the seeds, with 95 % bootstrap intervals. The last columns are the shares of groups
that all passed or all failed, and of prompts never drawn. `--levels` instead compares all kinds of
tasks with categories under `uniform`.

Seeds below 1000 are for tuning programs; those from 9000 only for reports.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mastery.errors import MasteryError
from mastery.programs.own import read_program
from mastery.simulation.prompts import ChosenFrom, KnownOrder, PromptWorld, simulate_prompts
from mastery.statistics import Estimate, Floats, interquartile_mean, interval

PROGRAMS = (
    "uniform",
    "auto",
    "mr",
    "gprop-linreg",
    "learnability",
    "mopps",
    "greso",
    "sec",
    "dump",
    "plr",
    "uniform:gate=zero-variance",
)
FOLLOW_ORDER = ("mr", "auto")
WORLDS = {
    "plain": PromptWorld(),
    "chain": PromptWorld(chain=True),
    "common": PromptWorld(common=0.5),
    "memorised": PromptWorld(memorised=0.3),
    "broken": PromptWorld(broken=0.2),
    "hard": PromptWorld(easiest=1, hardest=7),  # few prompts have a signal at first
}
TASKS: tuple[ChosenFrom, ...] = ("prompts", "categories", "both")
HEADS = ("area", "difference", "at half", "at the end", "no signal", "never drawn")


class Key(NamedTuple):
    """What a run is of, besides its seed."""

    world: str
    tasks: ChosenFrom
    program: str
    order: KnownOrder


class Result(NamedTuple):
    """What is saved of a run."""

    area: float
    half: float
    end: float
    wasted: float
    unseen: float


Runs = dict[Key, dict[int, Result]]  # by seed


def keys(worlds: Sequence[str], tasks: Sequence[ChosenFrom], programs: Sequence[str]) -> list[Key]:
    """The rows of the table."""
    found = []
    for world in worlds:
        for kind in tasks:
            for program in programs:
                follows = kind != "prompts" and program.partition(":")[0] in FOLLOW_ORDER
                orders: tuple[KnownOrder, ...] = ("none", "true", "shuffled")
                found += [Key(world, kind, program, o) for o in (orders if follows else orders[:1])]
    return found


def run(key: Key, steps: int, seeds: int, seed: int) -> dict[int, Result]:
    (found,) = simulate_prompts(
        [key.program],
        WORLDS[key.world],
        tasks=key.tasks,
        order=key.order,
        steps=steps,
        seeds=seeds,
        seed=seed,
    )
    half, end = found.passed[:, steps // 2], found.passed[:, -1]
    columns = np.stack([found.area, half, end, found.wasted, found.unseen])
    columns = columns.T.round(6)  # as saved, so that a table drawn anew is the same
    return {seed + i: Result(*values) for i, values in enumerate(columns.tolist())}


def save(path: Path, runs: Runs, steps: int) -> None:
    """Write all runs to a file, one per line; an interrupt leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    with new.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*Key._fields, "steps", "seed", *Result._fields])
        for key, found in runs.items():
            for seed, result in sorted(found.items()):
                writer.writerow([*key, steps, seed, *result])
    new.replace(path)


def load(path: Path) -> tuple[Runs, int]:
    """The runs of a file, and their number of time-steps."""
    runs: Runs = {}
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        key = Key(*(line[name] for name in Key._fields))  # type: ignore[arg-type]
        result = Result(*(float(line[name]) for name in Result._fields))
        runs.setdefault(key, {})[int(line["seed"])] = result
    return runs, int(lines[0]["steps"])


def estimate(values: Floats) -> Estimate:
    return interval(interquartile_mean, values[:, None])


def difference(own: dict[int, Result], base: dict[int, Result]) -> str:
    """`+0.031 (+0.020 … +0.042)`: the area's difference from the base, over the seeds of both."""
    both = sorted(own.keys() & base.keys())
    if own is base or not both:
        return "–"
    found = estimate(np.array([own[seed].area - base[seed].area for seed in both]))
    return f"{found.value:+.3f} ({found.low:+.3f} … {found.high:+.3f})"


def table(runs: Runs, steps: int) -> None:
    seeds = sorted({seed for found in runs.values() for seed in found})
    print(f"{steps} time-steps, seeds {seeds[0]} to {seeds[-1]}.\n")
    print("| world | tasks | program | " + " | ".join(HEADS) + " |")
    print("|" + " --- |" * (3 + len(HEADS)))
    programs = [key.program for key in runs]
    every = keys(list(WORLDS), TASKS, sorted(set(programs), key=programs.index))
    for key in [key for key in every if key in runs]:
        own = runs[key]
        base = runs.get(key._replace(program="uniform", order="none"), {})
        order = {"none": "", "true": ", true chain", "shuffled": ", random chain"}[key.order]
        few = f" ({len(own)} seeds)" if len(own) < len(seeds) else ""
        area, half, end, wasted, unseen = (
            estimate(np.array(column)) for column in zip(*own.values(), strict=True)
        )
        cells = [_three(area), difference(own, base), _three(half), _three(end)]
        cells += [f"{x.value:.2f}" for x in (wasted, unseen)]
        start = f"| {key.world} | {key.tasks} | `{key.program}`{order}{few} | "
        print(start + " | ".join(cells) + " |")


def brief(runs: Runs) -> None:
    """The differences of the areas from `uniform` only: a table each for what the tasks are."""
    for tasks in [kind for kind in TASKS if any(key.tasks == kind for key in runs)]:
        worlds = [world for world in WORLDS if any(key.world == world for key in runs)]
        print(f"| {tasks} | " + " | ".join(worlds) + " |")
        print("|" + " --- |" * (1 + len(worlds)))
        rows = dict.fromkeys((k.program, k.order) for k in runs if k.tasks == tasks)
        for program, order in rows:
            if program == "uniform":
                continue
            said = {"none": "", "true": ", true chain", "shuffled": ", random chain"}[order]
            cells = []
            for world in worlds:
                own = runs.get(Key(world, tasks, program, order), {})
                cells.append(difference(own, runs.get(Key(world, tasks, "uniform", "none"), {})))
            print(f"| `{program}`{said} | " + " | ".join(cells) + " |")
        print()


def levels(runs: Runs) -> None:
    """The differences of the areas from categories under `uniform`, without an order."""
    worlds = [world for world in WORLDS if any(key.world == world for key in runs)]
    print("| tasks | program | " + " | ".join(worlds) + " |")
    print("|" + " --- |" * (2 + len(worlds)))
    for tasks in TASKS:
        for program in dict.fromkeys(k.program for k in runs if k.tasks == tasks):
            cells = []
            for world in worlds:
                own = runs.get(Key(world, tasks, program, "none"), {})
                base = runs.get(Key(world, "categories", "uniform", "none"), {})
                cells.append(difference(own, base))
            print(f"| {tasks} | `{program}` | " + " | ".join(cells) + " |")


def _three(found: Estimate) -> str:
    return f"{found.value:.3f} ({found.low:.3f} … {found.high:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="file of runs, or runs/prompts-SEED.csv")
    parser.add_argument("--programs", nargs="+", default=PROGRAMS)
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--steps", type=int, default=200, help="time-steps per run")
    parser.add_argument("--seeds", type=int, default=10, help="runs per row of the table")
    parser.add_argument("--seed", type=int, default=9000, help="the first seed")
    parser.add_argument("--redraw", type=Path, metavar="FILE", help="only print the table")
    parser.add_argument("--levels", action="store_true", help="with --redraw: kinds of tasks")
    parser.add_argument("--brief", action="store_true", help="with --redraw: differences only")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of programs that follow an order, where there is none
    if given.redraw:
        runs, steps = load(given.redraw)
        if given.brief:
            brief(runs)
        elif given.levels:
            levels(runs)
        else:
            table(runs, steps)
        return
    try:
        for program in given.programs:
            read_program(program)  # a wrong name fails now, not after minutes
    except MasteryError as error:
        parser.error(str(error))
    out = given.out or Path(f"runs/prompts-{given.seed}.csv")
    runs, steps = load(out) if out.exists() else ({}, given.steps)
    if steps != given.steps:
        parser.error(f"{out} has runs of {steps} time-steps; give another --out")
    began = time.monotonic()
    rows = keys(given.worlds, given.tasks, given.programs)
    for i, key in enumerate(rows):
        runs[key] = run(key, steps, given.seeds, given.seed)
        save(out, runs, steps)
        if i + 1 == len(rows) or rows[i + 1].world != key.world:
            done = f"{key.world}: row {i + 1} of {len(rows)}"
            print(f"{done}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    table(runs, steps)


if __name__ == "__main__":
    main()
