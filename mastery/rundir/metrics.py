"""The data that a training loop reports: metrics of a chunk, and evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Array = Any  # a NumPy array
POLICIES = ("greedy", "sampled")
# the name of the score by unit
SCORES = {"frames": "return", "examples": "accuracy", "completions": "pass rate"}


class Metrics(NamedTuple):
    """Metrics of one chunk of training; each (updates, runs, tasks).

    In supervised learning, frames are training examples, episodes are the tests after an epoch,
    and returns count the correct ones. In reasoning, frames and episodes are completions.
    """

    probability: Array  # the probability of each task in this update, float
    mastery: Array  # M_c after this update, float
    episodes: Array  # the number of episodes that ended in this update, int
    returns: Array  # the sum of their returns, float
    frames: Array  # the number of frames in this update, int
    # (updates, runs): updates until the run had learned every task, 0 if it has not yet; None if
    # the learner does not test this
    solved: Array | None = None
    progress: Array | None = None  # β_c after this update, float; None if not recorded
    scalars: Mapping[str, Array] | None = None  # (updates, runs): other numbers, by name


class Evaluation(NamedTuple):
    """Means over episodes played outside training; each (runs, policies, tasks)."""

    returns: Array
    success: Array  # the share of episodes with a return above the task's minimum, m̂_c
    length: Array  # frames per episode
