"""Curves as the page shows them: fewer points, rounded, by run, task and point.

Curves are downsampled by merging 2^k points into one, with the smallest k that fits the page. A
merged point that is full never changes, so a page that follows a training job asks only for the
points after the last full one.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.rundir.curves import Curves, Scalars
from mastery.rundir.side_by_side import bin_means

POINTS = 240  # the most per curve; more could not be told apart
FEWEST = 24  # the lowest that CELLS can push that limit to
CELLS = 400_000  # the most points × runs × tasks of a job, if FEWEST allows

Floats = NDArray[np.float64]
Numbers = Callable[[Floats], Any]  # encodes an array (points, runs, tasks)
Tests = dict[str, tuple[NDArray[np.int64], Floats]]  # by policy: frames, returns


def as_array(x: Floats) -> Any:
    """The same numbers by run, task and point; `mastery.page.packing` packs them."""
    return np.moveaxis(x, 0, 2)


def as_bytes(x: Floats) -> Any:
    """The numbers by run, task and point as base64: fast, for a page that is live."""
    ordered = np.ascontiguousarray(np.moveaxis(x, 0, 2), "<f8")
    return {"shape": ordered.shape, "float64": base64.b64encode(ordered.tobytes()).decode()}


def fitting_bins(points: int, runs: int, tasks: int) -> int:
    """The k with which 2^k points are merged into one."""
    most = most_points(runs * tasks)
    k = 0
    while -(-points >> k) > most:
        k += 1
    return k


def most_points(curves: int) -> int:
    """The most points of each curve, given the number of curves."""
    return min(max(CELLS // max(curves, 1), FEWEST), POINTS)


def times_of(curves: Curves, chunk: int, k: int) -> dict[str, Any]:
    """Seconds and updates up to each point, when 2^k are merged into one."""
    bins = (curves.steps // chunk - 1) >> k
    ends = np.flatnonzero(np.diff(bins, append=-1))
    seconds, steps = np.round(curves.seconds[ends], 1), curves.steps[ends]
    return {"seconds": seconds.tolist(), "steps": steps.tolist()}


def thin(curves: Curves, chunk: int, k: int) -> tuple[NDArray[np.int64], dict[str, Floats], Tests]:
    """The curves as the page shows them: 2^k points merged into one."""
    fewer, points = fewer_points(curves, chunk, k)
    shown = ("probability", "share", "mastery", "progress", "returns")
    found = {name: getattr(fewer, name) for name in shown}
    found["episodes"] = fewer.episodes / (chunk * points)[:, None, None]
    tests = {p: (e.frames, e.returns) for p, e in curves.evaluations.items() if len(e.frames)}
    return fewer.frames, found, tests


def fewer_points(curves: Curves, chunk: int, k: int) -> tuple[Curves, NDArray[np.int64]]:
    """Merge 2^k points into one; also, the number of points in each."""
    bins = (curves.steps // chunk - 1) >> k
    points = np.unique(bins, return_counts=True)[1]
    return curves.merged(np.flatnonzero(np.diff(bins, prepend=-1))), points


def document(
    frames: NDArray[np.int64],
    found: Mapping[str, Floats],
    tests: Tests,
    solved: Floats | None,
    span: float,
    numbers: Numbers = as_array,
) -> dict[str, Any]:
    """Round the curves and arrange them by run, task and point, for the page."""
    digits = int(np.clip(3 - np.floor(np.log10(span)), 0, 12))
    rounded = {
        "probability": np.round(found["probability"], 4),
        "share": np.round(found["share"], 4),
        "mastery": np.round(found["mastery"], 4),
        "progress": _significant(found["progress"]),
        "returns": np.round(found["returns"], digits),
    }
    if "episodes" in found:  # that ended in a time-step, on average
        rounded["episodes"] = _significant(found["episodes"], 3)
    known = {name: x for name, x in rounded.items() if not np.isnan(x).all() or name != "progress"}
    return {
        "frames": frames.tolist(),
        "solved": None if solved is None else [None if np.isnan(x) else float(x) for x in solved],
        **{name: numbers(x) for name, x in known.items()},
        "evaluations": {
            policy: {"frames": when.tolist(), "returns": numbers(np.round(scores, digits))}
            for policy, (when, scores) in tests.items()
        },
        "scalars": {},
    }


def _significant(x: Floats, digits: int = 4) -> Floats:
    """Round to this number of significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(x))))
        found: Floats = np.where(x == 0, 0.0, np.round(x * scale) / scale)
    return found


def thin_scalars(scalars: Scalars) -> dict[str, Any]:
    """A number of the loop as the page shows it: at most POINTS points, by run."""
    frames: NDArray[Any] = scalars.frames
    values = scalars.values
    if len(frames) > POINTS:
        ends = np.linspace(0, frames[-1], POINTS + 1)[1:]
        last = np.searchsorted(frames, ends, "right")
        kept = np.unique(last[last > 0]) - 1
        values, frames = bin_means(scalars, frames[kept]), frames[kept]
    return {"frames": frames.tolist(), "values": [[_number(x) for x in run] for run in values.T]}


def _number(x: float) -> float | None:
    return None if np.isnan(x) else float(f"{x:.6g}")
