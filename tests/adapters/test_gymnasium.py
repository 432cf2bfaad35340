"""Environments that play a curriculum: every return reaches the teacher once, under its task."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

from mastery import Curriculum, MasteryError, Task, Teacher
from mastery.adapters.gymnasium import CurriculumEnv, CurriculumVectorEnv

NAMES = ("short", "middle", "long")
CURRICULUM = Curriculum(
    [
        Task("short", 0, 1, settings={"env": "CartPole-v1", "max_episode_steps": 5}),
        Task("middle", 0, 1, ("short",), settings={"env": "CartPole-v1", "max_episode_steps": 9}),
        Task("long", 0, 1, ("middle",), settings={"env": "CartPole-v1"}),
    ]
)
SPACE = gym.spaces.Box(-1e9, 1e9, (3,), np.float64)


class Diary(gym.Env):
    """Episodes of random length and reward that are written down, by the environment itself, in a
    file: that of another process if need be. Tasks differ in the length of their episodes."""

    observation_space, action_space = SPACE, gym.spaces.Discrete(2)

    def __init__(self, path, task=None):
        self.path, self.task, self.made_for = Path(path), task, task

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.made_for is None:
            self.task = options["task"]
        most = {"short": 2, "middle": 6, "long": 15}[self.task]
        self.left, self.total = int(self.np_random.integers(1, most + 1)), 0.0
        return self._seen(), {}

    def step(self, action):
        self.left -= 1
        reward = float(self.np_random.normal())
        self.total += reward
        truncated = self.left == 0 and bool(self.np_random.integers(2))
        if self.left == 0:
            with self.path.open("a") as file:
                file.write(json.dumps([self.task, self.total]) + "\n")
        return self._seen(), reward, self.left == 0 and not truncated, truncated, {}

    def _seen(self):
        return np.array([NAMES.index(self.task), self.left, self.total])


class Notes(Teacher):
    """A teacher that writes down what it is given."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.given = []

    def update(self, returns):
        self.given.append({task: list(values) for task, values in returns.items()})
        super().update(returns)

    def by_task(self):
        found = defaultdict(list)
        for step in self.given:
            for task, values in step.items():
                found[task] += values
        return {task: sorted(values) for task, values in found.items()}


def really(path):
    found = defaultdict(list)
    for line in path.read_text().splitlines():
        task, total = json.loads(line)
        found[task].append(total)
    return {task: sorted(values) for task, values in found.items()}


def play(envs, steps, random):
    """Random actions; under DISABLED what has ended is reset, and now and then more than that."""
    mode = envs.metadata["autoreset_mode"]
    seen, infos = envs.reset(seed=int(random.integers(1000)))
    before, over = infos["task"], np.zeros(envs.num_envs, bool)
    for _ in range(steps):
        if mode == AutoresetMode.DISABLED and over.any():
            seen, infos = envs.reset(
                options={"reset_mask": over | (random.random(over.shape) < 0.1)}
            )
            before = infos["task"]
        elif random.random() < 0.02:  # all are broken off
            seen, infos = envs.reset()
            before = infos["task"]
        seen, _, terminated, truncated, infos = envs.step(random.integers(2, size=envs.num_envs))
        over = terminated | truncated
        # what is seen is what the task in `infos` shows
        assert infos["task"].tolist() == [NAMES[int(x)] for x in seen[:, 0]]
        if mode == AutoresetMode.SAME_STEP and over.any():
            assert infos["final_info"]["task"][over].tolist() == before[over].tolist()
            assert infos["final_info"]["_task"].tolist() == over.tolist()
        else:
            assert (infos["task"] == before)[over].all()
        before = infos["task"]


MODES = list(AutoresetMode)


@settings(max_examples=60, deadline=None)
@given(
    mode=st.sampled_from(MODES),
    num_envs=st.integers(1, 7),
    steps=st.integers(1, 120),
    every=st.sampled_from([1, 13, 64, None]),
    by_options=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_what_the_teacher_gets_is_what_happened(
    tmp_path_factory, mode, num_envs, steps, every, by_options, seed
):
    path = tmp_path_factory.mktemp("diary") / "diary"
    path.touch()
    teacher = Notes(CURRICULUM, "mr", seed=seed)
    make = (lambda: Diary(path)) if by_options else partial(Diary, path)
    envs = CurriculumVectorEnv(
        make if by_options else lambda task: make(task),
        teacher,
        num_envs,
        autoreset_mode=mode,
        update_every=every,
    )
    play(envs, steps, np.random.default_rng(seed))
    envs.close()
    assert teacher.by_task() == really(path)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_in_processes_of_their_own(tmp_path, mode, context):
    path = tmp_path / "diary"
    teacher = Notes(CURRICULUM, "mr", seed=1)
    envs = CurriculumVectorEnv(
        partial(Diary, path),
        teacher,
        3,
        vectorization_mode="async",
        autoreset_mode=mode,
        update_every=20,
        context=context,
    )
    play(envs, 100, np.random.default_rng(0))
    envs.close()
    assert teacher.by_task() == really(path)
    assert len(teacher.by_task()) >= 2
    assert teacher.time_step >= 300 // 20
