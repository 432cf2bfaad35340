"""Jobs that are folders of parts: several directories, each with a run.db and its own writer.

A recorded job has a part for each call of `record`, so any number of processes can record into one
folder. (A job trained in parts is in `mastery.rundir.split`.)

    runs/mine/recorded.json   marks the folder, and names the curriculum of its parts
    runs/mine/mr-0/run.db     a part: one run of one program
    runs/mine/mr-1/run.db
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mastery.checkpoint import replace_file
from mastery.curriculum import Curriculum
from mastery.errors import CheckpointError, MasteryError
from mastery.rundir.database import is_recorded
from mastery.rundir.split import is_split, split_parts

MARKER = "recorded.json"


def is_folder(path: Path) -> bool:
    """Whether a directory is a folder of parts: a recorded job, or one trained in parts."""
    return _is_file(path / MARKER) or is_split(path)


def parts_of(folder: Path) -> list[Path]:
    """The parts of a folder that have begun: in the order of their names and numbers, or of the
    job's runs."""
    if is_split(folder):
        return split_parts(folder)
    found = [path for path in folder.iterdir() if _is_file(path / "run.db") and is_recorded(path)]
    return sorted(found, key=_by_number)


def holds_job(path: Path) -> bool:
    """Whether a directory holds a job: a run.db, or parts of one."""
    if _is_file(path / "run.db") or is_split(path):
        return True
    try:
        return is_folder(path) and bool(parts_of(path))
    except OSError:  # no permission to look inside
        return False


def changed(directory: Path) -> tuple[Any, ...]:
    """A value that changes when the run.db of a directory does."""
    found: list[Any] = []
    for name in ("run.db", "run.db-wal"):
        try:
            about = (directory / name).stat()
            found.append((about.st_mtime_ns, about.st_size))
        except OSError:
            found.append(None)
    return tuple(found)


def mark_folder(folder: Path, curriculum: Curriculum) -> None:
    """Make a folder for the parts of a recorded job, or check that it is one.

    Raises:
        MasteryError: If it holds something else, or parts of another curriculum.
        CheckpointError: If it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise MasteryError(f"{folder} is a file; record into a folder")
    if _is_file(folder / "run.db"):
        raise MasteryError(f"{folder} holds a job of its own; record into another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"cannot make {folder}: {error.strerror}") from None
    about = {"curriculum": curriculum.fingerprint, "name": curriculum.name}
    if is_split(folder):
        raise MasteryError(f"{folder} holds a job trained in parts; record into another folder")
    if not is_folder(folder):
        replace_file(folder / MARKER, [json.dumps(about).encode()])
    try:
        found = json.loads((folder / MARKER).read_bytes())["curriculum"]
    except (OSError, ValueError, LookupError, TypeError):
        raise CheckpointError(
            f"cannot read {folder / MARKER}; delete it, or record into another folder"
        ) from None
    if found != curriculum.fingerprint:
        raise MasteryError(
            f"{folder} holds recordings of another curriculum than {curriculum.name!r}: tasks, "
            "bounds or edges differ; record into another folder"
        )


def _by_number(path: Path) -> tuple[str, int, str]:
    name, _, number = path.name.rpartition("-")
    return (name, int(number), "") if number.isdecimal() else (path.name, 0, "")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no permission to look inside
        return False
