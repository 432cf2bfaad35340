"""Stable-Baselines3 trains on the engine."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from mastery import MasteryError
from mastery.adapters.stable_baselines3 import GymnasiumVecEnv
from mastery.minigrid import make_vec, plan
from mastery.minigrid.grid import unpack


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
        assert all(infos[n].keys() == {"task"} for n in np.flatnonzero(~done))
    assert found >= 16


def test_other_autoreset_modes_are_refused():
    with pytest.raises(MasteryError, match="autoreset_mode='SameStep'"):
        GymnasiumVecEnv(make_vec("Unlock", 2))


def test_a_seed_is_passed_on():
    envs = GymnasiumVecEnv(make_envs())
    envs.seed(3)
    first = envs.reset()["image"]
    other = envs.reset()["image"]
    envs.seed(3)
    assert np.array_equal(envs.reset()["image"], first)
    assert not np.array_equal(other, first)
    assert {row["task"] for row in envs.reset_infos} <= {0, 1}


def test_success_on_the_last_step_is_no_time_limit():
    inner = make_vec("Unlock", 1, autoreset_mode="SameStep")
    envs = GymnasiumVecEnv(inner)
    envs.reset()
    state = inner.state
    actions = plan(unpack(state.grid)[0], int(state.agent[0]), int(state.direction[0]),
                   int(state.target[0]))  # fmt: skip
    inner._state = state._replace(steps=state.steps + 288 - len(actions))
    for action in actions:
        _, rewards, done, infos = envs.step(np.array([action]))
    assert done[0]
    assert infos[0]["TimeLimit.truncated"] is False
    assert rewards[0] == 0  # 1 − 288 / 288, and yet a success


def test_wrappers_and_attributes():
    wrapped = RecordEpisodeStatistics(make_envs(statistics=False))
    envs = GymnasiumVecEnv(wrapped)
    envs.reset()
    rng = np.random.default_rng(0)
    rows = [row for _ in range(300) for row in envs.step(rng.integers(0, 7, 16))[3]]
    assert any("episode" in row for row in rows)
    assert envs.get_attr("tasks", np.int64(1)) == [("Unlock", "KeyCorridorS3R1")]
    envs.set_attr("probabilities", [0, 1])
    assert wrapped.unwrapped.probabilities.tolist() == [0, 1]
    with pytest.raises(MasteryError, match="cannot set 'probabilites'"):
        envs.set_attr("probabilites", [1, 0])
    with pytest.raises(MasteryError, match="indices must be None"):
        envs.set_attr("probabilities", [1, 0], indices=[0])
