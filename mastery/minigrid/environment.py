"""The engine as a single `gymnasium.Env`, for tools that need one."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from mastery.errors import MasteryError
from mastery.minigrid.vector import make_vec


def make(
    task: str,
    *,
    reward: str = "paper",
    edition: str = "3.2.0",
    observation: str = "dict",
    render_mode: str | None = None,
) -> MiniGridEnv:
    """Make one environment as a `gymnasium.Env`.

    It is slow, because each step is a compiled call of its own. Use `make_vec` for speed.

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
    """The environment that `make` makes."""

    def __init__(
        self, task: str, *, reward: str, edition: str, observation: str, render_mode: str | None
    ) -> None:
        if not isinstance(task, str):
            raise MasteryError(f"one environment plays one task: give its name, not {task!r}")
        self._envs = make_vec(
            task,
            1,
            reward=reward,
            edition=edition,
            observation=observation,
            render_mode=render_mode,
            autoreset_mode=AutoresetMode.DISABLED,
            statistics=False,
        )
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
        self.render_mode = render_mode
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        observation, _ = self._envs.reset(seed=seed)
        return self._first(observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, _ = self._envs.step(np.array([action]))
        return (
            self._first(observation),
            float(reward[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            {},
        )

    def render(self) -> Any:
        frames = self._envs.render()
        return frames[0] if frames else None

    def _first(self, observation: Any) -> Any:
        if isinstance(observation, dict):
            return {key: value[0] for key, value in observation.items()}
        return observation[0]
