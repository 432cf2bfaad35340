"""SyncEnvs: Gymnasium's SyncVectorEnv, by a shorter way through a step."""

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
    Base = SyncVectorEnv  # before Gymnasium 1.4 it takes no types


class SyncEnvs(Base):
    """What SyncVectorEnv does, in less time.

    Each step begins with arrays in which nothing has ended, and writes into them only what has
    happened: so there is nothing to do for an environment that goes on, and no array to copy.
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
                assert self.autoreset_mode == AutoresetMode.NEXT_STEP, f"{i} has not been reset"
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
        """The observations of all environments as one: a new one each time if `copy` says so."""
        space, each, buffer = self.single_observation_space, self._env_obs, self._observations
        if type(space) is Box:  # as np.stack would do it, at half the cost
            rows = [np.asarray(one)[None] for one in each]
            return np.concatenate(rows, out=np.empty_like(buffer) if self.copy else buffer)
        self._observations = concatenate(space, each, buffer)
        return deepcopy(self._observations) if self.copy else self._observations
