"""Put the curves of a job's parts side by side, over the same frames."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.rundir.curves import Curves, Evaluations, Floats, Scalars

POINTS = 2048  # the most that several runs have in common


def side_by_side(parts: Sequence[Curves], most: int = POINTS) -> Curves:
    """The runs of all parts, at common points.

    After a part's end, its last probability, mastery and progress are held; returns are NaN, and
    episodes and frames 0. Updates and seconds are those of the run with the most.

    Args:
        parts: The curves, with the same tasks.
        most: The most points. Points that need no merging stay as they are, to the bit.
    """
    if len(parts) == 1:
        return _only_curves(parts[0])
    points = common_points([part.frames for part in parts], most)
    moved = [_at(part, points) for part in parts]
    both = {name: [found[name] for found in moved] for name in moved[0]}
    last = {name: np.max(both.pop(name), axis=0) for name in ("steps", "seconds")}
    policies = dict.fromkeys(policy for part in parts for policy in part.evaluations)
    return Curves(
        frames=points,
        **last,
        **{name: np.concatenate(found, axis=1) for name, found in both.items()},
        evaluations={
            policy: _evaluations([part.evaluations[policy] for part in parts])
            for policy in policies
        },
    )


def common_points(frames: Sequence[NDArray[Any]], most: int = POINTS) -> NDArray[Any]:
    """Points at which every run that goes on has one of its own since the point before.

    Args:
        frames: The points of each run, ascending.
        most: The most points.
    """
    own = [x.tolist() for x in frames]
    points: list[float] = []
    at = -1.0
    while following := [x[i] for x in own if (i := bisect_right(x, at)) < len(x)]:
        at = max(following)
        points.append(at)
    each = -(-len(points) // most) or 1
    last = points[-1:] if len(points) % each else []
    kind = np.result_type(*frames) if points else np.dtype(np.int64)
    return np.array(points[each - 1 :: each] + last, kind)


def _at(part: Curves, points: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """A part's arrays at the common points."""
    where = np.searchsorted(points, part.frames)
    starts = np.flatnonzero(np.diff(where, prepend=-1))
    alone = len(starts) == len(where)
    fewer = part if alone else part.merged(starts, np.diff(part.steps, prepend=0))
    rows = np.unique(where)
    held = np.searchsorted(rows, np.arange(len(points)), "right") - 1

    def hold(x: NDArray[Any], before: float) -> NDArray[Any]:
        known = np.concatenate((np.full((1, *x.shape[1:]), before, x.dtype), x))
        return known[held + 1]

    def place(x: NDArray[Any], missing: float) -> NDArray[Any]:
        found = np.full((len(points), *x.shape[1:]), missing, x.dtype)
        found[rows] = x
        return found

    return {
        "steps": hold(fewer.steps, 0),
        "seconds": hold(fewer.seconds, 0.0),
        **{n: hold(getattr(fewer, n), np.nan) for n in ("probability", "mastery", "progress")},
        "returns": place(fewer.returns, np.nan),
        "episodes": place(fewer.episodes, 0),
        "played": place(fewer.played, 0),
    }


def _evaluations(parts: Sequence[Evaluations]) -> Evaluations:
    frames = np.unique(np.concatenate([part.frames for part in parts]))
    found = []
    for name in ("returns", "success", "length"):
        each = []
        for part in parts:
            x = getattr(part, name)
            moved = np.full((len(frames), *x.shape[1:]), np.nan)
            moved[np.searchsorted(frames, part.frames)] = x
            each.append(moved)
        found.append(np.concatenate(each, axis=1))
    return Evaluations(frames, *found)


def scalars_side_by_side(
    parts: Sequence[Mapping[str, Scalars]], runs: Sequence[int], most: int = POINTS
) -> dict[str, Scalars]:
    """The scalars of all parts; NaN for a run that has not logged one.

    Args:
        parts: The scalars of each part.
        runs: The number of its runs.
        most: The most points.
    """
    names = dict.fromkeys(name for part in parts for name in part)
    found = {}
    for name in names:
        own = [
            part.get(name, Scalars(np.empty(0, np.int64), np.empty((0, count))))
            for part, count in zip(parts, runs, strict=True)
        ]
        points = common_points([x.frames for x in own], most)
        values = [bin_means(x, points) for x in own]
        found[name] = Scalars(points, np.concatenate(values, axis=1))
    return found


def bin_means(scalars: Scalars, points: NDArray[Any]) -> Floats:
    """The mean of what was logged up to each point since the one before; (points, runs)."""
    where = np.searchsorted(points, scalars.frames)
    known = ~np.isnan(scalars.values)
    total, count = np.zeros((2, len(points), scalars.values.shape[1]))
    np.add.at(total, where, np.where(known, scalars.values, 0.0))
    np.add.at(count, where, known)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _only_curves(part: Curves) -> Curves:
    """The curves of what may be more, such as a job with its results."""
    names = Curves.__dataclass_fields__
    return Curves(**{name: getattr(part, name) for name in names})
