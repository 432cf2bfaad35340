"""Log a teacher's mastery and probabilities to an experiment tracker.

track(teacher, wandb.log)                       Weights & Biases
track(teacher, mlflow.log_metrics)              MLflow
track(teacher, TensorBoard("runs/mr").log)      event files, written without TensorBoard
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mastery.errors import CheckpointError
from mastery.rundir.event_files import event_file
from mastery.teacher import Teacher

_OTHER = re.compile(r"[^/\w.\- :]")  # characters that MLflow refuses in a name


def track(
    teacher: Teacher,
    log: Callable[..., Any],
    step: int | None = None,
    returns: Mapping[str, Sequence[float]] | None = None,
) -> dict[str, float]:
    """Log the teacher's `scalars` and return them.

    Args:
        teacher: The teacher.
        log: Called as `log(scalars, step=step)`.
        step: The step to log at; by default the teacher's time-step.
        returns: The returns of the last update, to be logged too.

    Returns:
        What was logged; see `scalars`.

    Example:
        >>> track(teacher, wandb.log, returns=returns)
    """
    found = scalars(teacher, returns)
    log(found, step=teacher.time_step if step is None else step)
    return found


def scalars(
    teacher: Teacher, returns: Mapping[str, Sequence[float]] | None = None
) -> dict[str, float]:
    """The numbers to log for a teacher.

    Args:
        teacher: The teacher.
        returns: The returns of the last update, to be included.

    Returns:
        `mastery/TASK`, `support/TASK` (about how many returns the mastery rests on) and
        `probability/TASK` for each task, and for each task in `returns` the mean `return/TASK` and
        the count `episodes/TASK`. Characters that MLflow refuses in a name become `_`.
    """
    why = teacher.explain()
    columns: dict[str, dict[str, float]] = {
        "mastery": dict(zip(why.task, why.mastery.tolist(), strict=True)),
        "support": dict(zip(why.task, why.returns.tolist(), strict=True)),
        "probability": dict(zip(why.task, why.probability.tolist(), strict=True)),
    }
    if returns is not None:
        seen = {task: np.atleast_1d(values) for task, values in returns.items()}
        seen = {task: values for task, values in seen.items() if values.size}
        columns["return"] = {task: float(values.mean()) for task, values in seen.items()}
        columns["episodes"] = {task: float(values.size) for task, values in seen.items()}
    return {
        f"{column}/{_OTHER.sub('_', task)}": value
        for column, values in columns.items()
        for task, value in values.items()
    }


class TensorBoard:
    """Writes a TensorBoard event file.

    Each object writes a new file, as TensorBoard's own writer does. When `log` returns, the numbers
    are in the file; no close is needed.

    Args:
        folder: Where to write the file; created at the first `log` if missing.
    """

    def __init__(self, folder: str | Path) -> None:
        name = f"events.out.tfevents.{time.time():.6f}.{os.getpid()}.mastery"
        self.path = Path(folder) / name
        self._lock = threading.Lock()
        self._begun = False

    def log(self, scalars: Mapping[str, float], step: int) -> None:
        """Append scalars to the file.

        Args:
            scalars: The numbers by tag.
            step: The step to log at.

        Raises:
            CheckpointError: If the file cannot be written.
        """
        with self._lock:
            parts = list(event_file([(time.time(), step, scalars)]))
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("ab") as file:
                    file.write(b"".join(parts[self._begun :]))  # the header only once
            except OSError as error:
                raise CheckpointError(f"cannot write {self.path}: {error.strerror}") from None
            self._begun = True
