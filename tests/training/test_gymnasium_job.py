"""The messages a user gets when a Gymnasium environment of a job is faulty."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from mastery import Curriculum, Job, MasteryWarning, Task, resume, train
from mastery.learners.ppo import PPOSettings
from mastery.training.job import read_job

SETTINGS = PPOSettings(envs=1, frames=256, batch=64, width=16, memory="none")


class Walk(gymnasium.Env):
    """An episode of 10 steps, or one without end."""

    observation_space, action_space = spaces.Box(0, 1, (2,)), spaces.Discrete(2)

    def __init__(self, forever=False):
        self.forever = forever

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.count += 1
        over = self.count == 10 and not self.forever
        return np.zeros(2, np.float32), 1.0, over, False, {}


@pytest.fixture(autouse=True, scope="module")
def walk():
    gymnasium.register("Walk-v0", Walk)
    yield
    del gymnasium.registry["Walk-v0"]


def job(frames, **forever):
    tasks = [
        Task(name, 0, 10, settings={"env": "Walk-v0", "kwargs": {"forever": value}})
        for name, value in forever.items()
    ]
    return Job(Curriculum(tasks), ("uniform",), frames=frames, settings=SETTINGS, evaluate_every=0)


def test_a_task_without_end_gives_one_warning_with_the_remedy(tmp_path):
    with pytest.warns(MasteryWarning) as caught:
        train(job(25_000, short=False, long=True), tmp_path / "job")
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("no episode of task 'long' has ended in 10,000 steps of each")
    assert "set max_episode_steps in the task's settings to at most 2560" in text
    assert warning.filename == __file__


def test_tasks_that_end_give_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(job(15_000, short=False), tmp_path / "job")


def test_a_job_that_is_shortened_to_what_is_trained_is_finished(tmp_path):
    """The last chunk has its checkpoint, so that nothing is left to train."""
    stopped = train_minutes(job(7680, short=False), tmp_path / "job")
    assert stopped.ended is None
    done = stopped.update * 256
    assert resume(tmp_path / "job", frames=done).ended == f"trained {done:,} frames per run"
    assert resume(tmp_path / "job").ended == f"trained {done:,} frames per run"
    assert read_job(tmp_path / "job").frames == done


def train_minutes(what, directory):
    from mastery import TrainOptions

    return train(what, directory, TrainOptions(minutes=0))


BROKEN = """
import gymnasium
import numpy as np


class Broken(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return self.observe(0), 0.0, False, False, {}

    def observe(self, n):
        return np.full(2, 1 / n)  # the fault


gymnasium.register("Broken-v0", Broken)
"""


def test_an_error_in_the_user_s_environment_shows_its_file_and_line(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    line = 1 + next(i for i, text in enumerate(BROKEN.splitlines()) if "the fault" in text)
    (tmp_path / "one.toml").write_text(
        textwrap.dedent("""
            [tasks.mine]
            settings = { env = "broken:Broken-v0", max_episode_steps = 20 }
        """)
    )
    done = subprocess.run(
        [sys.executable, "-m", "mastery", "train", "one.toml", "--frames", "1k"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "mastery: task 'mine': its environment failed in step(): ZeroDivisionError: division by "
        f"zero ({tmp_path / 'broken.py'}, line {line}, in observe); repair the environment, or "
        "leave the task out"
    )
