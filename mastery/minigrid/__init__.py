"""MiniGrid as pure JAX functions: eighteen tasks, exact, many environments at once.

envs = mastery.minigrid.make_vec("BlockedUnlockPickup", num_envs=1024)    # a Gymnasium VectorEnv

The engine underneath is a set of pure functions over arrays, for use inside compiled loops:

    cells       a cell in one byte
    editions    today's MiniGrid and that of September 2018: the differences
    grid        a map of cells
    tasks       the eighteen tasks, as data
    actions     the agent's actions
    levels      generate(): new levels
    rules       act(): one step
    vision      observe(): what the agent sees
    engine      reset(), step(), refill(): many environments, with new levels
    rendering   render(): pictures
    planner     plan(): actions that solve a level
    play        play(): whole episodes, as pictures and GIFs
    exchange    from_package(), to_package(): states from and to the `minigrid` package
    vector      make_vec(): a Gymnasium vector environment
    tables      the rules and the view as tables, for one environment
    environment make(): a single Gymnasium environment
"""

from __future__ import annotations

import importlib
from typing import Any

from mastery.errors import needs
from mastery.minigrid.tasks import NAMES, TASKS, task_id

# these need JAX or Gymnasium, so they are imported on first use
_WHERE = {
    "EDITIONS": "editions",
    "Edition": "editions",
    "Level": "state",
    "MINIGRID_REWARD": "rules",
    "MISSIONS": "missions",
    "StepResult": "rules",
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
    with needs(f"{__name__}.{name}", "minigrid"):
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
