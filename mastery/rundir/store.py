"""Write the run directory: a job, its curves, its checkpoints and agents from several moments.

    run.db         SQLite: the job, its runs, the curves, evaluations, the list of checkpoints
    checkpoints/   the last two, each a file of `mastery.checkpoint`
    agents/        a few agents spread over training, to play with; see `mastery.rundir.milestones`
    lock           held by the process that is training

One transaction writes all rows of a chunk. A file is complete and synced before the transaction
that lists it. So a job can be killed at any instant and resumed: rows after the last
intact checkpoint are deleted, and those chunks are trained again with the same result.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mastery import checkpoint
from mastery.curriculum import Curriculum
from mastery.errors import CheckpointError, MasteryError
from mastery.rundir.database import (
    AGENTS,
    FORMAT,
    MEASURES,
    SCHEMA,
    agents,
    checkpoint_name,
    checkpoints,
    last_chunks,
    open_database,
    read_description,
    read_sessions,
    reading,
    recent_training,
)
from mastery.rundir.machine import hardware, versions
from mastery.rundir.metrics import POLICIES, Evaluation, Metrics
from mastery.rundir.milestones import KIND as AGENTS_KIND
from mastery.rundir.milestones import agent_name, kept_chunks
from mastery.rundir.results import load_results
from mastery.rundir.soundness import check_rows, check_values, superseded, superseded_agents
from mastery.rundir.split import is_split
from mastery.rundir.writing import lock_directory, now, transaction, writing

KIND = "mastery.runs"  # kind of the checkpoints; a change would make old ones unreadable
KEEP = 2  # checkpoints on disk

Agents = tuple[Sequence[int], dict[str, NDArray[Any]]]  # runs, and their agents as named arrays


class JobLike(Protocol):
    """The interface of a job that `Store` needs; `mastery.training.job.Job` has it."""

    @property
    def curriculum(self) -> Curriculum: ...

    @property
    def runs(self) -> Sequence[Any]: ...  # with label, program, seed, changes

    def to_dict(self) -> dict[str, Any]: ...


class Store:
    """A run directory, locked and open for writing by one process.

    Args:
        directory: The run directory.
        job: Create a new run directory for this job; by default, open an existing one.

    Attributes:
        description: The job as plain data, from its `to_dict`.
        notes: Messages for the user.

    Raises:
        MasteryError: If a new directory is not empty, an existing one has no run.db, or another
            process is training in it.
        CheckpointError: If the directory cannot be written.

    Example:
        >>> with Store("runs/first") as store:
        ...     step, arrays = store.rewind()
    """

    def __init__(self, directory: str | Path, job: JobLike | None = None) -> None:
        self.directory = Path(directory)
        self.notes: list[str] = []
        if job is not None:
            check_new(self.directory)
        elif not (self.directory / "run.db").is_file():
            raise MasteryError(f"{directory} is not a run directory: it has no run.db")
        with writing(self.directory):
            (self.directory / "checkpoints").mkdir(parents=True, exist_ok=True)
            self._lock = lock_directory(self.directory)
            try:
                about = self._check() if job is None else json.loads(json.dumps(job.to_dict()))
                self._db = sqlite3.connect(
                    self.directory / "run.db",
                    isolation_level=None,
                    timeout=30,
                    check_same_thread=False,  # `record` may be called from another thread
                )
                # SQLite's WAL is for one machine; a part's readers may be on another one
                mode = "DELETE" if "only" in about else "WAL"
                self._db.execute(f"PRAGMA journal_mode = {mode}")
                self._db.execute("PRAGMA synchronous = FULL")
                if job is not None:
                    self._create(job)
                self.description = about
                self._upgrade()
            except BaseException:
                self._lock.close()
                raise

    def _check(self) -> dict[str, Any]:
        """The job of an existing directory; CheckpointError if run.db is damaged, before anything
        is written to it."""
        with open_database(self.directory) as db:
            about = read_description(self.directory, db)[0]
            with _curves_named(self.directory):
                check_values(db)
        return about

    def _create(self, job: JobLike) -> None:
        with self._transaction() as db:
            for statement in filter(str.strip, SCHEMA.split(";")):
                db.execute(statement)
            db.executemany("INSERT INTO tasks VALUES (?, ?)", enumerate(job.curriculum.names))
            db.executemany(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?)",
                [
                    (i, run.label, run.program, run.seed, json.dumps(dict(run.changes)))
                    for i, run in enumerate(job.runs)
                ],
            )
            db.execute(
                "INSERT INTO job VALUES (?, ?, ?, NULL)", (FORMAT, json.dumps(job.to_dict()), now())
            )

    def _upgrade(self) -> None:
        """Add what older formats lack: learning progress (2), agents (3) and measures (4)."""
        old = self._db.execute("SELECT format FROM job").fetchone()[0]
        if old == FORMAT:
            return
        with self._transaction() as db:
            if old == 2:
                db.execute("ALTER TABLE training ADD COLUMN progress REAL")
            db.execute(AGENTS)
            db.execute(MEASURES)
            db.execute("UPDATE job SET format = ?", (FORMAT,))

    def change(self, job: JobLike) -> None:
        """Replace the job with one that differs only in `frames`, and mark it unfinished."""
        with self._transaction() as db:
            db.execute("UPDATE job SET job = ?, ended = NULL", (json.dumps(job.to_dict()),))
        self.description = job.to_dict()

    @property
    def ended(self) -> str | None:
        """Why the job is finished, or None if it is not."""
        with reading(self.directory):
            return read_description(self.directory, self._db)[2]

    @property
    def step(self) -> int:
        """Number of updates recorded in the curves."""
        with reading(self.directory):
            last = last_chunks(self._db, 1)
        return last[0][0] if last else 0

    @property
    def seconds(self) -> float:
        """Seconds of training up to `step`."""
        with reading(self.directory):
            last = last_chunks(self._db, 1)
        return last[0][2] if last else 0.0

    def last_hardware(self) -> dict[str, Any] | None:
        """Hardware and package versions of the last recorded session; None if there is none."""
        with reading(self.directory):
            sessions = read_sessions(self._db)
            if not sessions:
                return None
            *_, packages, machine = sessions[-1]
            return {"versions": json.loads(packages), **json.loads(machine)}

    def begin_session(self, command: str, step: int) -> None:
        """Record the command, versions and hardware used from this step on."""
        with self._transaction() as db:
            db.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?, ?)",
                (now(), step, command, json.dumps(versions()), json.dumps(hardware())),
            )

    def record(
        self,
        step: int,
        seconds: float,
        metrics: Metrics,
        evaluation: Evaluation | None = None,
        arrays: dict[str, NDArray[Any]] | None = None,
        ended: str | None = None,
        moments: Mapping[int, Agents] | None = None,
    ) -> None:
        """Write the results of a chunk, and a checkpoint if `arrays` are given.

        Args:
            step: Updates after this chunk.
            seconds: Seconds of training after this chunk.
            metrics: The chunk's metrics, each (updates, runs, tasks).
            evaluation: An evaluation after this chunk.
            arrays: The loop's carry as named arrays.
            ended: Why the job is finished, if it is.
            moments: Agents to keep, by the update after which they play like this: up to `step`.

        Raises:
            CheckpointError: If the directory cannot be written.
        """
        moments = moments or {}
        for moment, kept in moments.items():
            self._write_agents(moment, kept)
        if arrays is not None:
            name = checkpoint_name(step)
            checkpoint.write(self.directory / "checkpoints" / name, KIND, {"step": step}, arrays)
        old: list[tuple[int, str]] = []
        with self._transaction() as db:
            frames = step * int(self.description["per_update"])
            db.execute("INSERT INTO chunks VALUES (?, ?, ?)", (step, frames, seconds))
            db.executemany(
                "INSERT INTO training VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _training(step, metrics)
            )
            if metrics.scalars:
                db.executemany("INSERT INTO measures VALUES (?, ?, ?, ?)", _measures(step, metrics))
            if evaluation is not None:
                db.executemany(
                    "INSERT INTO evaluation VALUES (?, ?, ?, ?, ?, ?, ?)",
                    _evaluation(step, evaluation),
                )
            if metrics.solved is not None:
                db.executemany(
                    "INSERT OR IGNORE INTO solved VALUES (?, ?, ?)",
                    [
                        (step, run, int(updates) * int(self.description["per_update"]))
                        for run, updates in enumerate(metrics.solved[-1])
                        if updates
                    ],
                )
            if arrays is not None:
                db.execute("INSERT INTO checkpoints VALUES (?, ?)", (step, name))
                with reading(self.directory):
                    old = checkpoints(db)[KEEP:]
                db.executemany("DELETE FROM checkpoints WHERE step = ?", [row[:1] for row in old])
            db.executemany(
                "INSERT OR REPLACE INTO agents VALUES (?, ?)",
                [(moment, agent_name(moment)) for moment in moments],
            )
            chunk = int(self.description["chunk"])
            wanted = {chunk * n for n in kept_chunks(step // chunk)}
            with reading(self.directory):
                dropped = [row for row in agents(db) if row[0] not in wanted]
            db.executemany("DELETE FROM agents WHERE step = ?", [row[:1] for row in dropped])
            if ended is not None:
                db.execute("UPDATE job SET ended = ?", (ended,))
        _remove(self.directory / "checkpoints" / name for _, name in old)
        _remove(self.directory / "agents" / name for _, name in dropped)

    def _write_agents(self, step: int, kept: Agents) -> None:
        runs, arrays = kept
        with writing(self.directory):
            (self.directory / "agents").mkdir(exist_ok=True)
        path = self.directory / "agents" / agent_name(step)
        checkpoint.write(path, AGENTS_KIND, {"step": step, "runs": list(runs)}, arrays)

    def end(self, reason: str) -> None:
        """Mark the job as finished."""
        with self._transaction() as db:
            db.execute("UPDATE job SET ended = ?", (reason,))

    def rewind(self) -> tuple[int, dict[str, NDArray[Any]] | None]:
        """Return to the last intact checkpoint and delete all rows after it.

        If a checkpoint is damaged, a note reports it and the previous one is used.

        Returns:
            The checkpoint's step and arrays; (0, None) if there is no checkpoint.

        Raises:
            CheckpointError: If every checkpoint is damaged, or run.db is. Nothing is changed.
        """
        with _curves_named(self.directory):
            rows, chunk = checkpoints(self._db), int(self.description["chunk"])
            spare = superseded(self.directory, self._db, rows, chunk, KEEP)
            moments = agents(self._db)
            spare += superseded_agents(self.directory, self._db, moments, chunk)
        step, arrays, unread = self._last_intact(rows)
        with _curves_named(self.directory):
            check_rows(self._db, step, chunk)
        later = [self.directory / "agents" / name for moment, name in moments if moment > step]
        _remove([*spare, *unread, *later])
        self._delete_after(step)
        return step, arrays

    def _delete_after(self, step: int) -> None:
        """Delete all rows after a step."""
        with self._transaction() as db:
            for table in (
                "chunks", "training", "measures", "evaluation", "solved", "checkpoints", "agents",
            ):  # fmt: skip
                db.execute(f"DELETE FROM {table} WHERE step > ?", (step,))

    def _last_intact(
        self, rows: list[tuple[int, str]]
    ) -> tuple[int, dict[str, NDArray[Any]] | None, list[Path]]:
        """Step and arrays of the last intact checkpoint, and the damaged files after it."""
        unread: list[Path] = []
        for i, (step, name) in enumerate(rows):
            path = self.directory / "checkpoints" / name
            try:
                return step, checkpoint.read(path, KIND)[1], unread
            except checkpoint.Damaged as error:
                if i + 1 == len(rows):
                    raise CheckpointError(
                        f"{error}; {self.directory} has no other checkpoint, and nothing was "
                        "changed; train again in another folder"
                    ) from None
                unread.append(path)
                self.notes.append(
                    f"{error}; using the previous checkpoint, of update {rows[i + 1][0]:,}"
                )
        return 0, None, unread

    def recent(self, chunks: int) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """The `totals` of each of the last chunks, oldest first."""
        with reading(self.directory):
            return list(zip(*recent_training(self._db, chunks), strict=True))

    def close(self) -> None:
        """Close the database and release the lock."""
        self._db.close()
        self._lock.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _transaction(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        return transaction(self.directory, self._db)


def check_new(directory: Path) -> None:
    """Raise MasteryError unless the directory is new or empty."""
    if directory.exists() and not directory.is_dir():
        raise MasteryError(f"{directory} is a file; choose a new or empty folder")
    if is_split(directory):
        raise _holds(directory)
    if (directory / "run.db").exists():
        with open_database(directory) as db:
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return  # a job that was stopped before it was written
            read_description(directory, db)
        raise _holds(directory)
    if directory.is_dir() and any(
        p.name not in ("checkpoints", "agents", "lock") for p in directory.iterdir()
    ):
        raise MasteryError(f"{directory} is not empty; choose a new or empty folder")


def _holds(directory: Path) -> MasteryError:
    return MasteryError(
        f"{directory} already holds a job; continue it with --resume "
        f"{shlex.quote(str(directory))}, or choose another folder"
    )


@contextlib.contextmanager
def _curves_named(directory: Path) -> Iterator[None]:
    """Re-raise damage to run.db; the message says if the curves can still be read."""
    try:
        with reading(directory):
            yield
    except CheckpointError as error:
        try:
            load_results(directory)
        except MasteryError:
            raise error from None
        raise CheckpointError(
            f"{error}; its curves can still be read, with mastery report or mastery export"
        ) from None


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def totals(metrics: Metrics) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Episodes of a chunk and their mean return, NaN if none ended; each (runs, tasks)."""
    episodes = metrics.episodes.astype(np.int64).sum(0)
    with np.errstate(invalid="ignore"):
        return episodes, metrics.returns.astype(np.float64).sum(0) / episodes


def _training(step: int, metrics: Metrics) -> list[tuple[Any, ...]]:
    """The rows of a chunk: means over its updates; mastery and learning progress at its end."""
    episodes, returns = totals(metrics)
    probability, frames = metrics.probability.astype(np.float64).mean(0), metrics.frames.sum(0)
    beta = metrics.progress
    rows = []
    for run, task in np.ndindex(*episodes.shape):
        p, m = float(probability[run, task]), float(metrics.mastery[-1, run, task])
        n, mean = int(episodes[run, task]), float(returns[run, task])
        b = None if beta is None else float(beta[-1, run, task])
        rows.append((step, run, task, p, m, int(frames[run, task]), n, mean if n else None, b))
    return rows


def _measures(step: int, metrics: Metrics) -> list[tuple[int, int, str, float]]:
    """The rows of a chunk: means over its updates."""
    means = {name: np.asarray(x, np.float64).mean(0) for name, x in (metrics.scalars or {}).items()}
    return [(step, run, name, float(x)) for name, y in means.items() for run, x in enumerate(y)]


def _evaluation(step: int, evaluation: Evaluation) -> list[tuple[Any, ...]]:
    return [
        (step, run, task, policy, *(float(x[run, i, task]) for x in evaluation))
        for run, i, task in np.ndindex(*evaluation.returns.shape)
        for policy in [POLICIES[i]]
    ]
