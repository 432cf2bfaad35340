"""The engine as a `gymnasium.vector.VectorEnv`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.errors import MasteryError, check_whole
from mastery.minigrid import engine
from mastery.minigrid.actions import ACTIONS
from mastery.minigrid.arguments import (
    OBSERVATIONS,
    RENDER_MODES,
    as_array,
    check_one,
    check_probabilities,
    resolve_tasks,
)
from mastery.minigrid.editions import Edition, find_edition
from mastery.minigrid.environment import observed
from mastery.minigrid.grid import Array
from mastery.minigrid.missions import mission_number
from mastery.minigrid.play import pictures
from mastery.minigrid.rules import REWARDS, StepResult, act
from mastery.minigrid.state import State
from mastery.minigrid.tasks import TASKS
from mastery.minigrid.vision import observe


def make_vec(
    tasks: str | Iterable[str] | Curriculum,
    num_envs: int,
    *,
    probabilities: Any = None,
    reward: str = "paper",
    edition: str = "3.2.0",
    observation: str = "dict",
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    statistics: bool = True,
    render_mode: str | None = None,
    ahead: int = engine.AHEAD,
) -> MiniGridVectorEnv:
    """Make a vector environment that draws the task of each episode from given probabilities.

    Args:
        tasks: Task names, with or without the package's `MiniGrid-` and `-v0`, or a curriculum
            whose tasks have such a name in `settings["env"]`.
        num_envs: Number of environments.
        probabilities: One per task, in the order of `tasks` or as {name: probability}, or one row
            per environment. Uniform by default. To change them later, set `envs.probabilities`
            (`envs.unwrapped.probabilities` if the environment is wrapped).
        reward: "paper" (1 − n/n_max) or "minigrid" (1 − 0.9 n/n_max), after n steps.
        edition: "3.2.0" (the package's rules and view) or "2018" (those of the paper's runs). For
            others see `mastery.minigrid.editions`.
        observation: "dict" (image, direction, and mission as an index into MISSIONS) or "image".
        autoreset_mode: Gymnasium's "NextStep", "SameStep" or "Disabled".
        statistics: Whether to report each finished episode's return, length and time in
            `infos["episode"]`. Turn it off to use Gymnasium's `RecordEpisodeStatistics`.
        render_mode: "rgb_array", or None if you do not call `render`.
        ahead: Levels to generate ahead per environment. More take more memory but need fewer
            refills.

    Returns:
        A `gymnasium.vector.VectorEnv`.

    Raises:
        MasteryError: If an argument is invalid.

    Example:
        >>> envs = make_vec(["Unlock", "UnlockPickup"], num_envs=1024)
        >>> envs = make_vec(Curriculum.load("key-corridor"), num_envs=64)
        >>> observations, infos = envs.reset(seed=0)
    """
    return MiniGridVectorEnv(
        tasks,
        num_envs,
        probabilities=probabilities,
        reward=reward,
        edition=edition,
        observation=observation,
        autoreset_mode=autoreset_mode,
        statistics=statistics,
        render_mode=render_mode,
        ahead=ahead,
    )


class MiniGridVectorEnv(VectorEnv[Any, Any, Any]):
    """The vector environment that `make_vec` makes.

    `infos["task"]` is each environment's task, as an index into `envs.tasks`. When an episode ends,
    `infos["episode"]` has its return `r`, length `l` and time `t`, and the mask `infos["_episode"]`
    marks its environment. With `AutoresetMode.SAME_STEP`, `infos["final_obs"]` and
    `infos["final_info"]` hold the observation and the infos from before the reset.
    """

    def __init__(
        self,
        tasks: str | Iterable[str] | Curriculum,
        num_envs: int,
        *,
        probabilities: Any,
        reward: str,
        edition: str,
        observation: str,
        autoreset_mode: AutoresetMode | str,
        statistics: bool,
        render_mode: str | None,
        ahead: int,
    ) -> None:
        check_whole("num_envs", num_envs)
        check_whole("ahead", ahead)
        check_one("reward", reward, REWARDS)
        check_one("observation", observation, OBSERVATIONS)
        check_one("render_mode", render_mode, RENDER_MODES)
        mode = _autoreset_mode(autoreset_mode)
        self._edition = find_edition(edition)
        self.tasks, self._ids = resolve_tasks(tasks)
        self._place = np.full(len(TASKS), -1)  # index into TASKS → index into `tasks`
        self._place[self._ids] = np.arange(len(self._ids))
        self.num_envs, self.render_mode, self._ahead = int(num_envs), render_mode, int(ahead)
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": 10,
            "autoreset_mode": mode,
        }
        self.single_observation_space = observed(observation)
        self.single_action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._mode, self._image_only, self._statistics = mode, observation == "image", statistics
        self._reward = REWARDS[reward]
        self._state: State | None = None
        self._pool: engine.Pool
        self._key: Array
        self._ended = np.zeros(self.num_envs, bool)
        self._began = np.zeros(self.num_envs)
        uniform = np.full(len(self.tasks), 1 / len(self.tasks))
        self._probabilities = uniform
        self._stale = False  # whether the pool was made with older probabilities
        if probabilities is not None:
            self.probabilities = probabilities

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Task probabilities for new episodes, in the order of `tasks`. Can be set at any time."""
        return self._probabilities.copy()

    @probabilities.setter
    def probabilities(self, value: Any) -> None:
        self._probabilities = check_probabilities(value, self.tasks, self._ids, self.num_envs)
        self._stale = True

    @property
    def state(self) -> State:
        """The engine's full state, which holds more than the observation."""
        if self._state is None:
            raise MasteryError("there is no episode yet: call reset() first")
        return self._state

    @property
    def reused(self) -> int:
        """Number of levels played twice: always 0, because the pool is refilled in time."""
        return int(self._pool.reuse()) if self._state is not None else 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes.

        Args:
            seed: One seed for all environments, 0 or greater.
            options: `{"reset_mask": mask}`, with a bool (num_envs,), resets only those environments
                where the mask is True.

        Returns:
            Observations and infos.

        Raises:
            MasteryError: If the seed or the mask is invalid.
        """
        if seed is not None:
            check_whole("seed", seed, 0)  # one for all environments
        mask = self._check_mask(options)
        super().reset(seed=None if seed is None else int(seed))
        if seed is not None or self._state is None:
            self._key = jax.random.key(int(self.np_random.integers(2**32)))
            self._stale = True
        if self._state is None or (seed is not None and mask.all()):
            self._pool, self._state = _reset(
                self._next_key(),
                self._all_probabilities(),
                self.num_envs,
                self._ahead,
                self._edition,
            )
            self._stale = False
        else:
            self._renew(mask)
        self._ended = self._ended & ~mask
        self._began[mask] = time.perf_counter()
        infos = self._infos(self._state) | {"_task": mask}
        return self._observation(self._state, _observe(self._state, self._edition)), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every environment; see `gymnasium.vector.VectorEnv.step`.

        Args:
            actions: (num_envs,) integers from 0 to 6; see `mastery.minigrid.actions`.

        Returns:
            Observations, rewards, terminations, truncations and infos.

        Raises:
            MasteryError: If an action is invalid, or if an episode has ended and autoreset is
                disabled.
        """
        state = self.state
        actions = self._check_actions(actions)
        fresh = np.zeros(self.num_envs, bool)  # where this step only begins an episode
        if self._ended.any():
            if self._mode == AutoresetMode.DISABLED:
                raise MasteryError(
                    f"the episode of environment {int(self._ended.argmax())} has ended; reset it "
                    "with reset(options={'reset_mask': ...}), or choose another autoreset_mode"
                )
            if self._mode == AutoresetMode.NEXT_STEP:
                fresh = self._ended
                self._renew(fresh)
                self._began[fresh] = time.perf_counter()
                state = self.state
        after, outcome, seen = _act(state, actions, fresh, self._reward, self._edition)
        self._state = after
        rewards = np.array(outcome.reward, np.float64)  # the dtype of Gymnasium's own environments
        terminated, truncated = np.array(outcome.terminated), np.array(outcome.truncated)
        ended = terminated | truncated
        observation, infos = self._observation(after, seen), self._infos(after)
        if ended.any():
            episode = self._episode(ended, rewards, np.asarray(after.steps))
            if self._mode == AutoresetMode.SAME_STEP:
                infos = self._reset_at_once(ended, observation, infos, episode)
                observation = self._observation(self.state, _observe(self.state, self._edition))
            if self._statistics:
                infos |= {"episode": episode, "_episode": ended.copy()}
        self._ended = ended if self._mode != AutoresetMode.SAME_STEP else np.zeros_like(ended)
        return observation, rewards, terminated, truncated, infos

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Draw the whole map of each environment, with what the agent sees highlighted."""
        if self.render_mode is None:
            raise MasteryError("to render, make the environments with render_mode='rgb_array'")
        return tuple(pictures(self.state, with_view=False, edition=self._edition))

    def _renew(self, mask: NDArray[np.bool_]) -> None:
        """Begin episodes where the mask is True, on levels not played before."""
        if self._stale or (np.asarray(self._pool.taken)[mask] >= self._ahead).any():
            self._pool = _refill(
                self._next_key(), self._pool, self._all_probabilities(), self._edition
            )
            self._stale = False
        self._state, self._pool = _renew(self.state, self._pool, mask)

    def _reset_at_once(
        self, ended: NDArray[np.bool_], observation: Any, infos: dict[str, Any], episode: Any
    ) -> dict[str, Any]:
        final_obs = np.full(self.num_envs, None, object)
        for n in np.flatnonzero(ended):
            final_obs[n] = (
                observation[n] if self._image_only else {k: v[n] for k, v in observation.items()}
            )
        final_info = {key: value for key, value in infos.items() if not key.startswith("_")}
        if self._statistics:
            final_info["episode"] = episode
        final_info |= {f"_{key}": ended.copy() for key in tuple(final_info)}
        self._renew(ended)
        self._began[ended] = time.perf_counter()
        return self._infos(self.state) | {
            "final_obs": final_obs,
            "_final_obs": ended.copy(),
            "final_info": final_info,
            "_final_info": ended.copy(),
        }

    def _episode(self, ended: Any, rewards: Any, steps: Any) -> dict[str, NDArray[Any]]:
        lasted = np.round(time.perf_counter() - self._began, 6)
        return {
            "r": np.where(ended, rewards, 0.0),
            "l": np.where(ended, steps, 0).astype(np.int64),
            "t": np.where(ended, lasted, 0.0),
        }

    def _observation(self, state: State, image: Array) -> Any:
        seen = np.array(image)  # a copy: the caller may change it
        if self._image_only:
            return seen
        return {
            "image": seen,
            "direction": np.array(state.direction, np.int64),
            "mission": np.asarray(mission_number(np.asarray(state.target)), np.int64),
        }

    def _infos(self, state: State) -> dict[str, Any]:
        tasks = self._place[np.asarray(state.task)]
        return {"task": tasks, "_task": np.ones(self.num_envs, bool)}

    def _all_probabilities(self) -> NDArray[np.float32]:
        """The probabilities of all eighteen tasks, which the engine expects."""
        p = np.zeros((*self._probabilities.shape[:-1], len(TASKS)), np.float32)
        p[..., self._ids] = self._probabilities
        return p

    def _next_key(self) -> Array:
        self._key, key = jax.random.split(self._key)
        return key

    def _check_mask(self, options: Any) -> NDArray[np.bool_]:
        if not isinstance(options, Mapping | None):
            raise MasteryError(f"options must be a dictionary, not {options!r}")
        if options is None or options.get("reset_mask") is None:
            return np.ones(self.num_envs, bool)
        mask = as_array("options['reset_mask']", options["reset_mask"])
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise MasteryError(
                f"options['reset_mask'] must be {self.num_envs} booleans, one for each "
                f"environment, not {mask.dtype} of shape {mask.shape}"
            )
        if not mask.any():
            raise MasteryError("options['reset_mask'] has no True: there is nothing to reset")
        return mask.copy()

    def _check_actions(self, actions: Any) -> NDArray[np.int32]:
        given = as_array("actions", actions)
        if given.shape != (self.num_envs,) or given.dtype.kind not in "iu":
            raise MasteryError(
                f"actions must be {self.num_envs} whole numbers, one for each environment, not "
                f"{given.dtype} of shape {given.shape}"
            )
        wrong = (given < 0) | (given >= len(ACTIONS))
        if wrong.any():
            n = int(wrong.argmax())
            raise MasteryError(
                f"the action of environment {n} is {given[n]}: actions are 0 to "
                f"{len(ACTIONS) - 1} ({', '.join(ACTIONS)})"
            )
        return given.astype(np.int32)


_reset = jax.jit(engine.reset, static_argnums=(2, 3, 4))
_refill = jax.jit(engine.refill, static_argnums=3)
_renew = jax.jit(engine.renew)
_observe = jax.jit(observe, static_argnums=1)


@partial(jax.jit, static_argnums=4)
def _act(
    state: State, actions: Array, fresh: Array, reward: int, edition: Edition
) -> tuple[State, StepResult, Array]:
    """Step every environment except the `fresh` ones, which have just begun an episode."""
    after, outcome = act(state, actions, reward, edition)

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(fresh.reshape(-1, *[1] * (new.ndim - 1)), old, new)

    after = jax.tree.map(choose, after, state)
    outcome = outcome._replace(
        reward=jnp.where(fresh, jnp.float32(0), outcome.reward),
        terminated=outcome.terminated & ~fresh,
        truncated=outcome.truncated & ~fresh,
    )
    return after, outcome, observe(after, edition)


def _autoreset_mode(value: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(value)
    except ValueError:
        known = ", ".join(repr(m.value) for m in AutoresetMode)
        raise MasteryError(f"autoreset_mode is {value!r}; choose from {known}") from None
