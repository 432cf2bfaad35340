"""Every pixel is the real package's."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from minigrid.core.grid import Grid
from minigrid.core.world_object import Ball, Box, Door, Key, Wall

from mastery.errors import MasteryError
from mastery.minigrid import cells
from mastery.minigrid.rendering import render, render_view
from mastery.minigrid.tasks import TASKS

BLANK = np.full((16, 16), cells.EMPTY_CELL, np.uint8)
NOTHING_SEEN, ALL_SEEN = np.zeros((7, 7), bool), np.ones((7, 7), bool)


def byte(thing):
    """One of the package's objects, or None, as a cell."""
    if thing is None:
        return cells.EMPTY_CELL
    number = cells.COLOURS.index(thing.color)
    if isinstance(thing, Door):
        kind = cells.OPEN if thing.is_open else cells.LOCKED if thing.is_locked else cells.CLOSED
    elif isinstance(thing, Box) and thing.contains is not None:
        kind = cells.BOX_WITH_KEY + cells.COLOURS.index(thing.contains.color)
    else:
        kind = {Wall: cells.WALL, Key: cells.KEY, Ball: cells.BALL, Box: cells.BOX}[type(thing)]
    return kind << 3 | number


def things():
    yield None
    for colour in cells.COLOURS:
        yield from (Wall(colour), Key(colour), Ball(colour), Box(colour))
        yield Box(colour, contains=Key("red"))
        yield from (Door(colour), Door(colour, is_locked=True), Door(colour, is_open=True))


def same_tile(thing, direction, highlight, tile):
    """Whether a cell in the corner of a map, with or without the agent, looks as the package's."""
    grid = BLANK.copy()
    grid[0, 0] = byte(thing)
    visible = ALL_SEEN if highlight else NOTHING_SEEN
    if direction is None:  # one cell before the agent, that looks left at it
        image = render(grid, 1, 2, width=2, height=1, visible=visible, tile=tile)
    else:
        image = render(grid, 0, direction, width=1, height=1, visible=visible, tile=tile)
    expected = Grid.render_tile(thing, direction, highlight, tile).astype(np.uint8)
    return np.array_equal(image[:tile, :tile], expected)


@pytest.mark.parametrize("highlight", [False, True])
@pytest.mark.parametrize("tile", [8, 16, 32])
def test_every_object_in_every_colour_looks_as_in_the_package(tile, highlight):
    assert all(same_tile(thing, None, highlight, tile) for thing in things())


@pytest.mark.parametrize("highlight", [False, True])
def test_the_agent_looks_as_in_the_package_whatever_it_stands_on(highlight):
    for direction in range(4):
        assert all(same_tile(thing, direction, highlight, 8) for thing in things())


@pytest.mark.parametrize("tile", [1, 2, 3, 5, 16, 31, 32])
def test_the_agents_edges_are_the_same_at_any_size(tile):
    for direction in range(4):
        assert same_tile(None, direction, True, tile)


def package_grid(env):
    grid = np.full((16, 16), cells.WALL_CELL, np.uint8)
    for y in range(env.height):
        for x in range(env.width):
            grid[y, x] = byte(env.grid.get(x, y))
    return grid


def package_view(env):
    """The view as it is before the package hides cells in it and puts the carried object there."""
    left, top, _, _ = env.get_view_exts()
    view = env.grid.slice(left, top, 7, 7)
    for _ in range(env.agent_dir + 1):
        view = view.rotate_left()
    return np.array([[byte(view.get(i, j)) for j in range(7)] for i in range(7)], np.uint8)


def check_frames(env, tile):
    _, visible = env.gen_obs_grid()
    x, y = (int(a) for a in env.agent_pos)
    level = package_grid(env), 16 * y + x, int(env.agent_dir)
    size = {"width": env.width, "height": env.height, "tile": tile}
    lit = render(*level, visible=visible, **size)
    assert lit.dtype == np.uint8
    assert np.array_equal(lit, env.get_frame(highlight=True, tile_size=tile))
    assert np.array_equal(render(*level, **size), env.get_frame(highlight=False, tile_size=tile))
    carrying = byte(env.carrying)
    view = render_view(package_view(env), visible, carrying, tile=tile)
    assert np.array_equal(view, env.get_frame(agent_pov=True, tile_size=tile))
    return carrying != cells.EMPTY_CELL, env.grid.get(x, y) is not None


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_frames_are_the_packages_at_the_start_and_on_a_random_walk(task):
    env = gymnasium.make(task.id).unwrapped
    rng = np.random.default_rng(0)
    for seed in range(2):
        env.reset(seed=seed)
        check_frames(env, tile=8)
        for step in range(60):
            env.step(rng.choice(7, p=[0.15, 0.15, 0.4, 0.1, 0.05, 0.15, 0]))
            if step % 6 == 0:
                check_frames(env, tile=8)


def test_frames_are_the_packages_at_its_own_size():
    env = gymnasium.make("MiniGrid-ObstructedMaze-Full-v1").unwrapped
    env.reset(seed=3)
    check_frames(env, tile=32)


def test_an_agent_in_a_door_that_carries_a_key_is_drawn_over_each():
    env = gymnasium.make("MiniGrid-UnlockPickup-v0").unwrapped
    env.reset(seed=0)
    (door,) = (thing for thing in env.grid.grid if isinstance(thing, Door))
    door.is_open, door.is_locked = True, False
    env.carrying = Key(door.color)
    env.agent_pos = door.cur_pos
    for env.agent_dir in range(4):
        assert check_frames(env, tile=8) == (True, True)


def test_a_picture_can_be_drawn_on_without_a_trace_in_the_next():
    first = render(BLANK, 17, 0, tile=4)
    copy = first.copy()
    first[:] = 0
    assert np.array_equal(render(BLANK, 17, 0, tile=4), copy)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": BLANK.ravel()}, r"grid is uint8 of shape \(256,\): give .* shape \(16, 16\)"),
        ({"grid": BLANK / 2}, "grid is float64"),
        ({"grid": np.full((16, 16), 255, np.uint8)}, "cell 255 is of no kind"),
        ({"grid": BLANK, "width": 17}, "width is 17: a map has 1 to 16"),
        ({"grid": BLANK, "agent": 5, "width": 5}, r"agent is 5, that is x = 5, y = 0, outside"),
        ({"grid": BLANK, "direction": 4}, "direction is 4"),
        ({"grid": BLANK, "visible": ALL_SEEN[:5]}, "visible is bool"),
        ({"grid": BLANK, "tile": 0}, "tile is 0"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(MasteryError, match=message):
        render(**{"agent": 0, "direction": 0, **arguments})
