"""Pass rates on held-out problems over tokens, in a file small enough to ship.

Arrays have the axes (points, runs, tasks); a point is an evaluation.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mastery.checkpoint import replace_file
from mastery.errors import MasteryError
from mastery.rundir.results import Results
from mastery.training.loops.reasoning import FLAT, GENERATED, TRAINED

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TokenCurves:
    """A job of the comparison and its curves."""

    tasks: NDArray[np.str_]
    programs: NDArray[np.str_]  # of each run
    seeds: NDArray[np.int64]  # of each run
    completions: NDArray[np.int64]  # (points,): per run, up to the point
    generated: Floats  # (points, runs): tokens up to the point
    trained: Floats  # (points, runs): tokens of groups with signal
    flat: Floats  # (points, runs): share of groups without signal since the last point
    passed: Floats  # pass rate on held-out problems, by sampling
    greedy: Floats  # the same with the likeliest symbols
    share: Floats  # of the completions since the last point
    about: Mapping[str, Any]  # seconds, device, settings, …

    @property
    def runs(self) -> dict[str, NDArray[np.int64]]:
        """Indices of the runs of each program."""
        names = dict.fromkeys(self.programs.tolist())
        return {name: np.flatnonzero(self.programs == name) for name in names}


def from_results(results: Results, scale: float = 1.0) -> TokenCurves:
    """The curves of a job.

    Raises:
        MasteryError: If the job has no evaluation yet.
    """
    tests = results.evaluations["sampled"]
    if not len(tests.frames):
        raise MasteryError(f"{results.directory} has no evaluation yet: train it for longer")
    at = np.searchsorted(results.frames, tests.frames)
    starts = np.append(0, at[:-1] + 1)
    merged = results.merged(np.array(starts))
    updates = np.diff(results.steps, prepend=0)[:, None]

    def total(name: str) -> Floats:
        found: Floats = np.cumsum(results.scalars[name].values * updates, 0)[at]
        return found

    sums = np.add.reduceat(results.scalars[FLAT].values[: at[-1] + 1], starts)
    session = results.sessions[-1]
    return TokenCurves(
        tasks=np.array(results.curriculum.names),
        programs=np.array(results.labels),
        seeds=np.array(results.seeds),
        completions=tests.frames,
        generated=total(GENERATED),
        trained=total(TRAINED),
        flat=sums / np.diff(np.append(starts, at[-1] + 1))[:, None],
        passed=tests.returns,
        greedy=results.evaluations["greedy"].returns,
        share=merged.share,
        about={
            "curriculum": results.curriculum.name,
            "planned": results.total,
            "scale": scale,
            "seconds": float(results.seconds[-1]),
            "device": session.hardware.get("device", ""),
            "versions": dict(session.versions),
            "settings": dict(results.job["settings"]),
        },
    )


_HALF = ("flat", "passed", "greedy", "share")  # saved in half precision


def save(curves: TokenCurves, path: Path) -> None:
    """Save as a NumPy archive."""
    arrays = {f.name: getattr(curves, f.name) for f in fields(curves) if f.name != "about"}
    arrays |= {name: arrays[name].astype(np.float16) for name in _HALF}
    arrays |= {name: arrays[name].astype(np.float32) for name in ("generated", "trained")}
    arrays["about"] = np.array(json.dumps(curves.about))
    whole = io.BytesIO()
    np.savez_compressed(whole, **arrays)
    replace_file(path, [whole.getbuffer()])


def load(path: Path) -> TokenCurves:
    """Load what `save` wrote; MasteryError if it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as data:
            arrays: dict[str, Any] = {f.name: data[f.name] for f in fields(TokenCurves)}
        arrays["about"] = json.loads(str(arrays["about"]))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise MasteryError(f"cannot read the curves in {path}: {error}") from None
    for name in (*_HALF, "generated", "trained"):
        arrays[name] = arrays[name].astype(np.float64)
    return TokenCurves(**arrays)
