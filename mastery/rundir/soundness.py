"""Checks before a job is resumed: nothing is deleted on the word of a damaged database."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

from mastery.rundir.database import (
    agents,
    checkpoint_name,
    checkpoints,
    count,
    damaged,
    last_chunks,
    read_runs,
    read_sessions,
)
from mastery.rundir.milestones import kept_chunks


def check_values(db: sqlite3.Connection) -> None:
    """Raise ValueError, or what SQLite raises, if run.db is malformed or holds invalid values."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise ValueError(" ".join(str(found).split()))
    checkpoints(db)
    agents(db)
    texts = [changes for *_, changes in read_runs(db)]
    for *_, versions, hardware in read_sessions(db):
        texts += [versions, hardware]
    for text in texts:
        if not isinstance(json.loads(text), dict):
            raise ValueError(f"{text!r:.40} stands where a table should be")


def check_rows(db: sqlite3.Connection, step: int, chunk: int) -> None:
    """Raise ValueError unless every chunk up to a checkpoint has all its rows.

    Args:
        db: An open database.
        step: The update of the checkpoint.
        chunk: Updates per chunk.
    """
    for table, each in (("chunks", 1), ("training", count(db, "runs") * count(db, "tasks"))):
        query = f"SELECT count(*) FROM {table} WHERE step <= ?"
        (found,) = db.execute(query, (step,)).fetchone()
        if found * chunk != step * each:
            raise ValueError(
                f"{table} has {found} rows up to the checkpoint of update {step}, not "
                f"{step * each // chunk}"
            )


def superseded(
    directory: Path, db: sqlite3.Connection, rows: list[tuple[int, str]], chunk: int, kept: int
) -> list[Path]:
    """The checkpoint files that nobody needs: unfinished, unlisted or too old.

    A job that is killed leaves at most these: a half-written file; a complete file of the next
    chunk, which is not listed yet; and files older than all that are listed.

    Args:
        directory: The run directory.
        db: Its database.
        rows: Its checkpoints, newest first.
        chunk: Updates per chunk.
        kept: The number of checkpoints that a job keeps.

    Raises:
        CheckpointError: If there is any other file that is not listed: the list is damaged.
    """
    last = last_chunks(db, 1)
    following = (last[0][0] if last else 0) + chunk
    listed = {name for _, name in rows}
    found: list[Path] = []
    for path in sorted((directory / "checkpoints").iterdir()):
        name = re.fullmatch(r"(\d{12,})\.ckpt", path.name)
        if path.name.startswith(".") and path.name.endswith(".tmp"):
            found.append(path)
        elif name is not None and path.name not in listed:
            step = int(name[1])
            old = len(rows) >= kept and step < rows[-1][0]
            if not old and path.name != checkpoint_name(following):
                raise damaged(
                    directory,
                    f"it does not list the checkpoint {path.name}, so nothing was changed",
                )
            found.append(path)
    return found


def superseded_agents(
    directory: Path, db: sqlite3.Connection, rows: list[tuple[int, str]], chunk: int
) -> list[Path]:
    """The files of agents that nobody needs: unfinished, unlisted or dropped.

    A job that is killed leaves at most these: a half-written file; complete files of the next
    chunk, and of the untrained agents with the first; and files that the rule has dropped.

    Args:
        directory: The run directory.
        db: Its database.
        rows: Its agents.
        chunk: Updates per chunk.

    Raises:
        CheckpointError: If there is any other file that is not listed: the list is damaged.
    """
    folder = directory / "agents"
    last = last_chunks(db, 1)
    done = last[0][0] if last else 0
    wanted = {chunk * n for n in kept_chunks(done // chunk)} if last else set()
    listed = {name for _, name in rows}
    found: list[Path] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = re.fullmatch(r"(\d{12,})\.agent", path.name)
        if path.name.startswith(".") and path.name.endswith(".tmp"):
            found.append(path)
        elif name is not None and path.name not in listed:
            step = int(name[1])
            if step in wanted or step > done + chunk or step % chunk:
                raise damaged(
                    directory, f"it does not list the agents {path.name}, so nothing was changed"
                )
            found.append(path)
    return found
