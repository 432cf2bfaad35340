"""Levels to and from the real package, and what is refused."""

from __future__ import annotations

import gymnasium
import jax
import jax.numpy as jnp
import minigrid  # noqa: F401  (registers its environments)
import numpy as np
import pytest
from episodes import host, our_levels, package_level
from minigrid.core.world_object import Ball, Box, Door, Goal, Key, Lava

import mastery.minigrid
from mastery import MasteryError
from mastery.minigrid import NAMES, TASKS, from_package, generate, start, task_id, to_package


def test_the_tasks_are_the_packages():
    for task in TASKS:
        env = gymnasium.make(task.id, disable_env_checker=True).unwrapped
        assert (env.width, env.height, env.max_steps) == (task.width, task.height, task.n_max)


@pytest.mark.parametrize("name", ["Unlock", "MiniGrid-Unlock-v0", "Unlock-v0", "MiniGrid-Unlock"])
def test_a_task_is_known_by_its_name(name):
    assert task_id(name) == 0


@pytest.mark.parametrize("task", range(18), ids=NAMES)
def test_there_and_back_again(task):
    for seed in range(3):
        env = package_level(task, seed)
        for action in np.random.default_rng(seed).integers(0, 7, 40).tolist():
            if any(env.step(action)[2:4]):
                env.reset()
        state = from_package(env)
        other = to_package(state)
        assert np.array_equal(other.grid.encode(), env.grid.encode())
        assert other.gen_obs()["mission"] == env.mission
        assert np.array_equal(other.gen_obs()["image"], env.gen_obs()["image"])
        assert (tuple(other.agent_pos), other.agent_dir) == (tuple(env.agent_pos), env.agent_dir)
        again = from_package(other)
        assert all(np.array_equal(a, b) for a, b in zip(host(state), host(again), strict=True))


def test_boxes_keep_their_keys():
    (env,) = our_levels(NAMES.index("ObstructedMaze-Full"), 1, seed=0)
    boxes = [thing for thing in env.grid.grid if isinstance(thing, Box)]
    assert len(boxes) == 8
    assert all(isinstance(box.contains, Key) for box in boxes)


def changed(task: str, change):
    env = package_level(NAMES.index(task), 0)
    change(env)
    return env


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda e: e.put_obj(Lava(), 1, 1), r"at \(1, 1\): there is a lava"),
        (lambda e: e.put_obj(Goal(), 2, 1), r"at \(2, 1\): there is a goal"),
        (lambda e: e.put_obj(Box("red", Ball("red")), 1, 1), "a box holds a ball"),
        (lambda e: e.grid.set(0, 2, None), "outermost cells"),
        (lambda e: e.put_obj(Door("red"), 10, 2), "outermost cells"),
        (lambda e: e.put_obj(Box(e.obj.color), 1, 1), "2 things that look like its goal"),
        (lambda e: setattr(e, "max_steps", 100), "max_steps 100: levels of this task have 288"),
        (lambda e: setattr(e, "agent_view_size", 9), "agent_view_size 9"),
        (lambda e: setattr(e, "see_through_walls", True), "see_through_walls True"),
    ],
)
def test_what_the_engine_cannot_hold_is_refused(change, text):
    with pytest.raises(MasteryError, match=text):
        from_package(changed("UnlockPickup", change))


def test_an_open_door_is_no_level_of_unlock():
    with pytest.raises(MasteryError, match="an open door already"):
        from_package(changed("Unlock", lambda e: setattr(e.door, "is_open", True)))


def test_two_doors_like_the_goal_are_refused():
    env = changed("Unlock", lambda e: e.put_obj(Door(e.door.color), 2, 2))
    with pytest.raises(MasteryError, match="2 things that look like its goal"):
        from_package(env)


def test_the_wrong_task_is_refused():
    unlock, pickup = (package_level(NAMES.index(name), 0) for name in ("Unlock", "UnlockPickup"))
    with pytest.raises(MasteryError, match="it is another environment"):
        from_package(unlock, "UnlockPickup")
    with pytest.raises(MasteryError, match="it is another environment"):
        from_package(pickup, "Unlock")
    with pytest.raises(MasteryError, match="has width 11: levels of this task have 7"):
        from_package(unlock, "KeyCorridorS3R1")
    with pytest.raises(MasteryError, match="has width None"):
        from_package(object(), "Unlock")
    fresh = gymnasium.make("MiniGrid-Unlock-v0", disable_env_checker=True)
    with pytest.raises(MasteryError, match=r"call reset\(\) first"):
        from_package(fresh)
    with pytest.raises(MasteryError, match="a level or a state is needed, not NoneType"):
        to_package(None)


def test_other_environments_are_refused():
    env = gymnasium.make("MiniGrid-Empty-8x8-v0", disable_env_checker=True)
    env.reset(seed=0)
    with pytest.raises(MasteryError, match="there is no MiniGrid task 'MiniGrid-Empty-8x8-v0'"):
        from_package(env)
    env.unwrapped.spec = None
    with pytest.raises(MasteryError, match="has no registered name"):
        from_package(env)


def test_a_batch_of_states_is_refused():
    states = start(jax.jit(generate)(jax.random.key(0), jnp.arange(3)))
    with pytest.raises(MasteryError, match=r"of \(3,\) environments; choose one"):
        to_package(states)


def test_every_public_name_is_there():
    for name in mastery.minigrid.__all__:
        assert getattr(mastery.minigrid, name) is not None
        assert name in dir(mastery.minigrid)
    with pytest.raises(AttributeError, match="nonsense"):
        mastery.minigrid.nonsense  # noqa: B018
