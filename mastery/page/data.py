"""A job as plain data for the page: what it is and how it stands, and its curves, thinned out.

A run directory is read by `job_entry`, small and cheap, and by `job_curves`. (`mastery.paper` makes
the same of the curves that are kept of its jobs.)

What is made of a job's description is kept under its very text, so there is nothing to forget when
a directory is replaced.

Curves are thinned by putting 2^k points together, with k as small as the page can take. A point of
the page that is full never changes, so that a page that follows a training job asks for the last
one and what comes after it.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mastery
from mastery.curriculum import Curriculum
from mastery.drawing.axes import PALETTE, PROGRAM_COLOURS, task_colours
from mastery.drawing.pictures import places
from mastery.errors import MasteryError
from mastery.page.places import Place, Problem
from mastery.programs.catalogue import Recipe
from mastery.rundir.database import is_training, open_database, read_text, total_frames
from mastery.rundir.metrics import SCORES
from mastery.rundir.results import Curves, has_progress, read_curves, read_solved

POINTS = 240  # of a curve; more cannot be told apart
FEWEST = 24  # of a curve, however many there are
CELLS = 400_000  # points × runs × tasks of a job, if FEWEST allows
TASKS = 200  # that are shown, the first in the curriculum's order
KEPT = 64  # jobs of which it is kept what follows from their descriptions

Floats = NDArray[np.float64]
Entry = dict[str, Any]
Numbers = Callable[[Floats], Any]  # an array (points, runs, tasks) as it is sent
Runs = tuple[tuple[str, str, int], ...]  # of each run its label, program and seed


def index(entries: Sequence[Entry], problems: Sequence[Problem], live: bool) -> dict[str, Any]:
    """What there is: jobs without their curves."""
    return {
        "mastery": mastery.__version__,
        "live": live,
        "jobs": list(entries),
        "problems": [vars(problem) for problem in problems],
        "colours": PROGRAM_COLOURS,
        "palette": PALETTE,
    }


def job_entry(place: Place, locked: bool | None = None) -> Entry:
    """A run directory: what it trains, and how it stands.

    locked: whether a process holds it, if that is known.
    """
    with open_database(place.path) as db:
        text, created, ended = read_text(place.path, db)
        job = _described(text)
        runs = tuple(db.execute("SELECT label, program, seed FROM runs ORDER BY run"))
        chunks = db.execute(
            "SELECT step, frames, seconds FROM chunks ORDER BY step DESC LIMIT 20"
        ).fetchall()
        sessions = db.execute(
            "SELECT started, step, command, versions, hardware FROM sessions ORDER BY rowid"
        ).fetchall()
        (points,) = db.execute("SELECT count(*) FROM chunks").fetchone()
        (tested,) = db.execute("SELECT coalesce(max(step), 0) FROM evaluation").fetchone()
        fixed = _fixed(text, runs)
        notes = _notes(db, job.count)
        checkpoint = _checkpoint(place.path, db)
    step, frames, _ = chunks[0] if chunks else (0, 0, 0.0)
    training = ended is None and (is_training(place.path) if locked is None else locked)
    return {
        "key": place.key,
        "name": place.name,
        "path": str(place.path),
        "version": f"{created}.{len(sessions)}.{step}.{tested}",
        **fixed,
        "state": "training" if training else "finished" if ended else "stopped",
        "ended": ended,
        "created": created,
        "frames": frames,
        "points": points,
        "seconds": chunks[0][2] if chunks else 0.0,
        "speed": _speed(chunks, len(runs), sessions[-1][1] if sessions else 0),
        "checkpoint": checkpoint,
        "sessions": [_session(*session) for session in sessions],
        "clips": not job.addition and checkpoint is not None,
        "notes": notes,
    }


@dataclass(frozen=True)
class _Job:
    """What follows from the description of a job, which hardly ever changes."""

    count: int  # of tasks
    tasks: int  # of these, that are shown
    chunk: int  # updates from point to point
    span: float  # of the returns
    addition: bool


@lru_cache(maxsize=KEPT)
def _described(text: str) -> _Job:
    job = json.loads(text)
    curriculum = Curriculum.from_dict(_first_tasks(job["curriculum"]))
    return _Job(
        count=len(job["curriculum"]["names"]),
        tasks=len(curriculum),
        chunk=int(job["chunk"]),
        span=span_of(curriculum),
        addition=job["environments"] == "addition",
    )


@lru_cache(maxsize=KEPT)
def _fixed(text: str, runs: Runs) -> Entry:
    """The part of an entry that follows from the description and the runs."""
    job = json.loads(text)
    curriculum = Curriculum.from_dict(_first_tasks(job["curriculum"]))
    return {
        **what(curriculum, job["curriculum"], runs),
        "unit": job["unit"],
        "score": SCORES[job["unit"]],
        "total": total_frames(job),
        "settings": job["settings"],
    }


def as_lists(x: Floats) -> Any:
    """Numbers by run, task and point: small when it is packed with others, but slow to write."""
    return np.moveaxis(x, 0, 2).tolist()


def as_bytes(x: Floats) -> Any:
    """The same numbers, in a tenth of the time."""
    ordered = np.ascontiguousarray(np.moveaxis(x, 0, 2), "<f8")
    return {"shape": ordered.shape, "float64": base64.b64encode(ordered.tobytes()).decode()}


class Tail:
    """Points that are put together with those to come: kept, they are read once, not each time.

    They are dropped if they are not those of the directory any more: if it was replaced, or the job
    went on from before.
    """

    def __init__(self) -> None:
        self._kept: tuple[object, int, Curves] | None = None  # of what, after which update

    def read(
        self, db: sqlite3.Connection, which: object, runs: int, tasks: int, after: int
    ) -> Curves:
        """The points after an update, those that are kept and those in the database."""
        before = self._kept  # which another page may change meanwhile
        if before is not None:
            of, begin, kept = before
            if of == which and begin <= after <= kept.steps[-1] and _is_written(db, kept):
                later = read_curves(db, runs, tasks, after=int(kept.steps[-1]))
                return kept.after(after).then(later)
        return read_curves(db, runs, tasks, after)

    def keep(self, which: object, curves: Curves, after: int) -> None:
        """Those after an update, if there are any."""
        rest = curves.after(after)
        self._kept = (which, after, rest) if len(rest.steps) else None


def _is_written(db: sqlite3.Connection, curves: Curves) -> bool:
    """Whether the last point is that of the database. Its time is a clock's, so it tells."""
    row = db.execute("SELECT seconds FROM chunks WHERE step = ?", (int(curves.steps[-1]),))
    return bool(row.fetchone() == (float(curves.seconds[-1]),))


def job_curves(
    place: Place,
    bins: int | None = None,
    since: int = 0,
    sessions: int | None = None,
    numbers: Numbers = as_lists,
    tail: Tail | None = None,
) -> dict[str, Any]:
    """The curves of a run directory, or of those what is new.

    bins, since, sessions: what the page has: so many points put together as a power of two, full
    points, and calls of `train`. If any of them has changed, everything is given. tail: for who
    asks again and again.
    """
    tail = tail or Tail()
    with open_database(place.path) as db:
        text, created, _ = read_text(place.path, db)
        job = _described(text)
        (runs,) = db.execute("SELECT count(*) FROM runs").fetchone()
        (points,) = db.execute("SELECT count(*) FROM chunks").fetchone()
        (calls,) = db.execute("SELECT count(*) FROM sessions").fetchone()
        k = fitting_bins(points, runs, job.tasks)
        if bins != k or sessions != calls or not 0 <= since <= points >> k:
            since = 0
        which = (text, created, calls)
        curves = tail.read(db, which, runs, job.tasks, after=(since << k) * job.chunk)
        solved = read_solved(db, runs) if job.addition else None
    full = since + (len(curves.steps) >> k)
    tail.keep(which, curves, after=(full << k) * job.chunk)
    return {
        "bins": k,
        "from": since,
        "full": full,
        "sessions": calls,
        **document(*thin(curves, job.chunk, k), solved, job.span, numbers),
    }


def fitting_bins(points: int, runs: int, tasks: int) -> int:
    """How many points are put together, as a power of two."""
    most = min(max(CELLS // max(runs * tasks, 1), FEWEST), POINTS)
    k = 0
    while -(-points >> k) > most:
        k += 1
    return k


Tests = dict[str, tuple[NDArray[np.int64], Floats]]  # by policy: frames, returns


def thin(curves: Curves, chunk: int, k: int) -> tuple[NDArray[np.int64], dict[str, Floats], Tests]:
    """2^k points in one: means and sums over them, mastery and progress as they are at its end."""
    bins = (curves.steps // chunk - 1) >> k
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    ends = np.append(starts[1:], len(bins))[: len(starts)] - 1

    def total(x: NDArray[Any]) -> NDArray[Any]:
        return np.add.reduceat(x, starts, axis=0) if len(starts) else x

    episodes, played = total(curves.episodes), total(curves.played)
    gained = total(np.where(curves.episodes > 0, curves.returns * curves.episodes, 0.0))
    count = total(np.ones((len(bins), 1, 1)))
    found = {
        "probability": total(curves.probability) / count,
        "share": played / np.maximum(played.sum(axis=2, keepdims=True), 1),
        "mastery": curves.mastery[ends],
        "progress": curves.progress[ends],
        "returns": np.where(episodes > 0, gained / np.maximum(episodes, 1), np.nan),
    }
    tests = {p: (e.frames, e.returns) for p, e in curves.evaluations.items() if len(e.frames)}
    return curves.frames[ends], found, tests


def to_json(document: Mapping[str, Any]) -> str:
    """Compact, and what is not a number is null. Only for what holds no text, but for keys."""
    return json.dumps(document, separators=(",", ":")).replace("NaN", "null")


NO_PROGRESS = (
    "Learning progress β was not kept in this job, so the second factor of equation 1, and with it "
    "the attention, cannot be shown."
)


def what(
    curriculum: Curriculum, whole: Mapping[str, Any], runs: Sequence[tuple[str, str, int]]
) -> Entry:
    """The part of an entry that never changes: the tasks that are shown, of the whole curriculum;
    programs; and runs, each with its label, program and seed."""
    labels = list(dict.fromkeys(label for label, _, _ in runs))
    program_of = {label: program for label, program, _ in runs}
    return {
        "curriculum": {
            "name": whole["name"],
            "count": len(whole["names"]),
            "fingerprint": curriculum.fingerprint,
            "tasks": list(curriculum.names),
            "minimum": curriculum.minimum.tolist(),
            "maximum": curriculum.maximum.tolist(),
            "edges": curriculum.edges.tolist(),
            "places": places(curriculum),
            "colours": task_colours(len(curriculum)),
        },
        "programs": [{"label": label, **_program(program_of[label])} for label in labels],
        "runs": [[labels.index(label), seed] for label, _, seed in runs],
    }


def _program(text: str) -> dict[str, Any]:
    """What the page must know of a program to tell why a task has its probability."""
    recipe = Recipe.parse(text)
    return {
        "name": recipe.name,
        "progress": recipe.progress,
        "attention": recipe.attention,
        "distribution": recipe.distribution,
        "full": recipe.full,
        "settings": dict(recipe.settings),
    }


def _first_tasks(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The first tasks of a curriculum. It is in topological order, so their ancestors are there."""
    names = whole["names"][:TASKS]
    return {
        "name": whole["name"],
        "names": names,
        "minimum": whole["minimum"][:TASKS],
        "maximum": whole["maximum"][:TASKS],
        "edges": [edge for edge in whole["edges"] if edge[1] < TASKS],
        "settings": {},
    }


def _notes(db: sqlite3.Connection, tasks: int) -> list[str]:
    notes = []
    if tasks > TASKS:
        notes.append(f"The first {TASKS} of {tasks:,} tasks are shown; shares are among these.")
    if not has_progress(db):
        notes.append(NO_PROGRESS)
    return notes


def _checkpoint(path: Path, db: sqlite3.Connection) -> dict[str, Any] | None:
    """The last one: after how many updates, and when."""
    row = db.execute("SELECT step, file FROM checkpoints ORDER BY step DESC LIMIT 1").fetchone()
    if row is None:
        return None
    try:
        when: float | None = round((path / "checkpoints" / Path(row[1]).name).stat().st_mtime, 1)
    except OSError:
        when = None
    return {"step": row[0], "time": when}


def _speed(chunks: Sequence[tuple[int, int, float]], runs: int, first: int) -> float | None:
    """Frames a second of all runs together, lately, within the last call of `train`."""
    own = [chunk for chunk in chunks if chunk[0] > first]
    if len(own) < 2 or own[0][2] <= own[-1][2]:
        return None
    return (own[0][1] - own[-1][1]) * runs / (own[0][2] - own[-1][2])


def _session(started: str, step: int, command: str, versions: str, hardware: str) -> dict[str, Any]:
    on = json.loads(hardware)
    return {
        "started": started,
        "command": command or "called from Python",
        "on": f"{on.get('devices', '?')} × {on.get('device', '?')}, {on.get('cores', '?')} cores; "
        + ", ".join(f"{name} {version}" for name, version in json.loads(versions).items()),
    }


def span_of(curriculum: Curriculum) -> float:
    return float((curriculum.maximum - curriculum.minimum)[:TASKS].max())


def document(
    frames: NDArray[np.int64],
    found: Mapping[str, Floats],
    tests: Tests,
    solved: Floats | None,
    span: float,
    numbers: Numbers = as_lists,
) -> dict[str, Any]:
    """Rounded, and by run, task and point, as the page reads it."""
    digits = int(np.clip(3 - np.floor(np.log10(span)), 0, 12))
    rounded = {
        "probability": np.round(found["probability"], 4),
        "share": np.round(found["share"], 4),
        "mastery": np.round(found["mastery"], 4),
        "progress": _significant(found["progress"]),
        "returns": np.round(found["returns"], digits),
    }
    known = {name: x for name, x in rounded.items() if not np.isnan(x).all() or name != "progress"}
    return {
        "frames": frames.tolist(),
        "solved": None if solved is None else [None if np.isnan(x) else float(x) for x in solved],
        **{name: numbers(x) for name, x in known.items()},
        "evaluations": {
            policy: {"frames": when.tolist(), "returns": numbers(np.round(scores, digits))}
            for policy, (when, scores) in tests.items()
        },
    }


def _significant(x: Floats, digits: int = 4) -> Floats:
    """Rounded to so many digits that count."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(x))))
        found: Floats = np.where(x == 0, 0.0, np.round(x * scale) / scale)
    return found


def read_entries(places: Sequence[Place]) -> tuple[list[Entry], list[Problem]]:
    """Those that can be read, and what is wrong with the others."""
    entries, problems = [], []
    for place in places:
        try:
            entries.append(job_entry(place))
        except MasteryError as error:
            problems.append(Problem(str(place.path), str(error)))
    return entries, problems
