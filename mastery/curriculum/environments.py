"""Make a task's Gymnasium environment from the task's settings.

settings.env                 an id, such as CartPole-v1; package:Id-v0 imports the package first,
                             also from the current directory
settings.kwargs              a table of arguments for the environment
settings.max_episode_steps   the episode limit, instead of the registered one
"""

from __future__ import annotations

import contextlib
import importlib
import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium

from mastery import errors
from mastery.curriculum.importing import importable
from mastery.errors import MasteryError

Env = Any  # a gymnasium.Env
MINIGRID = ("MiniGrid-", "BabyAI-")  # prefixes of the ids in the minigrid package


def make_by_settings(task: str, settings: Mapping[str, Any], render_mode: str | None = None) -> Env:
    """Make a new environment for a task.

    Args:
        task: The task's name, for error messages.
        settings: The task's settings; see the module's docstring.
        render_mode: The render mode, if any.

    Returns:
        The environment.

    Raises:
        MasteryError: If the settings are invalid or the environment cannot be made.
    """
    where = f"task {task!r}"
    name, kwargs = settings.get("env"), settings.get("kwargs", {})
    if not isinstance(name, str):
        raise MasteryError(
            f"{where} names no environment; add a Gymnasium id, e.g. "
            'settings = { env = "CartPole-v1" }'
        )
    if not isinstance(kwargs, Mapping):
        raise MasteryError(f"{where}: kwargs is {kwargs!r}; it must be a table of arguments")
    given = {**kwargs, "disable_env_checker": True}
    if render_mode is not None:
        given["render_mode"] = render_mode
    if "max_episode_steps" in settings:
        given["max_episode_steps"] = settings["max_episode_steps"]
    if name.startswith(MINIGRID):  # importing the package registers them
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module("minigrid")
    try:
        with importable():
            return gymnasium.make(name, **given)
    except (gymnasium.error.UnregisteredEnv, ModuleNotFoundError) as error:
        remedy = "write package:Id-v0 to import its package first"
        if ":" in name:
            package = name.partition(":")[0]
            remedy = f"install {package!r}, or run in the folder that holds it, not {Path.cwd()}"
        if name.startswith(MINIGRID):
            remedy = "its package is minigrid: pip install minigrid"
        raise MasteryError(f"{where}: there is no {name!r} ({error}); {remedy}") from None
    except Exception as error:  # third-party environments may raise anything
        raise MasteryError(
            f"{where}: cannot make {name!r}: {said(error)}; check kwargs and max_episode_steps in "
            "the task's settings"
        ) from error


def said(error: Exception) -> str:
    """The type and text of a third-party error and the line that raised it, for our messages."""
    return f"{type(error).__name__}: {error}{_place(error)}"


def _place(error: Exception) -> str:
    """The innermost line of the user's code in a traceback, or of a package that the user calls."""
    user = installed = ""
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if frame.filename.startswith("<") or any(path.is_relative_to(own) for own in _OURS):
            continue  # "<": Python's own import system
        place = f" ({path}, line {frame.lineno}, in {frame.name})"
        if any(path.is_relative_to(folder) for folder in _INSTALLED):
            installed = place
        else:
            user = place
    return user or installed


# lines of these are never the user's
_OURS = (Path(errors.__file__).parent, Path(gymnasium.__file__).parent)
# nor, if there is a line outside, of these
_INSTALLED = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}
