"""run.db, to read from: without JAX, and while a job is training.

`mastery.rundir.store` writes it, and has its tables.
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
READABLE = (2, 3)  # 2 has no learning progress


@contextlib.contextmanager
def open_database(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database of a run directory as it is at this instant.

    What goes wrong inside, because it is not as it should be, is an error that names the file.
    """
    path = directory / "run.db"
    if not path.is_file():
        raise MasteryError(f"{directory} is not a run directory: there is no run.db in it")
    try:
        with contextlib.closing(_connect(path)) as db:
            db.execute("BEGIN")  # all queries see the same, whatever is written meanwhile
            yield db
    except (sqlite3.Error, ValueError, KeyError, TypeError, OSError) as error:
        if isinstance(error, MasteryError):
            raise
        raise CheckpointError(
            f"cannot read {path}: {error}; it is damaged, or mastery did not write it"
        ) from None


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    db = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
    try:
        db.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        db.close()
        # SQLite makes files beside it. Where it may not, and there are none, nobody is writing:
        # then it reads the file alone
        if path.with_name("run.db-wal").exists():
            raise
        db = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
    return db


def read_description(
    directory: Path, db: sqlite3.Connection
) -> tuple[dict[str, Any], str, str | None]:
    """The job as `Job.to_dict` gives it, when it was created, and why it is over, if it is."""
    text, created, ended = read_text(directory, db)
    return json.loads(text), created, ended


def read_text(directory: Path, db: sqlite3.Connection) -> tuple[str, str, str | None]:
    """The same, with the job as it is written: JSON."""
    try:
        row = db.execute("SELECT format, job, created, ended FROM job").fetchone()
    except sqlite3.OperationalError:
        row = None
    if row is None:
        raise MasteryError(f"{directory} holds no job: it was stopped before it began; train anew")
    if row[0] not in READABLE:
        raise CheckpointError(
            f"{directory} is of format {row[0]}, and this mastery reads formats "
            f"{' and '.join(map(str, READABLE))}; use the release that wrote it"
        )
    return row[1], row[2], row[3]


def total_frames(job: Mapping[str, Any]) -> int:
    """The frames of each run when the job is done: whole chunks."""
    chunk = int(job["per_update"]) * int(job["chunk"])
    return math.ceil(int(job["frames"]) / chunk) * chunk


def columns(db: sqlite3.Connection, query: str, types: str) -> list[NDArray[Any]]:
    """The columns of a query, i: whole numbers, f: others, NaN where there is none."""
    kinds = [(str(i), np.int64 if t == "i" else np.float64) for i, t in enumerate(types)]
    rows: NDArray[Any] = np.fromiter(db.execute(query), np.dtype(kinds))
    return [np.ascontiguousarray(rows[name]) for name, _ in kinds]


def is_training(directory: str | Path) -> bool:
    """Whether a process holds the directory's lock; nothing is created, nothing is kept locked."""
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
        pass  # not a lock that we made
    return False
