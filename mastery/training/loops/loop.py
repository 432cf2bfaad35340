"""What a loop does for a job; see `minigrid_loop`, `gymnasium_loop` and `addition_loop`."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

Array = Any  # a NumPy array
POLICIES = ("greedy", "sampled")
SCORES = {"frames": "return", "examples": "accuracy"}  # what is good, by what is counted
EVALUATION_SEED = 2**32 - 5  # of the episodes that are played in evaluations, by all runs alike


class Metrics(NamedTuple):
    """A chunk of training; each (updates, runs, tasks).

    In supervised learning frames are examples; episodes are the tests after an epoch, and returns
    tell how many of them were right.
    """

    probability: Array  # of the task in this update, float
    mastery: Array  # M_c after this update, float
    episodes: Array  # that ended in this update, int
    returns: Array  # their sum, float
    frames: Array  # int
    # (updates, runs): after how many updates a run had learned everything, 0 if it has not; None
    # where there is no such judgement
    solved: Array | None = None
    progress: Array | None = None  # β_c after this update, float; None where nobody has asked


class Evaluation(NamedTuple):
    """Episodes apart from training; means, each (runs, policies, tasks)."""

    returns: Array
    success: Array  # the share of episodes with a return above the task's minimum, m̂_c
    length: Array  # frames


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
