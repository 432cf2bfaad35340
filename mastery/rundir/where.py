"""Where training went and what was learned: the numbers that the terminal prints after training.

They are the page's: mastery/page/static/model.js and comparison.js have the same definitions, and
tests compare the two.

- A task is *mastered* (*learned*) from the first point at which its mastery is at least `MASTERED`.
- At a point, training on a task counts as on one that is mastered, *learnable* (every ancestor's
  mastery is at least `LEARNABLE`), or not yet learnable: by the mastery at the point before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.programs.graph import make_graph
from mastery.rundir.curves import Curves
from mastery.rundir.results import RECENT
from mastery.statistics import first_time, upper_median

MASTERED = 0.9
LEARNABLE = 0.5
KINDS = ("mastered", "learnable", "not yet learnable")
DIGITS = 4  # of mastery on the page

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Account:
    """What became of the training of some runs, such as those of a program."""

    times: Floats  # (runs, tasks): frames until the task was learned; infinite if it was not
    returns: Floats  # (tasks,): at the end of training, the mean over runs
    share: Floats  # (tasks,): of the training
    spent: Floats  # (3,): the share of training on tasks of each of `KINDS`

    @property
    def runs(self) -> int:
        return len(self.times)

    @property
    def medians(self) -> Floats:
        """(tasks,): the upper median of the times over runs; infinite if half or more of the runs
        did not learn the task."""
        return upper_median(self.times.T)

    @property
    def learned(self) -> NDArray[np.int64]:
        """(tasks,): the number of runs that learned each task."""
        found: NDArray[np.int64] = np.isfinite(self.times).sum(axis=0)
        return found


def account(curves: Curves, curriculum: Curriculum, runs: NDArray[np.int64]) -> Account:
    """What became of the training of these runs.

    Args:
        curves: The curves of a job; at least one point.
        curriculum: Its curriculum.
        runs: The indices of the runs.
    """
    mastery = np.round(curves.mastery[:, runs], DIGITS)
    share, frames = curves.share[:, runs], curves.frames
    weights = np.diff(frames, prepend=0) / frames[-1]  # the length of each point
    kinds = kinds_of_training(share, mastery, curriculum)
    trained = weights @ (share.sum(axis=2) > 0)  # (runs,): recorded runs may end early
    return Account(
        times=np.stack(
            [first_time(frames, of, MASTERED) for of in np.moveaxis(mastery, 2, 0)], axis=1
        ),
        returns=_last_returns(curves.returns[:, runs], curriculum.minimum),
        share=weights @ share.sum(axis=1) / trained.sum(),
        spent=weights @ kinds.sum(axis=1) / trained.sum(),
    )


def kinds_of_training(share: Floats, mastery: Floats, curriculum: Curriculum) -> Floats:
    """By point and run, the share of training on tasks of each of `KINDS`: (points, runs, 3).

    Args:
        share: Each task's share of the training of a point, (points, runs, tasks).
        mastery: The mastery of each task at the end of the point, of the same shape.
        curriculum: The order.
    """
    before = np.concatenate([np.zeros_like(mastery[:1]), mastery[:-1]])
    graph = make_graph(curriculum, dense=False)
    learnability = np.moveaxis(graph.anc_succ(np.moveaxis(before, 2, 0))[0], 0, 2)
    kind = np.where(before >= MASTERED, 0, np.where(learnability >= LEARNABLE, 1, 2))
    return np.stack([np.where(kind == k, share, 0.0).sum(axis=2) for k in range(3)], axis=2)


def _last_returns(returns: Floats, minimum: Floats) -> Floats:
    """The mean over runs and the last points. Where no episode ended, the return before counts
    again; before the first, the task's minimum."""
    last = np.broadcast_to(minimum, returns.shape[1:])
    known = []
    for point in returns:
        last = np.where(np.isnan(point), last, point)
        known.append(last)
    found: Floats = np.stack(known[-RECENT:]).mean(axis=(0, 1))
    return found
