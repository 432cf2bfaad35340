"""The planner solves the package's own levels, fresh ones and those in the middle of an episode."""

from __future__ import annotations

import gymnasium
import minigrid  # noqa: F401 (it registers its environments)
import numpy as np
import pytest

from mastery.errors import MasteryError
from mastery.minigrid.cells import (
    BALL,
    BOX,
    BOX_WITH_KEY,
    CLOSED,
    COLOURS,
    EMPTY_CELL,
    GREY,
    KEY,
    LOCKED,
    OPEN,
    RED,
    WALL_CELL,
)
from mastery.minigrid.planner import plan
from mastery.minigrid.tasks import TASKS

LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE = range(6)


def make(task):
    env = gymnasium.make(task.id).unwrapped
    env.gen_obs = lambda: None  # nobody looks, and it is most of the time of a step
    return env


def byte(thing):
    """What the package holds in a cell or in the agent's hands, as a byte."""
    if thing is None:
        return EMPTY_CELL
    kinds = {"wall": WALL_CELL >> 3, "door": OPEN, "key": KEY, "ball": BALL, "box": BOX}
    kind = kinds[thing.type]
    if thing.type == "door" and not thing.is_open:
        kind = LOCKED if thing.is_locked else CLOSED
    if thing.type == "box" and thing.contains:
        kind = BOX_WITH_KEY + COLOURS.index(thing.contains.color)
    return kind << 3 | COLOURS.index(thing.color)


def read(env):
    """The arguments of `plan` for the state that the environment is in."""
    grid = np.full((16, 16), WALL_CELL, np.uint8)
    for x in range(env.width):
        for y in range(env.height):
            grid[y, x] = byte(env.grid.get(x, y))
    x, y = env.agent_pos
    goal = OPEN << 3 | byte(env.door) & 7 if hasattr(env, "door") else byte(env.obj)
    return grid, int(y) * 16 + int(x), int(env.agent_dir), goal, byte(env.carrying)


def run(env, actions):
    """Does the actions in the package: the last one, and none before it, reaches the goal."""
    for i, action in enumerate(actions):
        _, reward, terminated, truncated, _ = env.step(action)
        assert terminated == (i == len(actions) - 1)
        assert not truncated
    assert reward > 0


def meddle(env, random, steps):
    """Random actions, with a liking for those that change something; whether the episode goes on"""
    for _ in range(steps):
        front = env.grid.get(*env.front_pos)
        if front is None:
            likely = FORWARD if random.random() < 0.8 else DROP
        elif front.type == "door":
            likely = FORWARD if front.is_open else TOGGLE
        else:
            likely = PICK_UP if random.random() < 0.8 else TOGGLE
        if env.step(likely if random.random() < 0.6 else int(random.integers(6)))[2]:
            return False
    return True


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_fresh_level_is_solved_well_within_the_most_steps(task):
    env = make(task)
    for seed in range(20):
        env.reset(seed=seed)
        actions = plan(*read(env))
        assert len(actions) < task.n_max / 2
        run(env, actions)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_level_is_solved_from_the_middle_of_an_episode(task):
    env = make(task)
    random = np.random.default_rng(0)
    for seed in range(20):
        env.reset(seed=seed)
        # from the start, or from behind the doors that a part of a plan opens
        actions = plan(*read(env))
        for action in actions[: random.integers(len(actions))]:
            env.step(action)
        if not meddle(env, random, steps=100):
            continue
        env.step_count = 0
        grid, *_, goal, carrying = state = read(env)
        if task.goal == "box" and goal not in (*grid.flat, carrying):
            with pytest.raises(MasteryError, match="box"):
                plan(*state)
        else:
            run(env, plan(*state))


SIGNS = {
    "#": WALL_CELL,
    " ": EMPTY_CELL,
    "L": LOCKED << 3 | RED,
    "C": CLOSED << 3 | RED,
    "O": OPEN << 3 | RED,
    "k": KEY << 3 | RED,
    "b": BALL << 3 | GREY,
    "B": BOX_WITH_KEY + RED << 3 | GREY,
    "t": BALL << 3 | RED,
    "x": BOX << 3 | RED,
}
DOOR, THING, BOX_TO_FIND = OPEN << 3 | RED, SIGNS["t"], SIGNS["x"]


def draw(*rows, on=" "):
    """A map and the agent's place and direction: > v < or ^, where it stands `on` something."""
    grid = np.full((16, 16), WALL_CELL, np.uint8)
    for y, row in enumerate(rows):
        for x, sign in enumerate(row):
            if sign in ">v<^":
                agent, direction, sign = y * 16 + x, ">v<^".index(sign), on
            grid[y, x] = SIGNS[sign]
    return grid, agent, direction


def test_a_key_out_of_a_room_of_one_cell_goes_back_into_it():
    # nowhere else can it be put without being in the way
    assert plan(*draw("#######", "#kC>Lt#", "#######"), THING) == [
        *(RIGHT, RIGHT, TOGGLE, FORWARD, PICK_UP),
        *(RIGHT, RIGHT, FORWARD, TOGGLE),
        *(RIGHT, RIGHT, FORWARD, DROP),
        *(RIGHT, RIGHT, FORWARD, FORWARD, PICK_UP),
    ]


def test_an_agent_in_a_doorway_drops_what_it_carries_beside_the_way():
    level = draw("########", "#  #   #", "#  >  t#", "#  #   #", "########", on="O")
    # behind it, the key would cut the left room off
    actions = [FORWARD, LEFT, DROP, RIGHT, FORWARD, PICK_UP]
    assert plan(*level, THING, carrying=SIGNS["k"]) == actions


def test_what_is_carried_is_put_down_to_take_the_key():
    level = draw("######", "#>  k#", "#  ###", "#  L #", "######")
    actions = plan(*level, DOOR, carrying=SIGNS["b"])
    assert actions.index(DROP) < actions.index(PICK_UP)
    assert actions[-1] == TOGGLE


def test_the_key_in_a_carried_box_is_used():
    level = draw("######", "#>   #", "#  ###", "#  L #", "######")
    actions = plan(*level, DOOR, carrying=SIGNS["B"])
    assert [a for a in actions if a >= PICK_UP] == [DROP, TOGGLE, PICK_UP, TOGGLE]


def test_a_door_that_is_open_needs_no_plan():
    assert plan(*draw("#####", "#> O#", "#####"), DOOR) == []
    assert plan(*draw("#####", "#> C#", "#####"), DOOR) == [FORWARD, TOGGLE]


def test_without_a_solution_it_says_why():
    with pytest.raises(MasteryError, match="no red box on the map"):
        plan(*draw("#####", "#>  #", "#####"), BOX_TO_FIND)
    with pytest.raises(MasteryError, match="no way was found to the red ball"):
        plan(*draw("#######", "#>  Lt#", "#######"), THING)  # no key
    with pytest.raises(MasteryError, match="no way was found to the red ball"):
        plan(*draw("######", "#>b t#", "######"), THING, carrying=SIGNS["k"])  # hands full for good


def test_where_there_is_no_beside_what_is_carried_is_put_down_behind():
    turn_round = [RIGHT, RIGHT]
    actions = [FORWARD, *turn_round, DROP, *turn_round, FORWARD, PICK_UP]
    assert plan(*draw("######", "#>  x#", "######"), BOX_TO_FIND, carrying=SIGNS["b"]) == actions


def test_input_that_makes_no_sense_is_refused():
    grid = np.full((16, 16), WALL_CELL, np.uint8)
    grid[1:5, 1:5] = EMPTY_CELL
    ball = BALL << 3
    for arguments, text in (
        ((grid.ravel(), 17, 0, ball), r"shape \(256,\)"),
        ((grid.astype(int), 17, 0, ball), "grid is int64"),
        ((grid, 999, 0, ball), "cannot stand at 999"),
        ((grid, 0, 0, ball), "cannot stand at 0"),
        ((grid, 17, 7, ball), "direction 7"),
        ((grid, 17, 0, EMPTY_CELL), "target 40"),
    ):
        with pytest.raises(MasteryError, match=text):
            plan(*arguments)
