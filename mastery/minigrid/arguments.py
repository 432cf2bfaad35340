"""Check the arguments of environments: tasks, probabilities, arrays, choices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.errors import MasteryError, did_you_mean
from mastery.minigrid.tasks import task_id

OBSERVATIONS = ("dict", "image")
RENDER_MODES = (None, "rgb_array")


def resolve_tasks(tasks: str | Iterable[str] | Curriculum) -> tuple[tuple[str, ...], list[int]]:
    """The names of the tasks, and their indices into TASKS."""
    if isinstance(tasks, Curriculum):
        missing = [name for name in tasks.names if "env" not in tasks[name].settings]
        if missing:
            raise MasteryError(
                f"task {missing[0]!r} of the curriculum has no environment: "
                'give it settings = { env = "MiniGrid-…" }'
            )
        names = tuple(tasks.names)
        ids = [task_id(tasks[name].settings["env"]) for name in names]
    else:
        if not isinstance(tasks, Iterable):
            raise MasteryError(f"tasks must be names or a curriculum, not {tasks!r}")
        names = (tasks,) if isinstance(tasks, str) else tuple(str(name) for name in tasks)
        ids = [task_id(name) for name in names]
    if not ids:
        raise MasteryError("there is no task: name at least one")
    if len(set(ids)) < len(ids):
        twice = next(name for name, n in zip(names, ids, strict=True) if ids.count(n) > 1)
        raise MasteryError(f"task {twice!r} is there twice")
    return names, ids


def as_array(name: str, value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        raise MasteryError(f"{name} must be numbers in one row, not {value!r}") from None


def check_probabilities(
    value: Any, tasks: tuple[str, ...], ids: list[int], num_envs: int
) -> NDArray[np.float64]:
    """Normalised probabilities in the order of `tasks`, (tasks,) or (environments, tasks)."""
    if isinstance(value, Mapping):
        given = [0.0] * len(tasks)
        for name, p in value.items():
            given[_find(str(name), tasks, ids)] = p
        value = given
    try:
        p = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise MasteryError(f"probabilities must be numbers, not {value!r}") from None
    if p.shape not in ((len(tasks),), (num_envs, len(tasks))):
        raise MasteryError(
            f"probabilities have shape {p.shape}: give one for each of the {len(tasks)} tasks, "
            f"or a row of them for each of the {num_envs} environments"
        )
    if not np.isfinite(p).all() or (p < 0).any():
        wrong = p[~np.isfinite(p) | (p < 0)][0]
        raise MasteryError(f"a probability is {wrong}: each must be a number from 0 on")
    most = p.max(-1, keepdims=True)
    if (most == 0).any():
        raise MasteryError("all probabilities are zero: at least one task must be possible")
    p = p / most  # so that no sum overflows
    return np.asarray(p / p.sum(-1, keepdims=True))


def _find(name: str, tasks: tuple[str, ...], ids: list[int]) -> int:
    """The index of a task in `tasks`, by the name given there or by MiniGrid's name."""
    if name in tasks:
        return tasks.index(name)
    try:
        return ids.index(task_id(name))
    except ValueError:  # no such task, or not one of `tasks`
        raise MasteryError(f"there is no task {name!r} here{did_you_mean(name, tasks)}") from None


def check_one(name: str, value: Any, known: Iterable[Any]) -> None:
    known = tuple(known)
    if value not in known:
        hint = did_you_mean(str(value), [str(k) for k in known if k])
        raise MasteryError(f"{name} is {value!r}{hint}")
