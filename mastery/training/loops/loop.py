"""What a loop does for a job; see `minigrid_loop`, `gymnasium_loop` and `addition_loop`."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from mastery.rundir.metrics import Evaluation, Metrics

EVALUATION_SEED = 2**32 - 5  # of the episodes that are played in evaluations, by all runs alike


class Loop(Protocol):
    """All runs of a job, from one chunk of updates to the next.

    `carry` is everything that changes: given the same, the same comes out, to the bit.
    """

    def begin(self) -> Any:
        """The carry before the first update."""
        ...

    def advance(self, carry: Any) -> tuple[Any, Metrics]:
        """One chunk of updates. The carry that was given must not be used any more."""
        ...

    def evaluate(self, carry: Any, update: int) -> Evaluation:
        """Play `job.episodes` episodes of every task with every run's agent, or test so many
        examples."""
        ...

    def save(self, carry: Any) -> dict[str, NDArray[Any]]:
        """The carry as named arrays; the first axis of each is the run."""
        ...

    def load(self, arrays: dict[str, NDArray[Any]]) -> Any:
        """The carry back from its arrays."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...
