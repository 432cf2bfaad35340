"""What a node must have to train a part: the driver's versions, and the job's folder.

The driver offers a probe folder inside the job's, with a file and a lock. A node looks at it: it
must read the file, write one of its own that the driver then reads, and see the lock. So the folder
is the same one, can be written to, and two processes on different nodes can never write to one
part.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mastery.errors import MasteryError
from mastery.rundir.database import is_training
from mastery.rundir.machine import processor, versions
from mastery.rundir.writing import lock_directory, writing

SEEN_SECONDS = 10.0  # after which a file of another machine must be visible here


class Probe(NamedTuple):
    """A folder that nodes look at, and what its file holds."""

    folder: Path
    token: str


class Look(NamedTuple):
    """What a node found."""

    versions: Mapping[str, str]
    processor: str
    problem: str | None  # of the folder


@contextlib.contextmanager
def offer(directory: str | Path) -> Iterator[Probe]:
    """Make a probe in a job's folder, and remove it at the end, with the folders that were new.

    Raises:
        CheckpointError: If the folder cannot be written.
    """
    directory = Path(directory).absolute()
    new = [path for path in (directory, *directory.parents) if not path.exists()]
    token = secrets.token_hex(8)
    probe = Probe(directory / f".probe-{token}", token)
    try:
        with writing(directory):
            probe.folder.mkdir(parents=True)
            (probe.folder / "driver").write_text(token)
            with contextlib.closing(lock_directory(probe.folder)):
                yield probe
    finally:
        shutil.rmtree(probe.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            for path in new:
                path.rmdir()


def look(folder: str, token: str, node: str) -> dict[str, Any]:
    """Look at a probe from a node: the fields of `Look` as plain data."""
    found = Look(versions(), processor(), _problem(Path(folder), token, node))
    return {**found._asdict(), "versions": dict(found.versions)}


def _problem(folder: Path, token: str, node: str) -> str | None:
    """What is wrong with the folder of a probe on this node, and the remedy."""
    shared = "give a folder on storage that all nodes share, under the same path (--out)"
    try:
        seen = (folder / "driver").read_text()
    except OSError as error:
        return f"does not see the folder ({error.strerror}); {shared}"
    if seen != token:
        return f"sees another folder under this path; {shared}"
    try:
        with (folder / node).open("w") as file:
            file.write(token)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return (
            f"cannot write to the folder ({error.strerror}); let the user that Ray runs as there "
            "write to it, or give another one (--out)"
        )
    if not is_training(folder):
        return (
            "does not see locks of other machines in the folder, so that two processes could "
            "train one part; mount the storage with locks (NFS 4, or Lustre with -o flock), or "
            "give another folder (--out)"
        )
    return None


def comes_back(probe: Probe, node: str) -> bool:
    """Whether this machine sees what a node wrote to a probe."""
    end = time.monotonic() + SEEN_SECONDS
    while True:
        with contextlib.suppress(OSError):
            if (probe.folder / node).read_text() == probe.token:
                return True
        if time.monotonic() > end:
            return False
        time.sleep(0.2)


def check_versions(who: str, theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    """Raise MasteryError if a node has other versions than the machine of the driver."""
    other = [
        f"{name} {theirs.get(name, 'none')} (here {ours.get(name, 'none')})"
        for name in {**ours, **theirs}
        if theirs.get(name) != ours.get(name)
    ]
    if other:
        raise MasteryError(
            f"{who} has other versions, which may change digits: {', '.join(other)}; install the "
            "same ones on all nodes"
        )
