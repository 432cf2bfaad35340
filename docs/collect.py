"""Keeps the curves of training jobs in a small file, so that pictures can be drawn anew.

    python docs/collect.py docs/data/agent.npz final/kc final/om=maze …

A job is called by its directory's name, or by what follows the `=`.
"""

import sys
from pathlib import Path

import numpy as np

from mastery.rundir.results import Results, load_results

POINTS = 100  # of a curve


def collect(result: Results) -> dict[str, np.ndarray]:
    """Labels of the runs, names of the tasks, and both kinds of curves, (points, runs, tasks)."""
    parts = np.array_split(np.arange(len(result.frames)), min(len(result.frames), POINTS))
    ended = np.stack([result.episodes[part].sum(0) for part in parts])
    total = np.stack([np.nansum((result.returns * result.episodes)[part], 0) for part in parts])
    found = {
        "labels": np.array(result.labels),
        "tasks": np.array(result.curriculum.names),
        "frames": result.frames[[part[-1] for part in parts]],
        "training": np.where(ended > 0, total / np.maximum(ended, 1), np.nan).astype(np.float16),
        "share": np.stack([result.share[part].mean(0) for part in parts]).astype(np.float16),
    }
    if len(result.evaluations["sampled"].frames):
        found["evaluated"] = result.evaluations["sampled"].frames
        for policy, evaluations in result.evaluations.items():
            found[policy] = evaluations.returns.astype(np.float16)
    return found


def main(target: str, *jobs: str) -> None:
    kept = {}
    for job in jobs:
        directory, _, name = job.partition("=")
        for key, array in collect(load_results(directory)).items():
            kept[f"{name or Path(directory).name}/{key}"] = array
    np.savez_compressed(target, **kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
