"""Whether agents that have learned a curriculum stay good: one row per job and program.

    mastery train CURRICULUM --preset fast --seeds 6 --evaluate-every 0 --out DIRECTORY
    python benchmarks/stays_learned.py DIRECTORY ...

Learned: the mean training return of every task over the last five chunks is 0.8 or more. Lost:
later it is less than 0.5 for some task. *While lost* is the share of such chunks in all after the
agent has learned; *at the end* counts the runs that are at 0.8 then. Where a chunk has no episode
of a task, that task's last return counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from mastery.rundir.results import RECENT, Results, load_results

LEARNED, LOST = 0.8, 0.5


def recent_returns(results: Results) -> np.ndarray:
    """(chunks, runs): the least mean return of any task over the last chunks; NaN at first."""
    returns = np.where(results.episodes > 0, results.returns, np.nan)
    for chunk in range(1, len(returns)):
        unseen = np.isnan(returns[chunk])
        returns[chunk][unseen] = returns[chunk - 1][unseen]
    found = np.full(returns.shape[:2], np.nan)
    for chunk in range(RECENT - 1, len(returns)):
        found[chunk] = returns[chunk - RECENT + 1 : chunk + 1].mean(0).min(-1)
    return found


def row(name: str, label: str, frames: np.ndarray, returns: np.ndarray) -> list[str]:
    """Of the runs of a program; `returns` (chunks, runs) is from `recent_returns`."""
    there = [own for own in returns.T if (own >= LEARNED).any()]
    firsts = [int(np.argmax(own >= LEARNED)) for own in there]
    lost = [own[first:] < LOST for own, first in zip(there, firsts, strict=True)]
    after, share = "–", "–"
    if there:
        found = frames[firsts]
        after = f"{np.median(found):.2f} ({found.min():.2f} … {found.max():.2f})"
        share = f"{np.mean([own.mean() for own in lost]):.0%}"
    return [
        name,
        f"`{label}`",
        f"{frames[-1]:.1f}",
        f"{len(there)} of {returns.shape[1]}",
        after,
        f"{sum(own.any() for own in lost)} of {len(there)}",
        share,
        f"{(returns[-1] >= LEARNED).sum()} of {returns.shape[1]}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIRECTORY")
    given = parser.parse_args()
    columns = [
        "job",
        "program",
        "M frames",
        "learned",
        "after M frames",
        "lost",
        "while lost",
        "at the end",
    ]
    print(f"| {' | '.join(columns)} |\n|---|---|{'---:|' * 6}")
    for directory in given.directories:
        results = load_results(directory)
        returns, frames = recent_returns(results), results.frames / 1e6
        for label, runs in results.groups.items():
            print(f"| {' | '.join(row(directory.name, label, frames, returns[:, runs]))} |")


if __name__ == "__main__":
    main()
