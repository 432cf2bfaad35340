"""The curves of a job as arrays, with the axes (points, runs, tasks)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Scalars(NamedTuple):
    """A number that the loop logged, such as a loss."""

    frames: Ints  # (points,)
    values: Floats  # (points, runs): the mean since the point before; NaN if there was none


class Evaluations(NamedTuple):
    """Episodes played outside training, by one policy."""

    frames: Ints  # (points,): frames per run, up to the evaluation
    returns: Floats  # each (points, runs, tasks)
    success: Floats  # share of episodes with a return above the task's minimum
    length: Floats  # frames per episode


@dataclass(frozen=True, eq=False)
class Curves:
    """The training curves and evaluations of a job."""

    steps: Ints  # (points,): updates per run, up to the point
    frames: Ints  # (points,): frames per run, up to the point
    seconds: Floats  # (points,): seconds of training, all runs together, up to the point
    probability: Floats  # mean over the point's updates
    mastery: Floats  # M_c at the point
    progress: Floats  # β_c at the point; NaN in old jobs that did not record it
    returns: Floats  # mean over the episodes that ended in the chunk; NaN if none did
    episodes: Ints  # number of episodes that ended in the chunk
    played: Ints  # frames of each task in the chunk
    evaluations: Mapping[str, Evaluations]  # by policy: greedy and sampled

    @property
    def share(self) -> Floats:
        """Each task's share of the frames of a point."""
        total = self.played.sum(axis=2, keepdims=True)
        share: Floats = self.played / np.where(total > 0, total, 1)
        return share

    def merged(self, starts: Ints, updates: Ints | None = None) -> Curves:
        """The same curves with fewer points: each merges those from one start to the next.

        Args:
            starts: The index of the first point to merge into each, ascending, the first 0.
            updates: (points,) The number of updates of each point; by default all have the same.
        """
        ends = np.append(starts[1:], len(self.steps))[: len(starts)] - 1

        def total(x: NDArray[Any]) -> NDArray[Any]:
            return np.add.reduceat(x, starts, axis=0) if len(starts) else x

        weight = np.ones(len(self.steps)) if updates is None else updates.astype(np.float64)
        weight = weight[:, None, None]
        episodes = total(self.episodes)
        gained = total(np.where(self.episodes > 0, self.returns * self.episodes, 0.0))
        last = {
            name: getattr(self, name)[ends]
            for name in ("steps", "frames", "seconds", "mastery", "progress")
        }
        return Curves(
            **last,
            probability=total(self.probability * weight) / total(weight),
            returns=np.where(episodes > 0, gained / np.maximum(episodes, 1), np.nan),
            episodes=episodes,
            played=total(self.played),
            evaluations=self.evaluations,
        )

    def after(self, step: int) -> Curves:
        """The points after an update."""
        first = int(np.searchsorted(self.steps, step, "right"))
        frames = self.frames[first - 1] if first else -1
        arrays = {name: x[first:].copy() for name, x in self._arrays().items()}
        evaluations = {
            policy: Evaluations._make(x[e.frames > frames] for x in e)
            for policy, e in self.evaluations.items()
        }
        return Curves(**arrays, evaluations=evaluations)

    def then(self, later: Curves) -> Curves:
        """These points followed by later ones."""
        new = later._arrays()
        arrays = {name: _joined(x, new[name]) for name, x in self._arrays().items()}
        evaluations = {
            policy: Evaluations(*map(_joined, e, later.evaluations[policy]))
            for policy, e in self.evaluations.items()
        }
        return Curves(**arrays, evaluations=evaluations)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name; points are the first axis of each."""
        return {f.name: getattr(self, f.name) for f in fields(Curves) if f.name != "evaluations"}


def _joined(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((a, b))
