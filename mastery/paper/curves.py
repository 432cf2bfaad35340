"""A job's curves, thinned to a file small enough to ship.

Arrays have the axes (points, runs, tasks). Each of the first chunks is a point, since much happens
in them; later chunks are merged.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mastery.checkpoint import replace_file
from mastery.errors import MasteryError
from mastery.rundir.results import Results

Floats = NDArray[np.float64]
FIRST, LATER = 50, 100  # points from the first chunks, and at most from the later ones
AVERAGED = 5  # points over which returns in training are averaged


@dataclass(frozen=True, eq=False)
class PaperCurves:
    """A job and its thinned curves."""

    tasks: NDArray[np.str_]  # names
    programs: NDArray[np.str_]  # of each run
    seeds: NDArray[np.int64]  # of each run
    frames: NDArray[np.int64]  # (points,): per run, up to the point
    returns: Floats  # mean over the episodes that ended since the last point; NaN if none did
    probability: Floats  # mean since the last point
    share: Floats  # of the frames since the last point
    mastery: Floats  # at the point
    progress: Floats  # β at the point; NaN if it was not kept
    sampled: Floats  # (runs, tasks): returns in the evaluation at the end; NaN if there is none
    greedy: Floats  # the same for the greedy policy
    solved: Floats  # (runs,): examples until every task was learned; NaN if it was not
    about: Mapping[str, Any]  # seconds, frames, hardware, command, …

    @property
    def runs(self) -> dict[str, NDArray[np.int64]]:
        """Indices of the runs of each program."""
        return {
            p: np.flatnonzero(self.programs == p) for p in dict.fromkeys(self.programs.tolist())
        }

    def smooth(self) -> Floats:
        """Returns in training, averaged over the last few points; (points, runs, tasks)."""
        known = last_known(self.returns)
        sums = np.cumsum(np.concatenate([np.zeros((1, *known.shape[1:])), known]), axis=0)
        ends = np.arange(1, len(known) + 1)
        starts = np.maximum(ends - AVERAGED, 0)
        found: Floats = (sums[ends] - sums[starts]) / (ends - starts)[:, None, None]
        return found

    def area(self, program: str) -> Floats:
        """The area under the curve: the mean return over all frames; (runs, tasks)."""
        weights = np.diff(self.frames, prepend=0) / self.frames[-1]
        known = last_known(self.returns[:, self.runs[program]])
        found: Floats = np.einsum("p,prt->rt", weights, known)
        return found

    def of_tasks(self, names: Sequence[str]) -> PaperCurves:
        """The same runs with only these tasks."""
        at = [self.tasks.tolist().index(name) for name in names]
        cut = {name: getattr(self, name)[..., at] for name in (*_PER_TASK, "tasks")}
        return replace(self, **cut)

    def joined(self, other: PaperCurves) -> PaperCurves:
        """These runs and those of another job with the same tasks and frames.

        Raises:
            MasteryError: If tasks or frames differ.
        """
        for name in ("tasks", "frames"):
            if not np.array_equal(getattr(self, name), getattr(other, name)):
                raise MasteryError(f"jobs with other {name} cannot be put side by side")
        both: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)], axis)
            for names, axis in ((_PER_RUN, 0), (_PER_POINT, 1))
            for name in names
        }
        return replace(self, **both)

    def at(self, frames: float) -> int:
        """The index of the first point with at least `frames` frames, or of the last point."""
        return min(int(np.searchsorted(self.frames, frames)), len(self.frames) - 1)


_PER_POINT = ("returns", "probability", "share", "mastery", "progress")  # (points, runs, tasks)
_PER_TASK = (*_PER_POINT, "sampled", "greedy")
_PER_RUN = ("programs", "seeds", "sampled", "greedy", "solved")
Found = Mapping[str, PaperCurves]  # by the name of the job


def with_baselines(found: Found, name: str) -> PaperCurves:
    """The curves of a job, joined with its baselines if both have the same frames."""
    own, beside = found[name], found.get(f"{name}-baselines")
    if beside is None or not np.array_equal(own.frames, beside.frames):
        return own
    return own.joined(beside)


def last_known(returns: Floats) -> Floats:
    """Fill NaN with the last known return of the task; 0 before the first one."""
    found = returns.copy()
    last = np.zeros(found.shape[1:])
    for point in found:
        last = point[:] = np.where(np.isnan(point), last, point)
    return found


def from_results(results: Results, scale: float = 1.0) -> PaperCurves:
    """Thin the curves of a job.

    Args:
        results: The job's results.
        scale: The scale of the experiment, to record; see `PaperJob.job`.

    Raises:
        MasteryError: If the job has no curves yet.
    """
    n = len(results.frames)
    if not n:
        raise MasteryError(f"{results.directory} has no curves yet: train it first")
    rest = np.arange(min(n, FIRST), n)
    later = [part[0] for part in np.array_split(rest, min(len(rest), LATER) or 1) if len(part)]
    thinned = results.merged(np.array([*range(min(n, FIRST)), *later]))
    none = np.full((len(results.labels), len(results.curriculum)), np.nan)
    final = {
        policy: _last(e.returns) if len(e.frames) and e.frames[-1] == results.frames[-1] else none
        for policy, e in results.evaluations.items()
    }
    session = results.sessions[-1]
    return PaperCurves(
        tasks=np.array(results.curriculum.names),
        programs=np.array(results.labels),
        seeds=np.array(results.seeds),
        frames=thinned.frames,
        returns=thinned.returns,
        probability=thinned.probability,
        share=thinned.share,
        mastery=thinned.mastery,
        progress=thinned.progress,
        sampled=final["sampled"],
        greedy=final["greedy"],
        solved=np.full(len(results.labels), np.nan) if results.solved is None else results.solved,
        about={
            "curriculum": results.curriculum.name,
            "unit": results.unit,
            "planned": results.total,
            "ended": results.ended,
            "scale": scale,
            "seconds": float(results.seconds[-1]),
            "device": session.hardware.get("device", ""),
            "devices": session.hardware.get("devices", 1),
            "versions": dict(session.versions),
            "settings": dict(results.job["settings"]),
        },
    )


def _last(returns: Floats) -> Floats:
    """The last evaluation of each run: those of a job in parts may have ended at other times."""
    last: Floats = returns[-1].copy()
    for run in np.flatnonzero(np.isnan(last).all(axis=1)):
        tested = np.flatnonzero(~np.isnan(returns[:, run]).all(axis=1))
        if len(tested):
            last[run] = returns[tested[-1], run]
    return last


_BYTES = ("share", "mastery")  # saved in steps of 1/250
_HALF = ("returns", "probability", "sampled", "greedy")  # saved in half precision
_TOP = 2.0**15  # the largest β of a run is saved as at most this, so that small ones stay exact


def save(curves: PaperCurves, path: Path) -> None:
    """Save as a NumPy archive, with the precision that a plot can show."""
    arrays = {f.name: getattr(curves, f.name) for f in fields(curves) if f.name != "about"}
    arrays |= {name: arrays[name].astype(np.float16) for name in _HALF}
    # a part that has not begun knows no mastery; it is saved as 0
    bytes_of = {name: 250 * np.nan_to_num(arrays[name]) for name in _BYTES}
    arrays |= {name: np.round(x).astype(np.uint8) for name, x in bytes_of.items()}
    arrays |= _packed(arrays.pop("progress"))
    arrays["about"] = np.array(json.dumps(curves.about))
    whole = io.BytesIO()
    np.savez_compressed(whole, **arrays)
    replace_file(path, [whole.getbuffer()])


def load(path: Path) -> PaperCurves:
    """Load what `save` wrote; MasteryError if it cannot be read."""
    names = [f.name for f in fields(PaperCurves) if f.name != "progress"]
    try:
        with np.load(path, allow_pickle=False) as data:
            arrays: dict[str, Any] = {name: data[name] for name in names}
            arrays["progress"] = _unpacked(data, arrays["mastery"].shape)
        arrays["about"] = json.loads(str(arrays["about"]))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise MasteryError(f"cannot read the curves in {path}: {error}") from None
    for name in (*_BYTES, *_HALF):
        whole = 250 if arrays[name].dtype == np.uint8 else 1
        arrays[name] = arrays[name].astype(np.float64) / whole
    return PaperCurves(**arrays)


def _packed(progress: Floats) -> dict[str, NDArray[Any]]:
    """β in half precision, scaled by a power of two for each run; nothing if β was not kept.

    β may be 1e-5 or less, where half precision has few digits left. Scaled to a largest value of
    about 2^15, everything down to a 2^29th of it keeps its digits: 7 binary ones (0.4 %), since
    more would only make the file larger.
    """
    if np.isnan(progress).all():
        return {}
    largest = np.abs(np.nan_to_num(progress)).max((0, 2))  # (runs,)
    scale = _TOP / 2.0 ** np.ceil(np.log2(np.where(largest > 0, largest, 1.0)))
    fraction, exponent = np.frexp(progress * scale[:, None])
    rounded = np.ldexp(np.round(fraction * 2**8) / 2**8, exponent)
    return {"progress": rounded.astype(np.float16), "progress_scale": scale}


def _unpacked(data: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> Floats:
    """β as `_packed` left it; NaN if the file has none."""
    if "progress" not in data:
        return np.full(shape, np.nan)
    found: Floats = data["progress"].astype(np.float64) / data["progress_scale"][:, None]
    return found
