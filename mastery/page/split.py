"""A job trained in parts as plain data for the page: its parts are groups of its runs.

Each part may be at another point, and be trained on another machine. Only new points are read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mastery.page import data
from mastery.page.data import TASKS, Entry
from mastery.page.places import Place
from mastery.page.tail import Tail
from mastery.page.thinned import Numbers, as_array, document, fitting_bins, thin, thin_scalars
from mastery.page.thinned import times_of as times
from mastery.rundir.curves import Curves, Scalars
from mastery.rundir.database import (
    count,
    open_database,
    read_description,
    read_measures,
    read_runs,
    read_solved,
)
from mastery.rundir.milestones import kept_runs
from mastery.rundir.results import joined_end
from mastery.rundir.side_by_side import scalars_side_by_side, side_by_side
from mastery.rundir.split import read_split, split_parts

BEHIND = 0.05  # a part that lags by more, as a share of the frames, is named
KEPT = 256  # parts whose curves are cached


def split_entry(place: Place) -> Entry:
    """What a job in parts trains, and its progress: frames are the mean over its runs."""
    split, paths = read_split(place.path), split_parts(place.path)
    parts = [data.job_entry(Place(path, path.name)) for path in paths]
    sizes = [end - first for first, end in split.runs]
    runs = tuple(run for path in paths for run in _runs(path))
    live = [part for part in parts if part["state"] == "training"]
    ended = joined_end([part["ended"] for part in parts])
    speeds = [part["speed"] for part in live or parts if part["speed"] is not None]
    done = sum(size * part["frames"] for size, part in zip(sizes, parts, strict=True))
    checkpoints = [part["checkpoint"] for part in parts]
    return {
        **parts[0],
        "key": place.key,
        "name": place.name,
        "path": str(place.path),
        "version": "_".join(part["version"] for part in parts),
        **data.fixed(json.dumps(split.job), runs),
        "changes": [changes for part in parts for changes in part["changes"]],
        "state": "training" if live else "finished" if ended else "stopped",
        "ended": ended,
        "created": split.created,
        "frames": done // sum(sizes),
        "points": max(part["points"] for part in parts),
        "seconds": max(part["seconds"] for part in parts),
        "speed": sum(speeds) if speeds else None,
        # the oldest: what every run has
        "checkpoint": None if None in checkpoints else min(checkpoints, key=lambda c: c["step"]),
        "sessions": sorted((s for p in parts for s in p["sessions"]), key=lambda s: s["started"]),
        "clips": any(part["clips"] for part in parts),
        "moments": sorted({moment for part in parts for moment in part["moments"]}),
        "clip_runs": kept_runs([label for label, *_ in runs]),
        "notes": [*parts[0]["notes"], *_lagging(split.runs, parts)],
    }


def _runs(path: Path) -> list[tuple[str, str, int]]:
    with open_database(path) as db:
        return [(label, program, seed) for label, program, seed, _ in read_runs(db)]


def _lagging(runs: Sequence[tuple[int, int]], parts: Sequence[Entry]) -> list[str]:
    """A line for each part that is far behind the one with the most frames."""
    most, notes = max(part["frames"] for part in parts), []
    for (first, end), part in zip(runs, parts, strict=True):
        if part["frames"] < (1 - BEHIND) * most and part["ended"] is None:
            seeds = sorted({seed for _, seed in part["runs"]})
            which = f"Run {first}" if end - first == 1 else f"Runs {first} to {end - 1}"
            some = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
            labels = ", ".join(program["label"] for program in part["programs"])
            notes.append(
                f"{which} ({labels}; {some}) are at {part['frames']:,} {part['unit']}; their last "
                "values are shown after that."
            )
    return notes


def split_curves(place: Place, numbers: Numbers = as_array) -> dict[str, Any]:
    """The curves of a job in parts, always all of them."""
    job = read_split(place.path).job
    parts = [_read(path) for path in split_parts(place.path)]
    curves = side_by_side([found for found, *_ in parts], sum(len(x.steps) for x, *_ in parts) + 1)
    runs = [found.mastery.shape[1] for found, *_ in parts]
    curriculum = data.first_tasks(job["curriculum"])
    k = fitting_bins(len(curves.steps), sum(runs), len(curriculum))
    chunk = int(job["chunk"])
    addition = job["environments"] == "addition"
    solved = np.concatenate([solved for _, _, solved, _ in parts]) if addition else None
    scalars = scalars_side_by_side([measures for _, measures, _, _ in parts], runs)
    return {
        "bins": k,
        "from": 0,
        "full": 0,
        "sessions": sum(sessions for *_, sessions in parts),
        **document(*thin(curves, chunk, k), solved, data.span_of(curriculum), numbers),
        **times(curves, chunk, k),
        "scalars": {name: thin_scalars(x) for name, x in scalars.items()},
    }


@lru_cache(maxsize=KEPT)
def _tail(path: Path) -> Tail:
    return Tail()


def _read(path: Path) -> tuple[Curves, dict[str, Scalars], Any, int]:
    """A part's curves, its learner's numbers, when runs had learned, and its sessions."""
    with open_database(path) as db:
        job, created, _ = read_description(path, db)
        runs, calls = count(db, "runs"), count(db, "sessions")
        tasks = min(count(db, "tasks"), TASKS)
        which = (created, calls, json.dumps(job))
        curves = _tail(path).read(db, which, runs, tasks, after=0)
        _tail(path).keep(which, curves, after=0)
        measures = {name: Scalars(*x) for name, x in read_measures(db, 0, runs).items()}
        return curves, measures, read_solved(db, runs), calls
