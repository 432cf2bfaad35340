"""What a teacher does, for the tools that people watch their runs with.

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

_OTHER = re.compile(r"[^/\w.\- :]")  # what MLflow refuses in a name


def track(
    teacher: Teacher,
    log: Callable[..., Any],
    step: int | None = None,
    returns: Mapping[str, Sequence[float]] | None = None,
) -> dict[str, float]:
    """Call `log(scalars, step=step)` with the teacher's `scalars`, and return them.

    step: the teacher's time-step if it is not given.
    """
    found = scalars(teacher, returns)
    log(found, step=teacher.time_step if step is None else step)
    return found


def scalars(
    teacher: Teacher, returns: Mapping[str, Sequence[float]] | None = None
) -> dict[str, float]:
    """`mastery/TASK` and `probability/TASK`, and of what was returned `return/TASK`, its mean, and
    `episodes/TASK`. A program of one's own has no mastery."""
    columns = {"mastery": teacher.mastery, "probability": teacher.probabilities}
    if returns is not None:
        seen = {task: np.atleast_1d(values) for task, values in returns.items()}
        seen = {task: values for task, values in seen.items() if values.size}
        columns["return"] = {task: float(values.mean()) for task, values in seen.items()}
        columns["episodes"] = {task: float(values.size) for task, values in seen.items()}
    return {
        f"{column}/{_OTHER.sub('_', task)}": value
        for column, values in columns.items()
        for task, value in values.items()
        if value == value  # not NaN
    }


class TensorBoard:
    """An event file in a folder, a new one for each object, as TensorBoard's own writer has it.

    What was logged is in the file when `log` returns; there is nothing to close.
    """

    def __init__(self, folder: str | Path) -> None:
        name = f"events.out.tfevents.{time.time():.6f}.{os.getpid()}.mastery"
        self.path = Path(folder) / name
        self._lock = threading.Lock()
        self._begun = False

    def log(self, scalars: Mapping[str, float], step: int) -> None:
        with self._lock:
            parts = list(event_file([(time.time(), step, scalars)]))
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("ab") as file:
                    file.write(b"".join(parts[self._begun :]))  # the first is said once a file
            except OSError as error:
                raise CheckpointError(f"cannot write {self.path}: {error.strerror}") from None
            self._begun = True
