"""Several of the paper's jobs at the same time, each in a process of its own.

Compiling keeps one core busy, and a job of forty runs does not fill a large GPU: so several are
done sooner at the same time than one after the other. On one GPU they take turns unless NVIDIA's
Multi-Process Service is there (`nvidia-cuda-mps-control -d`).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from mastery.errors import MasteryError
from mastery.paper.experiments import PARTS, Part
from mastery.paper.run import check_same, run_part
from mastery.runs.machine import accelerated, cores, prepare
from mastery.runs.train import Outcome, Progress

MEMORY = 0.9  # of a GPU, for all processes
Say = Callable[[Part, Progress | str], None]  # how a job stands, or a line about it
_context = multiprocessing.get_context("spawn")


def usual() -> int:
    """Jobs at the same time where the user does not say: by the machine alone, so that what was
    stopped finds as many devices when it goes on."""
    return 1 if accelerated() else min(cores(), 4)


def together(
    parts: Iterable[Part],
    folder: Path,
    jobs: int,
    say: Say,
    scale: float = 1.0,
    minutes: float | None = None,
    elsewhere: bool = False,
    **options: Any,
) -> Iterator[tuple[Part, Outcome | str]]:
    """Each job's outcome when it is there, or what went wrong with it; the others go on.

    Ends after so many minutes, or when interrupted, with all that runs then. options: of `train`
    and `resume`.
    """
    waiting = list(parts)
    for part in waiting:
        check_same(folder / part.name, part.job(scale))
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{MEMORY / jobs:.3f}")
    events: Any = _context.Queue()
    running: dict[str, Any] = {}
    began = time.monotonic()
    with _forwarded(running) as interrupted:
        while running or (waiting and not interrupted):
            left = None if minutes is None else minutes - (time.monotonic() - began) / 60
            while (
                waiting and len(running) < jobs and not interrupted and (left is None or left > 0)
            ):
                part = waiting.pop(0)
                given = (
                    part.name,
                    folder,
                    scale,
                    left,
                    elsewhere,
                    max(cores() // jobs, 1),
                    options,
                )
                running[part.name] = _context.Process(target=_work, args=(events, *given))
                running[part.name].start()
            if not running:
                return
            try:
                name, what = events.get(timeout=0.5)
            except queue.Empty:
                name = next((name for name, p in running.items() if not p.is_alive()), None)
                if name is None or not events.empty():
                    continue
                what = Died(running[name].exitcode)
            if isinstance(what, (Outcome, Died)):
                running.pop(name).join()
                yield PARTS[name], what if isinstance(what, Outcome) else what.reason
            else:
                say(PARTS[name], what)


class Died:
    """A process that came to no outcome."""

    def __init__(self, code: int | str) -> None:
        self.reason = (
            code
            if isinstance(code, str)
            else f"its process ended with exit code {code}; the same command goes on"
        )


def _work(
    events: Any, name: str, folder: Path, scale: float, minutes: float | None, elsewhere: bool,
    devices: int, options: dict[str, Any],
) -> None:  # fmt: skip
    """One job, in a process of its own."""
    os.setsid()  # Ctrl-C reaches the process that began it, which passes it on
    parent = multiprocessing.parent_process()

    def report(progress: Progress) -> None:
        if parent is None or not parent.is_alive():
            signal.raise_signal(signal.SIGTERM)  # nobody waits any more: save, and stop
        else:
            events.put((name, progress))

    part = PARTS[name]
    whole = options | {"report": report, "note": lambda text: events.put((name, text))}
    try:
        prepare(min(part.job(scale).devices, devices))
        events.put((name, run_part(part, folder, scale, minutes, elsewhere, whole)))
    except MasteryError as error:
        events.put((name, Died(str(error))))
    except KeyboardInterrupt:
        events.put((name, Outcome(folder / name, 0, None, True)))


@contextlib.contextmanager
def _forwarded(running: dict[str, Any]) -> Iterator[list[int]]:
    """Ctrl-C and a polite kill go to all processes, which save and end."""
    noted: list[int] = []

    def take(number: int, frame: Any) -> None:
        noted.append(number)
        for process in list(running.values()):
            if process.is_alive():
                os.kill(process.pid, signal.SIGINT)

    numbers = (signal.SIGINT, signal.SIGTERM)
    old = [signal.signal(number, take) for number in numbers]
    try:
        yield noted
    finally:
        for number, handler in zip(numbers, old, strict=True):
            signal.signal(number, handler)
