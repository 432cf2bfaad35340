"""Train several jobs in one compiled program, so that together they fill a GPU.

A job of forty runs uses half of a large GPU. Jobs with the same learner differ only in their
curriculum and in who teaches, so their learners can learn side by side, as one batch. Each job is
trained by a thread of its own, as if it were alone; only `advance` waits for the other jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from mastery.rundir.metrics import Evaluation, Metrics
from mastery.training.devices import cores
from mastery.training.job import Job
from mastery.training.loops.compiled import CompiledLoop, compile_chunk
from mastery.training.loops.early import EarlyCompiler


def may_share(jobs: Sequence[Job]) -> bool:
    """Whether the jobs' learners learn in the same way, so that `SharedLoops` can train them."""
    first = jobs[0]
    return all(
        job.environments == "minigrid"
        and (job.settings, job.chunk) == (first.settings, first.chunk)
        for job in jobs
    )


class SharedLoops:
    """Makes a loop for each job; use each in a thread of its own, and close each.

    Args:
        loops: The loops of the jobs; for all of them `may_share` holds.

    Attributes:
        views: A loop for each job.
    """

    def __init__(self, loops: Sequence[CompiledLoop]) -> None:
        self.loops = list(loops)
        self.views = [SharedLoop(self, place) for place in range(len(loops))]
        self.compiler = EarlyCompiler(threads=cores())
        self._changed = threading.Condition()
        self._carries: dict[int, Any] = {}  # the newest of each job, also of those that are closed
        self._open = set(range(len(loops)))
        self._waiting: set[int] = set()
        self._results: dict[int, Any] = {}
        self._chunk, self._members = compile_chunk(self.loops), tuple(range(len(loops)))
        CompiledLoop.prepare_chunk(self.compiler, self._chunk, self.loops)

    def advance(self, place: int, carry: Any) -> tuple[Any, Metrics]:
        """Wait until every open job is here, then train a chunk of all of them."""
        with self._changed:
            self._carries[place] = carry
            self._waiting.add(place)
            self._go_if_all_are_here()
            while place not in self._results:
                self._changed.wait()
            result = self._results.pop(place)
        if isinstance(result, BaseException):
            raise result
        found: tuple[Any, Metrics] = result
        return found

    def close(self, place: int) -> None:
        """A job needs no more chunks. The others go on with its runs, so that their own digits
        stay the same; if it has not begun, they go on without it."""
        with self._changed:
            self._open.discard(place)
            self._go_if_all_are_here()
            if not self._open:
                self.compiler.close()

    def _go_if_all_are_here(self) -> None:
        if not self._waiting or self._waiting != self._open:
            return
        try:
            self._go()
        except BaseException as error:  # each thread gets it
            self._results.update(dict.fromkeys(self._waiting, error))
        self._waiting.clear()
        self._changed.notify_all()

    def _go(self) -> None:
        members = tuple(sorted(self._carries))
        loops = [self.loops[place] for place in members]
        if members != self._members:
            self._chunk, self._members = compile_chunk(loops), members
        carries = [self._carries[place][0] for place in members]
        after, metrics = self._chunk(carries, [loop.plan for loop in loops])
        for place, loop, own, found in zip(members, loops, after, metrics, strict=True):
            self._carries[place] = [own]
            if place in self._waiting:
                self._results[place] = [own], loop.own_metrics([found])


class SharedLoop:
    """The loop of one of the jobs that `SharedLoops` trains; see `loop.Loop`."""

    def __init__(self, shared: SharedLoops, place: int) -> None:
        self._shared, self._place = shared, place
        self._loop = shared.loops[place]

    def prepare(self, new: bool) -> None:
        self._loop.prepare_rest(self._shared.compiler, new)

    def begin(self) -> Any:
        return self._loop.begin()

    def advance(self, carry: Any) -> tuple[Any, Metrics]:
        return self._shared.advance(self._place, carry)

    def evaluate(self, carry: Any, update: int) -> Evaluation:
        return self._loop.evaluate(carry, update)

    def save(self, carry: Any, only: str = "") -> dict[str, NDArray[Any]]:
        return self._loop.save(carry, only)

    def load(self, arrays: dict[str, NDArray[Any]]) -> Any:
        return self._loop.load(arrays)

    def close(self) -> None:
        self._shared.close(self._place)
