"""Stable-Baselines3 on a Gymnasium vector environment.

envs = mastery.minigrid.make_vec("Unlock", 64, autoreset_mode="SameStep")
PPO("MultiInputPolicy", GymnasiumVecEnv(envs)).learn(100_000)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from mastery.errors import MasteryError

try:
    from stable_baselines3.common.vec_env import VecEnv
except ModuleNotFoundError:
    raise MasteryError("this needs Stable-Baselines3: pip install stable-baselines3") from None


class GymnasiumVecEnv(VecEnv):
    """A `gymnasium.vector.VectorEnv`, with or without wrappers, as Stable-Baselines3 wants it.

    Attributes and methods (`get_attr`, `set_attr`, `env_method`) are those of the vector
    environment itself, of all its environments together.
    """

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
        observation, infos = self.envs.reset(seed=self._seed)
        self._seed = None
        self.reset_infos = [_row(infos, n) for n in range(self.num_envs)]
        return observation

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        self._seed = seed
        return [seed] * self.num_envs

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        observation, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        done = terminated | truncated
        final = infos.pop("final_info", {})
        final_observations = infos.pop("final_obs", None)
        rows = [_row(infos, n) for n in range(self.num_envs)]
        for n in np.flatnonzero(done).tolist():
            rows[n] |= _row(final, n)
            rows[n]["terminal_observation"] = final_observations[n]
            rows[n]["TimeLimit.truncated"] = bool(truncated[n] and not terminated[n])
        return observation, np.asarray(rewards, np.float32), done, rows

    def close(self) -> None:
        self.envs.close()

    def get_images(self) -> Sequence[Any]:
        return self.envs.render() or ()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs.unwrapped, attr_name)] * len(self._which(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        if indices is not None or not hasattr(self.envs.unwrapped, attr_name):
            raise MasteryError(
                f"{attr_name!r} cannot be set: it must be an attribute of the vector environment, "
                "and be set for all of it"
            )
        setattr(self.envs.unwrapped, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        result = getattr(self.envs.unwrapped, method_name)(*args, **kwargs)
        return [result] * len(self._which(indices))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(self._which(indices))

    def _which(self, indices: Any) -> Any:
        return range(self.num_envs) if indices is None else np.atleast_1d(indices)


def _row(infos: dict[str, Any], n: int) -> dict[str, Any]:
    """What a vector environment's infos say of one environment."""
    found: dict[str, Any] = {}
    for key, value in infos.items():
        if key.startswith("_") or not infos.get(f"_{key}", np.ones(n + 1))[n]:
            continue
        found[key] = _row(value, n) if isinstance(value, dict) else value[n]
    return found
