"""`mastery play`: episodes to look at."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from mastery import MasteryError
from mastery.cli import app
from mastery.minigrid.exchange import to_package
from mastery.minigrid.play import pictures, play, write_gif
from mastery.minigrid.state import State


def test_the_planner_reaches_the_goal():
    episode = play("ObstructedMaze-2Dlhb", agent="planner", seed=1)
    assert episode.terminated
    assert episode.reward > 0
    assert len(episode.states.agent) == len(episode.actions) + 1
    assert episode.states.steps.tolist() == list(range(len(episode.actions) + 1))
    assert episode.mission == "pick up the blue ball"


def test_a_random_episode_ends_where_it_ends_or_after_so_many_steps():
    episode = play("KeyCorridorS6R3", seed=0, steps=20)
    assert len(episode.actions) == 20
    assert not episode.terminated
    episode = play("Unlock", seed=0, steps=400)
    assert episode.terminated or (episode.truncated and len(episode.actions) == 288)


def test_the_same_seed_gives_the_same_episode():
    a, b, other = (play("Unlock", seed=seed, steps=30) for seed in (4, 4, 5))
    assert np.array_equal(a.states.agent, b.states.agent)
    assert not np.array_equal(a.states.grid[0], other.states.grid[0])


def test_a_picture_is_the_packages_map_and_view_side_by_side():
    episode = play("KeyCorridorS4R3", agent="planner", seed=0)
    for n in (0, len(episode.actions) // 2):
        state = State(*(np.asarray(field)[n : n + 1] for field in episode.states))
        (picture,) = pictures(state, tile=16)
        env = to_package(State(*(np.asarray(field)[n] for field in episode.states)))
        whole, seen = env.get_frame(tile_size=16), env.get_frame(tile_size=16, agent_pov=True)
        assert np.array_equal(picture[:, : whole.shape[1]], whole)
        top = (len(picture) - len(seen)) // 2
        assert np.array_equal(picture[top : top + len(seen), -seen.shape[1] :], seen)


def test_the_command_writes_a_gif(tmp_path):
    path = tmp_path / "maze.gif"
    command = ["play", "ObstructedMaze-1Dl", "--agent", "planner", "--gif", str(path)]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "pick up the blue ball" in result.output
    assert "reached the goal" in result.output
    with Image.open(path) as image:
        steps = len(play("ObstructedMaze-1Dl", agent="planner").actions)
        assert image.n_frames == steps + 1
        assert image.size == (11 * 32 + 16 + 7 * 32, 7 * 32)


def test_the_command_lists_the_tasks_and_names_the_nearest():
    result = CliRunner().invoke(app, ["play", "list"])
    assert len(result.output.split()) == 18
    result = CliRunner().invoke(app, ["play", "KeyCoridorS3R3"])
    assert "did you mean 'KeyCorridorS3R3'" in str(result.exception)
    result = CliRunner().invoke(app, ["play", "Unlock", "--agent", "me"])
    assert "choose from random, planner" in str(result.exception)
    result = CliRunner().invoke(app, ["play", "Unlock", "--gif", "/nowhere/a.gif"])
    assert "cannot write /nowhere/a.gif" in str(result.exception)


def test_a_gif_that_cannot_be_shown_leaves_the_old_one(tmp_path):
    path = tmp_path / "a.gif"
    frames = [np.zeros((8, 8, 3), np.uint8)]
    write_gif(path, frames)
    before = path.read_bytes()
    for fps in (0, 0.5, 51):
        with pytest.raises(MasteryError, match="frames a second"):
            write_gif(path, frames, fps=fps)
    with pytest.raises(MasteryError, match="no frame"):
        write_gif(path, [])
    assert path.read_bytes() == before


def test_frames_are_shown_as_long_as_was_asked(tmp_path):
    frames = [np.full((8, 8, 3), 80 * n, np.uint8) for n in range(3)]
    for fps, milliseconds in ((5, 200), (20, 50)):
        write_gif(tmp_path / "a.gif", frames, fps=fps)
        with Image.open(tmp_path / "a.gif") as image:
            assert image.info["duration"] == milliseconds


def test_numbers_that_make_no_sense_are_refused():
    for settings in ({"steps": 0}, {"steps": 1.5}, {"seed": -1}, {"seed": "a"}, {"seed": 2**32}):
        with pytest.raises(MasteryError, match="it must be a whole number from"):
            play("Unlock", **settings)
