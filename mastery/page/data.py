"""A job as plain data for the page: what it is and how it stands, and its curves, thinned out.

A run directory is read by `job_entry`, small and cheap, and by `job_curves`. (`mastery.paper` makes
the same of the curves that are kept of its jobs.)

Curves are thinned by putting 2^k points together, with k as small as the page can take. A point of
the page that is full never changes, so that a page that follows a training job asks for the last
one and what comes after it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mastery
from mastery.curriculum import Curriculum
from mastery.draw import places
from mastery.errors import MasteryError
from mastery.page.found import Place, Problem
from mastery.plot import PALETTE, PROGRAM_COLOURS, task_colours
from mastery.recipe import Recipe
from mastery.runs.database import is_training, open_database, read_description, total_frames
from mastery.runs.loop import SCORES
from mastery.runs.results import Results, load_results

POINTS = 240  # of a curve; more cannot be told apart
FEWEST = 24  # of a curve, however many there are
CELLS = 400_000  # points × runs × tasks of a job, if FEWEST allows
TASKS = 200  # that are shown, the first in the curriculum's order

Floats = NDArray[np.float64]
Entry = dict[str, Any]


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


def job_entry(place: Place) -> Entry:
    """A run directory: what it trains, and how it stands."""
    with open_database(place.path) as db:
        job, created, ended = read_description(place.path, db)
        runs = db.execute("SELECT label, program, seed FROM runs ORDER BY run").fetchall()
        chunks = db.execute(
            "SELECT step, frames, seconds FROM chunks ORDER BY step DESC LIMIT 20"
        ).fetchall()
        sessions = db.execute(
            "SELECT started, step, command, versions, hardware FROM sessions ORDER BY rowid"
        ).fetchall()
        (points,) = db.execute("SELECT count(*) FROM chunks").fetchone()
        (tested,) = db.execute("SELECT coalesce(max(step), 0) FROM evaluation").fetchone()
        notes = _notes(db, len(job["curriculum"]["names"]))
        checkpoint = _checkpoint(place.path, db)
    step, frames, _ = chunks[0] if chunks else (0, 0, 0.0)
    training = ended is None and is_training(place.path)
    return {
        "key": place.key,
        "name": place.name,
        "path": str(place.path),
        "version": f"{len(sessions)}.{step}.{tested}",
        **what(Curriculum.from_dict(_first_tasks(job["curriculum"])), job["curriculum"], runs),
        "unit": job["unit"],
        "score": SCORES[job["unit"]],
        "state": "training" if training else "finished" if ended else "stopped",
        "ended": ended,
        "created": created,
        "frames": frames,
        "total": total_frames(job),
        "points": points,
        "seconds": chunks[0][2] if chunks else 0.0,
        "speed": _speed(chunks, len(runs), sessions[-1][1] if sessions else 0),
        "checkpoint": checkpoint,
        "sessions": [_session(*session) for session in sessions],
        "settings": job["settings"],
        "clips": job["environments"] != "addition" and checkpoint is not None,
        "notes": notes,
    }


def job_curves(
    place: Place, bins: int | None = None, since: int = 0, sessions: int | None = None
) -> dict[str, Any]:
    """The curves of a run directory, or of those what is new.

    bins, since, sessions: what the page has: so many points put together as a power of two, full
    points, and calls of `train`. If any of them has changed, everything is given.
    """
    path = place.path
    with open_database(path) as db:
        job, _, _ = read_description(path, db)
        (points,) = db.execute("SELECT count(*) FROM chunks").fetchone()
        (runs,) = db.execute("SELECT count(*) FROM runs").fetchone()
        (calls,) = db.execute("SELECT count(*) FROM sessions").fetchone()
    k = fitting_bins(points, runs, min(len(job["curriculum"]["names"]), TASKS))
    if bins != k or sessions != calls or not 0 <= since <= points >> k:
        since = 0
    chunk = int(job["chunk"])
    results = load_results(path, after=(since << k) * chunk, tasks=TASKS)
    full = since + (len(results.steps) >> k)
    whole = thin(results, chunk, k)
    return {"bins": k, "from": since, "full": full, "sessions": calls, **whole}


def fitting_bins(points: int, runs: int, tasks: int) -> int:
    """How many points are put together, as a power of two."""
    most = min(max(CELLS // max(runs * tasks, 1), FEWEST), POINTS)
    k = 0
    while -(-points >> k) > most:
        k += 1
    return k


def thin(results: Results, chunk: int, k: int) -> dict[str, Any]:
    """2^k points in one: means and sums over them, mastery and progress as they are at its end."""
    bins = (results.steps // chunk - 1) >> k
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    ends = np.append(starts[1:], len(bins))[: len(starts)] - 1

    def total(x: NDArray[Any]) -> NDArray[Any]:
        return np.add.reduceat(x, starts, axis=0) if len(starts) else x

    episodes, played = total(results.episodes), total(results.played)
    gained = total(np.where(results.episodes > 0, results.returns * results.episodes, 0.0))
    count = total(np.ones((len(bins), 1, 1)))
    found = {
        "probability": total(results.probability) / count,
        "share": played / np.maximum(played.sum(axis=2, keepdims=True), 1),
        "mastery": results.mastery[ends],
        "progress": results.progress[ends],
        "returns": np.where(episodes > 0, gained / np.maximum(episodes, 1), np.nan),
    }
    solved = None if results.solved is None else results.solved.tolist()
    tests = {p: (e.frames, e.returns) for p, e in results.evaluations.items() if len(e.frames)}
    curriculum = results.curriculum
    return document(results.frames[ends], found, tests, solved, span_of(curriculum))


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
    columns = [row[1] for row in db.execute("PRAGMA table_info(training)")]
    if "progress" not in columns:
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
    tests: Mapping[str, tuple[NDArray[np.int64], Floats]],
    solved: list[float] | None,
    span: float,
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
        "solved": solved,
        **{name: _by_run(x) for name, x in known.items()},
        "evaluations": {
            policy: {"frames": when.tolist(), "returns": _by_run(np.round(scores, digits))}
            for policy, (when, scores) in tests.items()
        },
    }


def _by_run(x: Floats) -> Any:
    return np.moveaxis(x, 0, 2).tolist()


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
