"""Recorder: follow a teacher, and write what it sees to a run directory.

Updates are summed up in memory and written about once a second, in one transaction, so that a
killed process loses at most that.
"""

from __future__ import annotations

import atexit
import functools
import math
import os
import shlex
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import numpy as np

from mastery.errors import MasteryError, MasteryWarning, did_you_mean
from mastery.programs.program import Program
from mastery.programs.returns import Step, numbers
from mastery.recording.points import OpenPoint, end_of_point
from mastery.rundir.part import Batch, Mark, PartWriter, Point
from mastery.rundir.writing import now
from mastery.teacher import Teacher

EVERY = 1.0  # seconds between writes
FEW = 2000  # up to this many tasks, each write has the unfinished point too

P = ParamSpec("P")


def _guarded(
    method: Callable[Concatenate[Recorder, P], None],
) -> Callable[Concatenate[Recorder, P], None]:
    """Run inside the teacher's lock. Errors of writing end the recording, not the training."""

    @functools.wraps(method)
    def safely(self: Recorder, /, *args: P.args, **kwargs: P.kwargs) -> None:
        with self.teacher._lock:
            if self._part is None:
                return
            try:
                method(self, *args, **kwargs)
            except Exception as error:
                self._fail(error)

    return safely


class Recorder:
    """Follows a teacher and writes what it sees; `record` makes one. Safe to share by threads.

    If the folder cannot be written, such as when the disk is full, a MasteryWarning says so and
    the recording ends; training goes on.

    Attributes:
        teacher: The teacher.
        folder: The folder of all runs.
        directory: This run's own directory in it.
        seed: The number of this run.
    """

    def __init__(self, teacher: Teacher, folder: Path, part: PartWriter, unit: str | None) -> None:
        self.teacher, self.folder = teacher, folder
        self.directory = part.directory
        self.seed = part.seed
        self.holders = 0  # of adapters: the last closes it
        self._part: PartWriter | None = part
        self._unit_known = unit is not None
        self._closed = False
        self._batch = Batch()
        self._point = OpenPoint(len(teacher.curriculum))
        self._frames = 0.0
        self._bucket, self._logged = 0, dict[str, list[float]]()  # of scalars: sum and number
        self._logged_at = 0.0  # frames
        self._due = 0.0  # when to write next
        self._follow()
        part.begin(_command(), teacher.time_step)
        teacher._observer = self
        _OPEN.add(self)
        _PARTS.add(part)

    def _follow(self) -> None:
        """Begin at the teacher's time-step; what is on disk after it is deleted."""
        part, step = self._part, self.teacher.time_step
        assert part is not None
        self._batch = Batch()
        mark = part.rewind(step)
        last, self._frames, seconds = part.last
        self._began = time.monotonic() - seconds
        self._before = self.teacher.distribution
        self._logged = {}
        if last or mark is not None:
            self._unit_known = True
        if mark is None:
            self._point.start(step)
            if last < step:
                self._note(f"time-steps {last + 1} to {step} were not recorded")
            return
        self._point.resume(mark.about["begin"], mark.about["updates"], mark.sums)
        self._frames = float(mark.about["frames"])
        self._bucket, self._logged = mark.about["bucket"], mark.about["logged"]
        self._logged_at = mark.about["logged_at"]

    def updated(self, steps: list[Step], costs: bool) -> None:
        """The teacher has observed these time-steps (see `mastery.teacher.Observer`)."""
        try:
            self._add(steps, costs)
        except Exception as error:
            self._fail(error)

    def _add(self, steps: list[Step], costs: bool) -> None:
        if self._part is None:
            return
        if not self._unit_known:
            self._unit_known = True
            if costs:
                self._part.describe(unit="frames")
        teacher, point = self.teacher, self._point
        self._frames += point.add(steps, self._before)
        self._before = teacher.distribution
        if teacher._time_step >= point.end:
            self._batch.points.append(self._made())
            point.start(teacher._time_step)
        if time.monotonic() >= self._due:
            self._write(len(self._before) <= FEW)

    def _made(self) -> Point:
        """The open point as it is now."""
        teacher, point = self.teacher, self._point
        program = teacher.program
        if isinstance(program, Program):
            view = program.view(teacher._state)
        else:
            assert teacher._meter
            view = teacher._meter.view(teacher._metered)
        return Point(
            teacher._time_step,
            self._frames,
            time.monotonic() - self._began,
            point.probability / point.updates,
            np.array(view.mastery, np.float64),
            np.array(view.progress, np.float64),
            point.count.copy(),
            point.returns.copy(),
            point.cost.copy(),
        )

    def _write(self, unfinished: bool = True, mark: bool = False) -> None:
        part, batch, point = self._part, self._batch, self._point
        assert part is not None
        self._close_bucket(forget=False)
        batch.unfinished = self._made() if unfinished and point.updates else None
        batch.mark = self._mark() if mark and (point.updates or self._logged) else None
        part.write(batch)
        self._batch = Batch()
        self._due = time.monotonic() + EVERY

    def _mark(self) -> Mark:
        point = self._point
        about = {
            "begin": point.begin,
            "updates": point.updates,
            "frames": self._frames,
            "bucket": self._bucket,
            "logged": self._logged,
            "logged_at": self._logged_at,
        }
        return Mark(self.teacher._time_step, about, point.sums)

    @_guarded
    def saved(self) -> None:
        """The teacher is being saved: all that led to it is written, so that it can resume."""
        self._write(mark=True)

    def changing(self) -> None:
        """The teacher's tasks are about to change: the recording ends, as its tasks cannot."""
        if self._part is None:
            return
        self._finish("the tasks changed")
        warnings.warn(
            f"the recording in {self.directory} has ended, since the teacher's tasks change; to go "
            "on, record into another folder",
            MasteryWarning,
            stacklevel=4,
        )

    @_guarded
    def loaded(self) -> None:
        """The teacher was set to another time-step: the recording goes on from there."""
        self._follow()

    def evaluate(self, scores: Mapping[str, float]) -> None:
        """Record an evaluation: scores that were measured outside training.

        Args:
            scores: `{task: score}`, of all tasks or of some.

        Raises:
            MasteryError: If a task is unknown, a score is not a number, or the recorder is closed.
        """
        self._check_open()
        positions = self.teacher.curriculum.positions
        found: dict[int, float] = {}
        for task, given in scores.items():
            if task not in positions:
                raise MasteryError(f"there is no task {task!r}{did_you_mean(str(task), positions)}")
            several = numbers(task, given, "score")
            if len(several) != 1 or not math.isfinite(several[0]):
                raise MasteryError(f"task {task!r}: a score is {given!r:.60}; give one number")
            found[int(positions[task])] = several[0]
        self._evaluate(found)

    @_guarded
    def _evaluate(self, scores: dict[int, float]) -> None:
        if scores:
            self._batch.tests.append((self.teacher._time_step, self._frames, scores))
            self._write()

    def note(self, text: str) -> None:
        """Record a remark, such as a change of the learning rate; the page shows it.

        Raises:
            MasteryError: If it is not a text, or the recorder is closed.
        """
        self._check_open()
        if not isinstance(text, str):
            raise MasteryError(f"a note is {text!r:.80}; it must be a text")
        self._noted(text)

    @_guarded
    def _noted(self, text: str) -> None:
        self._note(text)

    def _note(self, text: str) -> None:
        self._batch.notes.append((self.teacher._time_step, self._frames, now(), text))

    def log(self, **scalars: Any) -> None:
        """Record numbers of the learner, such as `log(loss=0.3, entropy=1.2)`.

        A point holds the mean of what was logged in it. NaN and infinity are left out.

        Raises:
            MasteryError: If a value is not a number, or the recorder is closed.
        """
        self._check_open()
        found: dict[str, float] = {}
        for name, value in scalars.items():
            try:
                found[name] = float(value)
            except (TypeError, ValueError):
                raise MasteryError(f"{name} is {value!r:.60}; log takes numbers") from None
        self._log({name: x for name, x in found.items() if math.isfinite(x)})

    @_guarded
    def _log(self, scalars: Mapping[str, float]) -> None:
        bucket = end_of_point(max(self.teacher._time_step, 1), self._point.first)
        if bucket != self._bucket:
            self._close_bucket(forget=True)
            self._bucket = bucket
        for name, value in scalars.items():
            sums = self._logged.setdefault(name, [0.0, 0])
            sums[0] += value
            sums[1] += 1
        self._logged_at = self._frames

    def _close_bucket(self, forget: bool) -> None:
        """Put the means of what was logged into the batch."""
        for name, (total, n) in self._logged.items():
            self._batch.scalars[self._bucket, name] = (self._logged_at, total / n)
        if forget:
            self._logged = {}

    @_guarded
    def flush(self) -> None:
        """Write everything now."""
        self._write(mark=True)

    def close(self) -> None:
        """Write everything, mark the run as finished and stop recording."""
        self._finish("the loop ended")

    def _finish(self, reason: str | None) -> None:
        with self.teacher._lock:
            self._closed = True
            if self._part is None:
                return
            try:
                self._write(mark=True)
                if reason is not None:
                    self._part.end(reason)
            except Exception as error:
                self._fail(error)
            self._release()

    def _release(self) -> None:
        part, self._part = self._part, None
        if self.teacher._observer is self:
            self.teacher._observer = None
        _OPEN.discard(self)
        if part is not None:
            _PARTS.discard(part)
            part.close()

    def _fail(self, error: Exception) -> None:
        """Stop recording: training matters more."""
        self._release()
        warnings.warn(
            f"the recording has stopped, and training goes on: {error}; what was written before "
            f"is in {self.directory}",
            MasteryWarning,
            stacklevel=5,
        )

    def _abandon(self) -> None:
        """Stop without touching the files: they belong to the process that was forked."""
        self.teacher._observer = None
        _ABANDONED.append(self._part)  # closing it could release what the other process needs
        self._part = None

    def _check_open(self) -> None:
        if self._closed:
            raise MasteryError(f"the recorder of {self.directory} is closed")

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._finish("the loop ended" if kind is None else None)

    def __del__(self) -> None:
        if getattr(self, "_part", None) is not None:
            self._finish("the loop ended")

    def __repr__(self) -> str:
        return f"<Recorder of {self.directory}>"

    def _repr_html_(self) -> str:
        """The page of the folder, for notebooks."""
        from mastery.page.inline import inline_page

        self.flush()
        return inline_page(self.folder)


def _command() -> str:
    """The command of this process; empty in a notebook or an interpreter."""
    program = sys.argv[0] if sys.argv else ""
    return shlex.join(sys.argv) if program.endswith(".py") else ""


_OPEN: weakref.WeakSet[Recorder] = weakref.WeakSet()
_ABANDONED: list[Any] = []
# kept alive: if a recorder is dropped with its teacher, Python 3.13 and later may close the
# database before the recorder writes its end
_PARTS: set[PartWriter] = set()


def _at_exit() -> None:
    failed = getattr(sys, "last_value", None) is not None  # an error that ended the program
    for recorder in list(_OPEN):
        recorder._finish(None if failed else "the loop ended")


def _in_child() -> None:
    for recorder in list(_OPEN):
        recorder._abandon()
    _OPEN.clear()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
