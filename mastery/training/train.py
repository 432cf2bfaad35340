"""Train a job from start to end, or resume it."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.errors import MasteryError, MasteryWarning, ProgramError, needs
from mastery.rundir.database import last_chunks, open_database
from mastery.rundir.machine import PACKAGES, hardware, versions
from mastery.rundir.metrics import Metrics
from mastery.rundir.results import RECENT
from mastery.rundir.split import is_split, split_parts
from mastery.rundir.store import Store, check_new, totals
from mastery.training.doubts import Doubts
from mastery.training.job import Job, parse_job, read_job
from mastery.training.loops.loop import Loop
from mastery.training.signals import interrupts
from mastery.training.writer import ChunkWriter

CHECKPOINT_SECONDS = 30.0
STOPPING = "stopping after this chunk; again to stop at once"


class Means(NamedTuple):
    """Where the runs of a program stand; the arrays hold one mean over them per task."""

    mastery: NDArray[np.float64]
    returns: NDArray[np.float64]  # over the last chunks; NaN if no episode ended
    share: NDArray[np.float64]  # of the last chunk's frames
    runs: int


class Progress(NamedTuple):
    """Progress of a job. The arrays hold one mean over all runs per task."""

    update: int
    updates: int
    frames: int  # of all runs together
    speed: float  # frames per second in the last chunk
    mastery: NDArray[np.float64]
    returns: NDArray[np.float64]  # over the last chunks; NaN if no episode ended
    share: NDArray[np.float64]  # of the last chunk's frames
    programs: Mapping[str, Means]  # by label: the program, with the settings that are changed


Report = Callable[[Progress], None]
Note = Callable[[str], None]  # receives one line for the user
Recent = deque[tuple[NDArray[np.int64], NDArray[np.float64]]]


@dataclass(frozen=True)
class TrainOptions:
    """How to train a job on this machine; nothing here changes its result.

    Attributes:
        minutes: Stop after this many minutes; by default there is no limit.
        checkpoint_seconds: Shortest time between checkpoints. The last chunk always saves one.
        elsewhere: Resume even on a different device. Digits may then differ from those of an
            uninterrupted job. They may also differ if package versions changed; a note says so.
        command: The command line to record with the session.
        report: Called with the `Progress` after every chunk.
        note: Called with each line that the user should see.
        stop: Asked after every chunk; True stops training as Ctrl-C does.
        loop: Makes the loop, from a job and `note`; by default that of the job's environments.
    """

    minutes: float | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    elsewhere: bool = False
    command: str = ""
    report: Report | None = None
    note: Note | None = None
    stop: Callable[[], bool] | None = None
    loop: Callable[[Job, Note | None], Loop] | None = None


_DEFAULT = TrainOptions()


class Trained(NamedTuple):
    """What `train` and `resume` return."""

    directory: Path
    update: int
    ended: str | None  # why the job is finished; None if it can be resumed
    interrupted: bool  # by Ctrl-C or SIGTERM


def train(job: Job, directory: str | Path, options: TrainOptions = _DEFAULT) -> Trained:
    """Train a new job and save everything in a new directory.

    The job finishes after `job.frames` frames per run, or earlier if one of its stopping
    conditions holds. If `options.minutes` run out, or on Ctrl-C, training stops after the current
    chunk and `resume` continues it.

    Args:
        job: What to train.
        directory: The run directory, new or empty.
        options: When to stop, when to save, and what to call with progress.

    Returns:
        Where the job was saved, how far it got and why it stopped.

    Raises:
        MasteryError: If the directory is not empty or the job cannot be trained. Nothing is
            written then.
        CheckpointError: If the directory cannot be written.

    Example:
        >>> job = mastery.Job(mastery.Curriculum.load("blocked-unlock-pickup"))
        >>> mastery.train(job, "runs/first", mastery.TrainOptions(minutes=10))
        >>> mastery.resume("runs/first")
    """
    check_new(Path(directory))
    loop = (options.loop or make_loop)(job, options.note)  # raises before anything is written
    with Store(directory, job) as store:
        return _train(store, job, loop, options)


def resume(
    directory: str | Path, options: TrainOptions = _DEFAULT, *, frames: int | None = None
) -> Trained:
    """Resume a job; the result is bit for bit as if it had not been stopped.

    A finished job is left unchanged unless `frames` extends it.

    Args:
        directory: The run directory.
        options: When to stop, when to save, and what to call with progress.
        frames: A new number of frames per run, at least those already trained.

    Returns:
        Where the job was saved, how far it got and why it stopped.

    Raises:
        MasteryError: If there is no job in the directory, another process is training it, the
            device is different, or `frames` is less than already trained.
        CheckpointError: If no checkpoint can be read, or the directory cannot be written.
        ProgramError: If a program of your own cannot be found again.

    Warns:
        MasteryWarning: If the source of a program of your own has changed. With `options.note`,
            that is noted instead.
    """
    if is_split(Path(directory)):
        from mastery.training.parts import resume_parts

        return resume_parts(Path(directory), options, frames)
    with Store(directory) as store:
        job = parse_job(directory, store.description)
        changed = _with_frames(directory, job, store.step, frames)
        extended = changed.updates != job.updates
        if store.ended is not None and not extended:
            return Trained(store.directory, store.step, store.ended, False)
        _check_place(store, changed, options.elsewhere)
        loop = _loop_again(changed, store.description.get("sources", {}), options)
        if extended:
            store.change(changed)
        return _train(store, changed, loop, options)


def _loop_again(job: Job, sources: Mapping[str, Mapping[str, str]], options: TrainOptions) -> Loop:
    """The loop of a saved job; `sources` says where its own programs were, and their SHA-256."""
    note = options.note
    try:
        loop = (options.loop or make_loop)(job, note)
    except ProgramError as error:
        places = ", ".join(source["file"] for source in sources.values())
        hint = f"; the job was started with {places}" if places else ""
        raise ProgramError(f"{error}{hint}") from error
    for text, source in sources.items():
        if job.own[text].source().get("sha256") != source["sha256"]:
            changed = (
                f"the source of the program {text!r} has changed since the job was started; the "
                "result may differ from that of an uninterrupted job"
            )
            if note is not None:
                note(changed)
            else:
                warnings.warn(changed, MasteryWarning, stacklevel=3)
    return loop


def job_to_resume(directory: str | Path, frames: int | None = None) -> Job:
    """The job of a run directory as `resume` would train it; raises what `resume` would raise."""
    job = read_job(directory)
    done = 0
    for part in split_parts(Path(directory)) if is_split(Path(directory)) else [Path(directory)]:
        with open_database(part) as db:
            last = last_chunks(db, 1)
        done = max(done, last[0][0] if last else 0)
    return _with_frames(directory, job, done, frames)


def _with_frames(directory: str | Path, job: Job, done: int, frames: int | None) -> Job:
    """The job with a new number of frames; MasteryError if more updates than that are done."""
    changed = job if frames is None else replace(job, frames=frames)
    if changed.updates < done:
        unit, trained = job.settings.unit, done * job.frames_of_update
        raise MasteryError(
            f"{directory} has already trained {trained:,} {unit} per run, and only "
            f"{changed.frames:,} are asked for; nothing was changed; ask for {trained:,} or more"
        )
    return changed


def _check_place(store: Store, job: Job, elsewhere: bool) -> None:
    """Refuse a different device, and note different versions: either may change digits."""
    before = store.last_hardware()
    if before is None:
        return
    here = hardware()
    other = [n for n in ("device", "machine", "processor") if before.get(n) != here[n]]
    if _layout(job, before) != _layout(job, here):
        other.append("devices")
    if other and not elsewhere:
        differ = ", ".join(f"{name} {before.get(name)!r}, here {here[name]!r}" for name in other)
        raise MasteryError(
            f"{store.directory} was trained elsewhere: {differ}; digits may differ after resuming. "
            "Resume it there, or allow this with --elsewhere"
        )
    now = versions()
    changed = [
        f"{name} {old} → {now.get(name, 'none')}"
        for name, old in before["versions"].items()
        if now.get(name) != old and (name in now or name in PACKAGES)  # some are used no more
    ]
    if changed:
        store.notes.append(f"other versions than before: {', '.join(changed)}; digits may differ")


def _layout(job: Job, hardware: Mapping[str, Any]) -> int:
    """What must be equal to resume bit for bit: on a CPU the cores per run, elsewhere the number
    of devices."""
    devices = int(hardware.get("devices", 1))
    return job.parts(devices) if hardware.get("device") == "cpu" else devices


def make_loop(job: Job, note: Note | None = None) -> Loop:
    """The loop for the job's kind of environments; `note` hears of work before training."""
    if job.environments == "reasoning":
        from mastery.training.loops.reasoning import ReasoningLoop
        from mastery.training.pretraining import load_model

        return ReasoningLoop(job, load_model(job, note))
    if job.environments == "addition":
        from mastery.training.loops.addition import AdditionLoop

        return AdditionLoop(job)
    if job.environments == "minigrid":
        from mastery.training.loops.minigrid import MiniGridLoop

        return MiniGridLoop(job)
    with needs("a Gymnasium environment", "train"):
        from mastery.training.loops.gymnasium import GymnasiumLoop
    loop: Loop = GymnasiumLoop(job)
    return loop


def _train(store: Store, job: Job, loop: Loop, options: TrainOptions) -> Trained:
    step, arrays = store.rewind()
    minutes, report, note = options.minutes, until_gone(options.report), options.note
    if note is not None:
        for text in store.notes:
            note(text)
    recent = deque(store.recent(RECENT), maxlen=RECENT)
    started = time.monotonic()
    ended, doubts = None, Doubts(job)
    with (
        contextlib.closing(loop),
        ChunkWriter(store, job, loop, options.checkpoint_seconds, options.command, step) as writer,
        interrupts(partial(_interrupt, note)) as interrupted,
    ):
        carry = _carry(loop, arrays)
        if arrays is None:
            writer.keep_agents(0, carry)  # untrained; listed with the first chunk
        del arrays
        if step >= job.updates:  # the job was shortened to what is trained already
            ended = _all_trained(job, step)
            store.end(ended)
        while ended is None and step < job.updates:
            chunk_began = time.monotonic()
            carry, metrics = loop.advance(carry)
            step += job.chunk
            _check_probabilities(job, step, metrics)
            now = time.monotonic()
            speed = job.chunk * job.frames_of_update * len(job.runs) / (now - chunk_began)
            recent.append(totals(metrics))
            doubts.look(metrics)
            ended = _end(job, step, metrics, recent)
            out_of_time = minutes is not None and time.monotonic() - started >= 60 * minutes
            asked = bool(interrupted) or (options.stop is not None and options.stop())
            stop = ended is not None or out_of_time or asked
            writer.record(step, carry, metrics, ended, stop)
            report(progress_of(job, step, speed, metrics, recent))
            if stop:
                break
    return Trained(store.directory, step, ended, bool(interrupted))


def until_gone(show: Callable[..., None] | None) -> Callable[..., None]:
    """A function that calls `show`, until that fails because its reader has gone."""

    def call(*given: Any) -> None:
        nonlocal show
        if show is not None:
            try:
                show(*given)
            except OSError:
                show = None

    return call


def _carry(loop: Loop, arrays: dict[str, NDArray[Any]] | None) -> Any:
    """The carry to go on from: a new one, or that of a checkpoint."""
    loop.prepare(new=arrays is None)
    return loop.begin() if arrays is None else loop.load(arrays)


def _check_probabilities(job: Job, step: int, metrics: Metrics) -> None:
    """Raise ProgramError if an own program gave invalid probabilities in the last chunk."""
    if not job.own:
        return
    p = metrics.probability  # (updates, runs, tasks)
    valid = np.isfinite(p).all(-1) & (p >= 0).all(-1) & (abs(p.sum(-1) - 1) < 1e-3)
    for update, run in np.argwhere(~valid)[:1]:
        raise ProgramError(
            f"the program {job.runs[run].program!r} gave invalid probabilities at update "
            f"{step - len(p) + update}: {p[update, run]}; this chunk is not recorded. Test the "
            "program with mastery.check_program"
        )


def _end(job: Job, step: int, metrics: Metrics, recent: Recent) -> str | None:
    """Why the job is finished, or None if it is not."""
    if metrics.solved is not None and (metrics.solved[-1] > 0).all():
        return "every run has learned every task"
    if job.stop_mastered is not None and (metrics.mastery[-1] >= job.stop_mastered).all():
        return f"every task is mastered: {job.stop_mastered:g} or more in every run"
    if job.stop_return is not None and len(recent) == RECENT:
        episodes, returns = _sums(recent)
        if (episodes > 0).all() and (returns >= job.stop_return * episodes).all():
            return f"the mean return of every task is {job.stop_return:g} or more in every run"
    return _all_trained(job, step) if step >= job.updates else None


def _all_trained(job: Job, step: int) -> str:
    return f"trained {step * job.frames_of_update:,} {job.settings.unit} per run"


def _sums(recent: Recent) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Episodes and the sum of their returns over the last chunks; each (runs, tasks)."""
    episodes = np.stack([n for n, _ in recent])
    return episodes.sum(0), np.nansum(episodes * np.stack([mean for _, mean in recent]), 0)


def progress_of(job: Job, step: int, speed: float, metrics: Metrics, recent: Recent) -> Progress:
    """The progress after a chunk, from its metrics and the `totals` of the last ones."""
    groups: dict[str, list[int]] = {}
    for i, run in enumerate(job.runs):
        groups.setdefault(run.label, []).append(i)
    means = partial(_means, metrics, *_sums(recent))
    mastery, returns, share, _ = means(range(len(job.runs)))
    return Progress(
        update=step,
        updates=job.updates,
        frames=step * job.frames_of_update * len(job.runs),
        speed=speed,
        mastery=mastery,
        returns=returns,
        share=share,
        programs={label: means(runs) for label, runs in groups.items()},
    )


def _means(
    metrics: Metrics,
    episodes: NDArray[np.int64],
    returns: NDArray[np.float64],
    runs: Sequence[int],
) -> Means:
    frames = metrics.frames[:, runs].sum((0, 1))
    with np.errstate(invalid="ignore"):
        return Means(
            mastery=metrics.mastery[-1][runs].mean(0, dtype=np.float64),
            returns=returns[runs].sum(0) / episodes[runs].sum(0),
            share=frames / frames.sum(),
            runs=len(runs),
        )


def _interrupt(note: Note | None, times: int) -> None:
    """The first interrupt lets the chunk finish; the second stops at once."""
    if times > 1:
        raise KeyboardInterrupt
    if note is not None:
        note(STOPPING)
