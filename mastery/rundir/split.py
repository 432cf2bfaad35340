"""A job trained in parts: a folder with a run directory for each group of the job's runs.

    runs/mine/parts.json       marks the folder: the whole job, and which of its runs each part has
    runs/mine/parts/0/run.db   a part: an ordinary run directory
    runs/mine/parts/1/run.db

Each part has its own writer, so machines that share the folder can train them at the same time. The
marker is written last: where it is, all parts are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mastery.checkpoint import replace_file
from mastery.errors import CheckpointError, MasteryError

MARKER = "parts.json"
FORMAT = 1


class Split(NamedTuple):
    """The whole job of a folder of parts.

    Attributes:
        job: The job as plain data, from its `to_dict`.
        runs: For each part, the first of the job's runs that it has, and the end: one more than
            the last.
        created: When, in UTC.
    """

    job: Mapping[str, Any]
    runs: tuple[tuple[int, int], ...]
    created: str


def is_split(path: Path) -> bool:
    """Whether a directory is a job trained in parts."""
    try:
        return (path / MARKER).is_file()
    except OSError:  # no permission to look inside
        return False


def part_directory(folder: Path, number: int) -> Path:
    """The run directory of a part."""
    return folder / "parts" / str(number)


def split_parts(folder: Path) -> list[Path]:
    """The run directories of all parts, in the order of the job's runs."""
    return [part_directory(folder, i) for i in range(len(read_split(folder).runs))]


def write_split(folder: Path, split: Split) -> None:
    """Write the marker; CheckpointError if it cannot be written."""
    about = {"format": FORMAT, **split._asdict()}
    replace_file(folder / MARKER, [json.dumps(about).encode()])


def read_split(folder: Path) -> Split:
    """Read the marker; CheckpointError if it cannot be read."""
    path = folder / MARKER
    try:
        about = json.loads(path.read_bytes())
        form = int(about["format"])
        if form == FORMAT:
            runs = tuple((int(first), int(end)) for first, end in about["runs"])
            if dict(about["job"]) and runs and all(first < end for first, end in runs):
                return Split(about["job"], runs, str(about["created"]))
    except (OSError, ValueError, LookupError, TypeError) as error:
        reason = getattr(error, "strerror", None) or "it is damaged or not from mastery"
        raise CheckpointError(f"cannot read {path}: {reason}; restore a copy of it") from None
    if form != FORMAT:
        raise CheckpointError(
            f"{path} has format {form}, but this mastery reads format {FORMAT}; use the release "
            "that wrote it"
        )
    raise CheckpointError(f"cannot read {path}: it is damaged; restore a copy of it")


def find_part(folder: Path, run: int) -> tuple[Path, int]:
    """The run directory of one of the whole job's runs, and the run's number in it."""
    runs: Sequence[tuple[int, int]] = read_split(folder).runs
    for number, (first, end) in enumerate(runs):
        if first <= run < end:
            return part_directory(folder, number), run - first
    raise MasteryError(f"there is no run {run}: {folder} has runs 0 to {runs[-1][1] - 1}")
