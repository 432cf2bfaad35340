"""Clips of agents from several moments of training: which to make, and who makes them.

A process apart plays (`mastery.page.playing`). So the page itself needs no JAX and never blocks,
and an agent that fails to play gives a line of text. It plays on the CPU, because an accelerator
may be busy with training.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mastery.errors import needs
from mastery.page.places import Place

SECONDS = 120.0  # for one clip, including the start of JAX
IDLE = 60.0  # seconds after which a player that nobody asks ends
MOMENTS = 4  # of training, in a report
BYTES = 3_000_000  # of all GIFs in a report; as base64 they are 4 MB

Clip = dict[str, Any]  # {"frames", "text", "gif"}, or {"error"}
# by job, task and run: clips by their frames
Clips = dict[str, dict[str, dict[str, list[Clip]]]]


def check_clips() -> None:
    """Raise a `MasteryError` if clips cannot be made here, before any work is done for them."""
    with needs("a clip", "train"):
        import PIL  # noqa: F401


class Wanted(NamedTuple):
    """A clip to make."""

    directory: Path
    task: str
    run: int | None  # None: the best
    at: int | None  # frames, see `mastery.load_agent`; None: the last checkpoint


class Player:
    """A process that makes clips one after the other; it starts when it is first asked.

    Args:
        idle: End the process if nobody asks for this many seconds.
    """

    def __init__(self, idle: float = IDLE) -> None:
        self._idle, self._lock = idle, threading.RLock()
        self._process: subprocess.Popen[str] | None = None
        self._errors: Any = None
        self._timer: threading.Timer | None = None

    def clip(self, wanted: Wanted) -> Clip:
        """Play an episode: {"frames", "text", "gif"}, or {"error"}."""
        with self._lock:
            self._stop_timer()
            try:
                return self._ask(wanted)
            finally:
                self._timer = threading.Timer(self._idle, self.close)
                self._timer.daemon = True
                self._timer.start()

    def _ask(self, wanted: Wanted) -> Clip:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Timer(SECONDS, process.kill)
        late.daemon = True
        late.start()
        try:
            where = {**wanted._asdict(), "directory": str(wanted.directory.resolve())}
            print(json.dumps(where), file=process.stdin, flush=True)
            answer = process.stdout.readline()
        except OSError:  # it has ended
            answer = ""
        finally:
            in_time = late.is_alive()
            late.cancel()
        if answer:
            found: Clip = json.loads(answer)
            return found
        process.kill()
        process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        if not in_time:
            return {"error": f"it took longer than {SECONDS:.0f} seconds"}
        return {"error": lines[-1] if lines else "it could not be played"}

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in _end)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mastery.page.playing"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
            )
        return self._process

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._stop_timer()
            self._end()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._errors.close()
            self._process = None

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def make_clip(directory: Path, task: str, run: int | None = None, at: int | None = None) -> Clip:
    """One clip of a run's agent: {"frames", "text", "gif"}, or {"error"}.

    Args:
        directory: The run directory.
        task: The name of a task.
        run: The run; by default the best.
        at: The frames that the agent has trained, or fewer; by default those of the last
            checkpoint.
    """
    with Player() as player:
        return player.clip(Wanted(directory, task, run, at))


def moment_of(entry: Mapping[str, Any], run: int, frames: int | None = None) -> int | None:
    """The last moment at or before these frames at which a run's agent can be played.

    Args:
        entry: The job, from `mastery.page.data.job_entry`.
        run: The run.
        frames: By default the end.

    Returns:
        Its frames; None if there is no such moment.
    """
    known = [m for m in _moments(entry, run) if frames is None or m <= frames]
    return known[-1] if known else None


def _moments(entry: Mapping[str, Any], run: int) -> list[int]:
    if run in entry["clip_runs"]:
        return list(entry["moments"])
    return [entry["checkpoint"]["frames"]] if entry["checkpoint"] else []


class Planned(NamedTuple):
    """A clip of a report."""

    entry: Mapping[str, Any]
    wanted: Wanted

    @property
    def label(self) -> str:
        """What it shows, for the user."""
        entry, (_, task, run, at) = self.entry, self.wanted
        program = entry["programs"][entry["runs"][run][0]]["label"]
        return f"{program} on {task} after {at:,} frames"


def plan_clips(entries: Sequence[Mapping[str, Any]], places: Sequence[Place]) -> list[Planned]:
    """The clips of a report: of each program's first run, every task, at up to four moments.

    The most telling come first, in case not all fit: the end of training, then its beginning.
    """
    of = {place.key: place.path for place in places}
    rounds: list[list[Planned]] = [[] for _ in range(MOMENTS)]
    for entry in entries:
        for run in _first_runs(entry) if entry["clips"] else ():
            for i, frames in enumerate(_spread(_moments(entry, run))):
                rounds[i] += [
                    Planned(entry, Wanted(of[entry["key"]], task, run, frames))
                    for task in entry["curriculum"]["tasks"]
                ]
    return [planned for some in rounds for planned in some]


def _first_runs(entry: Mapping[str, Any]) -> list[int]:
    """The first run of each program; one whose earlier agents were kept, if there is one."""
    runs = sorted(range(len(entry["runs"])), key=lambda run: run not in entry["clip_runs"])
    first: dict[int, int] = {}
    for run in runs:
        first.setdefault(entry["runs"][run][0], run)
    return sorted(first.values())


def _spread(moments: Sequence[int]) -> list[int]:
    """Up to four moments, evenly over training: the last, the first, and others between them."""
    if not moments:
        return []
    targets = [moments[0] + i * (moments[-1] - moments[0]) / (MOMENTS - 1) for i in range(MOMENTS)]
    near = [min(moments, key=lambda m: abs(m - target)) for target in targets]
    return list(dict.fromkeys([near[-1], *near[:-1]]))


def make_clips(planned: Sequence[Planned], made: Clips) -> Iterator[tuple[Planned, Clip]]:
    """Make the clips of a report, in order, until they are 3 MB together.

    Args:
        planned: From `plan_clips`.
        made: Where to put them.

    Yields:
        Each plan and its clip: {"frames", "text", "gif"}, or {"error"}.
    """
    size = 0
    with Player() as player:
        for plan in planned:
            clip = player.clip(plan.wanted)
            size += len(clip.get("gif", "")) * 3 // 4
            if size > BYTES:
                return
            if "gif" in clip:
                tasks = made.setdefault(plan.entry["key"], {})
                runs = tasks.setdefault(plan.wanted.task, {})
                clips = runs.setdefault(str(plan.wanted.run), [])
                clips.append(clip)
                clips.sort(key=lambda clip: int(clip["frames"]))
            yield plan, clip
