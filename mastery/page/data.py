"""A job as plain data for the page: its description, its progress and its downsampled curves.

`job_entry` (small and cheap) and `job_curves` read a run directory. (`mastery.paper` makes the same
from the saved curves of its jobs.)

Results derived from a job's description are cached under its full text, so a replaced directory
never gets stale ones.

"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import mastery
from mastery.curriculum import Curriculum
from mastery.drawing.axes import task_colours
from mastery.drawing.colours import PALETTE, program_styles
from mastery.drawing.pictures import places
from mastery.errors import MasteryError
from mastery.page.places import Place, Problem
from mastery.page.tail import Tail as Tail
from mastery.page.thinned import (
    Numbers,
    as_array,
    document,
    fitting_bins,
    thin,
    thin_scalars,
    times_of,
)
from mastery.programs.own import OwnRecipe, read_program
from mastery.programs.texts import OBJECT
from mastery.rundir.curves import Scalars
from mastery.rundir.database import (
    agents,
    checkpoints,
    count,
    has_progress,
    is_recorded,
    is_training,
    last_chunks,
    last_evaluated,
    open_database,
    read_measures,
    read_runs,
    read_sessions,
    read_solved,
    read_text,
    score_name,
    total_frames,
)
from mastery.rundir.milestones import kept_runs
from mastery.rundir.parts import is_folder
from mastery.rundir.split import is_split

TASKS = 200  # the most shown: the first in the curriculum's order
KEPT = 64  # jobs whose descriptions are cached

Entry = dict[str, Any]
Runs = tuple[tuple[str, str, int], ...]  # label, program and seed of each run


def index(entries: Sequence[Entry], problems: Sequence[Problem], live: bool) -> dict[str, Any]:
    """The list of jobs, without their curves, and of problems."""
    labels = [program["label"] for entry in entries for program in entry["programs"]]
    return {
        "mastery": mastery.__version__,
        "live": live,
        "jobs": list(entries),
        "problems": [vars(problem) for problem in problems],
        "styles": program_styles(labels),  # colour and dash by label, the same in all jobs
        "palette": PALETTE,
    }


def _was_recorded(path: Path) -> bool:
    """Whether `mastery.record` wrote a job, which `mastery.page.recorded` then reads."""
    return is_folder(path) or is_recorded(path)


def job_entry(place: Place, locked: bool | None = None) -> Entry:
    """What a run directory trains, and its progress.

    Args:
        place: The run directory.
        locked: Whether a process is training in it; if None, find out.
    """
    if is_split(place.path):
        from mastery.page.split import split_entry

        return split_entry(place)
    if _was_recorded(place.path):
        from mastery.page.recorded import recorded_entry

        return recorded_entry(place, locked)
    with open_database(place.path) as db:
        text, created, ended = read_text(place.path, db)
        job = _described(text)
        every = read_runs(db)
        runs = tuple((label, program, seed) for label, program, seed, _ in every)
        chunks, sessions = last_chunks(db, 20), read_sessions(db)
        points, tested = count(db, "chunks"), last_evaluated(db)
        unchanged = fixed(text, runs)
        notes = _notes(db, job.count)
        checkpoint = _checkpoint(place.path, db, job.per_update)
        moments = _moments(place.path, db, job.per_update) if job.plays else []
        ends = [checkpoint["frames"]] if checkpoint and job.plays else []
        step, frames, _ = chunks[0] if chunks else (0, 0, 0.0)
        training = ended is None and (is_training(place.path) if locked is None else locked)
        return {
            "key": place.key,
            "name": place.name,
            "path": str(place.path),
            "kind": "training",
            "version": f"{created}.{len(sessions)}.{step}.{tested}",
            **unchanged,
            "changes": [json.loads(changes) for *_, changes in every],
            "state": "training" if training else "finished" if ended else "stopped",
            "ended": ended,
            "created": created,
            "frames": frames,
            "points": points,
            "seconds": chunks[0][2] if chunks else 0.0,
            "speed": _speed(chunks, len(runs), sessions[-1][1] if sessions else 0),
            "checkpoint": checkpoint,
            "sessions": [_session(*session) for session in sessions],
            "remarks": [],
            "clips": bool(moments or ends),
            "moments": sorted({*moments, *ends}),
            "clip_runs": kept_runs([label for label, *_ in runs]) if moments else [],
            "notes": notes,
        }


@dataclass(frozen=True)
class _Job:
    """What follows from a job's description, which hardly ever changes."""

    count: int  # tasks
    tasks: int  # tasks that are shown
    chunk: int  # updates between two points
    per_update: int  # frames of an update of one run
    span: float  # largest range of a task's returns
    addition: bool
    plays: bool  # whether its agents can be shown


@lru_cache(maxsize=KEPT)
def _described(text: str) -> _Job:
    job = json.loads(text)
    curriculum = first_tasks(job["curriculum"])
    return _Job(
        count=len(job["curriculum"]["names"]),
        tasks=len(curriculum),
        chunk=int(job["chunk"]),
        per_update=int(job["per_update"]),
        span=span_of(curriculum),
        addition=job["environments"] == "addition",
        plays=job["environments"] in ("minigrid", "gymnasium"),
    )


@lru_cache(maxsize=KEPT)
def fixed(text: str, runs: Runs) -> Entry:
    """The part of an entry that follows from the description and the runs."""
    job = json.loads(text)
    curriculum = first_tasks(job["curriculum"])
    return {
        **fixed_entry(curriculum, job["curriculum"], runs),
        "unit": job["unit"],
        "score": score_name(job),
        "total": total_frames(job),
        "settings": job["settings"],
    }


def job_curves(
    place: Place,
    bins: int | None = None,
    since: int = 0,
    sessions: int | None = None,
    numbers: Numbers = as_array,
    tail: Tail | None = None,
) -> dict[str, Any]:
    """The curves of a run directory, or only what is new.

    `bins`, `since` and `sessions` say what the page already has. If they no longer fit the job, the
    whole curves are returned.

    Args:
        place: The run directory.
        bins: The page's k; it merges 2^k points into one.
        since: The number of full merged points the page has.
        sessions: The number of calls of `train` the page knows of.
        numbers: How to encode arrays.
        tail: A cache, for callers that ask repeatedly.
    """
    if is_split(place.path):
        from mastery.page.split import split_curves

        return split_curves(place, numbers)
    if _was_recorded(place.path):
        from mastery.page.recorded import recorded_curves

        return recorded_curves(place, numbers)
    tail = tail or Tail()
    with open_database(place.path) as db:
        text, created, _ = read_text(place.path, db)
        job = _described(text)
        runs, points, calls = (count(db, table) for table in ("runs", "chunks", "sessions"))
        k = fitting_bins(points, runs, job.tasks)
        if bins != k or sessions != calls or not 0 <= since <= points >> k:
            since = 0
        which = (text, created, calls)
        curves = tail.read(db, which, runs, job.tasks, after=(since << k) * job.chunk)
        solved = read_solved(db, runs) if job.addition else None
        measures = read_measures(db, 0, runs)  # all points: they are few
        full = since + (len(curves.steps) >> k)
        tail.keep(which, curves, after=(full << k) * job.chunk)
        return {
            "bins": k,
            "from": since,
            "full": full,
            "sessions": calls,
            **document(*thin(curves, job.chunk, k), solved, job.span, numbers),
            **times_of(curves, job.chunk, k),
            "scalars": {name: thin_scalars(Scalars(*x)) for name, x in measures.items()},
        }


NO_PROGRESS = (
    "Learning progress β was not kept in this job, so the second factor of equation 1, and with it "
    "the attention, cannot be shown."
)


def fixed_entry(
    curriculum: Curriculum, whole: Mapping[str, Any], runs: Sequence[tuple[str, str, int]]
) -> Entry:
    """The part of an entry that never changes: curriculum, programs and runs.

    Args:
        curriculum: The tasks that are shown.
        whole: The whole curriculum, as a dictionary.
        runs: Label, program and seed of each run.
    """
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
    """What the page needs of a program to explain a task's probability."""
    recipe = None if text.startswith(OBJECT) else read_program(text)
    if recipe is None or isinstance(recipe, OwnRecipe):
        parts = dict.fromkeys(("progress", "attention", "distribution"), "own")
        name = text.removeprefix(OBJECT) if recipe is None else recipe.name
        return {"name": name, **parts, "full": text, "settings": {}}
    return {
        "name": recipe.name,
        "progress": recipe.progress,
        "attention": recipe.attention,
        "distribution": recipe.distribution,
        "full": recipe.full,
        "settings": dict(recipe.settings),
    }


def first_tasks(whole: Mapping[str, Any]) -> Curriculum:
    """The first tasks of a curriculum. It is in topological order, so ancestors are included."""
    some = {
        "name": whole["name"],
        "names": whole["names"][:TASKS],
        "minimum": whole["minimum"][:TASKS],
        "maximum": whole["maximum"][:TASKS],
        "edges": [edge for edge in whole["edges"] if edge[1] < TASKS],
        "settings": {},
    }
    return Curriculum.from_dict(some)


def _notes(db: sqlite3.Connection, tasks: int) -> list[str]:
    notes = []
    if tasks > TASKS:
        notes.append(f"The first {TASKS} of {tasks:,} tasks are shown; shares are among these.")
    if not has_progress(db):
        notes.append(NO_PROGRESS)
    return notes


def _moments(path: Path, db: sqlite3.Connection, per_update: int) -> list[int]:
    """The frames of the moments of which agents were kept."""
    kept = [step for step, name in agents(db) if (path / "agents" / name).is_file()]
    return [step * per_update for step in kept]


def _checkpoint(path: Path, db: sqlite3.Connection, per_update: int) -> dict[str, Any] | None:
    """The last checkpoint: its number of updates, its frames per run and its time."""
    kept = checkpoints(db)
    if not kept:
        return None
    step, name = kept[0]
    try:
        when: float | None = round((path / "checkpoints" / Path(name).name).stat().st_mtime, 1)
    except OSError:
        when = None
    return {"step": step, "frames": step * per_update, "time": when}


def _speed(chunks: Sequence[tuple[int, int, float]], runs: int, first: int) -> float | None:
    """Recent frames per second over all runs, within the last call of `train`."""
    own = [chunk for chunk in chunks if chunk[0] > first]
    if len(own) < 2 or own[0][2] <= own[-1][2]:
        return None
    return (own[0][1] - own[-1][1]) * runs / (own[0][2] - own[-1][2])


def _session(started: str, step: int, command: str, versions: str, hardware: str) -> dict[str, Any]:
    return session_entry(started, step, command, json.loads(versions), json.loads(hardware))


def session_entry(
    started: str, step: int, command: str, versions: Mapping[str, str], on: Mapping[str, Any]
) -> dict[str, Any]:
    """When a session started, its command and what it ran on."""
    device = f"{on.get('devices', '?')} × {on.get('device', '?')}"
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return {
        "started": started,
        "command": command or "called from Python",
        "on": f"{device if 'device' in on else on.get('machine', '?')}, {on.get('cores', '?')} "
        f"cores; {packages}",
    }


def span_of(curriculum: Curriculum) -> float:
    return float((curriculum.maximum - curriculum.minimum)[:TASKS].max())


def read_entries(places: Sequence[Place]) -> tuple[list[Entry], list[Problem]]:
    """The entries of all readable run directories, and a problem for each unreadable one."""
    entries, problems = [], []
    for place in places:
        try:
            entries.append(job_entry(place))
        except MasteryError as error:
            problems.append(Problem(str(place.path), str(error)))
    return entries, problems
