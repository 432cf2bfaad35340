"""A checkpoint file of arrays and plain data: atomic writes, a checksum, no pickle.

    mastery <version>\\n | length of header, 8 bytes | header, JSON | arrays, raw | SHA-256 of all

The checksum is the last 32 bytes in every version. So `read` can distinguish damage from a later
version.

The data goes to a temporary file in the same directory, which is synced and then renamed. A reader
therefore finds either the complete old file or the complete new one.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import json
import math
import os
import platform
import re
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.errors import CheckpointError

VERSION = 1


class Damaged(CheckpointError):
    """A checkpoint file is damaged or missing; an earlier one may be intact."""


_MAGIC = b"mastery "


def write(path: str | Path, kind: str, meta: Any, arrays: dict[str, NDArray[Any]]) -> None:
    """Write a checkpoint file atomically; on error an existing file is unchanged.

    Args:
        path: The file to write.
        kind: The kind of content, such as "teacher"; `read` checks it.
        meta: Any data that JSON can represent.
        arrays: Named arrays of booleans, integers or floats.

    Raises:
        CheckpointError: If the file cannot be written.
    """
    described = [[name, a.dtype.str, list(a.shape)] for name, a in arrays.items()]
    header = json.dumps({"kind": kind, "meta": meta, "arrays": described}).encode()

    def parts() -> Iterator[bytes | memoryview]:
        start = _MAGIC + f"{VERSION}\n".encode() + len(header).to_bytes(8, "little") + header
        digest = hashlib.sha256(start)
        yield start
        for array in arrays.values():
            raw = np.ascontiguousarray(array).data.cast("B") if array.size else b""
            digest.update(raw)
            yield raw
        yield digest.digest()

    replace_file(path, parts())


def replace_file(path: str | Path, parts: Iterable[bytes | memoryview]) -> None:
    """Replace a file atomically; on error the old file is unchanged.

    Args:
        path: The file to write. A pipe or a terminal is written to directly.
        parts: The content, in order.

    Raises:
        CheckpointError: If the file cannot be written.
    """
    try:
        path = Path(path)
        if path.exists() and not path.is_file():
            with path.open("wb") as file:  # a terminal or a pipe; fails for a directory
                file.writelines(parts)
            return
        path = path.resolve()  # write to a link's target, not over the link
        _remove_old(path)
    except (OSError, TypeError, ValueError) as error:
        raise CheckpointError(f"cannot write {path}: {_reason(error)}") from None
    temporary = path.with_name(
        f".{path.name}.{_machine()}.{os.getpid()}.{threading.get_ident()}.tmp"
    )
    try:
        with temporary.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise CheckpointError(
            f"cannot write {path}: {_reason(error)}; nothing was changed"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def read(path: str | Path, kind: str) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Read a checkpoint file.

    Args:
        path: The file to read.
        kind: The expected kind, such as "teacher".

    Returns:
        The plain data and the arrays.

    Raises:
        Damaged: If the file is missing, truncated or altered.
        CheckpointError: If it cannot be read, or has another version or kind.
    """
    try:
        content = Path(path).read_bytes()
    except (OSError, TypeError, ValueError) as error:
        error_type = Damaged if isinstance(error, FileNotFoundError) else CheckpointError
        raise error_type(f"cannot read {path}: {_reason(error)}") from None
    first, newline, rest = content.partition(b"\n")
    if not first.startswith(_MAGIC) or not newline:
        raise Damaged(f"{path} is not a mastery file")
    body, checksum = content[:-32], content[-32:]
    if len(rest) < 40 or hashlib.sha256(body).digest() != checksum:
        raise Damaged(f"{path} is damaged: it was truncated or altered; use an earlier copy")
    if first != _MAGIC + str(VERSION).encode():
        found = first.removeprefix(_MAGIC)[:20].decode(errors="replace")
        raise CheckpointError(
            f"{path} has version {found}, but this mastery reads version {VERSION}; "
            "use the release that wrote it"
        )
    try:
        header, arrays = _parse(body, len(first) + 1)
        if header["kind"] != kind:
            raise CheckpointError(f"{path} holds {header['kind']!r}, not {kind!r}")
        return header["meta"], arrays
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{path} is undamaged, but its content is malformed") from None


def _parse(body: bytes, at: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    length = int.from_bytes(body[at : at + 8], "little")
    header = json.loads(body[at + 8 : at + 8 + length])
    at += 8 + length
    arrays = {}
    for name, dtype, shape in header["arrays"]:
        if np.dtype(dtype).kind not in "biuf":
            raise ValueError(dtype)
        array = np.frombuffer(body, np.dtype(dtype), math.prod(shape), at).reshape(shape)
        arrays[name], at = array, at + array.nbytes
    return header, arrays


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _remove_old(path: Path) -> None:
    """Delete temporary files of writers that no longer run, and those older than an hour.

    On shared storage another machine's process may be writing: its number says nothing here.
    """
    start, end = f".{path.name}.", ".tmp"
    for old in path.parent.glob(f"{glob.escape(start)}*{end}"):
        parts = re.fullmatch(
            r"(?:([0-9a-f]{8})\.)?(\d+)\.\d+", old.name.removeprefix(start).removesuffix(end)
        )
        if parts is None:
            continue  # of another file, whose name begins with this one's
        with contextlib.suppress(OSError):
            dead = parts[1] == _machine() and not _runs(int(parts[2]))
            if dead or time.time() - old.stat().st_mtime > 3600:
                old.unlink()


@functools.cache
def _machine() -> str:
    """A short hash that tells apart machines, and containers that number their processes."""
    processes = ""
    with contextlib.suppress(OSError):
        processes = str(Path("/proc/self/ns/pid").readlink())
    return hashlib.sha256(f"{platform.node()} {processes}".encode()).hexdigest()[:8]


def _runs(process: int) -> bool:
    """Whether this machine has a process with this number; True if unknown."""
    if os.name != "posix":  # elsewhere os.kill would end it
        return True
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's
        return True
    return True


def sync_folder(folder: Path) -> None:
    """Sync a directory so that a rename survives a power cut, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
