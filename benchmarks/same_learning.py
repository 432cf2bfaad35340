"""Whether two versions learn alike: areas under the curves of the same jobs, program by program.

    python benchmarks/same_learning.py [--before DIR] [--after DIR] [JOB ...]

Each folder holds curves as `mastery paper` keeps them (`OUT/curves`). By default these are the
curves that ship with mastery, trained by XLA's own kernels, and those in docs/data/kernels, trained
by ours. The area is the mean training return over all tasks and frames. Only seeds that both have
are compared; intervals are percentile bootstraps over seeds, 95 %, and the last row's is stratified
by job and program.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from mastery.paper.curves import PaperCurves, load

ROOT = Path(__file__).resolve().parent.parent
JOBS = ["blocked-unlock-pickup-today", "key-corridor-today", "obstructed-maze-today"]
POINTS, DRAWS = 200, 10_000


def areas(curves: PaperCurves, program: str, seeds: list[int], grid: np.ndarray) -> np.ndarray:
    """The mean return of each seed over the frames in `grid`."""
    runs = {int(curves.seeds[run]): run for run in curves.runs[program]}
    means = np.nan_to_num(curves.returns).mean(2)  # a task without episodes counts as 0
    return np.array([np.interp(grid, curves.frames, means[:, runs[s]]).mean() for s in seeds])


def differences(before: np.ndarray, after: np.ndarray, draws: np.random.Generator) -> np.ndarray:
    """Bootstrapped differences of the means."""
    one, two = (draws.choice(x, (DRAWS, len(x))).mean(1) for x in (before, after))
    return two - one


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("jobs", nargs="*", default=JOBS, metavar="JOB")
    parser.add_argument("--before", type=Path, default=ROOT / "mastery" / "paper" / "data")
    parser.add_argument("--after", type=Path, default=ROOT / "docs" / "data" / "kernels")
    given = parser.parse_args()
    draws = np.random.default_rng(0)
    rows = []
    print("| job | program | seeds | before | after | difference |\n|---|---|---:|---:|---:|---:|")
    for name in given.jobs:
        before, after = (load(folder / f"{name}.npz") for folder in (given.before, given.after))
        first = max(before.frames[0], after.frames[0])
        grid = np.linspace(first, min(before.frames[-1], after.frames[-1]), POINTS)
        for program in after.runs:
            each = [{int(x.seeds[run]) for run in x.runs[program]} for x in (before, after)]
            seeds = sorted(each[0] & each[1])
            one, two = (areas(x, program, seeds, grid) for x in (before, after))
            rows.append((one.mean(), two.mean(), differences(one, two, draws)))
            show(name, program, len(seeds), *rows[-1])
    show("all", "all", "", *(np.mean(x, axis=0) for x in zip(*rows, strict=True)))


def show(
    job: str, program: str, seeds: int | str, before: float, after: float, found: np.ndarray
) -> None:
    low, high = np.percentile(found, [2.5, 97.5])
    print(
        f"| {job} | {program} | {seeds} | {before:.3f} | {after:.3f} "
        f"| {after - before:+.3f} ({low:+.3f} … {high:+.3f}) |"
    )


if __name__ == "__main__":
    main()
