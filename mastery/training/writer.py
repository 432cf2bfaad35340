"""Write what a job has trained, in another thread while training goes on."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

from mastery.errors import CheckpointError
from mastery.rundir.metrics import Metrics
from mastery.rundir.milestones import is_milestone
from mastery.rundir.store import Agents, Store
from mastery.training.job import Job
from mastery.training.loops.loop import Loop
from mastery.training.loops.named_arrays import AGENT


class ChunkWriter:
    """Evaluates a job after its chunks, and writes each chunk while the next one is trained.

    Args:
        store: Where to write.
        job: The job.
        loop: Its loop.
        checkpoint_seconds: Shortest time between checkpoints.
        command: The command line to record.
        first: The update that this session starts from.
    """

    def __init__(
        self,
        store: Store,
        job: Job,
        loop: Loop,
        checkpoint_seconds: float,
        command: str,
        first: int,
    ) -> None:
        self._store, self._job, self._loop = store, job, loop
        self._checkpoint_seconds, self._command = checkpoint_seconds, command
        self._before, self._started, self._saved = store.seconds, *[time.monotonic()] * 2
        self._first: int | None = first  # the update that this session starts from, until recorded
        self._moments: dict[int, Agents] = {}
        self._behind = Behind()

    def keep_agents(self, step: int, carry: Any) -> None:
        """Keep the agents after this update, if `mastery play` can show them."""
        if _plays(self._job):
            self._moments[step] = _agents(self._job, self._loop.save(carry, AGENT))

    def record(
        self, step: int, carry: Any, metrics: Metrics, ended: str | None, stop: bool
    ) -> None:
        """Record a chunk; with `stop`, wait until it is written.

        Raises:
            CheckpointError: If this chunk or the one before cannot be written.
        """
        store, chunk, every = self._store, step // self._job.chunk, self._job.evaluate_chunks
        due = every and (chunk % every == 0 or ended is not None)
        evaluation = self._loop.evaluate(carry, step) if due else None
        keep = stop or time.monotonic() - self._saved >= self._checkpoint_seconds
        seconds = self._before + time.monotonic() - self._started
        if is_milestone(chunk):
            self.keep_agents(step, carry)
        arrays = self._loop.save(carry) if keep else None
        moments, self._moments = self._moments, {}
        try:
            if self._first is not None:
                store.begin_session(self._command, self._first)
                self._first = None
            self._behind(store.record, step, seconds, metrics, evaluation, arrays, ended, moments)
            if stop:
                self._behind.wait()
        except CheckpointError as error:
            where = shlex.quote(str(store.directory))
            raise CheckpointError(f"{error}. Resume with: mastery train --resume {where}") from None
        if keep:
            self._saved = time.monotonic()

    def __enter__(self) -> ChunkWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._behind.close()


def _plays(job: Job) -> bool:
    """Whether `mastery play` can show the job's agents, so that some of them are kept."""
    return job.environments in ("minigrid", "gymnasium") and bool(job.kept)


def _agents(job: Job, arrays: Mapping[str, NDArray[Any]]) -> Agents:
    """What plays, of the runs that are kept, from the agents of all runs."""
    runs = job.kept
    return runs, {name: x[runs] for name, x in arrays.items()}


class Behind:
    """Makes calls in another thread, one at a time and in order.

    The next call, or `wait`, raises what a call has raised.

    Example:
        >>> behind = Behind()
        >>> behind(store.record, step, seconds, metrics)
        >>> behind.close()
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "behind")
        self._pending: Future[Any] | None = None

    def __call__(self, work: Callable[..., Any], *given: Any) -> None:
        """Wait for the previous call, then begin this one."""
        self.wait()
        self._pending = self._pool.submit(work, *given)

    def wait(self) -> None:
        """Wait until the last call is done."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def close(self) -> None:
        """Finish the call that has begun, without raising what it raises."""
        self._pool.shutdown()
