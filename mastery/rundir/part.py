"""Write a part of a recorded job: the run of one teacher, by one process at a time.

One transaction writes everything since the last one. The last point may be unfinished; it is
replaced when it grows. What it is made of is kept as a mark when the teacher is saved, so that a
teacher that was saved inside a point continues it exactly.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.errors import MasteryError
from mastery.rundir.database import (
    RECORDED,
    RECORDED_SCHEMA,
    SCHEMA,
    TESTED,
    last_point,
    open_database,
    read_description,
    read_mark,
    read_runs,
    reading,
)
from mastery.rundir.machine import machine, versions
from mastery.rundir.soundness import check_values
from mastery.rundir.writing import lock_directory, now, transaction, writing

MARKS = 64  # the most kept
MARK_BYTES = 2**26  # the most that they take, beyond the last two

Floats = NDArray[np.float64]


class Point(NamedTuple):
    """A point of the curves; arrays are (tasks,)."""

    step: int  # time-steps up to the point
    frames: float  # up to the point
    seconds: float  # up to the point
    probability: Floats  # mean over its updates
    mastery: Floats  # at its end
    progress: Floats  # at its end; NaN if unknown
    episodes: Floats  # the number of returns
    returns: Floats  # their sum
    played: Floats  # what they cost


class Mark(NamedTuple):
    """An unfinished point, to continue it."""

    step: int
    about: Mapping[str, Any]  # plain data
    sums: Floats  # (rows, tasks)


@dataclass
class Batch:
    """What one transaction writes."""

    points: list[Point] = field(default_factory=list)
    unfinished: Point | None = None  # replaced by the next batch
    tests: list[tuple[int, float, dict[int, float]]] = field(default_factory=list)
    scalars: dict[tuple[int, str], tuple[float, float]] = field(default_factory=dict)
    notes: list[tuple[int, float, str, str]] = field(default_factory=list)
    mark: Mark | None = None


class PartWriter:
    """A part of a recorded job, locked and open for writing by this process.

    Args:
        directory: The part's directory.
        description: The job of a new part; by default, open an existing one.
        run: Label, program and seed of a new part.

    Raises:
        MasteryError: If another process is using the part.
        CheckpointError: If it cannot be read or written.
    """

    def __init__(
        self,
        directory: Path,
        description: Mapping[str, Any] | None = None,
        run: tuple[str, str, int] | None = None,
    ) -> None:
        self.directory = directory
        self._unfinished: int | None = None  # the step of the unfinished point on disk
        with writing(directory):
            self._lock = lock_directory(directory)
            try:
                if description is None:
                    with open_database(directory) as db:
                        check_values(db)
                self._db = sqlite3.connect(
                    directory / "run.db", isolation_level=None, timeout=30, check_same_thread=False
                )
                self._db.execute("PRAGMA journal_mode = WAL")
                # a killed process loses nothing of what was written; a power cut may lose the end
                self._db.execute("PRAGMA synchronous = NORMAL")
                if description is not None and run is not None:
                    self._create(dict(description), run)
                self.description = read_description(directory, self._db)[0]
                self.seed = read_runs(self._db)[0][2]
            except BaseException:
                self._lock.close()
                raise

    def _create(self, description: dict[str, Any], run: tuple[str, str, int]) -> None:
        names = Curriculum.from_dict(description["curriculum"]).names
        with self._transaction() as db:
            for statement in filter(str.strip, (SCHEMA + RECORDED_SCHEMA).split(";")):
                db.execute(statement)
            db.executemany("INSERT INTO tasks VALUES (?, ?)", enumerate(names))
            db.execute("INSERT INTO runs VALUES (0, ?, ?, ?, '{}')", run)
            text = json.dumps(description)
            db.execute("INSERT INTO job VALUES (?, ?, ?, NULL)", (RECORDED, text, now()))

    def begin(self, command: str, step: int) -> None:
        """Record a new session from this step on; the part is no longer finished."""
        about = (now(), step, command, json.dumps(versions()), json.dumps(machine()))
        with self._transaction() as db:
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", about)
            db.execute("UPDATE job SET ended = NULL")

    def describe(self, **changes: Any) -> None:
        """Change the job's description."""
        self.description = {**self.description, **changes}
        with self._transaction() as db:
            db.execute("UPDATE job SET job = ?", (json.dumps(self.description),))

    def write(self, batch: Batch) -> None:
        """Write everything in a batch, or nothing."""
        with self._transaction() as db:
            for table in ("chunks", "training"):
                db.execute(f"DELETE FROM {table} WHERE step = ?", (self._unfinished,))
            last = batch.unfinished
            for point in [*batch.points, *([] if last is None else [last])]:
                _insert_point(db, point)
            for step, frames, scores in batch.tests:
                db.execute("INSERT OR REPLACE INTO tests VALUES (?, ?)", (step, _plain(frames)))
                db.executemany(
                    "INSERT OR REPLACE INTO evaluation VALUES (?, 0, ?, ?, ?, NULL, NULL)",
                    [(step, task, TESTED, score) for task, score in scores.items()],
                )
            db.executemany(
                "INSERT OR REPLACE INTO scalars VALUES (?, ?, ?, ?)",
                [(step, n, _plain(x), y) for (step, n), (x, y) in batch.scalars.items()],
            )
            db.executemany(
                "INSERT INTO notes VALUES (?, ?, ?, ?)",
                [(step, _plain(frames), when, text) for step, frames, when, text in batch.notes],
            )
            if batch.mark is not None:
                _insert_mark(db, batch.mark)
        self._unfinished = None if last is None else last.step

    def rewind(self, step: int) -> Mark | None:
        """Delete everything after a step.

        Returns:
            The point that was unfinished at this step, if there was one; its row is deleted too.
        """
        with reading(self.directory):
            found = read_mark(self._db, step)
            mark = None
            if found is not None:
                about = json.loads(found[0])
                sums = np.frombuffer(found[1]).reshape(-1, int(about["tasks"]))
                mark = Mark(step, about, sums)
        upto = step if mark is None else int(mark.about["begin"])
        with self._transaction() as db:
            for table in ("chunks", "training"):
                db.execute(f"DELETE FROM {table} WHERE step > ?", (upto,))
            for table in ("evaluation", "tests", "scalars", "notes", "marks"):
                db.execute(f"DELETE FROM {table} WHERE step > ?", (step,))
        self._unfinished = None
        return mark

    @property
    def last(self) -> tuple[int, float, float]:
        """Step, frames and seconds of the last point; zeros if there is none."""
        with reading(self.directory):
            return last_point(self._db)

    def end(self, reason: str) -> None:
        """Mark the part as finished."""
        with self._transaction() as db:
            db.execute("UPDATE job SET ended = ?", (reason,))

    def close(self) -> None:
        """Close the database and release the lock."""
        with contextlib.suppress(sqlite3.Error):
            self._db.close()
        with contextlib.suppress(sqlite3.Error):
            self._lock.close()

    def _transaction(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        return transaction(self.directory, self._db)


def create_part(
    folder: Path,
    name: str,
    number: int | None,
    description: Mapping[str, Any],
    label: str,
    program: str,
) -> PartWriter:
    """Create a part in a folder; processes that do so at the same time get different numbers.

    Args:
        folder: The folder of the recorded job.
        name: The first half of the directory's name; the number is the second.
        number: The part's number, or None for the next free one.
        description: The job.
        label: The label of the run.
        program: Its program.

    Raises:
        MasteryError: If there is a part with this number.
    """
    for tried in itertools.count() if number is None else [number]:
        directory = folder / f"{name}-{tried}"
        with writing(folder):
            try:
                directory.mkdir()
            except FileExistsError:
                continue
        return PartWriter(directory, description, (label, program, tried))
    raise MasteryError(
        f"{directory} exists already; continue it with the teacher that was saved, or give another "
        "seed= or another folder"
    )


class Found(NamedTuple):
    """A part on disk."""

    directory: Path
    job: dict[str, Any]
    label: str
    seed: int


def look_at(directory: Path) -> Found:
    """Read what a part holds.

    Raises:
        CheckpointError: If it cannot be read.
    """
    with open_database(directory) as db:
        ((label, _, seed, _),) = read_runs(db)
        return Found(directory, read_description(directory, db)[0], label, seed)


def _insert_point(db: sqlite3.Connection, point: Point) -> None:
    db.execute(
        "INSERT INTO chunks VALUES (?, ?, ?)", (point.step, _plain(point.frames), point.seconds)
    )
    counts = point.episodes.tolist()
    columns = zip(
        range(len(counts)),
        point.probability.tolist(),
        point.mastery.tolist(),
        point.played.tolist(),
        counts,
        point.returns.tolist(),
        point.progress.tolist(),
        strict=True,
    )
    # SQLite stores NaN as NULL, and whole numbers of an INTEGER column as such
    db.executemany(
        "INSERT INTO training VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?)",
        [
            (point.step, task, p, m, played, n, total / n if n else None, beta)
            for task, p, m, played, n, total, beta in columns
        ],
    )


def _insert_mark(db: sqlite3.Connection, mark: Mark) -> None:
    about = json.dumps({**mark.about, "tasks": mark.sums.shape[1]})
    sums = np.ascontiguousarray(mark.sums).tobytes()
    db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?)", (mark.step, about, sums))
    kept = max(2, min(MARKS, MARK_BYTES // max(len(sums), 1)))
    query = "SELECT step FROM marks ORDER BY step DESC LIMIT ?"
    db.execute(f"DELETE FROM marks WHERE step NOT IN ({query})", (kept,))


def _plain(x: float) -> int | float:
    return int(x) if float(x).is_integer() else x
