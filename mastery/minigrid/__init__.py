"""MiniGrid as pure JAX functions: eighteen tasks, exact, many environments at once.

envs = mastery.minigrid.make_vec("BlockedUnlockPickup", num_envs=1024)    # speaks Gymnasium

The engine under it is a few functions over arrays, for loops that are compiled as a whole:

    cells       a cell in one byte
    editions    today's MiniGrid and that of September 2018: what differs
    grid        a map of cells
    tasks       the eighteen tasks, as data
    actions     what an agent can do
    levels      generate(): new levels
    rules       act(): one step
    vision      observe(): what the agent sees
    engine      reset(), step(), refill(): many environments, with fresh levels
    rendering   render(): pictures
    planner     plan(): a solution of a level
    play        whole episodes, as pictures and GIFs
    exchange    levels to and from the `minigrid` package
    vector      make_vec(): the engine as Gymnasium sees it
    environment make(): one environment of it
"""

from __future__ import annotations

import importlib
from typing import Any

from mastery.errors import MasteryError
from mastery.minigrid.tasks import NAMES, TASKS, task_id

# what needs JAX or Gymnasium is imported when it is asked for
_WHERE = {
    "EDITIONS": "editions",
    "Edition": "editions",
    "Level": "state",
    "MINIGRID_REWARD": "rules",
    "MISSIONS": "missions",
    "Outcome": "rules",
    "PAPER_REWARD": "rules",
    "Pool": "engine",
    "State": "state",
    "act": "rules",
    "decode": "vision",
    "from_package": "exchange",
    "generate": "levels",
    "make": "environment",
    "make_vec": "vector",
    "observe": "vision",
    "plan": "planner",
    "refill": "engine",
    "render": "rendering",
    "reset": "engine",
    "seen_cells": "vision",
    "start": "state",
    "step": "engine",
    "to_package": "exchange",
}
__all__ = ["NAMES", "TASKS", "task_id", *_WHERE]


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE])


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name not in ("jax", "gymnasium"):
            raise
        raise MasteryError(
            f"{__name__}.{name} needs {error.name}: pip install 'mastery[minigrid]'"
        ) from None
