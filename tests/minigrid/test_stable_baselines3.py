"""Stable-Baselines3 trains on the engine."""

from __future__ import annotations

import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from mastery import MasteryError
from mastery.adapters.stable_baselines3 import GymnasiumVecEnv
from mastery.minigrid import make_vec


def make_envs(**settings):
    return make_vec(["Unlock", "KeyCorridorS3R1"], 16, autoreset_mode="SameStep", **settings)


def test_ppo_trains_for_a_few_thousand_steps():
    envs = VecMonitor(GymnasiumVecEnv(make_envs()))
    model = PPO("MultiInputPolicy", envs, n_steps=64, batch_size=256, n_epochs=2, seed=0)
    before = {k: v.clone() for k, v in model.policy.state_dict().items()}
    model.learn(5_000)
    assert model.num_timesteps >= 5_000
    after = model.policy.state_dict()
    assert any(not (before[k] == after[k]).all() for k in before)
    assert len(model.ep_info_buffer) > 0  # episodes ended, and were seen to
    assert all(0 <= e["r"] <= 1 and 0 < e["l"] <= 288 for e in model.ep_info_buffer)


def test_images_alone_will_do_for_a_plain_network():
    model = PPO("MlpPolicy", GymnasiumVecEnv(make_envs(observation="image")), n_steps=16, seed=0)
    model.learn(512)


def test_the_end_of_an_episode_is_told_as_stable_baselines3_wants_it():
    envs = GymnasiumVecEnv(make_envs())
    envs.seed(0)
    envs.reset()
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(300):
        _, rewards, done, infos = envs.step(rng.integers(0, 7, 16))
        for n in np.flatnonzero(done):
            found += 1
            assert infos[n]["terminal_observation"]["image"].shape == (7, 7, 3)
            assert infos[n]["TimeLimit.truncated"] == (rewards[n] == 0)
            assert infos[n]["episode"]["r"] == rewards[n]
            assert infos[n]["task"] in (0, 1)
        assert all(not infos[n] for n in np.flatnonzero(~done))
    assert found >= 16


def test_other_autoreset_modes_are_refused():
    with pytest.raises(MasteryError, match="autoreset_mode='SameStep'"):
        GymnasiumVecEnv(make_vec("Unlock", 2))
