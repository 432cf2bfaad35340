"""Train several of the paper's jobs in one compiled program, each in a thread of its own.

A job of forty runs does not fill a large GPU; all jobs of one world together do.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mastery.errors import MasteryError
from mastery.paper.experiments import PaperJob
from mastery.paper.processes import Say
from mastery.paper.run import check_same, run_part
from mastery.rundir.parts import holds_job
from mastery.rundir.results import load_results
from mastery.rundir.split import is_split
from mastery.training.loops.minigrid import MiniGridLoop
from mastery.training.loops.shared import SharedLoop, SharedLoops, may_share
from mastery.training.signals import interrupts
from mastery.training.train import STOPPING, Trained, TrainOptions


def groups(parts: Sequence[PaperJob], folder: Path, scale: float) -> list[list[PaperJob]]:
    """The jobs in groups that one program can train, in the order of their first jobs; a job that
    can share with no other is alone, and so is one that was begun on a cluster: it has a loop for
    each of its parts."""
    found: list[list[PaperJob]] = []
    for part in parts:
        for group in found:
            names = group[0].name, part.name
            in_parts = any(is_split(folder / name) for name in names)
            if not in_parts and may_share([group[0].job(scale), part.job(scale)]):
                group.append(part)
                break
        else:
            found.append([part])
    return found


def side_by_side(
    parts: Iterable[PaperJob],
    folder: Path,
    say: Say,
    scale: float = 1.0,
    options: TrainOptions = TrainOptions(),  # noqa: B008 (it cannot change)
) -> Iterator[tuple[PaperJob, Trained | str]]:
    """Train or resume jobs side by side, and yield each outcome, or an error text, as it stops.

    If one job fails, the others continue. On Ctrl-C, or an error that is not mastery's, all save
    and stop.

    Args:
        parts: The jobs; one program can train them all (`groups`).
        folder: Holds the run directories.
        say: Called with progress, and with lines for the user.
        scale: See `PaperJob.job`.
        options: For `train` and `resume`; the minutes are those of all jobs together.
    """
    wanted = [(part, part.job(scale)) for part in parts]
    for part, job in wanted:
        check_same(folder / part.name, job)
    open_ones = []
    for part, job in wanted:
        if _finished(folder / part.name):
            yield part, run_part(part, folder, scale, options)
        else:
            open_ones.append((part, job))
    if not open_ones:
        return
    stop = threading.Event()

    def interrupt(times: int) -> None:
        if times > 1:
            raise KeyboardInterrupt
        stop.set()
        say(open_ones[0][0], STOPPING)

    events: queue.Queue[tuple[PaperJob, Trained | str | BaseException]] = queue.Queue()
    with interrupts(interrupt) as interrupted:
        shared = SharedLoops([MiniGridLoop(job) for _, job in open_ones])

        def work(part: PaperJob, view: SharedLoop) -> None:
            mine = replace(
                options,
                report=lambda progress: say(part, progress),
                note=lambda text: say(part, text),
                loop=lambda job, note: view,
                stop=stop.is_set,
            )
            outcome: Trained | str | BaseException
            try:
                outcome = run_part(part, folder, scale, mine)
            except MasteryError as error:
                outcome = str(error)
            except BaseException as error:  # raised again below
                outcome = error
            finally:
                view.close()
            events.put((part, outcome))

        for (part, _), view in zip(open_ones, shared.views, strict=True):
            # no daemons: those that end with the process while they compute abort it
            threading.Thread(target=work, args=(part, view), name=part.name).start()
        try:
            for part, outcome in _outcomes(events, len(open_ones), stop):
                if isinstance(outcome, Trained):
                    outcome = outcome._replace(interrupted=bool(interrupted))
                yield part, outcome
        finally:
            stop.set()


def _outcomes(
    events: queue.Queue[tuple[PaperJob, Trained | str | BaseException]],
    count: int,
    stop: threading.Event,
) -> Iterator[tuple[PaperJob, Trained | str]]:
    """Each outcome; an error that is not mastery's is raised once the other jobs have saved."""
    failure: BaseException | None = None
    for _ in range(count):
        part, outcome = events.get()
        if isinstance(outcome, BaseException):
            stop.set()
            failure = outcome
        else:
            yield part, outcome
    if failure is not None:
        raise failure


def _finished(directory: Path) -> bool:
    return holds_job(directory) and load_results(directory).ended is not None
