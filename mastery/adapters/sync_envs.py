"""SyncEnvs: Gymnasium's SyncVectorEnv with a faster step."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import concatenate, iterate

if TYPE_CHECKING:
    Base = SyncVectorEnv[Any, Any]
else:
    Base = SyncVectorEnv  # not generic before Gymnasium 1.4


class SyncEnvs(Base):
    """Like SyncVectorEnv, but faster.

    Each step starts from new arrays of zeros and writes only what happened, so an environment whose
    episode continues costs nothing extra, and no array is copied.
    """

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        observations = self._env_obs
        infos: dict[str, Any] = {}
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), bool)
        begins = self._autoreset_envs.tolist()
        each = zip(iterate(self.action_space, actions), self.envs, begins, strict=True)
        for i, (action, env, begin) in enumerate(each):
            if begin:
                assert self.autoreset_mode == AutoresetMode.NEXT_STEP, (
                    f"environment {i} must be reset"
                )
                observations[i], info = env.reset()
            else:
                observations[i], rewards[i], ended, cut, info = env.step(action)
                if ended or cut:
                    terminated[i], truncated[i] = ended, cut
                    if same_step:
                        final = {"final_obs": observations[i], "final_info": info}
                        infos = self._add_info(infos, final, i)
                        observations[i], info = env.reset()
            if info:
                infos = self._add_info(infos, info, i)
        if not same_step:
            self._autoreset_envs = terminated | truncated
        return self._together(), rewards, terminated, truncated, infos

    def _together(self) -> Any:
        """Stack the observations of all environments, into a new array if `copy` is set."""
        space, each, buffer = self.single_observation_space, self._env_obs, self._observations
        if type(space) is Box:  # same as np.stack at half the cost
            rows = [np.asarray(one)[None] for one in each]
            return np.concatenate(rows, out=np.empty_like(buffer) if self.copy else buffer)
        self._observations = concatenate(space, each, buffer)
        return deepcopy(self._observations) if self.copy else self._observations
