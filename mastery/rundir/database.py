"""Read run.db without JAX, even while a job is training.

`mastery.rundir.store` defines its tables and writes it.
"""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.errors import CheckpointError, MasteryError

FORMAT = 3
READABLE = (2, 3)  # format 2 has no learning progress


@contextlib.contextmanager
def open_database(directory: Path) -> Iterator[sqlite3.Connection]:
    """Open a snapshot of a run directory's database for reading.

    Read errors inside the block are re-raised with the file's name.

    Raises:
        MasteryError: If there is no run.db in the directory.
        CheckpointError: If run.db cannot be read.
    """
    path = directory / "run.db"
    if not path.is_file():
        raise MasteryError(f"{directory} is not a run directory: it has no run.db")
    try:
        with contextlib.closing(_connect(path)) as db:
            db.execute("BEGIN")  # all queries see one snapshot
            yield db
    except (sqlite3.Error, ValueError, KeyError, TypeError, OSError) as error:
        if isinstance(error, MasteryError):
            raise
        raise CheckpointError(
            f"cannot read {path}: {error}; it is damaged or not from mastery"
        ) from None


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    db = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
    try:
        db.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        db.close()
        # SQLite needs to create files next to run.db. If it cannot, and there is no -wal file,
        # no process is writing: read run.db alone
        if path.with_name("run.db-wal").exists():
            raise
        db = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
    return db


def read_description(
    directory: Path, db: sqlite3.Connection
) -> tuple[dict[str, Any], str, str | None]:
    """The job as `Job.to_dict` wrote it, when it was created, and why it is finished or None."""
    text, created, ended = read_text(directory, db)
    return json.loads(text), created, ended


def read_text(directory: Path, db: sqlite3.Connection) -> tuple[str, str, str | None]:
    """Like `read_description`, with the job as JSON text."""
    try:
        row = db.execute("SELECT format, job, created, ended FROM job").fetchone()
    except sqlite3.OperationalError:
        row = None
    if row is None:
        raise MasteryError(
            f"{directory} holds no job: it was stopped before it started; train again"
        )
    if row[0] not in READABLE:
        raise CheckpointError(
            f"{directory} has format {row[0]}, but this mastery reads formats "
            f"{' and '.join(map(str, READABLE))}; use the release that wrote it"
        )
    return row[1], row[2], row[3]


def total_frames(job: Mapping[str, Any]) -> int:
    """The frames per run of the finished job, in whole chunks."""
    chunk = int(job["per_update"]) * int(job["chunk"])
    return math.ceil(int(job["frames"]) / chunk) * chunk


def columns(db: sqlite3.Connection, query: str, types: str) -> list[NDArray[Any]]:
    """The columns of a query as arrays.

    Args:
        db: An open database.
        query: A SELECT.
        types: One letter per column: i for int64, f for float64 (NULL becomes NaN).
    """
    kinds = [(str(i), np.int64 if t == "i" else np.float64) for i, t in enumerate(types)]
    rows: NDArray[Any] = np.fromiter(db.execute(query), np.dtype(kinds))
    return [np.ascontiguousarray(rows[name]) for name, _ in kinds]


def is_training(directory: str | Path) -> bool:
    """Whether a process holds the directory's lock. Creates no file and keeps no lock."""
    path = Path(directory) / "lock"
    if not path.is_file():
        return False
    try:
        lock = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=0)
        with contextlib.closing(lock):
            lock.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    except sqlite3.Error:
        pass  # not a lock file of ours
    return False
