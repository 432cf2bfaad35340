"""RLlib (new API stack): every episode plays a task that the shared teacher draws.

    RemoteTeacher.start(Teacher(curriculum, "mr", seed=0), folder)
    config = PPOConfig().environment(MyEnv).callbacks(CurriculumCallback)

The environment needs an attribute `task`, and plays that task from its next `reset` on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mastery.errors import MasteryError, needs

with needs("mastery.adapters.rllib", "rllib"):
    from ray.rllib.callbacks.callbacks import RLlibCallback

from mastery.adapters.ray import RemoteTeacher


class CurriculumCallback(RLlibCallback):
    """Draws a task before each training episode and sends the teacher the return at its end.

    Evaluation episodes are unaffected: they play the environment's default task. When an
    environment runner's `sample` returns, the teacher has acknowledged all its episodes. Each
    training result has the mastery and the probability of each task in `result["curriculum"]`.

    Args:
        name: The teacher's name. To set it, pass `partial(CurriculumCallback, name="other")`.
        connect: A function of the name that returns the teacher's connection.

    Raises:
        MasteryError: While training, if the environment has no attribute `task`.
    """

    def __init__(
        self, name: str = "teacher", connect: Callable[[str], Any] = RemoteTeacher
    ) -> None:
        self._name, self._connect = name, connect
        self._found: Any = None
        self._tasks: dict[int, str] = {}  # the task of each environment's current episode
        self._before: dict[str, float] = {}  # return so far of episodes split between samples

    @property
    def _teacher(self) -> Any:
        if self._found is None:
            self._found = self._connect(self._name)
        return self._found

    def on_episode_created(
        self,
        *,
        episode: Any,
        env_runner: Any = None,
        env: Any = None,
        env_index: int,
        **kwargs: Any,
    ) -> None:
        if not env_runner.config.in_evaluation:
            task = self._teacher.sample()
            _set_task(env, env_index, task)
            self._tasks[env_index] = task

    def on_episode_end(
        self, *, episode: Any, env_runner: Any = None, env_index: int, **kwargs: Any
    ) -> None:
        if not env_runner.config.in_evaluation:
            task = self._tasks[env_index]
            total = self._before.pop(episode.id_, 0.0) + float(episode.get_return())
            self._teacher.update({task: total}, cost={task: _length(episode)})

    def on_sample_end(self, *, env_runner: Any = None, samples: Any, **kwargs: Any) -> None:
        if not env_runner.config.in_evaluation:
            self._before = {
                part.id_: self._before.get(part.id_, 0.0) + float(part.get_return())
                for part in samples
                if not part.is_done
            }
            self._teacher.flush()

    def on_train_result(self, *, result: dict[str, Any], **kwargs: Any) -> None:
        result["curriculum"] = {
            "mastery": self._teacher.mastery,
            "probabilities": self._teacher.probabilities,
        }


def _set_task(env: Any, index: int, task: str) -> None:
    """Set an environment's task, whether it runs in this process or in its own."""
    envs = getattr(env, "envs", None)
    if envs is not None:
        if not envs[index].has_wrapper_attr("task"):
            raise _no_task(envs[index])
        envs[index].set_wrapper_attr("task", task)
    else:
        if not all(env.call("has_wrapper_attr", "task")):
            raise _no_task(env)
        tasks = list(env.get_attr("task"))
        tasks[index] = task
        env.set_attr("task", tasks)


def _no_task(env: Any) -> MasteryError:
    return MasteryError(
        f"the environment ({type(env.unwrapped).__name__}) has no attribute `task`; add one, and "
        "let reset() start that task"
    )


def _length(episode: Any) -> int:
    """The steps of a whole episode, of one agent or of several."""
    return int(episode.t if hasattr(episode, "t") else episode.env_t)
