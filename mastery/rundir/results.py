"""What came of a training job: its run directory as arrays, and a list of jobs.

Reads run.db only (`mastery.rundir.store` writes it), so it needs no JAX, and can be done while the
job is training. Every array has the axes (points, runs, tasks); a point is a chunk of updates.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.errors import MasteryError
from mastery.rundir.database import (
    columns,
    is_training,
    open_database,
    read_description,
    total_frames,
)
from mastery.rundir.metrics import POLICIES, SCORES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RECENT = 5  # chunks over which the returns at the end of training are averaged


class Evaluations(NamedTuple):
    """Episodes played apart from training, by one policy."""

    frames: Ints  # (points,): of each run, up to the evaluation
    returns: Floats  # each (points, runs, tasks)
    success: Floats  # share of episodes with a return above the task's minimum
    length: Floats  # frames of an episode


class Session(NamedTuple):
    """One call of `train` or `resume`."""

    started: str
    step: int  # the update from which it went on
    command: str
    versions: Mapping[str, str]
    hardware: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Curves:
    """The points of a job, and its evaluations."""

    steps: Ints  # (points,): updates of each run, up to the point
    frames: Ints  # (points,): frames of each run, up to the point
    seconds: Floats  # (points,): of training, all runs together
    probability: Floats  # of each task; the mean over the point's updates
    mastery: Floats  # M_c at the point
    progress: Floats  # β_c at the point; NaN in a job of a format that did not keep it
    returns: Floats  # the mean over the episodes that ended in it; NaN if none did
    episodes: Ints
    played: Ints  # frames of each task
    evaluations: Mapping[str, Evaluations]  # by policy: greedy and sampled

    def after(self, step: int) -> Curves:
        """What came after an update."""
        first = int(np.searchsorted(self.steps, step, "right"))
        frames = self.frames[first - 1] if first else -1
        arrays = {name: x[first:].copy() for name, x in self._arrays().items()}
        evaluations = {
            policy: Evaluations._make(x[e.frames > frames] for x in e)
            for policy, e in self.evaluations.items()
        }
        return Curves(**arrays, evaluations=evaluations)

    def then(self, later: Curves) -> Curves:
        """With what came later."""
        new = later._arrays()
        arrays = {name: _joined(x, new[name]) for name, x in self._arrays().items()}
        evaluations = {
            policy: Evaluations(*map(_joined, e, later.evaluations[policy]))
            for policy, e in self.evaluations.items()
        }
        return Curves(**arrays, evaluations=evaluations)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """By their names, each with the points as its first axis."""
        return {f.name: getattr(self, f.name) for f in fields(Curves) if f.name != "evaluations"}


@dataclass(frozen=True, eq=False)
class Results(Curves):
    """A job and its curves."""

    directory: Path
    curriculum: Curriculum
    labels: tuple[str, ...]  # of each run: its program, and the settings in which it differs
    programs: tuple[str, ...]  # of each run
    changes: tuple[Mapping[str, float], ...]  # of each run: the settings in which it differs
    seeds: tuple[int, ...]  # of each run
    solved: Floats | None  # (runs,): frames until everything was learned, NaN if it is not yet;
    # None where that is not judged
    job: Mapping[str, Any]  # as `Job.to_dict` gives it
    sessions: tuple[Session, ...]
    created: str
    ended: str | None  # why the job is over, if it is
    training: bool  # whether a process is training it now

    @property
    def share(self) -> Floats:
        """The part of a point's frames that each task got."""
        share: Floats = self.played / np.maximum(self.played.sum(axis=2, keepdims=True), 1)
        return share

    @property
    def groups(self) -> dict[str, Ints]:
        """The runs that differ in nothing but the seed, by their label."""
        return {
            label: np.array([i for i, own in enumerate(self.labels) if own == label])
            for label in dict.fromkeys(self.labels)
        }

    @property
    def total(self) -> int:
        """The frames of each run when the job will be done."""
        return total_frames(self.job)

    @property
    def unit(self) -> str:
        """What is counted as frames: frames or examples."""
        return str(self.job["unit"])

    @property
    def score(self) -> str:
        """What is counted as a return."""
        return SCORES[self.unit]


def load_results(directory: str | Path) -> Results:
    """The results of a run directory, also of one that is training."""
    directory = Path(directory)
    with open_database(directory) as db:
        job, created, ended = read_description(directory, db)
        curriculum = Curriculum.from_dict(job["curriculum"])
        runs = db.execute("SELECT label, program, seed, changes FROM runs ORDER BY run").fetchall()
        sessions = db.execute(
            "SELECT started, step, command, versions, hardware FROM sessions ORDER BY rowid"
        ).fetchall()
        return Results(
            **vars(read_curves(db, len(runs), len(curriculum))),
            directory=directory,
            curriculum=curriculum,
            labels=tuple(row[0] for row in runs),
            programs=tuple(row[1] for row in runs),
            seeds=tuple(row[2] for row in runs),
            changes=tuple(json.loads(row[3]) for row in runs),
            solved=read_solved(db, len(runs)) if job["environments"] == "addition" else None,
            job=job,
            sessions=tuple(
                Session(started, step, command, json.loads(versions), json.loads(hardware))
                for started, step, command, versions, hardware in sessions
            ),
            created=created,
            ended=ended,
            training=is_training(directory),
        )


def read_curves(db: sqlite3.Connection, runs: int, tasks: int, after: int = 0) -> Curves:
    """Of so many tasks, the first ones, the points after an update."""
    some = f"step > {int(after)} AND task < {int(tasks)}"
    beta = "progress" if has_progress(db) else "NULL"
    steps, frames, seconds = columns(
        db,
        f"SELECT step, frames, seconds FROM chunks WHERE step > {int(after)} ORDER BY step",
        "iif",
    )
    probability, mastery, progress, returns, episodes, played = (
        x.reshape(len(steps), runs, tasks)
        for x in columns(
            db,
            f"SELECT probability, mastery, {beta}, return, episodes, frames FROM training "
            f"WHERE {some} ORDER BY step, run, task",
            "ffffii",
        )
    )
    evaluations = {policy: _evaluations(db, policy, some, runs, tasks) for policy in POLICIES}
    return Curves(
        steps, frames, seconds, probability, mastery, progress, returns, episodes, played,
        evaluations,
    )  # fmt: skip


def read_solved(db: sqlite3.Connection, runs: int) -> Floats:
    """The frames until each run had learned everything; NaN if it has not yet."""
    solved = np.full(runs, np.nan)
    for run, when in db.execute("SELECT run, frames FROM solved"):
        solved[run] = when
    return solved


@dataclass(frozen=True)
class Summary:
    """A job in one line; of a directory that cannot be read, only path and state are known."""

    path: Path
    state: str  # "training", "stopped", "finished: …", or why it cannot be read
    curriculum: str = ""
    programs: tuple[str, ...] = ()
    seeds: int = 0
    frames: int = 0  # of each run
    total: int = 0  # when it will be done
    created: str = ""
    # the runs with the lowest and the highest mean over tasks of the return: of the sampled policy
    # in the last evaluation (the greedy one if there is no other), or else of the last chunks of
    # training
    worst: float | None = None
    best: float | None = None


def list_jobs(folder: str | Path) -> list[Summary]:
    """The jobs in a folder, or the one that it is itself, the oldest first."""
    folder = Path(folder)
    try:
        inside = [folder, *sorted(folder.iterdir())]
    except OSError as error:
        raise MasteryError(f"cannot list {folder}: {error.strerror}; give a folder") from None
    found = [_summary(path) for path in inside if _holds_database(path)]
    return sorted(found, key=lambda job: job.created)


def _holds_database(path: Path) -> bool:
    try:
        return (path / "run.db").is_file()
    except OSError:  # a folder that we may not look into
        return False


def _summary(path: Path) -> Summary:
    try:
        with open_database(path) as db:
            job, created, ended = read_description(path, db)
            state = "finished: " + ended if ended else "stopped"
            programs = db.execute("SELECT program FROM runs ORDER BY run").fetchall()
            frames = db.execute("SELECT coalesce(max(frames), 0) FROM chunks").fetchone()[0]
            means = _final(db)
            return Summary(
                path=path,
                state="training" if is_training(path) else state,
                curriculum=str(job["curriculum"]["name"]),
                programs=tuple(dict.fromkeys(program for (program,) in programs)),
                seeds=int(job["seeds"]),
                frames=int(frames),
                total=total_frames(job),
                created=str(created),
                worst=min(means, default=None),
                best=max(means, default=None),
            )
    except MasteryError as error:
        return Summary(path, str(error))


def _final(db: sqlite3.Connection) -> list[float]:
    """Each run's return at the end, the mean over tasks, if it is known of all of them."""
    rows = db.execute(  # of policies the last by name: sampled, or greedy where there is no other
        "SELECT avg(return) FROM evaluation WHERE step = (SELECT max(step) FROM evaluation) "
        "AND policy = (SELECT max(policy) FROM evaluation) GROUP BY run"
    ).fetchall()
    if not rows:
        rows = db.execute(
            "SELECT avg(mean) FROM (SELECT run, sum(return * episodes) / sum(episodes) AS mean "
            "FROM training WHERE step IN (SELECT step FROM chunks ORDER BY step DESC LIMIT ?) "
            "GROUP BY run, task) GROUP BY run HAVING count(mean) = count(*)",
            (RECENT,),
        ).fetchall()
    return [float(mean) for (mean,) in rows]


def _joined(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((a, b))


def has_progress(db: sqlite3.Connection) -> bool:
    return any(row[1] == "progress" for row in db.execute("PRAGMA table_info(training)"))


def _evaluations(
    db: sqlite3.Connection, policy: str, some: str, runs: int, tasks: int
) -> Evaluations:
    of_policy = f"FROM evaluation WHERE policy = '{policy}' AND {some}"
    (frames,) = columns(
        db,
        f"SELECT frames FROM chunks WHERE step IN (SELECT step {of_policy}) ORDER BY step",
        "i",
    )
    found = columns(
        db, f"SELECT return, success, length {of_policy} ORDER BY step, run, task", "fff"
    )
    return Evaluations(frames, *(x.reshape(len(frames), runs, tasks) for x in found))
