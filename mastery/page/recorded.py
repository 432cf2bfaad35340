"""A recorded job as plain data for the page; its parts are the runs.

Parts that have not changed are not read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mastery.errors import MasteryError
from mastery.page.data import TASKS, Entry, first_tasks, fixed_entry, session_entry, span_of
from mastery.page.places import Place
from mastery.page.thinned import Numbers, as_array, document, most_points, thin_scalars
from mastery.rundir.curves import Curves
from mastery.rundir.database import is_training
from mastery.rundir.parts import changed, is_folder, parts_of
from mastery.rundir.results import Results, join, read_part

KEPT = 64  # parts whose curves are cached
BEHIND = 0.05  # a run that lags by more, as a share of the frames, is named


def recorded_entry(place: Place, locked: bool | None = None) -> Entry:
    """What was recorded in a folder, or in one part, and how far it is."""
    parts = _read(place.path)
    job = join(place.path, parts)
    training = job.training if locked is None else locked
    whole = job.job["curriculum"]
    runs = list(zip(job.labels, [p.job["programs"][0] for p in parts], job.seeds, strict=True))
    steps = [int(part.steps[-1]) if len(part.steps) else 0 for part in parts]
    return {
        "key": place.key,
        "name": place.name,
        "path": str(place.path),
        "kind": "recorded",
        "version": _version(job, steps),
        **fixed_entry(first_tasks(whole), whole, runs),
        "unit": job.unit,
        "score": job.score,
        "total": job.total,
        "settings": {},
        "state": "training" if training else "finished" if job.ended else "stopped",
        "ended": job.ended,
        "created": job.created,
        "frames": max(_frames(part) for part in parts),
        "points": len(job.frames),
        "seconds": float(job.seconds[-1]) if len(job.seconds) else 0.0,
        "speed": _speed(parts),
        "checkpoint": None,
        "sessions": [session_entry(*session) for session in job.sessions],
        "clips": False,
        "moments": [],
        "clip_runs": [],
        "notes": _notes(parts, len(whole["names"])),
        "remarks": [remark._asdict() for remark in job.remarks],
    }


def recorded_curves(place: Place, numbers: Numbers = as_array) -> dict[str, Any]:
    """The curves of a recorded job, always all of them."""
    job = join(place.path, _read(place.path))
    curriculum = first_tasks(job.job["curriculum"])
    fewer = _thinned(job, len(job.labels) * len(curriculum))
    updates = np.diff(fewer.steps, prepend=0)
    shown = ("probability", "share", "mastery", "progress", "returns")
    found = {name: getattr(fewer, name) for name in shown}
    found["episodes"] = fewer.episodes / np.maximum(updates, 1)[:, None, None]
    tests = {p: (e.frames, e.returns) for p, e in job.evaluations.items() if len(e.frames)}
    return {
        "bins": 0,
        "from": 0,
        "full": 0,
        "sessions": len(job.sessions),
        **document(fewer.frames, found, tests, None, span_of(curriculum), numbers),
        "seconds": np.round(fewer.seconds, 1).tolist(),
        "steps": fewer.steps.tolist(),
        "scalars": {name: thin_scalars(x) for name, x in job.scalars.items()},
    }


def _read(path: Path) -> list[Results]:
    places = parts_of(path) if is_folder(path) else [path]
    if not places:
        raise MasteryError(f"{path} holds no job yet: nothing was recorded in it")
    return [_part(part, changed(part), is_training(part)) for part in places]


@lru_cache(maxsize=KEPT)
def _part(path: Path, signature: object, training: bool) -> Results:
    return read_part(path, TASKS)


def _thinned(job: Curves, curves: int) -> Curves:
    """At most as many points as the page shows, evenly spaced in frames."""
    most = most_points(curves)
    if len(job.frames) <= most:
        return job
    ends = np.linspace(0, job.frames[-1], most + 1)[1:]
    bins = np.minimum(np.searchsorted(ends, job.frames), most - 1)
    updates = np.diff(job.steps, prepend=0)
    return job.merged(np.flatnonzero(np.diff(bins, prepend=-1)), updates)


def _frames(part: Results) -> float:
    return part.frames[-1].item() if len(part.frames) else 0


def _version(job: Results, steps: Sequence[int]) -> str:
    """A text that differs whenever the curves do."""
    tested = sum(len(e.frames) for e in job.evaluations.values())
    logged = sum(len(x.frames) for x in job.scalars.values())
    whole = ".".join(map(str, steps))
    return f"{job.created}.{len(job.sessions)}.{whole}.{tested}.{logged}.{len(job.remarks)}"


def _speed(parts: Sequence[Results]) -> float | None:
    """Recent frames per second of all runs that are recorded now, or else of the last sessions."""
    live = [part for part in parts if part.training] or list(parts)
    speeds = []
    for part in live:
        own = part.steps > (part.sessions[-1].step if part.sessions else 0)
        frames, seconds = part.frames[own][-20:], part.seconds[own][-20:]
        if len(frames) > 1 and seconds[-1] > seconds[0]:
            speeds.append(float(frames[-1] - frames[0]) / float(seconds[-1] - seconds[0]))
    return sum(speeds) if speeds else None


def _notes(parts: Sequence[Results], tasks: int) -> list[str]:
    notes = []
    if tasks > TASKS:
        notes.append(f"The first {TASKS} of {tasks:,} tasks are shown; shares are among these.")
    most = max(_frames(part) for part in parts)
    several = len({part.labels for part in parts}) > 1
    for part in parts:
        if (at := _frames(part)) < (1 - BEHIND) * most:
            who = f"{part.labels[0]}, seed {part.seeds[0]}" if several else f"seed {part.seeds[0]}"
            how = "is at" if part.training else "ended at"
            notes.append(
                f"{who} {how} {at:,.0f} {part.unit}; its last values are shown after that."
            )
    return notes
