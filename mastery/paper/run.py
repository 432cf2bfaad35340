"""Train the paper's experiments in one folder, or resume them.

FOLDER/key-corridor-2018/…   the run directory of each job
FOLDER/curves/*.npz          its thinned curves
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from mastery.errors import MasteryError
from mastery.paper import curves
from mastery.rundir.parts import holds_job
from mastery.rundir.results import load_results
from mastery.rundir.split import is_split
from mastery.rundir.writing import writing
from mastery.training.job import Job, read_job
from mastery.training.parts import cores_for as cores_of_parts
from mastery.training.parts import parts_to_resume
from mastery.training.train import Report, Trained, TrainOptions, resume, train


class NamedJob(Protocol):
    """A job of an experiment; `PaperJob` is one."""

    @property
    def name(self) -> str: ...

    def job(self, scale: float = 1.0) -> Job: ...


J = TypeVar("J", bound=NamedJob)
Keep = Callable[[Path, Path, float], None]  # run directory, folder, scale


def run(
    parts: Iterable[J],
    folder: Path,
    scale: float = 1.0,
    options: TrainOptions = TrainOptions(),  # noqa: B008 (it cannot change)
    watch: Callable[[Job], AbstractContextManager[Report]] | None = None,
    keep: Keep | None = None,
) -> Iterator[tuple[J, Trained]]:
    """Train or resume jobs one after the other, and yield each outcome.

    Stops when `options.minutes` run out, or after a job that was interrupted.

    Args:
        parts: The jobs.
        folder: Holds the run directories.
        scale: See `PaperJob.job`.
        options: For `train` and `resume`; the minutes are those of all jobs together.
        watch: Opens the progress display of a job.
        keep: Saves the curves of a job; by default `keep_curves`.
    """
    wanted = [(part, part.job(scale)) for part in parts]
    for part, job in wanted:
        check_same(folder / part.name, job)
    began = time.monotonic()
    for part, job in wanted:
        now = with_minutes_left(options, began)
        if now.minutes is not None and now.minutes <= 0:
            return
        with nullcontext() if watch is None else watch(job) as report:
            outcome = run_part(part, folder, scale, replace(now, report=report), keep)
        yield part, outcome
        if outcome.interrupted:
            return


def with_minutes_left(options: TrainOptions, began: float) -> TrainOptions:
    """The options with the minutes that are left of those since `began`, a monotonic time."""
    if options.minutes is None:
        return options
    return replace(options, minutes=options.minutes - (time.monotonic() - began) / 60)


def run_part(
    part: NamedJob, folder: Path, scale: float, options: TrainOptions, keep: Keep | None = None
) -> Trained:
    """Train or resume one job, then save its curves."""
    directory = folder / part.name
    if holds_job(directory):
        outcome = resume(directory, options)
    else:
        directory.parent.mkdir(parents=True, exist_ok=True)
        outcome = train(part.job(scale), directory, options)
    (keep or keep_curves)(directory, folder, scale)
    return outcome


def keep_curves(directory: Path, folder: Path, scale: float) -> None:
    """Save the curves of a job in the folder's `curves`."""
    with writing(folder):
        (folder / "curves").mkdir(exist_ok=True)
    found = curves.from_results(load_results(directory), scale)
    curves.save(found, folder / "curves" / f"{directory.name}.npz")


def cores_for(directory: Path, job: Job, share: int) -> int:
    """Cores for a job: its share, or as many as before if a change would alter its digits."""
    if is_split(directory):
        return cores_of_parts(parts_to_resume(directory)[1])
    if (directory / "run.db").exists():
        sessions = load_results(directory).sessions
        before = int(sessions[-1].hardware.get("devices", 1)) if sessions else share
        if job.parts(before) != job.parts(share):
            return before
    return share


def check_same(directory: Path, job: Job) -> None:
    """Raise MasteryError if the directory holds a different job or another scale."""
    if not holds_job(directory):
        return
    there, wanted = read_job(directory).to_dict(), job.to_dict()
    other = [name for name in wanted if there.get(name) != wanted[name]]
    if other:
        raise MasteryError(
            f"{directory} holds another job (other {', '.join(other)}): give another folder with "
            f"--out, or remove it: rm -r {shlex.quote(str(directory))}"
        )
