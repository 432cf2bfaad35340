"""What a training job reports: metrics of a chunk, and evaluations."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any  # a NumPy array
POLICIES = ("greedy", "sampled")
SCORES = {"frames": "return", "examples": "accuracy"}  # what is good, by what is counted


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
