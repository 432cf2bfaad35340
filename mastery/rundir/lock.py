"""The lock of a run directory: one process trains in it at a time."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from mastery.errors import CheckpointError, MasteryError


def lock_directory(directory: Path) -> sqlite3.Connection:
    """Lock the directory until this connection is closed or this process ends."""
    lock = sqlite3.connect(directory / "lock", isolation_level=None, timeout=0.5)
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
