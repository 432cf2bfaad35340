"""The engine as a single `gymnasium.Env`, for tools that need one: steps without JAX."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray

from mastery.errors import MasteryError
from mastery.minigrid import engine
from mastery.minigrid.actions import ACTIONS
from mastery.minigrid.arguments import OBSERVATIONS, RENDER_MODES, as_array, check_one
from mastery.minigrid.cells import EMPTY_CELL
from mastery.minigrid.editions import Edition, find_edition
from mastery.minigrid.grid import Array, unpack
from mastery.minigrid.missions import MISSIONS, mission_number
from mastery.minigrid.play import pictures
from mastery.minigrid.rules import REWARDS, rewards
from mastery.minigrid.state import Level, State
from mastery.minigrid.tables import CELLS, tables_of
from mastery.minigrid.tasks import TASKS, task_id

_POOLS = 8  # of levels, made in one call
_NUMBERS = tuple(np.int64(n) for n in range(len(MISSIONS)))


def make(
    task: str,
    *,
    reward: str = "paper",
    edition: str = "3.2.0",
    observation: str = "dict",
    render_mode: str | None = None,
) -> MiniGridEnv:
    """Make one environment as a `gymnasium.Env`.

    It makes about twelve times as many steps per second as the `minigrid` package, in one process
    without threads: each step is looked up in tables that are made from the compiled rules. A loop
    over `make_vec` makes as many steps per second with 16 environments, and more with more: about
    ten times as many with 512 (see docs/results/environments.md).

    Args:
        task: A task name, with or without the package's `MiniGrid-` and `-v0`.
        reward: "paper" (1 − n/n_max) or "minigrid" (1 − 0.9 n/n_max), after n steps.
        edition: "3.2.0" (the package's rules and view) or "2018" (those of the paper's runs).
        observation: "dict" (image, direction and mission) or "image".
        render_mode: "rgb_array", or None if you do not call `render`.

    Returns:
        A `gymnasium.Env`.

    Raises:
        MasteryError: If an argument is invalid.

    Example:
        >>> env = make("Unlock")
        >>> observation, info = env.reset(seed=0)
    """
    return MiniGridEnv(
        task, reward=reward, edition=edition, observation=observation, render_mode=render_mode
    )


class MiniGridEnv(gymnasium.Env[Any, Any]):
    """The environment that `make` makes.

    Its episodes are those of `make_vec` with one environment and the same seed.
    """

    def __init__(
        self, task: str, *, reward: str, edition: str, observation: str, render_mode: str | None
    ) -> None:
        if not isinstance(task, str):
            raise MasteryError(f"one environment plays one task: give its name, not {task!r}")
        check_one("reward", reward, REWARDS)
        check_one("observation", observation, OBSERVATIONS)
        check_one("render_mode", render_mode, RENDER_MODES)
        self._task, self._edition = task_id(task), find_edition(edition)
        self._rewards = rewards(self._task, REWARDS[reward]).tolist()
        self._n_max = len(self._rewards) - 1
        self._image_only = observation == "image"
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
        self.render_mode = render_mode
        self.observation_space = observed(observation)
        self.action_space = spaces.Discrete(len(ACTIONS))
        self._tables = tables_of(self._edition)
        self._key: Array = None
        self._levels: list[tuple[NDArray[np.uint8], int, int, int]] = []  # reversed
        # the episode
        self._grid: NDArray[np.uint8] | None = None
        self._agent = self._direction = self._target = self._steps = 0
        self._carrying = EMPTY_CELL
        self._ended = False

    @property
    def state(self) -> State:
        """The engine's full state, which holds more than the observation, as NumPy arrays."""
        if self._grid is None:
            raise MasteryError("there is no episode yet: call reset() first")
        numbers = (np.int32(self._agent), np.int32(self._direction), np.uint8(self._target))
        rest = (np.int32(self._task), np.uint8(self._carrying), np.int32(self._steps))
        return State(self._grid.view("<u4").astype(np.uint32), *numbers, *rest)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or self._key is None:
            self._key = jax.random.key(int(seeding.np_random(seed)[0].integers(2**32)))
            self._levels = []
        if not self._levels:
            self._key, levels = _new_levels(self._key, self._task, self._edition)
            self._levels = _unpacked(levels)
        level, self._agent, self._direction, self._target = self._levels.pop()
        self._grid = level.copy()
        self._carrying, self._steps, self._ended = EMPTY_CELL, 0, False
        self._mission = _NUMBERS[int(mission_number(self._target))]
        return self._observation(self._grid), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        grid = self._grid
        if grid is None:
            raise MasteryError("there is no episode yet: call reset() first")
        number = _checked(action)
        if self._ended:
            raise MasteryError("the episode has ended: call reset()")
        tables = self._tables
        ahead = self._agent + tables.stride[self._direction]
        seen = grid.item(ahead)
        case = (number * CELLS + seen) * CELLS + self._carrying
        grid[ahead] = tables.left[case]
        self._carrying = tables.carrying[case]
        if tables.walks[case]:
            self._agent = ahead
        self._direction = tables.turned[number * 4 + self._direction]
        self._steps += 1
        reached = tables.touched[case] == self._target
        truncated = self._steps >= self._n_max
        self._ended = reached or truncated
        reward = self._rewards[self._steps] if reached else 0.0
        return self._observation(grid), reward, reached, truncated, {}

    def render(self) -> Any:
        if self.render_mode is None:
            raise MasteryError("to render, make the environment with render_mode='rgb_array'")
        states = State(*(x[None] for x in self.state))
        return next(pictures(states, with_view=False, edition=self._edition))

    def _observation(self, grid: NDArray[np.uint8]) -> Any:
        place = self._direction * 256 + self._agent
        image = self._tables.see(grid, place, self._carrying)
        if self._image_only:
            return image
        direction = _NUMBERS[self._direction]
        return {"image": image, "direction": direction, "mission": self._mission}


def observed(observation: str) -> spaces.Space[Any]:
    """The space of the observations of one environment."""
    image = spaces.Box(0, 10, (7, 7, 3), np.uint8)
    if observation == "image":
        return image
    return spaces.Dict(
        image=image, direction=spaces.Discrete(4), mission=spaces.Discrete(len(MISSIONS))
    )


def _checked(action: Any) -> int:
    number = as_array("action", action)
    if number.shape or number.dtype.kind not in "iu":
        raise MasteryError(f"an action must be a whole number, not {action!r}")
    if not 0 <= number < len(ACTIONS):
        raise MasteryError(
            f"the action is {number}: actions are 0 to {len(ACTIONS) - 1} ({', '.join(ACTIONS)})"
        )
    return int(number)


@partial(jax.jit, static_argnums=2)
def _new_levels(key: Array, task: int, edition: Edition) -> tuple[Array, Level]:
    """Several pools of levels, each as `make_vec` fills it, and the next key."""
    alone = (np.arange(len(TASKS)) == task).astype(np.float32)
    keys: Array
    key, keys = jax.lax.scan(lambda key, _: tuple(jax.random.split(key)), key, length=_POOLS)
    pools, _ = jax.vmap(lambda key: engine.reset(key, alone, 1, edition=edition))(keys)
    return key, jax.tree.map(lambda x: x.reshape(-1, *x.shape[3:]), pools.levels)


def _unpacked(levels: Level) -> list[tuple[NDArray[np.uint8], int, int, int]]:
    """The map, agent, direction and target of each level, the last one first."""
    grids = unpack(levels.grid).reshape(-1, 256)
    numbers = (levels.agent, levels.direction, levels.target)
    found = zip(grids, *(np.asarray(x).tolist() for x in numbers), strict=True)
    return list(found)[::-1]
