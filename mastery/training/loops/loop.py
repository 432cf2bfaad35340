"""The interface of a loop; `minigrid`, `gymnasium` and `addition` implement it."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from mastery.rundir.metrics import Evaluation, Metrics

EVALUATION_SEED = 2**32 - 5  # seed of the evaluation episodes, the same for all runs


class Loop(Protocol):
    """Trains all runs of a job, one chunk of updates at a time.

    `carry` holds everything that changes: the same carry gives the same result, bit for bit.
    """

    def prepare(self, new: bool) -> None:
        """Optionally called first, once: start compiling in other threads what training needs;
        with `new` also what `begin` needs."""
        ...

    def begin(self) -> Any:
        """The carry before the first update."""
        ...

    def advance(self, carry: Any) -> tuple[Any, Metrics]:
        """Train one chunk of updates. Do not use the given carry afterwards."""
        ...

    def evaluate(self, carry: Any, update: int) -> Evaluation:
        """Play `job.episodes` episodes (in addition: test examples) per task, policy and run."""
        ...

    def save(self, carry: Any, only: str = "") -> dict[str, NDArray[Any]]:
        """The carry as named arrays, or those whose names begin with `only`; the first axis of each
        is the run."""
        ...

    def load(self, arrays: dict[str, NDArray[Any]]) -> Any:
        """The carry from the arrays that `save` returned."""
        ...

    def close(self) -> None:
        """Close environments and other resources."""
        ...
