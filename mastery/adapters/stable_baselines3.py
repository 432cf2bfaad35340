"""Stable-Baselines3: train on a curriculum, or on any Gymnasium vector environment.

    envs = CurriculumVecEnv(make_env, teacher, num_envs=16)
    PPO("MlpPolicy", envs).learn(100_000, callback=CurriculumCallback(teacher, save="checkpoints"))

To resume after an interruption:

    saved = last_checkpoint("checkpoints")
    teacher = Teacher.load(saved.teacher)
    model = PPO.load(saved.model, CurriculumVecEnv(make_env, teacher, num_envs=16))
    model.learn(100_000, reset_num_timesteps=False, callback=…)
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.errors import CheckpointError, MasteryError, check_whole, needs
from mastery.teacher import Teacher

with needs("mastery.adapters.stable_baselines3", "sb3"):
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv

from gymnasium.vector import AutoresetMode, VectorEnv

from mastery.adapters.gymnasium import CurriculumVectorEnv
from mastery.adapters.ledger import Ledger
from mastery.adapters.task_env import MakeEnv
from mastery.adapters.trackers import scalars
from mastery.recording.adapters import Recording
from mastery.recording.recorder import Recorder

KEPT = 2  # checkpoints kept
COUNTERS = {"train/n_updates"}  # logged, and not worth a curve


class GymnasiumVecEnv(VecEnv):
    """A Gymnasium vector environment as a Stable-Baselines3 `VecEnv`.

    `get_attr`, `set_attr` and `env_method` act on the vector environment as a whole, not on its
    single environments; `get_attr` also finds attributes of its wrappers.

    Args:
        envs: The vector environment, with or without wrappers, in autoreset mode "SameStep".

    Raises:
        MasteryError: If the autoreset mode is not "SameStep".
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        if envs.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
            raise MasteryError(
                "Stable-Baselines3 needs environments that reset in the step that ends an episode; "
                "make them with autoreset_mode='SameStep'"
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
            self.reset_infos[n] = rows[n].copy()
            rows[n] |= _row(final, n)
            rows[n]["terminal_observation"] = final_observations[n]
            rows[n]["TimeLimit.truncated"] = bool(truncated[n] and not terminated[n])
        return observation, np.asarray(rewards, np.float32), done, rows

    def close(self) -> None:
        self.envs.close()

    def get_images(self) -> Sequence[Any]:
        return self.envs.render() or ()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        envs: Any = self.envs
        while not hasattr(envs, attr_name) and envs is not envs.unwrapped:
            envs = envs.env
        return [getattr(envs, attr_name)] * len(self._which(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        if indices is not None or not hasattr(self.envs.unwrapped, attr_name):
            raise MasteryError(
                f"cannot set {attr_name!r}: it must be an attribute of the vector environment, and "
                "indices must be None"
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
    """The infos of environment n, from those of its vector environment."""
    found: dict[str, Any] = {}
    for key, value in infos.items():
        if key.startswith("_") or not infos.get(f"_{key}", np.ones(n + 1))[n]:
            continue
        found[key] = _row(value, n) if isinstance(value, dict) else value[n]
    return found


class CurriculumVecEnv(GymnasiumVecEnv):
    """A Stable-Baselines3 `VecEnv` that plays the tasks a teacher draws.

    Args:
        make_env: As in `CurriculumEnv`.
        teacher: The teacher.
        num_envs: The number of environments.
        **settings: As in `CurriculumVectorEnv`, e.g. `vectorization_mode="async"`; the autoreset
            mode is always "SameStep".
    """

    def __init__(self, make_env: MakeEnv, teacher: Teacher, num_envs: int, **settings: Any) -> None:
        settings["autoreset_mode"] = AutoresetMode.SAME_STEP
        super().__init__(CurriculumVectorEnv(make_env, teacher, num_envs, **settings))


class CurriculumCallback(BaseCallback):
    """Updates the teacher, logs its mastery and probabilities, and saves it with the model.

    For on-policy algorithms (PPO, A2C) one rollout is one time-step of the teacher. For others a
    time-step is `update_every` environment steps, 2048 by default.

    Args:
        teacher: The teacher of the environments: one `CurriculumVecEnv` or several
            `CurriculumEnv`s.
        save: The folder for checkpoints; if None, none are saved. A checkpoint is two files,
            the model and the teacher; `last_checkpoint` finds both or neither. The last two
            checkpoints are kept.
        save_every: Steps between checkpoints. One more is saved at the end of training.
        record: A folder to record into, as with `mastery.record`, or the Recorder that it returned.
            The losses that Stable-Baselines3 logs are recorded too.

    Raises:
        MasteryError: If `save_every` is invalid; or, when training starts, the model's environments
            have no teacher or a different one.
        CheckpointError: If the folder cannot be written, or holds a checkpoint with more steps than
            the model.
    """

    def __init__(
        self,
        teacher: Teacher,
        save: str | Path | None = None,
        save_every: int = 50_000,
        record: str | Path | Recorder | None = None,
    ) -> None:
        super().__init__()
        self.teacher, self._ledger = teacher, Ledger.of(teacher)
        self._recording = Recording(teacher, record, "frames")
        self.folder = None if save is None else Path(save)
        self._save_every, self._saved_at = check_whole("save_every", save_every), 0

    @property
    def recorder(self) -> Recorder | None:
        """The recorder, if `record` was given."""
        return self._recording.recorder

    def _on_training_start(self) -> None:
        try:
            teachers = self.training_env.get_attr("teacher")
        except AttributeError:
            raise MasteryError(
                "the model's environments have no curriculum; make them with "
                "CurriculumVecEnv(make_env, teacher, num_envs)"
            ) from None
        if any(teacher is not self.teacher for teacher in teachers):
            raise MasteryError(
                "the callback and the model's environments have different teachers; give both the "
                "same one"
            )
        if isinstance(self.model, OnPolicyAlgorithm):
            self._ledger.every, self._ledger.patience = None, 0  # this callback updates it
        self._saved_at = self.num_timesteps
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise CheckpointError(f"cannot make {self.folder}: {error.strerror}") from None
            for found in _checkpoints(self.folder):
                if found.steps > self.num_timesteps:
                    raise CheckpointError(
                        f"{self.folder} holds a checkpoint with {found.steps} steps, and this "
                        f"model has {self.num_timesteps}; resume from it with last_checkpoint(), "
                        "or save to another folder"
                    )
        _ = self.recorder  # begins

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        if isinstance(self.model, OnPolicyAlgorithm):
            self._ledger.update()
        for key, value in scalars(self.teacher, self._ledger.last).items():
            # not printed: the table would be long, and it truncates names
            self.logger.record(f"curriculum_{key}", value, exclude=("stdout", "log"))
        self.logger.record("curriculum/mastery", float(np.mean([*self.teacher.mastery.values()])))
        self.logger.record("curriculum/time_steps", self.teacher.time_step)

    def _on_rollout_start(self) -> None:
        self._record_losses()
        # by now the model has learned from everything the teacher has seen
        if self.num_timesteps - self._saved_at >= self._save_every:
            self._save()

    def _on_training_end(self) -> None:
        self._ledger.flush()
        self._record_losses()
        self._save()
        self._recording.close()

    def _record_losses(self) -> None:
        """Record what the model has logged of its training since the last rollout."""
        if self.recorder is not None:
            logged = self.logger.name_to_value
            own = {k[6:]: v for k, v in logged.items() if k[:6] == "train/" and k not in COUNTERS}
            self.recorder.log(**own)

    def _save(self) -> None:
        self._saved_at = self.num_timesteps
        if self.folder is None:
            return
        saved = Checkpoint.at(self.folder, self.num_timesteps)
        self.teacher.save(saved.teacher)
        beside = saved.model.with_name(f".{saved.model.name}.{os.getpid()}.zip")
        try:
            self.model.save(beside)
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            beside.replace(saved.model)  # the checkpoint is now complete
        except OSError as error:
            raise CheckpointError(f"cannot write {saved.model}: {error.strerror}") from None
        finally:
            beside.unlink(missing_ok=True)
        for old in [c for c in _checkpoints(self.folder) if c.steps != saved.steps][KEPT - 1 :]:
            for path in (old.model, old.teacher):
                with contextlib.suppress(OSError):
                    path.unlink()


class Checkpoint(NamedTuple):
    """The files of a model and of the teacher saved with it.

    Attributes:
        steps: The number of environment steps the model was trained for.
        model: The model's file, for `PPO.load`.
        teacher: The teacher's file, for `Teacher.load`.
    """

    steps: int
    model: Path
    teacher: Path

    @classmethod
    def at(cls, folder: Path, steps: int) -> Checkpoint:
        """The files of a checkpoint with this many steps."""
        return cls(steps, folder / f"model_{steps}.zip", folder / f"teacher_{steps}.mastery")


def last_checkpoint(folder: str | Path) -> Checkpoint:
    """Find the last checkpoint that `CurriculumCallback` saved.

    Args:
        folder: The folder given to the callback as `save`.

    Returns:
        The checkpoint's step count and files.

    Raises:
        CheckpointError: If the folder holds no complete checkpoint.
    """
    for found in _checkpoints(Path(folder)):
        return found
    raise CheckpointError(
        f"there is no complete checkpoint in {folder}; CurriculumCallback(teacher, save=folder) "
        "writes them as model_STEPS.zip and teacher_STEPS.mastery"
    )


def _checkpoints(folder: Path) -> Iterator[Checkpoint]:
    """All complete checkpoints, latest first."""
    names = (re.fullmatch(r"model_(\d+)\.zip", path.name) for path in folder.glob("model_*.zip"))
    for steps in sorted((int(name[1]) for name in names if name), reverse=True):
        found = Checkpoint.at(folder, steps)
        if found.teacher.exists():
            yield found
