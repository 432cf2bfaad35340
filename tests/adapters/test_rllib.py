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

    def update(self, returns, *, cost=None):
        self.told += returns.items()
        assert cost.keys() == returns.keys()
        assert min(cost.values()) >= 1
        super().update(returns, cost=cost)

    def flush(self):
        pass


def runner(teacher, envs, env=Steps, *, mode="sync", evaluation=False):
    callback = partial(CurriculumCallback, connect=lambda name: teacher)
    config = (
        PPOConfig()
        .environment(env)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=envs, gym_env_vectorize_mode=mode)
        .callbacks(callback)
    )
    config.in_evaluation = evaluation
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
    player = runner(teacher, 2, evaluation=True)
    player.sample(num_timesteps=20, random_actions=True)
    assert not teacher.told
    player.stop()


@pytest.mark.filterwarnings("ignore")
def test_environments_in_processes_of_their_own_are_told_their_task():
    """By what the episodes say themselves: the first reward of a task is its own."""
    teacher = Recording()
    player = runner(teacher, 2, mode="async")
    parts = {}
    for number in (7, 20):
        for part in player.sample(num_timesteps=number, random_actions=True):
            parts.setdefault(part.id_, []).append(part)
    ended = []
    for pieces in parts.values():
        rewards = np.concatenate([piece.get_rewards() for piece in pieces])
        if pieces[-1].is_done:
            ended.append(("abc"[int(rewards[0] - 0.25)], float(rewards.sum())))
    assert len({task for task, _ in ended}) > 1
    assert sorted(teacher.told) == sorted(ended)
    player.stop()


class Deaf(Steps):
    def __init__(self, config):
        pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("mode", "name"), [("sync", "Deaf"), ("async", "AsyncVectorEnv")])
def test_an_environment_that_does_not_accept_the_task_is_named(mode, name):
    player = runner(Recording(), 1, Deaf, mode=mode)
    with pytest.raises(MasteryError, match=rf"\({name}\) has no attribute `task`"):
        player.sample(num_timesteps=5, random_actions=True)
