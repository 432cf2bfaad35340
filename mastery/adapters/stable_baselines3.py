"""Stable-Baselines3 on any Gymnasium vector environment.

envs = mastery.minigrid.make_vec("Unlock", 64, autoreset_mode="SameStep")
PPO("MultiInputPolicy", GymnasiumVecEnv(envs)).learn(100_000)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from mastery.errors import MasteryError


class GymnasiumVecEnv(VecEnv):
    """A `gymnasium.vector.VectorEnv` as Stable-Baselines3 wants it."""

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        if envs.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
            raise MasteryError(
                "Stable-Baselines3 wants an episode's end and the next one's start in the same "
                "step: make the environments with autoreset_mode='SameStep'"
            )
        self.envs = envs
        self.render_mode = envs.render_mode
        self._actions: NDArray[Any] | None = None
        self._seed: int | None = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        observation, _ = self.envs.reset(seed=self._seed)
        self._seed = None
        return observation

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        self._seed = seed
        return [seed] * self.num_envs

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        observation, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        done = terminated | truncated
        rows: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for n in np.flatnonzero(done).tolist():
            row = _pick(infos.get("final_info", {}), n)
            row["terminal_observation"] = infos["final_obs"][n]
            row["TimeLimit.truncated"] = bool(truncated[n] and not terminated[n])
            rows[n] = row
        return observation, np.asarray(rewards, np.float32), done, rows

    def close(self) -> None:
        self.envs.close()

    def get_images(self) -> Sequence[Any]:
        return self.envs.render() or ()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(self._get_indices(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        result = getattr(self.envs, method_name)(*args, **kwargs)
        return [result] * len(self._get_indices(indices))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(self._get_indices(indices))

    def _get_indices(self, indices: Any) -> Any:
        if indices is None:
            return range(self.num_envs)
        return [indices] if isinstance(indices, int) else indices


def _pick(infos: dict[str, Any], n: int) -> dict[str, Any]:
    """What a vector environment's infos say of one environment."""
    found: dict[str, Any] = {}
    for key, value in infos.items():
        if key.startswith("_"):
            continue
        found[key] = _pick(value, n) if isinstance(value, dict) else value[n]
    return found
