"""What every writer of a run directory needs: a lock, transactions, and errors with its name."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from mastery.errors import CheckpointError, MasteryError
from mastery.rundir.database import damaged


@contextlib.contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Re-raise write errors with the directory's name."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if type(error) is sqlite3.DatabaseError:  # malformed, or not a database
            raise damaged(directory, str(error)) from None
        reason = getattr(error, "strerror", None) or str(error)
        raise CheckpointError(
            f"cannot write to {directory}: {reason}; saved data is intact"
        ) from None


@contextlib.contextmanager
def transaction(directory: Path, db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Write all of a block or, if anything fails, nothing."""
    with writing(directory):
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise


def lock_directory(directory: Path) -> sqlite3.Connection:
    """Lock the directory until this connection is closed or this process ends."""
    lock = sqlite3.connect(
        directory / "lock", isolation_level=None, timeout=0.5, check_same_thread=False
    )
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if "locked" not in str(error):
            raise
        raise MasteryError(
            f"{directory} is in use: another process is training in it; wait for it or stop it"
        ) from None
    except sqlite3.DatabaseError as error:
        lock.close()
        raise CheckpointError(
            f"cannot lock {directory / 'lock'}: {error}; delete this file and try again"
        ) from None
    return lock


def now() -> str:
    """The current time in UTC, such as `2026-11-15 15:39:50 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()) + " UTC"
