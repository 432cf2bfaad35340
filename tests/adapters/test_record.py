"""What the adapters record is what their loops saw."""

from __future__ import annotations

import os
from collections import defaultdict

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor
from torch.utils.data import DataLoader, Dataset

import mastery
from mastery import Curriculum, MasteryError, Task, Teacher
from mastery.adapters.durable import DurableTeacher
from mastery.adapters.gymnasium import CurriculumEnv, CurriculumVectorEnv
from mastery.adapters.stable_baselines3 import (
    CurriculumCallback,
    CurriculumVecEnv,
    last_checkpoint,
)
from mastery.adapters.torch import CurriculumBatchSampler, by_task
from mastery.rundir.results import load_results

CURRICULUM = Curriculum([Task("short", 0, 10), Task("long", 0, 50, after=("short",))])


def make_teacher(seed=0):
    return Teacher(CURRICULUM, "mr", seed=seed)


def make_env(task):
    return gym.make("CartPole-v1", max_episode_steps={"short": 10, "long": 50}[task])


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def check(found, seen):
    """`seen` has, for each time-step, `{task: [return, …]}`."""
    assert len(found.steps) == len(seen)
    for point, returns in enumerate(seen):
        for place, task in enumerate(CURRICULUM.names):
            own = returns.get(task, [])
            assert found.episodes[point, 0, place] == len(own)
            if own:
                assert found.returns[point, 0, place] == pytest.approx(np.mean(own))


def test_gymnasium_counts_frames_and_ends_with_the_environments(tmp_path):
    teacher, seen = make_teacher(), []
    settings = {"update_every": None, "autoreset_mode": "SameStep"}
    envs = CurriculumVectorEnv(make_env, teacher, 3, record=tmp_path, **settings)
    envs.action_space.seed(0)
    envs.reset(seed=0)
    for _ in range(5):
        for _ in range(60):
            envs.step(envs.action_space.sample())
        seen.append(envs.update())
        assert load_results(tmp_path).training
    envs.recorder.note("half way")
    envs.close()
    envs.close()
    found = load_results(tmp_path)
    check(found, seen)
    # a CartPole episode has as many frames as its return
    assert found.frames[-1] == sum(sum(x) for returns in seen for x in returns.values())
    assert (found.unit, found.ended) == ("frames", "the loop ended")
    assert [remark.text for remark in found.remarks] == ["half way"]


def test_environments_that_share_a_teacher_share_its_recorder(tmp_path):
    teacher = make_teacher()
    one, two = (CurriculumEnv(make_env, teacher, record=tmp_path) for _ in range(2))
    for env in (one, two):
        env.reset(seed=0)
        while not any(env.step(env.action_space.sample())[2:4]):
            pass
    assert one.recorder is two.recorder
    one.close()
    assert load_results(tmp_path).training
    two.close()
    found = load_results(tmp_path)
    assert (found.episodes.sum(), found.ended) == (2, "the loop ended")


@pytest.mark.parametrize("by_folder", [False, True])
def test_a_recorder_of_your_own_stays_yours(tmp_path, by_folder):
    teacher = make_teacher()
    recorder = mastery.record(teacher, tmp_path, label="mine", total=500)
    env = CurriculumEnv(make_env, teacher, record=tmp_path if by_folder else recorder)
    env.reset()
    env.close()
    recorder.evaluate({"short": 10})
    recorder.close()
    found = load_results(tmp_path)
    assert (found.labels, found.total) == (("mine",), 500)


def test_wrong_use_is_named(tmp_path):
    with pytest.raises(MasteryError, match=r"record is 3; it must be a folder, or a Recorder"):
        CurriculumEnv(make_env, make_teacher(), record=3)
    recorder = mastery.record(make_teacher(), tmp_path)
    with pytest.raises(MasteryError, match="follows another teacher"):
        CurriculumEnv(make_env, make_teacher(), record=recorder)


class Watch(CurriculumCallback):
    """Also writes down what Stable-Baselines3 itself has seen and logged."""

    def __init__(self, teacher, **settings):
        super().__init__(teacher, **settings)
        self.seen, self.losses, self.now = [], [], defaultdict(list)

    def _on_step(self):
        for info in self.locals["infos"]:
            if "episode" in info:
                self.now[info["task"]].append(float(info["episode"]["r"]))
        return super()._on_step()

    def _on_rollout_end(self):
        super()._on_rollout_end()
        self.seen.append(dict(self.now))
        self.now.clear()

    def _on_rollout_start(self):
        super()._on_rollout_start()
        self._see_loss()

    def _on_training_end(self):
        self._see_loss()
        super()._on_training_end()

    def _see_loss(self):
        if "train/loss" in self.logger.name_to_value:
            self.losses.append(self.logger.name_to_value["train/loss"])


def test_stable_baselines3_with_its_losses_and_resumed(tmp_path):
    def envs(teacher):
        return VecMonitor(CurriculumVecEnv(make_env, teacher, 4))

    settings = {"save": tmp_path / "saved", "record": tmp_path / "runs"}
    teacher = make_teacher()
    model = PPO("MlpPolicy", envs(teacher), n_steps=32, batch_size=32, n_epochs=1, seed=0)
    first = Watch(teacher, **settings)
    model.learn(384, callback=first)
    saved = last_checkpoint(tmp_path / "saved")
    assert load_results(tmp_path / "runs").ended == "the loop ended"
    teacher = Teacher.load(saved.teacher)
    second = Watch(teacher, **settings)
    PPO.load(saved.model, envs(teacher)).learn(256, reset_num_timesteps=False, callback=second)
    found = load_results(tmp_path / "runs")
    check(found, first.seen + second.seen)
    assert found.steps.tolist() == [1, 2, 3, 4, 5]
    assert len(found.seeds) == 1
    assert "n_updates" not in found.scalars
    loss = found.scalars["loss"].values[:, 0]
    assert loss.tolist() == pytest.approx(first.losses + second.losses, rel=1e-6)


class Numbers(Dataset):
    task = ("short", "long") * 20

    def __len__(self):
        return 40

    def __getitem__(self, i):
        return i, self.task[i]


def batches(teacher, folder):
    sampler = CurriculumBatchSampler(Numbers(), teacher, 8, length=80, record=folder)
    return sampler, DataLoader(Numbers(), batch_sampler=sampler)


def test_pytorch_counts_examples_and_resumes_with_the_sampler(tmp_path):
    sampler, loader = batches(make_teacher(), tmp_path)
    seen = []
    for x, tasks in loader:
        seen.append(by_task(tasks, x / 4))
        sampler.update(seen[-1])
        sampler.recorder.log(loss=len(seen))
        if len(seen) == 6:
            state = sampler.state_dict()
        if len(seen) == 8:
            break
    sampler.recorder.close()  # as if it had been killed here
    del seen[6:]
    sampler, loader = batches(make_teacher(), tmp_path)
    sampler.load_state_dict(state)
    for x, tasks in loader:
        seen.append(by_task(tasks, x / 4))
        sampler.update(seen[-1])
    sampler.recorder.close()
    found = load_results(tmp_path)
    check(found, seen)
    assert len(found.seeds) == 1
    assert found.unit == "examples"
    assert found.frames.tolist() == [8 * n for n in range(1, 11)]
    assert found.scalars["loss"].values[:, 0].tolist() == [1, 2, 3, 4, 5, 6]


def test_pytorch_records_on_rank_0_only(tmp_path):
    for rank in (0, 1):
        settings = {"num_replicas": 2, "rank": rank, "record": tmp_path}
        sampler = CurriculumBatchSampler(Numbers(), make_teacher(), 4, **settings)
        assert (sampler.recorder is None) == (rank == 1)


def test_a_shared_teacher_records_from_its_checkpoint_on(tmp_path):
    """What is in the journal is played again, and recorded again, once."""
    recorded = tmp_path / "runs"
    updates = [{"short": [n / 2]} for n in range(20)]
    shared = DurableTeacher(tmp_path / "a", make_teacher(), every=8, record=recorded)
    shared.take("me", 0, updates[:8])
    shared.take("me", 8, updates[8:13])
    shared._recording._finish(None)  # as when the process is killed: what was written stays
    os.close(shared._journal)
    os.close(shared._lock)
    shared = DurableTeacher(tmp_path / "a", make_teacher(), every=8, record=recorded)
    shared.take("me", 10, updates[10:])
    shared.close()
    found = load_results(recorded)
    check(found, updates)
    assert len(found.seeds) == 1
    assert found.ended == "the loop ended"
