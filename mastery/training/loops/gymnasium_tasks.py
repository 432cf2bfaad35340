"""The tasks of a curriculum as Gymnasium environments, and how observations are encoded.

An observation becomes one array, of the same kind in all tasks:

    cells     MiniGrid's view, if our own engine has all tasks
    pixels    any other MiniGrid view (a cell is three numbers, each becomes 11 zeros and ones),
              and every Box of two or three dimensions
    vector    a Box of one dimension, and all else that Gymnasium can flatten; numbers are not
              rescaled, so an environment should keep them near 1

The agent sees only the image of a MiniGrid observation, not the direction or the mission.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.curriculum.environments import Env, make_by_settings
from mastery.errors import MasteryError
from mastery.learners.encoders import Space
from mastery.minigrid.editions import TODAY
from mastery.minigrid.tasks import NAMES

BYTE, SINGLE = np.dtype(np.uint8), np.dtype(np.float32)


class Encoding(NamedTuple):
    """How the agent sees an environment."""

    kind: str  # cells, pixels or vector
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    encode: Callable[[Any], NDArray[Any]]  # from an observation to an array of this shape and dtype


class GymnasiumTasks:
    """The tasks of a curriculum; all have the same kind of observations and actions.

    Attributes:
        space: The agent's observations and actions.
        dtype: Of the encoded observations.
        scale: Factor for each task's rewards in training: 1 for the tasks of our own MiniGrid,
            else 1 / (the task's maximum − its minimum).
        limits: The most steps of an episode of each task; None if unknown.
    """

    def __init__(self, curriculum: Curriculum, actions: int) -> None:
        self.names, self.minimum = curriculum.names, curriculum.minimum
        self._settings = [curriculum.settings.get(name, {}) for name in self.names]
        self._as_cells = all(map(_is_ours, self._settings))
        reach = curriculum.maximum - curriculum.minimum
        self.scale = np.ones_like(reach) if self._as_cells else 1 / reach
        self.limits: list[int | None] = []
        found: list[tuple[Encoding, int, int]] = []
        for task in range(len(self.names)):
            env = self.make(task)
            try:
                found.append((self._view(task, env), *self._actions(task, env)))
                self.limits.append(_limit(env))
            finally:
                env.close()
        self.views = [view for view, _, _ in found]
        for task, (view, n, start) in enumerate(found):
            for what, mine, first in (
                ("show", _shown(view), _shown(found[0][0])),
                ("have", _discrete(n, start), _discrete(*found[0][1:])),
            ):
                if mine != first:
                    raise MasteryError(
                        f"tasks {self.names[0]!r} and {self.names[task]!r} cannot be learned by "
                        f"one agent: they {what} {first} and {mine}; leave one of them out, or "
                        "wrap its environment"
                    )
        view, n, self.first_action = found[0]
        # MiniGrid's last action, the seventh, does nothing in the tasks of our own engine
        self.space = Space(view.kind, view.shape, min(actions, n) if view.kind == "cells" else n)
        self.dtype = view.dtype

    def make(self, task: int, render_mode: str | None = None) -> Env:
        """Make a new environment of a task."""
        return make_by_settings(self.names[task], self._settings[task], render_mode)

    def _view(self, task: int, env: Env) -> Encoding:
        view = _view_of(env, self._as_cells)
        if view is None:
            raise MasteryError(
                f"task {self.names[task]!r} has the observation_space "
                f"{getattr(env, 'observation_space', None)}, which cannot be made one array; an "
                "agent can see a Box, and what Gymnasium flattens to one"
            )
        return view

    def _actions(self, task: int, env: Env) -> tuple[int, int]:
        space = getattr(env, "action_space", None)
        if not isinstance(space, spaces.Discrete):
            raise MasteryError(
                f"task {self.names[task]!r} has the action_space {space}; only Discrete is "
                "supported: wrap the environment so that it has a list of actions"
            )
        return int(space.n), int(space.start)


def _view_of(env: Env, as_cells: bool) -> Encoding | None:
    """How the agent sees an environment; None if its observations cannot be one array."""
    space = getattr(env, "observation_space", None)
    if not (isinstance(space, spaces.Dict) and {"image", "mission"} <= set(space)):
        return _view_of_space(space)
    shape = space["image"].shape or ()
    if as_cells and shape == (7, 7, 3):
        return Encoding("cells", (7, 7), BYTE, lambda seen: TODAY.encode(seen["image"]))
    side = env.get_wrapper_attr("agent_view_size") if env.has_wrapper_attr("agent_view_size") else 0
    if shape == (side, side, 3):
        planes = np.arange(11, dtype=np.uint8)  # 10 is the largest number in the minigrid package

        def spread(seen: Any) -> NDArray[Any]:
            equal: NDArray[Any] = seen["image"][..., None] == planes
            return equal.reshape(side, side, 33)

        return Encoding("pixels", (side, side, 33), np.dtype(bool), spread)
    if (view := _view_of_space(space["image"])) is None:
        return None
    encode = view.encode
    return view._replace(encode=lambda seen: encode(seen["image"]))


def _view_of_space(space: Any) -> Encoding | None:
    if isinstance(space, spaces.Box) and len(space.shape) in (2, 3):
        shape, dtype = space.shape, BYTE if space.dtype == BYTE else SINGLE

        def array(seen: Any) -> NDArray[Any]:
            return np.asarray(seen) if dtype == BYTE else np.asarray(seen, dtype)

        if len(shape) == 2:
            return Encoding("pixels", (*shape, 1), dtype, lambda seen: array(seen)[..., None])
        if shape[0] <= 4 < min(shape[1:]):
            turned = (*shape[1:], shape[0])
            return Encoding("pixels", turned, dtype, lambda seen: np.moveaxis(array(seen), 0, -1))
        return Encoding("pixels", shape, dtype, array)
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        return Encoding("vector", space.shape, SINGLE, lambda seen: np.asarray(seen, SINGLE))
    try:
        flat = spaces.flatten_space(space)
    except NotImplementedError:  # a custom space
        return None
    if not isinstance(flat, spaces.Box):
        return None
    return Encoding(
        "vector",
        flat.shape,
        SINGLE,
        lambda seen: np.asarray(spaces.flatten(space, seen), SINGLE),
    )


def _is_ours(settings: Mapping[str, Any]) -> bool:
    """Whether our own engine has this environment, so that one byte encodes each cell."""
    name = str(settings.get("env")).rpartition(":")[2].rpartition("-v")[0]
    return name in {f"MiniGrid-{ours}" for ours in NAMES}


def _limit(env: Env) -> int | None:
    """The most steps of an episode, set by Gymnasium or MiniGrid; None if unknown."""
    known = (env.spec.max_episode_steps, getattr(env.unwrapped, "max_steps", None))
    return min((n for n in known if isinstance(n, int)), default=None)


def _shown(view: Encoding) -> str:
    return f"{view.kind} {view.dtype}{list(view.shape)}"


def _discrete(n: int, start: int) -> str:
    return f"actions {start} to {start + n - 1}"
