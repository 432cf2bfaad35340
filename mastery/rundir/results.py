"""Results of training: a run directory as arrays, and a list of jobs.

This reads only run.db (`mastery.rundir.store` and `mastery.rundir.part` write it), so it needs no
JAX and works while the job is training. Arrays have the axes (points, runs, tasks); a point is a
chunk of updates. A job may have several parts, each with its own run.db; their curves are put side
by side.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mastery.curriculum import Curriculum
from mastery.errors import MasteryError
from mastery.rundir.curves import Curves, Evaluations, Floats, Ints, Scalars
from mastery.rundir.database import (
    TESTED,
    final_returns,
    is_training,
    last_chunks,
    open_database,
    read_description,
    read_evaluation,
    read_measures,
    read_notes,
    read_points,
    read_runs,
    read_scalars,
    read_sessions,
    read_solved,
    read_tests,
    read_training,
    reading,
    score_name,
    total_frames,
)
from mastery.rundir.metrics import POLICIES
from mastery.rundir.parts import holds_job, is_folder, parts_of
from mastery.rundir.side_by_side import POINTS, scalars_side_by_side, side_by_side
from mastery.rundir.split import Split, is_split, read_split

RECENT = 5  # chunks over which the returns at the end of training are averaged


class Session(NamedTuple):
    """One call of `train` or `resume`."""

    started: str
    step: int  # the update it started from
    command: str
    versions: Mapping[str, str]
    hardware: Mapping[str, Any]


class Remark(NamedTuple):
    """A note that the loop made."""

    run: int
    frames: float
    text: str
    time: str  # in UTC


@dataclass(frozen=True, eq=False)
class Results(Curves):
    """A job with its training curves and evaluations."""

    directory: Path
    curriculum: Curriculum
    labels: tuple[str, ...]  # per run: its program and changed settings
    programs: tuple[str, ...]  # per run
    changes: tuple[Mapping[str, float], ...]  # per run: its changed settings
    seeds: tuple[int, ...]  # per run
    # (runs,): frames until every task was learned, NaN if not yet; None if the job does not test it
    solved: Floats | None
    job: Mapping[str, Any]  # from `Job.to_dict`
    sessions: tuple[Session, ...]
    created: str
    ended: str | None  # why the job is finished; None if it is not
    training: bool  # whether a process is training it now
    remarks: tuple[Remark, ...] = ()  # of recorded jobs only
    scalars: Mapping[str, Scalars] = field(default_factory=dict)  # other numbers, by name

    @property
    def groups(self) -> dict[str, Ints]:
        """Indices of the runs of each label; they differ only in the seed."""
        return {
            label: np.array([i for i, own in enumerate(self.labels) if own == label])
            for label in dict.fromkeys(self.labels)
        }

    @property
    def kind(self) -> str:
        """Who wrote the job: `mastery train` (training) or `mastery.record` (recorded)."""
        return str(self.job.get("kind", "training"))

    @property
    def total(self) -> int | None:
        """The frames per run of the finished job; None if unknown."""
        return total_frames(self.job)

    @property
    def unit(self) -> str:
        """The unit of `frames`: frames, examples, returns, tokens, …"""
        return str(self.job["unit"])

    @property
    def score(self) -> str:
        """The name of the score: return or accuracy."""
        return score_name(self.job)


def load_results(directory: str | Path) -> Results:
    """Read the results of a job, even while it is training.

    Args:
        directory: The run directory.

    Returns:
        The job, its training curves and its evaluations.

    Raises:
        MasteryError: If there is no job in the directory.
        CheckpointError: If run.db cannot be read, or another version of mastery wrote it.

    Example:
        >>> results = load_results("runs/key-corridor-mr")
        >>> results.returns[-1].mean(1)  # the last point: one mean per run
    """
    directory = Path(directory)
    if not is_folder(directory):
        return read_part(directory)
    found = parts_of(directory)
    if not found:
        raise MasteryError(f"{directory} holds no job yet: nothing was recorded in it")
    parts = [read_part(path) for path in found]
    return join(directory, parts, read_split(directory) if is_split(directory) else None)


def read_part(directory: Path, tasks: int | None = None) -> Results:
    """Read one run.db.

    Args:
        directory: The directory that holds it.
        tasks: Only the first tasks, in the curves.
    """
    with open_database(directory) as db:
        job, created, ended = read_description(directory, db)
        with reading(directory, parsing=True):
            curriculum = Curriculum.from_dict(job["curriculum"])
        total_frames(job), score_name(job)  # raise now what `total` and `score` would raise
        runs, sessions = read_runs(db), read_sessions(db)
        shown = len(curriculum) if tasks is None else min(tasks, len(curriculum))
        recorded = job.get("kind") == "recorded"
        read = read_recorded if recorded else read_curves
        notes = read_notes(db) if recorded else []
        if recorded:
            scalars = {name: Scalars(x, y[:, None]) for name, (x, y) in read_scalars(db).items()}
        else:
            scalars = {name: Scalars(*x) for name, x in read_measures(db, 0, len(runs)).items()}
        return Results(
            **vars(read(db, len(runs), shown)),
            directory=directory,
            curriculum=curriculum,
            labels=tuple(row[0] for row in runs),
            programs=tuple(row[1] for row in runs),
            seeds=tuple(row[2] for row in runs),
            changes=tuple(json.loads(row[3]) for row in runs),
            solved=read_solved(db, len(runs)) if job.get("environments") == "addition" else None,
            job=job,
            sessions=tuple(
                Session(started, step, command, json.loads(versions), json.loads(hardware))
                for started, step, command, versions, hardware in sessions
            ),
            created=created,
            ended=ended,
            training=is_training(directory),
            remarks=tuple(Remark(0, frames, text, when) for frames, when, text in notes),
            scalars=scalars,
        )


def join(directory: Path, parts: Sequence[Results], whole: Split | None = None) -> Results:
    """The parts of a job as one.

    Args:
        directory: The folder of the parts.
        parts: Each part.
        whole: The job that is trained in these parts; None if they were recorded.

    Raises:
        MasteryError: If they differ in their curriculum or unit.
    """
    first = parts[0]
    for part in parts:
        for what, of in (("curriculum", _curriculum), ("unit", _unit)):
            if of(part) != of(first):
                raise MasteryError(
                    f"{first.directory} and {part.directory} differ in their {what}; move one of "
                    "them to another folder"
                )
    totals = [part.total for part in parts if part.total is not None]
    ends = [part.ended for part in parts]
    sessions = [session for part in parts for session in part.sessions]
    job = (
        whole.job
        if whole is not None
        else {
            **first.job,
            "programs": list(dict.fromkeys(text for p in parts for text in p.job["programs"])),
            "seeds": max(sum(p.labels == other.labels for p in parts) for other in parts),
            "total": max(totals, default=None),
        }
    )
    # a whole job has all its points, as if it had been trained in one process
    most = POINTS if whole is None else max(sum(len(part.frames) for part in parts), 1)
    known = [part.solved for part in parts if part.solved is not None]
    return replace(
        first,
        **vars(side_by_side(parts, most)),
        directory=directory,
        labels=tuple(label for part in parts for label in part.labels),
        programs=tuple(program for part in parts for program in part.programs),
        seeds=tuple(seed for part in parts for seed in part.seeds),
        changes=tuple(changes for part in parts for changes in part.changes),
        solved=np.concatenate(known) if len(known) == len(parts) else None,
        job=job,
        sessions=tuple(sorted(sessions, key=lambda session: session.started)),
        created=min(part.created for part in parts) if whole is None else whole.created,
        ended=joined_end(ends),
        training=any(part.training for part in parts),
        remarks=tuple(r._replace(run=run) for run, p in enumerate(parts) for r in p.remarks),
        scalars=scalars_side_by_side(
            [part.scalars for part in parts], [len(part.labels) for part in parts], most
        ),
    )


def joined_end(ends: Sequence[str | None]) -> str | None:
    """Why all parts are finished; None if one is not."""
    known = [end for end in ends if end is not None]
    return "; ".join(dict.fromkeys(known)) if len(known) == len(ends) else None


def _curriculum(part: Results) -> str:
    return part.curriculum.fingerprint


def _unit(part: Results) -> str:
    return part.unit


def read_recorded(db: sqlite3.Connection, runs: int, tasks: int) -> Curves:
    """The points and evaluations that `mastery.record` wrote, with the first `tasks` tasks."""
    frames, scores = read_tests(db, tasks)
    scores = scores[:, None]
    unknown = np.full(scores.shape, np.nan)
    tested = {TESTED: Evaluations(frames, scores, unknown, unknown)}
    return replace(read_curves(db, runs, tasks, policies=()), evaluations=tested)


def read_curves(
    db: sqlite3.Connection,
    runs: int,
    tasks: int,
    after: int = 0,
    policies: Sequence[str] = POLICIES,
) -> Curves:
    """The points after update `after`, with the first `tasks` tasks."""
    steps, frames, seconds = read_points(db, after)
    probability, mastery, progress, returns, episodes, played = (
        x.reshape(len(steps), runs, tasks) for x in read_training(db, after, tasks)
    )
    evaluations = {}
    for policy in policies:
        tested, *values = read_evaluation(db, policy, after, tasks)
        shaped = (x.reshape(len(tested), runs, tasks) for x in values)
        evaluations[policy] = Evaluations(tested, *shaped)
    return Curves(
        steps, frames, seconds, probability, mastery, progress, returns, episodes, played,
        evaluations,
    )  # fmt: skip


@dataclass(frozen=True)
class Summary:
    """One line about a job; only path and state are set if the directory cannot be read."""

    path: Path
    state: str  # "training", "stopped", "finished: …", or why it cannot be read
    curriculum: str = ""
    programs: tuple[str, ...] = ()
    seeds: int = 0
    frames: int = 0  # per run
    total: int = 0  # frames per run of the finished job; 0 if unknown
    unit: str = ""  # of frames: frames, examples, tokens, …
    created: str = ""
    # lowest and highest return of a run, mean over tasks: of the sampled policy in the last
    # evaluation (greedy if there is no other), or of the last chunks if there was no evaluation
    worst: float | None = None
    best: float | None = None


def list_jobs(folder: str | Path) -> list[Summary]:
    """List jobs, oldest first.

    Args:
        folder: A folder of run directories, or a run directory.

    Returns:
        One summary per job.

    Raises:
        MasteryError: If the folder cannot be listed.
    """
    folder = Path(folder)
    try:
        inside = [folder] if is_folder(folder) else [folder, *sorted(folder.iterdir())]
    except OSError as error:
        raise MasteryError(
            f"cannot list {folder}: {error.strerror}; give an existing folder"
        ) from None
    found = [_summary(path) for path in inside if holds_job(path)]
    return sorted(found, key=lambda job: job.created)


def _summary(path: Path) -> Summary:
    try:
        if not is_folder(path):
            return _summary_of(path)
        parts = [_summary_of(part) for part in parts_of(path)]
        return _joined_split(parts, path) if is_split(path) else _joined(parts, path)
    except MasteryError as error:
        return Summary(path, str(error))


def _joined(parts: Sequence[Summary], path: Path) -> Summary:
    """The parts of a recorded job as one line."""
    states = [part.state for part in parts]
    live = [state for state in states if not state.startswith("finished")]
    return Summary(
        path=path,
        state="training" if "training" in states else (live or states)[0],
        curriculum=parts[0].curriculum,
        programs=tuple(dict.fromkeys(name for part in parts for name in part.programs)),
        seeds=max(sum(p.programs == other.programs for p in parts) for other in parts),
        frames=max(part.frames for part in parts),
        total=max(part.total for part in parts),
        unit=parts[0].unit,
        created=min(part.created for part in parts),
        worst=min((part.worst for part in parts if part.worst is not None), default=None),
        best=max((part.best for part in parts if part.best is not None), default=None),
    )


def _joined_split(parts: Sequence[Summary], path: Path) -> Summary:
    """The parts of one job as one line; `frames` is the mean over runs."""
    whole = read_split(path)
    sizes = [end - first for first, end in whole.runs]
    done = sum(size * part.frames for size, part in zip(sizes, parts, strict=True))
    return replace(
        _joined(parts, path),
        seeds=int(whole.job["seeds"]),
        frames=done // sum(sizes),
        created=whole.created,
    )


def _summary_of(path: Path) -> Summary:
    with open_database(path) as db:
        job, created, ended = read_description(path, db)
        state = "finished: " + ended if ended else "stopped"
        last = last_chunks(db, 1)
        means = final_returns(db, RECENT)
        return Summary(
            path=path,
            state="training" if is_training(path) else state,
            curriculum=str(job["curriculum"]["name"]),
            programs=tuple(dict.fromkeys(program for _, program, *_ in read_runs(db))),
            seeds=int(job["seeds"]),
            frames=last[0][1] if last else 0,
            total=total_frames(job) or 0,
            unit=str(job["unit"]),
            created=str(created),
            worst=min(means, default=None),
            best=max(means, default=None),
        )
