"""Results of training: a run directory as arrays, and a list of jobs.

This reads only run.db (`mastery.rundir.store` writes it), so it needs no JAX and works while the
job is training. Arrays have the axes (points, runs, tasks); a point is a chunk of updates.
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
    final_returns,
    is_training,
    last_chunks,
    open_database,
    read_description,
    read_evaluation,
    read_points,
    read_runs,
    read_sessions,
    read_solved,
    read_training,
    reading,
    total_frames,
)
from mastery.rundir.metrics import POLICIES, SCORES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RECENT = 5  # chunks over which the returns at the end of training are averaged


class Evaluations(NamedTuple):
    """Episodes played outside training, by one policy."""

    frames: Ints  # (points,): frames per run, up to the evaluation
    returns: Floats  # each (points, runs, tasks)
    success: Floats  # share of episodes with a return above the task's minimum
    length: Floats  # frames per episode


class Session(NamedTuple):
    """One call of `train` or `resume`."""

    started: str
    step: int  # the update it started from
    command: str
    versions: Mapping[str, str]
    hardware: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Curves:
    """The training curves and evaluations of a job."""

    steps: Ints  # (points,): updates per run, up to the point
    frames: Ints  # (points,): frames per run, up to the point
    seconds: Floats  # (points,): seconds of training, all runs together, up to the point
    probability: Floats  # mean over the point's updates
    mastery: Floats  # M_c at the point
    progress: Floats  # β_c at the point; NaN in old jobs that did not record it
    returns: Floats  # mean over the episodes that ended in the chunk; NaN if none did
    episodes: Ints  # number of episodes that ended in the chunk
    played: Ints  # frames of each task in the chunk
    evaluations: Mapping[str, Evaluations]  # by policy: greedy and sampled

    @property
    def share(self) -> Floats:
        """Each task's share of the frames of a point."""
        share: Floats = self.played / np.maximum(self.played.sum(axis=2, keepdims=True), 1)
        return share

    def merged(self, starts: Ints) -> Curves:
        """The same curves with fewer points: each merges those from one start to the next.

        Args:
            starts: The index of the first point to merge into each, ascending, the first 0.
        """
        ends = np.append(starts[1:], len(self.steps))[: len(starts)] - 1

        def total(x: NDArray[Any]) -> NDArray[Any]:
            return np.add.reduceat(x, starts, axis=0) if len(starts) else x

        episodes = total(self.episodes)
        gained = total(np.where(self.episodes > 0, self.returns * self.episodes, 0.0))
        last = {
            name: getattr(self, name)[ends]
            for name in ("steps", "frames", "seconds", "mastery", "progress")
        }
        return Curves(
            **last,
            probability=total(self.probability) / total(np.ones((len(self.steps), 1, 1))),
            returns=np.where(episodes > 0, gained / np.maximum(episodes, 1), np.nan),
            episodes=episodes,
            played=total(self.played),
            evaluations=self.evaluations,
        )

    def after(self, step: int) -> Curves:
        """The points after an update."""
        first = int(np.searchsorted(self.steps, step, "right"))
        frames = self.frames[first - 1] if first else -1
        arrays = {name: x[first:].copy() for name, x in self._arrays().items()}
        evaluations = {
            policy: Evaluations._make(x[e.frames > frames] for x in e)
            for policy, e in self.evaluations.items()
        }
        return Curves(**arrays, evaluations=evaluations)

    def then(self, later: Curves) -> Curves:
        """These points followed by later ones."""
        new = later._arrays()
        arrays = {name: _joined(x, new[name]) for name, x in self._arrays().items()}
        evaluations = {
            policy: Evaluations(*map(_joined, e, later.evaluations[policy]))
            for policy, e in self.evaluations.items()
        }
        return Curves(**arrays, evaluations=evaluations)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name; points are the first axis of each."""
        return {f.name: getattr(self, f.name) for f in fields(Curves) if f.name != "evaluations"}


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

    @property
    def groups(self) -> dict[str, Ints]:
        """Indices of the runs of each label; they differ only in the seed."""
        return {
            label: np.array([i for i, own in enumerate(self.labels) if own == label])
            for label in dict.fromkeys(self.labels)
        }

    @property
    def total(self) -> int:
        """The frames per run of the finished job."""
        return total_frames(self.job)

    @property
    def unit(self) -> str:
        """The unit of `frames`: frames or examples."""
        return str(self.job["unit"])

    @property
    def score(self) -> str:
        """The name of the score: return or accuracy."""
        return SCORES[self.unit]


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
    with open_database(directory) as db:
        job, created, ended = read_description(directory, db)
        with reading(directory, parsing=True):
            curriculum = Curriculum.from_dict(job["curriculum"])
        total_frames(job), SCORES[job["unit"]]  # raise now what `total` and `score` would raise
        runs, sessions = read_runs(db), read_sessions(db)
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
    """The points after update `after`, with the first `tasks` tasks."""
    steps, frames, seconds = read_points(db, after)
    probability, mastery, progress, returns, episodes, played = (
        x.reshape(len(steps), runs, tasks) for x in read_training(db, after, tasks)
    )
    evaluations = {}
    for policy in POLICIES:
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
    total: int = 0  # frames per run of the finished job
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
        inside = [folder, *sorted(folder.iterdir())]
    except OSError as error:
        raise MasteryError(
            f"cannot list {folder}: {error.strerror}; give an existing folder"
        ) from None
    found = [_summary(path) for path in inside if _holds_database(path)]
    return sorted(found, key=lambda job: job.created)


def _holds_database(path: Path) -> bool:
    try:
        return (path / "run.db").is_file()
    except OSError:  # no permission to look inside
        return False


def _summary(path: Path) -> Summary:
    try:
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
                total=total_frames(job),
                created=str(created),
                worst=min(means, default=None),
                best=max(means, default=None),
            )
    except MasteryError as error:
        return Summary(path, str(error))


def _joined(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((a, b))
