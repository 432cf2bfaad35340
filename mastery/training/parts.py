"""Split a job into parts, each a group of its runs in a run directory of its own.

Runs do not depend on each other, so parts can be trained in any order, on any machine
(`mastery.cluster`), or here one after the other. What ends a job early depends on all its runs:
`split_job` refuses `stop_mastered` and `stop_return` with several parts, and a part of an addition
job ends when its own runs have learned.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.errors import MasteryError, check_whole
from mastery.rundir.database import last_chunks, open_database, read_description, recent_training
from mastery.rundir.metrics import Metrics
from mastery.rundir.results import RECENT, joined_end, read_curves
from mastery.rundir.split import Split, part_directory, read_split, write_split
from mastery.rundir.store import Store, check_new
from mastery.rundir.writing import now
from mastery.training.job import Job, read_job
from mastery.training.train import (
    Means,
    Progress,
    Trained,
    TrainOptions,
    job_to_resume,
    progress_of,
    resume,
    until_gone,
)

_DEFAULT = TrainOptions()


class JobPart(NamedTuple):
    """A part of a job."""

    directory: Path
    job: Job  # with `only`

    @property
    def whole(self) -> Path:
        """The folder of the whole job."""
        return self.directory.parent.parent

    @property
    def name(self) -> str:
        """Its number, and its runs among those of the whole job."""
        first, last = self.job.rows.start, self.job.rows.stop - 1
        runs = f"run {first}" if first == last else f"runs {first} to {last}"
        return f"part {self.directory.name} ({runs})"


def split_job(job: Job, parts: int) -> list[Job]:
    """Split a job into groups of consecutive runs, whose sizes differ by at most one.

    Raises:
        MasteryError: If there are more parts than runs, or a stopping condition looks at all runs.
    """
    runs = len(job.runs)
    check_whole("parts", parts)
    if parts > runs:
        raise MasteryError(f"parts is {parts}, and the job has {runs:,} runs; give at most {runs}")
    for name, value in (("mastered", job.stop_mastered), ("return", job.stop_return)):
        if value is not None and parts > 1:
            raise MasteryError(
                f"--stop-when-{name} looks at every run after each chunk, and parts are trained "
                "apart; omit it, or train the job as one part with --parts 1"
            )
    bounds = [job.rows.start + i * runs // parts for i in range(parts + 1)]
    return [replace(job, only=(first, end)) for first, end in itertools.pairwise(bounds)]


def create_parts(job: Job, directory: Path, parts: int) -> list[JobPart]:
    """Make the folder of a job in parts, with nothing trained yet.

    Raises:
        MasteryError: If the folder is not new or empty, or the job cannot be split. Nothing is
            written then.
        CheckpointError: If the folder cannot be written.
    """
    jobs = split_job(job, parts)
    check_new(directory)
    made = [JobPart(part_directory(directory, i), own) for i, own in enumerate(jobs)]
    for part in made:
        with Store(part.directory, part.job):
            pass
    runs = tuple((own.rows.start, own.rows.stop) for own in jobs)
    write_split(directory, Split(job.to_dict(), runs, now()))
    return made


def parts_to_resume(directory: Path, frames: int | None = None) -> tuple[Job, list[JobPart]]:
    """The whole job of a folder and its parts, with a new number of frames if one is given.

    Raises:
        MasteryError: If a part has trained more frames than that.
        CheckpointError: If the folder cannot be read or written.
    """
    job = job_to_resume(directory, frames)
    split = read_split(directory)
    if job.updates != read_job(directory).updates:
        write_split(directory, split._replace(job=job.to_dict()))
    return job, [
        JobPart(part_directory(directory, i), replace(job, only=runs))
        for i, runs in enumerate(split.runs)
    ]


def is_finished(part: JobPart) -> str | None:
    """Why a part is finished; None if it is not, or its job was extended since."""
    with open_database(part.directory) as db:
        ended = read_description(part.directory, db)[2]
    return ended if read_job(part.directory).updates == part.job.updates else None


class Together:
    """Combines the progress of parts into that of the whole job.

    Args:
        job: The whole job.
        parts: Its parts; what they have trained before is read from their directories.
    """

    def __init__(self, job: Job, parts: Sequence[JobPart]) -> None:
        self._job, self._parts = job, list(parts)
        self._standing = [_standing(part) for part in parts]
        self._live: set[int] = set()  # parts that are being trained now

    def show(self, number: int, progress: Progress) -> Progress:
        """Take a part's new progress; return that of the whole."""
        self._standing[number] = progress
        self._live.add(number)
        return self.whole()

    def stopped(self, number: int) -> None:
        """A part is not trained any more; its speed no longer counts."""
        self._live.discard(number)

    @property
    def update(self) -> int:
        """The updates of the job so far: the mean over its runs."""
        sizes = [len(part.job.runs) for part in self._parts]
        done = (p.update if p else 0 for p in self._standing)
        return sum(size * x for size, x in zip(sizes, done, strict=True)) // sum(sizes)

    def whole(self) -> Progress:
        known = [progress for progress in self._standing if progress is not None]
        by_label: dict[str, list[Means]] = {}
        for progress in known:
            for label, means in progress.programs.items():
                by_label.setdefault(label, []).append(means)
        every = _mean([means for found in by_label.values() for means in found])
        speeds = (p.speed for i in self._live if (p := self._standing[i]) is not None)
        return Progress(
            update=self.update,
            updates=self._job.updates,
            frames=sum(progress.frames for progress in known),
            speed=sum(speeds),
            mastery=every.mastery,
            returns=every.returns,
            share=every.share,
            programs={label: _mean(found) for label, found in by_label.items()},
        )


def _standing(part: JobPart) -> Progress | None:
    """The progress of a part as its directory has it; None if nothing was trained."""
    job = part.job
    with open_database(part.directory) as db:
        last = last_chunks(db, 1)
        if not last:
            return None
        step, tasks = last[0][0], len(job.curriculum)
        curves = read_curves(db, len(job.runs), tasks, after=step - job.chunk, policies=())
        episodes, returns = recent_training(db, RECENT)
    nothing = np.zeros(curves.mastery.shape)
    metrics = Metrics(curves.probability, curves.mastery, nothing, nothing, curves.played)
    recent = deque(zip(episodes, returns, strict=True))
    return progress_of(job, step, 0.0, metrics, recent)


def _mean(found: Sequence[Means]) -> Means:
    """The mean over the runs of several groups, as far as it is known."""
    runs = np.array([means.runs for means in found])

    def mean(name: str) -> NDArray[np.float64]:
        values = np.stack([getattr(means, name) for means in found])
        weights = np.where(np.isnan(values), 0.0, runs[:, None])
        with np.errstate(invalid="ignore"):
            total: NDArray[np.float64] = (np.nan_to_num(values) * weights).sum(0) / weights.sum(0)
        return total

    return Means(mean("mastery"), mean("returns"), mean("share"), int(runs.sum()))


def cores_for(parts: Sequence[JobPart]) -> int:
    """The most cores with which no run is shared by several: how many there are then does not
    matter for the digits."""
    return min(len(part.job.runs) for part in parts)


def outcome_of(directory: Path, job: Job, parts: Sequence[JobPart], interrupted: bool) -> Trained:
    """What became of the whole job, from what is saved: parts do not show every chunk."""
    ended = joined_end([is_finished(part) for part in parts])
    return Trained(directory, Together(job, parts).update, ended, interrupted)


def resume_parts(
    directory: Path, options: TrainOptions = _DEFAULT, frames: int | None = None
) -> Trained:
    """Resume a job in parts in this process, one part after the other; see `resume`."""
    job, parts = parts_to_resume(directory, frames)
    together = Together(job, parts)
    show = until_gone(options.report)
    began, interrupted = time.monotonic(), False
    for number, part in enumerate(parts):
        minutes = options.minutes
        if minutes is not None:
            minutes -= (time.monotonic() - began) / 60
        if is_finished(part) is not None or (minutes is not None and minutes <= 0):
            continue

        def report(progress: Progress, number: int = number) -> None:
            show(together.show(number, progress))

        own = replace(options, minutes=minutes, report=report)
        outcome = resume(part.directory, own, frames=job.frames)
        together.stopped(number)
        interrupted = outcome.interrupted
        if interrupted or outcome.ended is None:  # by `options.stop`, or out of time
            break
    return outcome_of(directory, job, parts, interrupted)
