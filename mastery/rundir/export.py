"""Export the curves of a training job to CSV, Parquet or TensorBoard."""

from __future__ import annotations

import calendar
import csv
import io
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.checkpoint import replace_file
from mastery.errors import CheckpointError, MasteryError
from mastery.rundir.event_files import event_file
from mastery.rundir.results import Results

Table = dict[str, NDArray[Any]]  # columns of equal length


def export_csv(results: Results, path: str | Path) -> list[Path]:
    """Write training curves and evaluations as two CSV files; NaN becomes an empty cell.

    Args:
        results: The job's results, from `load_results`.
        path: The first file, NAME.csv; the second is NAME-evaluation.csv beside it.

    Returns:
        The paths of both files.

    Raises:
        CheckpointError: If a file cannot be written.

    Example:
        >>> export_csv(load_results("runs/key-corridor-mr"), "curves.csv")
    """
    return _write(results, Path(path), _csv)


def export_parquet(results: Results, path: str | Path) -> list[Path]:
    """Write training curves and evaluations as two Parquet files; NaN becomes null.

    Args:
        results: The job's results, from `load_results`.
        path: The first file, NAME.parquet; the second is NAME-evaluation.parquet beside it.

    Returns:
        The paths of both files.

    Raises:
        MasteryError: If pyarrow is not installed.
        CheckpointError: If a file cannot be written.
    """
    return _write(results, Path(path), _parquet)


def _write(
    results: Results, path: Path, form: Callable[[Table], Iterable[bytes | memoryview]]
) -> list[Path]:
    tables = {
        path: training_table(results),
        path.with_name(f"{path.stem}-evaluation{path.suffix}"): evaluation_table(results),
    }
    for place, table in tables.items():
        replace_file(place, form(table))
    return list(tables)


def training_table(results: Results) -> Table:
    """The training curves as columns: one row per run, point and task."""
    return _long(
        results,
        {"step": results.steps, "frames": results.frames, "seconds": results.seconds},
        {
            "probability": results.probability,
            "mastery": results.mastery,
            "return": results.returns,
            "episodes": results.episodes,
            "task_frames": results.played,
            "share": results.share,
        },
    )


def evaluation_table(results: Results) -> Table:
    """The evaluations as columns: one row per policy, run, evaluation and task."""
    tables = []
    for policy, found in results.evaluations.items():
        values = {"return": found.returns, "success": found.success, "length": found.length}
        table = _long(results, {"frames": found.frames}, values)
        rows = np.full(len(table["run"]), policy, object)
        tables.append({"policy": rows, **table})
    return {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}


def _long(results: Results, of_points: Table, values: Table) -> Table:
    """One row per run, point and task, in this order; run and point values are repeated."""
    points = len(of_points["frames"])
    runs, tasks = len(results.labels), len(results.curriculum)
    differing = sorted({name for changes in results.changes for name in changes})
    of_runs = {
        "run": np.arange(runs),
        "label": np.array(results.labels, object),
        "program": np.array(results.programs, object),
        "seed": np.array(results.seeds),
        **{name: np.array([c.get(name, math.nan) for c in results.changes]) for name in differing},
    }
    names = np.array(results.curriculum.names, object)
    return {
        **{name: np.repeat(column, points * tasks) for name, column in of_runs.items()},
        **{name: np.tile(np.repeat(x, tasks), runs) for name, x in of_points.items()},
        "task": np.tile(names, runs * points),
        **{name: x.swapaxes(0, 1).ravel() for name, x in values.items()},
    }


def _csv(table: Table) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    some = 10_000  # rows at a time, to keep memory small
    for start in range(0, max(len(table["run"]), 1), some):
        columns = (column[start : start + some].tolist() for column in table.values())
        for row in zip(*columns, strict=True):
            writer.writerow("" if isinstance(x, float) and math.isnan(x) else x for x in row)
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()


def _parquet(table: Table) -> list[memoryview]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise MasteryError("Parquet needs pyarrow: pip install pyarrow") from None
    columns: dict[str, Any] = {}
    for name, column in table.items():
        array = pyarrow.array(column, from_pandas=True)  # NaN becomes null
        columns[name] = array.cast(pyarrow.string()) if column.dtype == object else array
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out)
    return [out.getbuffer()]


def export_tensorboard(results: Results, folder: str | Path) -> list[Path]:
    """Write TensorBoard event files: return/TASK, probability/TASK and so on, over frames.

    A second export to the same folder replaces the first.

    Args:
        results: The job's results, from `load_results`.
        folder: Where to create one folder per run.

    Returns:
        The folders of the runs.

    Raises:
        CheckpointError: If a folder or file cannot be written.
    """
    began = _seconds(results.created)
    curves = _curves(results)
    places = []
    for run, (label, seed) in enumerate(zip(results.labels, results.seeds, strict=True)):
        place = Path(folder) / f"{re.sub(r'[^A-Za-z0-9.,=-]+', '_', label)}_seed{seed}"
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"cannot make {place}: {error.strerror}") from None
        points = (
            (began + second, frame, _scalars(curves, frame, run, results.curriculum.names))
            for second, frame in zip(results.seconds.tolist(), results.frames.tolist(), strict=True)
        )
        # always the same name, so that a second export replaces the first
        replace_file(place / f"events.out.tfevents.{began}.mastery", event_file(points))
        places.append(place)
    return places


def _curves(results: Results) -> dict[str, dict[int, NDArray[Any]]]:
    """Arrays (runs, tasks) by the curve's name and the frame."""
    values = {
        "return": (results.frames, results.returns),
        "probability": (results.frames, results.probability),
        "mastery": (results.frames, results.mastery),
        "episodes": (results.frames, results.episodes),
        "share": (results.frames, results.share),
    }
    for policy, found in results.evaluations.items():
        values[f"evaluation/{policy}"] = (found.frames, found.returns)
        values[f"evaluation_success/{policy}"] = (found.frames, found.success)
        values[f"evaluation_length/{policy}"] = (found.frames, found.length)
    return {
        name: dict(zip(frames.tolist(), array, strict=True))
        for name, (frames, array) in values.items()
    }


def _scalars(
    curves: Mapping[str, Mapping[int, NDArray[Any]]], frame: int, run: int, tasks: Sequence[str]
) -> dict[str, float]:
    """One run's numbers at one frame, by tag; NaN is omitted."""
    return {
        f"{name}/{task}": x
        for name, curve in curves.items()
        if frame in curve
        for task, x in zip(tasks, curve[frame][run].tolist(), strict=True)
        if not math.isnan(x)
    }


def _seconds(created: str) -> int:
    """Convert text such as `2026-11-15 15:39:50 UTC` to seconds since 1970."""
    return calendar.timegm(time.strptime(created, "%Y-%m-%d %H:%M:%S UTC"))
