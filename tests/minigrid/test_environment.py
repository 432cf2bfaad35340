"""One environment, which steps by tables, beside the engine that they are made from."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from mastery import MasteryError
from mastery.minigrid import EDITIONS, NAMES, make, make_vec
from mastery.minigrid.grid import unpack
from mastery.minigrid.planner import plan

# actions that go further than random ones: more steps forward, and each thing tried where it may do
LIKELY = [0, 1, 2, 2, 2, 2, 3, 3, 4, 5, 5, 6]


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert np.array_equal(value, theirs[name][0])
        assert value.dtype == theirs[name].dtype


def solution(state, edition):
    """Actions that solve the level; none if it is one of those that nobody can solve."""
    rules, where = EDITIONS[edition], (int(state.agent), int(state.direction), int(state.target))
    try:
        return plan(unpack(state.grid), *where, edition=rules)
    except MasteryError:
        assert rules.buries_keys  # a ball may lie where the key was
        return []


def compare(task, edition, reward, steps, seed):
    """Play the same actions in `make` and in `make_vec`: random ones, and in each third episode
    those that solve it. Returns the number of successes."""
    ours = make(task, edition=edition, reward=reward)
    theirs = make_vec(task, 1, edition=edition, reward=reward, autoreset_mode="Disabled")
    random, won, episode = np.random.default_rng(seed), 0, 0
    same(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
    todo = []
    for _ in range(steps):
        action = todo.pop(0) if todo else int(random.choice(LIKELY))
        seen, reward, terminated, truncated, _ = ours.step(action)
        expected = theirs.step([action])
        same(seen, expected[0])
        assert (reward, terminated, truncated) == tuple(float(x[0]) for x in expected[1:4])
        won += terminated
        if terminated or truncated or random.random() < 0.01:
            episode += 1
            again = seed + episode if episode % 10 == 0 else None
            same(ours.reset(seed=again)[0], theirs.reset(seed=again)[0])
            todo = solution(ours.state, edition) if episode % 3 == 0 else []
    for ours_now, theirs_now in zip(ours.state, theirs.state, strict=True):
        assert np.array_equal(ours_now, theirs_now[0])
        assert ours_now.dtype == theirs_now.dtype
    return won


@pytest.mark.parametrize("edition", EDITIONS)
def test_its_episodes_are_those_of_the_engine(edition):
    for n, task in enumerate(["UnlockPickup", "KeyCorridorS3R3", "ObstructedMaze-Full"]):
        assert compare(task, edition, "paper", 1500, seed=n) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("task", NAMES)
def test_all_tasks_are_those_of_the_engine(task):
    for edition in EDITIONS:
        assert compare(task, edition, "minigrid", 20_000, seed=5) >= 30


def test_the_last_step_is_truncated_and_the_next_one_refused():
    env = make("Unlock", observation="image")
    with pytest.raises(MasteryError, match=r"call reset\(\) first"):
        env.step(6)
    env.reset(seed=1)
    ends = [env.step(6)[2:4] for _ in range(288)]
    assert ends == [(False, False)] * 287 + [(False, True)]
    with pytest.raises(MasteryError, match=r"the episode has ended: call reset\(\)"):
        env.step(6)
    env.reset()
    assert env.state.steps == 0


@pytest.mark.parametrize(
    ("action", "text"),
    [(7, "the action is 7"), (-1, "the action is -1"), (1.0, "whole number"), ([1], "whole"),
     ("left", "whole"), (True, "whole")],
)  # fmt: skip
def test_a_wrong_action_changes_nothing(action, text):
    env = make("Unlock")
    env.reset(seed=0)
    before = env.state
    with pytest.raises(MasteryError, match=text):
        env.step(action)
    assert all(map(np.array_equal, before, env.state))


def test_a_copy_goes_its_own_way():
    env = make("Unlock", observation="image")
    first, _ = env.reset(seed=0)
    seen = first.copy()
    other = copy.deepcopy(env)
    first[:] = 0  # the caller may change what it got
    assert np.array_equal(other.step(6)[0], seen)
    other.step(1)
    assert np.array_equal(env.step(6)[0], seen)
    assert (env.state.steps, other.state.steps) == (1, 2)


def test_to_render_needs_a_mode():
    env = make("Unlock")
    env.reset(seed=0)
    with pytest.raises(MasteryError, match="render_mode='rgb_array'"):
        env.render()
    for setting in ({"reward": "minigird"}, {"observation": "imag"}, {"render_mode": "rgb-array"}):
        with pytest.raises(MasteryError, match="did you mean"):
            make("Unlock", **setting)
