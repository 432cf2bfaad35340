"""DurableTeacher: a teacher that many clients share; acknowledged updates survive a crash.

Its folder holds two files:

    teacher.ckpt     the teacher and its number of updates from each client, written periodically
    journal-000003   the updates since then, one line per batch, on disk before acknowledgement

A client numbers its updates from 0 and resends a batch until it is acknowledged. An update that
arrives twice counts once.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import warnings
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mastery import checkpoint
from mastery.curriculum import Curriculum
from mastery.errors import CheckpointError, MasteryError
from mastery.programs.program import ProgramLike
from mastery.recording.record import record as begin_recording
from mastery.recording.recorder import Recorder
from mastery.teacher import Teacher

try:
    import fcntl
except ModuleNotFoundError:  # Windows: two teachers in one folder are not detected
    fcntl = None  # type: ignore[assignment]

PATIENCE = 10.0  # seconds to wait for another teacher to release the folder
# returns by task, or these and their costs by task
Update = Mapping[str, Sequence[float]] | Sequence[Mapping[str, Sequence[float]]]


class DurableTeacher:
    """Applies updates from clients and acknowledges those that are on disk.

    Args:
        folder: The folder of the checkpoint and the journal. Only one teacher can use it at a time.
        teacher: The initial teacher. If the folder already holds one, its state is loaded into this
            teacher. If None, the folder must hold a teacher.
        program: Your own program, if the saved teacher has one and you give no `teacher`.
        every: Write a checkpoint when the journal holds this many updates.
        record: A folder to record into, as with `mastery.record`.

    Raises:
        CheckpointError: If the folder cannot be used, is damaged, holds a different teacher, or
            holds none while `teacher` is None.
        MasteryError: If another teacher is using the folder.
    """

    def __init__(
        self,
        folder: str | Path,
        teacher: Teacher | None = None,
        *,
        program: ProgramLike | None = None,
        every: int = 10_000,
        record: str | Path | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.teacher: Teacher
        self._record = record
        self._recording: Recorder | None = None
        self.clients: dict[str, int] = {}  # number of updates from each
        self._every = every
        self._number = 0  # number of the journal file
        self._in_journal = 0  # number of updates in the journal
        self._journal = -1  # file descriptor; -1 if closed
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.folder / "lock")
        except OSError as error:
            raise CheckpointError(f"cannot use {self.folder}: {error.strerror}") from None
        try:
            self._restore(teacher, program)
        except BaseException:
            os.close(self._lock)
            raise

    def take(self, client: str, first: int, updates: Sequence[Update]) -> tuple[int, str]:
        """Write a client's updates to disk and apply them; skip those already taken.

        Args:
            client: The client's id.
            first: The number of the first update in `updates`, counting from 0.
            updates: The updates, in order.

        Returns:
            The number of this client's updates that are on disk and applied, and the first error
            that the teacher raised on these (your own program may fail), or "".

        Raises:
            CheckpointError: If updates before `first` are missing or the journal cannot be written.
            MasteryError: If the teacher was stopped.
        """
        if self._journal < 0:
            raise MasteryError("the teacher was stopped; start it again to continue")
        have = self.clients.get(client, 0)
        if first > have:
            raise CheckpointError(
                f"{self.folder} holds {have} updates of client {client}, but {first} were "
                "acknowledged; use the folder that the teacher wrote to"
            )
        new = updates[have - first :]
        if new:
            self._append(_line([client, have, new]))
            wrong = self._apply(client, have, new)
            if self._in_journal >= self._every:
                self._checkpoint_or_warn()
            return self.clients[client], wrong
        return have, ""

    def checkpoint(self) -> None:
        """Write the teacher to disk and start a new journal."""
        number = self._number + 1
        journal = self._open_journal(number, os.O_TRUNC)  # if this fails, the old one stays in use
        state = self.teacher.state_dict()
        arrays = state.pop("state")
        whole = {"curriculum": self.teacher.curriculum.to_dict()}
        meta = {**state, **whole, "clients": self.clients, "journal": number}
        try:
            checkpoint.write(self.folder / "teacher.ckpt", "shared teacher", meta, arrays)
        except BaseException:
            os.close(journal)
            raise
        if self._journal >= 0:
            os.close(self._journal)
        self._journal, self._number, self._in_journal = journal, number, 0
        for old in self.folder.glob("journal-*"):
            if old.name < self._path(number).name:
                with contextlib.suppress(OSError):
                    old.unlink()

    def close(self) -> None:
        """Write a checkpoint and release the folder to other teachers."""
        if self._journal >= 0:
            self.checkpoint()
            os.close(self._journal)
            os.close(self._lock)
            self._journal = -1
            if self._recording is not None:
                self._recording.close()

    def _restore(self, teacher: Teacher | None, program: ProgramLike | None) -> None:
        path = self.folder / "teacher.ckpt"
        if not path.exists():
            if teacher is None:
                raise CheckpointError(f"{self.folder} holds no teacher; pass the initial one")
            self._follow(teacher, again=False)
            self.checkpoint()
            return
        meta, arrays = checkpoint.read(path, "shared teacher")
        try:
            curriculum = Curriculum.from_dict(meta["curriculum"])
            if teacher is None:
                if program is None and meta["program"].startswith("own "):
                    raise CheckpointError(
                        f"the teacher has a custom program ({meta['program'][4:]}); pass it as "
                        "program=…"
                    )
                known = meta["program"] if program is None else program
                teacher = Teacher(curriculum, known, per_episode=meta["per_episode"])
            state = {**meta, "curriculum": curriculum.fingerprint, "state": arrays}
            teacher.load_state_dict(state)
            self.clients = {str(client): int(n) for client, n in meta["clients"].items()}
            self._number = int(meta["journal"])
        except MasteryError as error:
            raise CheckpointError(f"{path}: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} does not hold a shared teacher: {error!r}") from None
        self._follow(teacher, again=True)  # from the checkpoint on: what follows is in the journal
        self._journal = self._open_journal(self._number)
        with open(self._journal, "rb", closefd=False) as file:
            lines = file.read().splitlines(keepends=True)
        whole = 0
        for number, line in enumerate(lines):
            record = _record(line)
            if record is None:
                if number < len(lines) - 1:  # the last may be incomplete: it was not acknowledged
                    raise checkpoint.Damaged(
                        f"{self._path(self._number)} is damaged at line {number + 1}; "
                        "use an earlier copy of the folder"
                    )
                break
            self._apply(*record)
            whole += len(line)
        os.ftruncate(self._journal, whole)

    def _follow(self, teacher: Teacher, again: bool) -> None:
        self.teacher = teacher
        if self._record is not None:
            self._recording = begin_recording(teacher, self._record, _again=again)

    def _apply(self, client: str, have: int, updates: Sequence[Update]) -> str:
        wrong = ""
        for update in updates:
            try:
                if isinstance(update, Mapping):
                    self.teacher.update(update)
                else:
                    self.teacher.update(update[0], cost=update[1])
            except Exception as error:  # it fails again in the same way when the journal is read
                wrong = wrong or f"{type(error).__name__}: {error}"
        self.clients[client] = have + len(updates)
        self._in_journal += len(updates)
        return wrong

    def _append(self, line: bytes) -> None:
        size = os.fstat(self._journal).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._journal, line[written:])
            os.fsync(self._journal)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._journal, size)
            raise CheckpointError(
                f"cannot write {self._path(self._number)}: {error.strerror}"
            ) from None

    def _checkpoint_or_warn(self) -> None:
        try:
            self.checkpoint()
        except CheckpointError as error:  # the journal still holds every update
            self._in_journal = 0
            warnings.warn(f"{error}; updates are still kept in the journal", stacklevel=2)

    def _path(self, number: int) -> Path:
        return self.folder / f"journal-{number:06d}"

    def _open_journal(self, number: int, flags: int = 0) -> int:
        path = self._path(number)
        try:
            journal = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | flags, 0o644)
        except OSError as error:
            raise CheckpointError(f"cannot open {path}: {error.strerror}") from None
        checkpoint.sync_folder(self.folder)
        return journal


def _line(record: Any) -> bytes:
    text = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _record(line: bytes) -> Any:
    """Decode a journal line; None if it is incomplete or damaged."""
    if len(line) < 10 or line[-1:] != b"\n" or line[:8] != b"%08x" % zlib.crc32(line[9:-1]):
        return None
    return json.loads(line[9:-1])


def _lock(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    if fcntl is None:
        return handle
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except OSError:
            if time.monotonic() > end:
                os.close(handle)
                raise MasteryError(
                    f"another teacher is using {path.parent}; give each teacher its own folder"
                ) from None
            time.sleep(0.05)
