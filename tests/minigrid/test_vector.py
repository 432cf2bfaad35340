"""The engine as Gymnasium sees it."""

from __future__ import annotations

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from mastery import Curriculum, MasteryError, Teacher
from mastery.minigrid import NAMES, TASKS, make, make_vec
from mastery.minigrid.exchange import from_package, to_package
from mastery.minigrid.grid import unpack
from mastery.minigrid.missions import MISSIONS
from mastery.minigrid.planner import plan

MODES = tuple(AutoresetMode)


def one(state, n):
    return jax.tree.map(lambda x: np.asarray(x)[n], state)


def solution(state, n):
    s = one(state, n)
    args = (int(s.agent), int(s.direction), int(s.target), int(s.carrying))
    return plan(unpack(s.grid), *args)


def expert(envs):
    """Actions that solve every environment, made anew for each episode."""
    todo = [[] for _ in range(envs.num_envs)]

    def actions(begun):
        for n in np.flatnonzero(begun):
            todo[n] = solution(envs.state, n)
        return np.array([plan.pop(0) if plan else 6 for plan in todo])

    return actions


@pytest.mark.parametrize("observation", ["dict", "image"])
def test_one_environment_passes_gymnasiums_checker(observation):
    with pytest.warns(UserWarning, match="not having a spec"):
        check_env(make("Unlock", observation=observation, render_mode="rgb_array"))


def test_a_vector_of_environments_has_gymnasiums_spaces_and_shapes():
    envs = make_vec(["Unlock", "KeyCorridorS3R1"], 5)
    observation, infos = envs.reset(seed=0)
    assert envs.observation_space.contains(observation)
    assert observation["image"].shape == (5, 7, 7, 3)
    assert infos["task"].shape == (5,)
    for _ in range(20):
        actions = envs.action_space.sample()
        observation, rewards, terminated, truncated, infos = envs.step(actions)
        assert envs.observation_space.contains(observation)
        assert rewards.shape == terminated.shape == truncated.shape == (5,)
        assert terminated.dtype == truncated.dtype == bool
    envs.close()


def test_its_steps_are_the_packages():
    """Whole episodes, observation by observation, in the package and in the vector environment."""
    names = ["UnlockPickup", "KeyCorridorS3R2", "ObstructedMaze-2Dlhb"]
    envs = make_vec(names, 6, reward="minigrid", autoreset_mode="Disabled")
    envs.reset(seed=3)
    theirs = [to_package(one(envs.state, n)) for n in range(6)]
    plans = [solution(envs.state, n) for n in range(6)]
    for t in range(max(map(len, plans))):
        alive = [n for n in range(6) if t < len(plans[n])]
        actions = np.array([p[t] if t < len(p) else 6 for p in plans])
        mask = np.array([n not in alive for n in range(6)])
        if mask.any():
            envs.reset(options={"reset_mask": mask})
        observation, rewards, terminated, truncated, _ = envs.step(actions)
        for n in alive:
            seen, reward, ended, cut, _ = theirs[n].step(int(actions[n]))
            assert np.array_equal(observation["image"][n], seen["image"])
            assert observation["direction"][n] == seen["direction"]
            assert MISSIONS[observation["mission"][n]] == seen["mission"]
            assert rewards[n] == np.float32(reward)
            assert (terminated[n], truncated[n]) == (ended, cut)
            assert ended == (t == len(plans[n]) - 1)


def test_the_same_seed_gives_the_same_episodes():
    def run(seed):
        envs = make_vec(["Unlock", "ObstructedMaze-1Dl"], 4, ahead=1)
        rng = np.random.default_rng(0)
        seen = [envs.reset(seed=seed)[0]["image"]]
        for _ in range(300):
            seen.append(envs.step(rng.integers(0, 7, 4))[0]["image"])
        return np.stack(seen)

    assert np.array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))


@pytest.mark.parametrize("mode", MODES)
def test_episodes_begin_and_end_as_the_autoreset_mode_says(mode):
    envs = make_vec(["Unlock", "UnlockPickup"], 8, autoreset_mode=mode)
    assert envs.metadata["autoreset_mode"] == mode
    envs.reset(seed=0)
    act = expert(envs)
    begun, before, lengths, episodes = np.ones(8, bool), np.zeros(8, bool), np.zeros(8, int), 0
    for _ in range(120):
        actions = act(begun)
        observation, rewards, terminated, truncated, infos = envs.step(actions)
        ended = terminated | truncated
        if mode == AutoresetMode.NEXT_STEP:
            assert not ended[before].any()  # that step only began the episode
            assert (rewards[before] == 0).all()
            assert (np.asarray(envs.state.steps)[before] == 0).all()
            lengths += ~before
        else:
            lengths += 1
        assert (rewards[ended] > 0).all()
        if ended.any():
            assert np.array_equal(infos["_episode"], ended)
            assert np.array_equal(infos["episode"]["r"][ended], rewards[ended])
            assert np.array_equal(infos["episode"]["l"][ended], lengths[ended])
            assert (infos["episode"]["r"][~ended] == 0).all()
            assert ((infos["episode"]["t"] >= 0) & (infos["episode"]["t"] < 120)).all()
            episodes += int(ended.sum())
        else:
            assert "episode" not in infos
        if mode == AutoresetMode.SAME_STEP and ended.any():
            assert np.array_equal(infos["_final_obs"], ended)
            for n in range(8):
                assert (infos["final_obs"][n] is not None) == ended[n]
            n = int(ended.argmax())
            assert envs.single_observation_space.contains(infos["final_obs"][n])
            assert infos["final_info"]["episode"]["r"][n] == rewards[n]
            assert np.asarray(envs.state.steps)[n] == 0
        if mode == AutoresetMode.DISABLED and ended.any():
            with pytest.raises(MasteryError, match="has ended; reset it"):
                envs.step(actions)
            fresh, _ = envs.reset(options={"reset_mask": ended})
            assert np.array_equal(fresh["image"][~ended], observation["image"][~ended])
        lengths[ended] = 0
        before = ended
        # the step after an end does not count, and the expert plans when it has been made
        next_step = mode == AutoresetMode.NEXT_STEP
        begun = np.asarray(envs.state.steps) == 0 if next_step else ended
    assert episodes > 20
    assert envs.reused == 0


def test_the_final_observation_is_the_one_without_a_reset():
    a = make_vec("Unlock", 4, autoreset_mode="SameStep")
    b = make_vec("Unlock", 4, autoreset_mode="Disabled")
    a.reset(seed=5), b.reset(seed=5)
    act = expert(a)
    begun, found = np.ones(4, bool), 0
    for _ in range(25):
        actions = act(begun)
        begun = np.zeros(4, bool)
        (_, _, end, _, infos), (seen, *_) = a.step(actions), b.step(actions)
        if end.any():
            for n in np.flatnonzero(end):
                for key in ("image", "direction", "mission"):
                    assert np.array_equal(infos["final_obs"][n][key], seen[key][n])
                found += 1
            break
    assert found


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_its_statistics_are_those_of_gymnasiums_wrapper(mode):
    ours = make_vec("KeyCorridorS3R1", 4, autoreset_mode=mode)
    theirs = RecordEpisodeStatistics(
        make_vec("KeyCorridorS3R1", 4, autoreset_mode=mode, statistics=False)
    )
    rng = np.random.default_rng(0)
    ours.reset(seed=0), theirs.reset(seed=0)
    for _ in range(600):
        actions = rng.integers(0, 7, 4)
        (*_, a), (*_, b) = ours.step(actions), theirs.step(actions)
        assert ("episode" in a) == ("episode" in b)
        if "episode" in a:
            assert np.array_equal(a["_episode"], b["_episode"])
            assert np.array_equal(a["episode"]["l"], b["episode"]["l"])
            assert np.allclose(a["episode"]["r"], b["episode"]["r"])
    assert theirs.episode_count >= 4


def test_tasks_follow_the_probabilities():
    envs = make_vec(NAMES, 4000, probabilities={"Unlock": 1, "ObstructedMaze-Full": 3}, ahead=1)
    _, infos = envs.reset(seed=0)
    counts = np.bincount(infos["task"], minlength=18)
    assert set(np.flatnonzero(counts)) == {0, 17}
    assert abs(counts[17] / 4000 - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 4000)
    envs.probabilities = np.eye(18)[5]
    envs.reset()
    assert (envs.reset()[1]["task"] == 5).all()


def test_new_probabilities_hold_for_the_next_episode_to_begin():
    envs = make_vec(["Unlock", "UnlockPickup"], 16, probabilities=[1, 0], ahead=8)
    _, infos = envs.reset(seed=0)
    act = expert(envs)
    assert (infos["task"] == 0).all()
    envs.probabilities = {"UnlockPickup": 1.0}
    for _ in range(30):
        *_, infos = envs.step(act(np.asarray(envs.state.steps) == 0))
        first = infos["task"] == 0
        assert (np.asarray(envs.state.task) == infos["task"]).all()
    assert not first.all()  # some have gone on, and all of those to the new task


def test_each_environment_can_have_its_own_probabilities():
    envs = make_vec(["Unlock", "UnlockPickup"], 3, probabilities=[[1, 0], [0, 1], [2, 0]])
    assert envs.reset(seed=0)[1]["task"].tolist() == [0, 1, 0]


def test_a_teacher_drives_it():
    curriculum = Curriculum.load("key-corridor")
    teacher = Teacher(curriculum, seed=0)
    envs = make_vec(curriculum, 8, probabilities=teacher.distribution, autoreset_mode="SameStep")
    assert envs.tasks == tuple(curriculum.names)
    _, infos = envs.reset(seed=0)
    act = expert(envs)
    begun, returns = np.ones(8, bool), {}
    for t in range(120):
        *_, infos = envs.step(act(begun))
        begun = infos.get("_episode", np.zeros(8, bool))
        for n in np.flatnonzero(begun):
            task = envs.tasks[infos["final_info"]["task"][n]]
            returns.setdefault(task, []).append(float(infos["episode"]["r"][n]))
        if t % 30 == 29 and returns:
            teacher.update(returns)
            envs.probabilities = teacher.distribution
            returns = {}
    assert teacher.mastery[curriculum.names[0]] > 0


def test_frames_are_the_packages():
    envs = make_vec(NAMES, 18, probabilities=np.eye(18), render_mode="rgb_array")
    envs.reset(seed=0)
    frames = envs.render()
    for n in (0, 4, 17):
        theirs = to_package(one(envs.state, n)).get_frame(tile_size=32)
        assert np.array_equal(frames[n], theirs)


def test_its_state_comes_back_from_the_package():
    envs = make_vec(NAMES, 18, probabilities=np.eye(18))
    envs.reset(seed=1)
    for n in range(18):
        state = one(envs.state, n)
        env = to_package(state)
        again = from_package(gymnasium.Wrapper(env), TASKS[n].id)
        assert all(np.array_equal(a, b) for a, b in zip(state, again, strict=True))


def test_a_task_is_known_by_all_its_names():
    envs = make_vec(["MiniGrid-Unlock-v0", "UnlockPickup"], 2)
    envs.probabilities = {"Unlock": 1, "MiniGrid-UnlockPickup-v0": 3}
    assert envs.probabilities.tolist() == [0.25, 0.75]
    envs.probabilities = [1e308, 1e308]
    assert envs.probabilities.tolist() == [0.5, 0.5]


def test_the_papers_reward_is_the_default():
    for settings, share in (({}, 1.0), ({"reward": "minigrid"}, 0.9)):
        envs = make_vec("Unlock", 1, autoreset_mode="SameStep", **settings)
        envs.reset(seed=0)
        actions = solution(envs.state, 0)
        for action in actions:
            _, rewards, *_ = envs.step([action])
        assert rewards[0] == np.float32(1 - share * (len(actions) / 288))


def test_the_final_infos_are_of_the_episode_that_ended():
    envs = make_vec(["Unlock", "KeyCorridorS3R1"], 8, autoreset_mode="SameStep")
    _, infos = envs.reset(seed=0)
    act, begun, changed = expert(envs), np.ones(8, bool), 0
    for _ in range(60):
        playing = infos["task"]
        _, _, begun, _, infos = envs.step(act(begun))
        if begun.any():
            assert np.array_equal(infos["final_info"]["task"][begun], playing[begun])
            changed += int((infos["task"][begun] != playing[begun]).sum())
    assert changed  # another task followed


def test_a_seed_with_a_mask_gives_the_same_levels_again():
    envs = make_vec("Unlock", 4)
    envs.reset(seed=0)
    mask = np.array([True, False, True, False])
    first, infos = envs.reset(seed=7, options={"reset_mask": mask})
    assert np.array_equal(infos["_task"], mask)
    again, _ = envs.reset(seed=7, options={"reset_mask": mask})
    assert np.array_equal(first["image"], again["image"])
    other, _ = envs.reset(options={"reset_mask": mask})
    assert not np.array_equal(again["image"][mask], other["image"][mask])


class TestBadInput:
    def refuses(self, text, **settings):
        settings = {"tasks": "Unlock", "num_envs": 2} | settings
        with pytest.raises(MasteryError, match=text):
            make_vec(settings.pop("tasks"), settings.pop("num_envs"), **settings)

    def test_tasks(self):
        self.refuses("did you mean 'UnlockPickup'", tasks="UnlockPikup")
        self.refuses("did you mean 'KeyCorridorS3R2'", tasks=["Unlock", "KeyCoridorS3R2"])
        self.refuses("there is version 1", tasks="MiniGrid-ObstructedMaze-Full-v0")
        self.refuses("name at least one", tasks=[])
        self.refuses("tasks must be names", tasks=5)
        with pytest.raises(MasteryError, match="one environment plays one task"):
            make(["Unlock"])
        self.refuses("is there twice", tasks=["Unlock", "MiniGrid-Unlock-v0"])
        self.refuses("has no environment", tasks=Curriculum.load("addition-3"))

    def test_numbers(self):
        for num_envs in (0, -1, 1.5, "8", None, True):
            self.refuses("num_envs is", num_envs=num_envs)
        self.refuses("ahead is 0", ahead=0)

    def test_choices(self):
        self.refuses("did you mean 'minigrid'", reward="minigird")
        self.refuses("did you mean 'image'", observation="imag")
        self.refuses("did you mean 'rgb_array'", render_mode="rgb-array")
        self.refuses("choose from 'NextStep', 'SameStep', 'Disabled'", autoreset_mode="same")

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ([0.5, 0.5, 0.0], r"shape \(3,\): give one for each of the 2 tasks"),
            (1.0, r"shape \(\)"),
            ([[1, 0]] * 5, r"shape \(5, 2\)"),
            ([1.5, -0.5], "a probability is -0.5"),
            ([np.nan, 1], "a probability is nan"),
            ([np.inf, 1], "a probability is inf"),
            ([0, 0], "all probabilities are zero"),
            (["a", "b"], "must be numbers"),
            ({"Unlok": 1}, "did you mean 'Unlock'"),
            ({"KeyCorridorS3R1": 1}, "there is no task 'KeyCorridorS3R1' here"),
            ({5: 1}, "there is no task '5'"),
        ],
    )
    def test_probabilities(self, value, text):
        self.refuses(text, tasks=["Unlock", "UnlockPickup"], probabilities=value)
        envs = make_vec(["Unlock", "UnlockPickup"], 2)
        with pytest.raises(MasteryError, match=text):
            envs.probabilities = value
        assert envs.probabilities.tolist() == [0.5, 0.5]

    @pytest.mark.parametrize(
        ("actions", "text"),
        [
            ([0, 7], "the action of environment 1 is 7: actions are 0 to 6"),
            ([-1, 0], "the action of environment 0 is -1"),
            ([0], r"shape \(1,\)"),
            ([0.0, 1.0], "whole numbers"),
            ([[0, 1]], r"shape \(1, 2\)"),
        ],
    )
    def test_actions_change_nothing(self, actions, text):
        envs = make_vec("Unlock", 2)
        with pytest.raises(MasteryError, match=r"call reset\(\) first"):
            envs.step([0, 0])
        envs.reset(seed=0)
        before = envs.state
        with pytest.raises(MasteryError, match=text):
            envs.step(actions)
        assert envs.state is before

    def test_reset(self):
        envs = make_vec("Unlock", 2)
        with pytest.raises(MasteryError, match="seed is 'x'"):
            envs.reset(seed="x")
        envs.reset(seed=4)
        for mask, text in (
            (np.zeros(2, bool), "has no True"),
            (np.ones(3, bool), r"not bool of shape \(3,\)"),
            (np.ones(2), "not float64"),
            ([[True], [True, False]], "must be numbers"),
        ):
            with pytest.raises(MasteryError, match=text):
                envs.reset(seed=9, options={"reset_mask": mask})
        assert envs.np_random_seed == 4  # nothing has changed
        with pytest.raises(MasteryError, match="seed is -1"):
            envs.reset(seed=-1)
        with pytest.raises(MasteryError, match="options must be a dictionary"):
            envs.reset(options=[1])

    def test_render(self):
        envs = make_vec("Unlock", 2)
        envs.reset()
        with pytest.raises(MasteryError, match="render_mode='rgb_array'"):
            envs.render()
