"""How an adapter records: `record=` is a folder, or a Recorder that the user has made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mastery.errors import MasteryError
from mastery.recording.record import record as begin
from mastery.recording.recorder import Recorder
from mastery.teacher import Teacher


class Recording:
    """The recorder of one adapter. Adapters with the same teacher and folder share it.

    A recorder of a folder closes when the last of its adapters does. A recorder that the user has
    made stays open: it is the user's to close.

    Args:
        teacher: The teacher.
        record: What the user gave: a folder, a Recorder of this teacher, or None.
        unit: What the adapter's costs count; None if it cannot know.

    Raises:
        MasteryError: If `record` is something else, or the Recorder of another teacher.
    """

    def __init__(
        self, teacher: Teacher, record: str | Path | Recorder | None, unit: str | None
    ) -> None:
        if not (record is None or isinstance(record, str | Path | Recorder)):
            raise MasteryError(
                f"record is {record!r:.80}; it must be a folder, or a Recorder from mastery.record"
            )
        if isinstance(record, Recorder) and record.teacher is not teacher:
            raise MasteryError(
                f"record is {record!r:.80}, which follows another teacher; give both the same one"
            )
        self._teacher, self._given, self._unit = teacher, record, unit
        self._held: Recorder | None = None

    @property
    def recorder(self) -> Recorder | None:
        """The recorder; made at first use, when the teacher's saved state has been loaded."""
        if self._held is not None or self._given is None:
            return self._held
        if isinstance(self._given, Recorder):
            return self._given
        with self._teacher._lock:
            known = self._teacher._observer
            self._held = begin(self._teacher, self._given, unit=self._unit)
            if self._held is known and not self._held.holders:
                self._held.holders = 1  # the user's own: no adapter closes it
            self._held.holders += 1
        return self._held

    def close(self) -> None:
        """Write everything; close the recorder if no other adapter uses it."""
        if isinstance(self._given, Recorder):
            self._given.flush()
        held, self._held = self._held, None
        if held is not None:
            with self._teacher._lock:
                held.holders -= 1
                last = not held.holders
            if last:
                held.close()
            else:
                held.flush()

    def __reduce__(self) -> tuple[Any, ...]:
        return Recording, (self._teacher, None, self._unit)  # copies are not recorded
