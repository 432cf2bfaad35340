"""Stable-Baselines3 with a curriculum: what the teacher gets, what is logged, saved and resumed."""

from __future__ import annotations

import csv
from collections import defaultdict

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecMonitor

from mastery import CheckpointError, Curriculum, MasteryError, MasteryWarning, Task, Teacher
from mastery.adapters.gymnasium import CurriculumEnv
from mastery.adapters.stable_baselines3 import (
    CurriculumCallback,
    CurriculumVecEnv,
    last_checkpoint,
)

CURRICULUM = Curriculum([Task("short", 0, 10), Task("long", 0, 50, after=("short",))])


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_env(task):
    return gym.make("CartPole-v1", max_episode_steps={"short": 10, "long": 50}[task])


def ppo(envs, **settings):
    return PPO("MlpPolicy", envs, n_steps=32, batch_size=32, n_epochs=1, seed=0, **settings)


class Record(CurriculumCallback):
    """Also writes down what Stable-Baselines3 itself has seen of every episode (VecMonitor)."""

    def __init__(self, teacher, **settings):
        super().__init__(teacher, **settings)
        self.seen, self.given = [], []

    def _on_step(self):
        for info in self.locals["infos"]:
            if "episode" in info:
                self.now[info["task"]].append(float(info["episode"]["r"]))
        return super()._on_step()

    def _on_rollout_start(self):
        super()._on_rollout_start()
        self.now = defaultdict(list)

    def _on_rollout_end(self):
        super()._on_rollout_end()
        self.seen.append(dict(self.now))
        self.given.append(self._ledger.last)


def test_the_teacher_gets_what_stable_baselines3_sees_rollout_by_rollout():
    teacher = Teacher(CURRICULUM, "mr", seed=0)
    callback = Record(teacher)
    ppo(VecMonitor(CurriculumVecEnv(make_env, teacher, 4))).learn(640, callback=callback)
    assert len(callback.given) == teacher.time_step == 5
    assert callback.given == callback.seen
    assert all(callback.given)


@pytest.mark.parametrize("kind", ["vector", "many", "one"])
def test_all_kinds_of_environments(kind):
    teacher = Teacher(CURRICULUM, "uniform", seed=0)
    envs = {
        "vector": lambda: CurriculumVecEnv(make_env, teacher, 2, vectorization_mode="async"),
        "many": lambda: make_vec_env(lambda: CurriculumEnv(make_env, teacher), 2),
        "one": lambda: CurriculumEnv(make_env, teacher),
    }[kind]()
    model = ppo(envs)
    callback = CurriculumCallback(teacher)
    model.learn(256, callback=callback)
    assert teacher.time_step == 256 // (32 * model.n_envs)
    assert sum(map(len, callback._ledger.last.values())) > 0
    model.env.close()


def test_algorithms_without_rollouts_update_the_teacher_by_steps():
    teacher = Teacher(CURRICULUM, "uniform", seed=0)
    envs = CurriculumVecEnv(make_env, teacher, 2, update_every=100)
    DQN("MlpPolicy", envs, learning_starts=50, seed=0).learn(
        300, callback=CurriculumCallback(teacher)
    )
    assert teacher.time_step == 4  # three of 100 steps, and what was left at the end


def test_what_is_logged(tmp_path):
    teacher = Teacher(CURRICULUM, "mr", seed=0)
    model = ppo(CurriculumVecEnv(make_env, teacher, 2), verbose=1)
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(128, callback=CurriculumCallback(teacher))
    model.logger.close()
    *_, last = csv.DictReader((tmp_path / "progress.csv").read_text().splitlines())
    assert float(last["curriculum/time_steps"]) == 2
    for task in CURRICULUM.names:
        assert float(last[f"curriculum_probability/{task}"]) == pytest.approx(
            teacher.probabilities[task]
        )
        assert float(last[f"curriculum_mastery/{task}"]) == pytest.approx(teacher.mastery[task])


def test_resume_restores_model_and_teacher(tmp_path):
    teacher = Teacher(CURRICULUM, "mr", seed=0)
    model = ppo(CurriculumVecEnv(make_env, teacher, 2))
    callback = CurriculumCallback(teacher, save=tmp_path / "new" / "folder", save_every=64)
    model.learn(320, callback=callback)
    saved = last_checkpoint(tmp_path / "new" / "folder")
    assert saved.steps == 320
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 4  # two checkpoints of two files

    again = Teacher.load(saved.teacher, CURRICULUM)
    assert again.state_dict()["random"] == teacher.state_dict()["random"]
    assert again.explain().probability.tolist() == teacher.explain().probability.tolist()
    resumed = PPO.load(saved.model, CurriculumVecEnv(make_env, again, 2))
    for mine, theirs in zip(resumed.policy.parameters(), model.policy.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    more = CurriculumCallback(again, save=tmp_path / "new" / "folder", save_every=64)
    resumed.learn(128, callback=more, reset_num_timesteps=False)
    assert last_checkpoint(tmp_path / "new" / "folder").steps == 448
    assert again.time_step == teacher.time_step + 2


def test_a_checkpoint_is_whole_or_not_there(tmp_path):
    """A run is killed between the two files: the one before counts."""
    teacher = Teacher(CURRICULUM, "mr", seed=0)
    model = ppo(CurriculumVecEnv(make_env, teacher, 2))
    model.learn(128, callback=CurriculumCallback(teacher, save=tmp_path))
    teacher.save(tmp_path / "teacher_192.mastery")
    (tmp_path / ".model_192.zip.1.zip").write_bytes(b"half of a mod")
    assert last_checkpoint(tmp_path).steps == 128
    with pytest.raises(CheckpointError, match=r"a checkpoint with 128 steps.*this model has 0"):
        ppo(CurriculumVecEnv(make_env, teacher, 2)).learn(
            64, callback=CurriculumCallback(teacher, save=tmp_path)
        )
    with pytest.raises(CheckpointError, match="there is no complete checkpoint in"):
        last_checkpoint(tmp_path / "elsewhere")
    with pytest.raises(MasteryError, match="save_every is 0"):
        CurriculumCallback(teacher, save=tmp_path, save_every=0)


def test_environments_and_callback_must_have_the_same_teacher():
    one, other = (Teacher(CURRICULUM, seed=seed) for seed in range(2))
    with pytest.raises(MasteryError, match="have different teachers"):
        ppo(CurriculumVecEnv(make_env, one, 2)).learn(64, callback=CurriculumCallback(other))
    with pytest.raises(MasteryError, match="have no curriculum"):
        ppo(make_env("short")).learn(64, callback=CurriculumCallback(other))


def test_the_task_is_in_the_infos():
    """At the end of an episode it is the one that ended, as in all of this library's infos."""
    teacher = Teacher(CURRICULUM, "uniform", seed=0)
    envs = CurriculumVecEnv(make_env, teacher, 3)
    envs.reset()
    for _ in range(100):
        playing = [info["task"] for info in envs.reset_infos]
        _, _, _, infos = envs.step(np.zeros(3, int))
        assert [info["task"] for info in infos] == playing


class Steps(gym.Env):
    """Episodes with the given number of steps; 0 for episodes without end."""

    observation_space, action_space = gym.spaces.Box(0, 1, (1,)), gym.spaces.Discrete(2)

    def __init__(self, steps):
        self.steps = steps

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        return np.zeros(1, np.float32), 0.5, self.count == self.steps, False, {}


def test_episodes_that_never_end_give_a_warning():
    envs = CurriculumVecEnv(lambda task: Steps(0), Teacher(CURRICULUM, seed=0), 2)
    envs.reset()
    for _ in range(9_999):
        envs.step(np.zeros(2, int))
    with pytest.warns(MasteryWarning, match=r"no episode has ended in 10,000 .*max_episode_steps"):
        envs.step(np.zeros(2, int))


def test_a_callback_that_updates_after_long_rollouts_gives_no_warning():
    teacher = Teacher(CURRICULUM, seed=0)
    envs = CurriculumVecEnv(lambda task: Steps(1), teacher, 2, update_every=None)
    model = PPO("MlpPolicy", envs, n_steps=1024, batch_size=1024, n_epochs=1, seed=0)
    model.learn(2048, callback=CurriculumCallback(teacher))
    assert teacher.time_step == 1
