"""Train several of the paper's jobs at the same time, each in its own process.

On the cores of a CPU several jobs finish sooner in parallel than one after the other. On a GPU
`side_by_side` is faster.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mastery.errors import MasteryError
from mastery.paper.experiments import PaperJob
from mastery.paper.run import check_same, cores_for, run_part, with_minutes_left
from mastery.training.devices import accelerated, cores, prepare
from mastery.training.job import Job
from mastery.training.signals import held, interrupts, release
from mastery.training.train import Progress, Trained, TrainOptions

MEMORY = 0.9  # share of a GPU's memory for all processes
Say = Callable[[PaperJob, Progress | str], None]  # receives progress, or a line for the user
_context = multiprocessing.get_context("spawn")


def usual() -> int:
    """The default number of parallel jobs."""
    return 1 if accelerated() else min(cores(), 4)


def together(
    parts: Iterable[PaperJob],
    folder: Path,
    jobs: int,
    say: Say,
    scale: float = 1.0,
    options: TrainOptions = TrainOptions(),  # noqa: B008 (it cannot change)
) -> Iterator[tuple[PaperJob, Trained | str]]:
    """Train jobs in parallel and yield each outcome, or an error text, as its job stops.

    If one job fails, the others continue. When `options.minutes` run out or on Ctrl-C, no new job
    starts and the running ones save and stop.

    Args:
        parts: The jobs.
        folder: Holds the run directories.
        jobs: The most jobs at the same time.
        say: Called with progress, and with lines for the user.
        scale: See `PaperJob.job`.
        options: For `train` and `resume`; the minutes are those of all jobs together.
    """
    by_name = {part.name: part for part in parts}
    wanted = {name: part.job(scale) for name, part in by_name.items()}
    for name, job in wanted.items():
        check_same(folder / name, job)
    waiting = _order(wanted)
    processes = min(jobs, len(waiting)) or 1
    share = max(cores() // processes, 1)
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{MEMORY / processes:.3f}")
    events: Any = _context.Queue()
    running: dict[str, Any] = {}
    began = time.monotonic()
    with interrupts(lambda _: _pass_on(running.values())) as interrupted:
        while True:
            now = with_minutes_left(options, began)
            in_time = now.minutes is None or now.minutes > 0
            if waiting and len(running) < jobs and not interrupted and in_time:
                part = by_name[waiting.pop(0)]
                devices = cores_for(folder / part.name, wanted[part.name], share)
                running[part.name] = _context.Process(
                    target=_work,
                    args=(events, part, folder, devices, scale, now),
                )
                with held():
                    running[part.name].start()
                if interrupted:  # it may have missed the signal while it was starting
                    _pass_on([running[part.name]])
                continue
            if not running:
                return
            name, what = _next(events, running)
            if isinstance(what, (Trained, Died)):
                running.pop(name).join()
                yield by_name[name], what if isinstance(what, Trained) else what.reason
            elif what is not None:
                say(by_name[name], what)


def _order(jobs: Mapping[str, Job]) -> list[str]:
    """The longest first, so that no long job runs alone at the end. But on a CPU, one job per
    learner goes first, so that no two processes compile the same code at once."""
    longest = sorted(jobs, key=lambda name: effort(jobs[name]), reverse=True)
    if accelerated():
        return longest
    learners = [jobs[name].settings for name in longest]
    return sorted(longest, key=lambda name: jobs[name].settings in learners[: longest.index(name)])


def effort(job: Job) -> float:
    """A rough estimate of how long a job takes, relative to others."""
    # an addition example takes less time than a frame: about a fifth scaled down on a CPU, about
    # a half at full size on an H200
    each = 0.25 if job.settings.unit == "examples" else 1.0
    return each * len(job.runs) * job.frames


class Died(NamedTuple):
    """A process that ended without an outcome."""

    reason: str


def _next(events: Any, running: dict[str, Any]) -> tuple[str, Any]:
    """The next message of a process, or its death; ("", None) after half a second of silence."""
    with contextlib.suppress(queue.Empty):
        name, what = events.get(timeout=0.5)
        return name, what
    for name, process in running.items():
        if not process.is_alive() and events.empty():
            code = process.exitcode
            return name, Died(
                f"its process ended with exit code {code}; run the same command to resume"
            )
    return "", None


def _work(
    events: Any, part: PaperJob, folder: Path, devices: int, scale: float, options: TrainOptions
) -> None:
    """Train one job in this child process."""
    os.setsid()  # Ctrl-C reaches only the parent, which forwards it
    parent = multiprocessing.parent_process()

    def report(progress: Progress) -> None:
        if parent is None or not parent.is_alive():
            signal.raise_signal(signal.SIGTERM)  # the parent has gone: save and stop
        else:
            events.put((part.name, progress))

    def note(text: str) -> None:
        events.put((part.name, text))

    try:
        release()
        prepare(devices)
        events.put(
            (part.name, run_part(part, folder, scale, replace(options, report=report, note=note)))
        )
    except MasteryError as error:
        events.put((part.name, Died(str(error))))
    except KeyboardInterrupt:
        events.put((part.name, Trained(folder / part.name, 0, None, True)))


def _pass_on(processes: Iterable[Any]) -> None:
    """Send SIGINT to processes; they save and end."""
    for process in list(processes):
        if process.is_alive():
            os.kill(process.pid, signal.SIGINT)
