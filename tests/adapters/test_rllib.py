"""RLlib's episodes play the teacher's tasks, and each return is counted once."""

import warnings
from functools import partial
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mastery import Curriculum, MasteryError, Task, Teacher

with warnings.catch_warnings():  # what RLlib does when it is imported is its own affair
    warnings.simplefilter("ignore")
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    from mastery.adapters.rllib import CurriculumCallback

TASKS = Curriculum([Task("a", maximum=9), Task("b", maximum=9), Task("c", maximum=9)])
LENGTHS = {"a": 1, "b": 4, "c": 7}


class Steps(gym.Env):
    """An episode of a task has a fixed length and a reward of its own; `ended` is what happened."""

    observation_space = gym.spaces.Box(0, 1, (1,))
    action_space = gym.spaces.Discrete(2)
    ended: ClassVar[list[tuple[str, float]]] = []

    def __init__(self, config):
        self.task = "a"

    def reset(self, *, seed=None, options=None):
        self.playing, self.at, self.total = self.task, 0, 0.0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.at += 1
        reward = 0.25 * self.at + "abc".index(self.playing)
        self.total += reward
        over = self.at >= LENGTHS[self.playing]
        if over:
            self.ended.append((self.playing, self.total))
        return np.zeros(1, np.float32), reward, over, False, {}


class Recording(Teacher):
    """A teacher that writes down what it is told."""

    def __init__(self):
        super().__init__(TASKS, "uniform", seed=0)
        self.told = []

    def update(self, returns):
        self.told += returns.items()
        super().update(returns)

    def flush(self):
        pass


def runner(teacher, envs, env=Steps, **evaluation):
    callback = partial(CurriculumCallback, connect=lambda name: teacher)
    config = (
        PPOConfig()
        .environment(env)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=envs, rollout_fragment_length=10)
        .callbacks(callback)
    )
    config.in_evaluation = bool(evaluation)
    return SingleAgentEnvRunner(config=config)


@given(envs=st.integers(1, 4), samples=st.lists(st.integers(1, 30), min_size=1, max_size=5))
@settings(max_examples=12, deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_each_return_is_counted_once_however_episodes_are_cut(envs, samples):
    Steps.ended = []
    teacher = Recording()
    player = runner(teacher, envs)
    for number in samples:
        player.sample(num_timesteps=number, random_actions=True)
    assert sorted(teacher.told) == sorted(Steps.ended)
    player.stop()


@pytest.mark.filterwarnings("ignore")
def test_evaluation_is_left_alone():
    teacher = Recording()
    player = runner(teacher, 2, in_evaluation=True)
    player.sample(num_timesteps=20, random_actions=True)
    assert not teacher.told
    player.stop()


class Deaf(Steps):
    def __init__(self, config):
        pass


@pytest.mark.filterwarnings("ignore")
def test_an_environment_that_does_not_accept_the_task_is_named():
    player = runner(Recording(), 1, Deaf)
    with pytest.raises(MasteryError, match=r"\(Deaf\) does not accept a task"):
        player.sample(num_timesteps=5, random_actions=True)
