"""Training under a program of one's own: in every loop, beside others, stopped and resumed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import small_jobs

from mastery import CheckpointError, Curriculum, MasteryError, ProgramError, Task, Teacher
from mastery.curriculum.environments import make_by_settings
from mastery.errors import MasteryWarning
from mastery.learners.addition import AdditionSettings
from mastery.learners.ppo import PPOSettings
from mastery.page.data import job_entry
from mastery.page.places import Place
from mastery.paper.experiments import PaperJob
from mastery.paper.run import run as run_paper
from mastery.rundir.results import load_results
from mastery.training.job import Job, read_job
from mastery.training.loops import compiled
from mastery.training.loops.addition import AdditionLoop
from mastery.training.loops.gymnasium import GymnasiumLoop
from mastery.training.loops.minigrid import MiniGridLoop
from mastery.training.train import TrainOptions, resume, train

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "own_program.py"
MINIGRID = PPOSettings(envs=4, frames=32, batch=64, epochs=1, ahead=4, memory="none", width=8)
ADDITION = AdditionSettings(batch=32, batches=2, tests=10, validation=20, width=8)
CARTPOLE = PPOSettings(envs=2, frames=16, batch=32, width=8, memory="none")

FORGETFUL = '''
class Forgetful:
    """Mostly what failed of late; some luck."""

    def __init__(self, curriculum, rate=0.5):
        self.low, self.high, self.rate = curriculum.minimum, curriculum.maximum, rate

    def init(self, noise):
        return {"failed": 1 + 0.0 * noise[0], "luck": noise[0], "t": 0}

    def observe(self, state, evidence, noise):
        xp = noise.__array_namespace__()
        failed = 1 - (evidence.mean - self.low) / (self.high - self.low)
        newer = (1 - self.rate) * state["failed"] + self.rate * failed
        return {
            "failed": xp.where(evidence.seen, newer, state["failed"]).astype(noise.dtype),
            "luck": noise[0],
            "t": state["t"] + 1,
        }

    def distribution(self, state):
        weight = abs(state["failed"]) + state["luck"] + 0.1
        return weight / weight.sum()
'''
ONLY_NUMPY = """
import numpy

class OnlyNumPy:
    def init(self, noise):
        return numpy.zeros(noise.shape[1])

    def observe(self, state, evidence, noise):
        return numpy.where(evidence.seen, 0, state + 1)

    def distribution(self, state):
        return (state + 1) / numpy.sum(state + 1)
"""
TURNS_BAD = '''
class TurnsBad:
    """Like uniform, until it has counted 100 time-steps with a return of every task or none."""

    def init(self, noise):
        return 0.0 * noise[0]

    def observe(self, state, evidence, noise):
        return state + 1

    def distribution(self, state):
        n = state.shape[0]
        return (state > 100) * 1.0 + (state <= 100) / n
'''
OWN = "own.py:Forgetful:rate=0.25"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(FORGETFUL)
    Path("only_numpy.py").write_text(ONLY_NUMPY)
    Path("turns_bad.py").write_text(TURNS_BAD)
    return tmp_path


def jobs(kind, programs, **changes):
    name, settings = {
        "minigrid": ("blocked-unlock-pickup", MINIGRID),
        "addition": ("addition-3", ADDITION),
        "gymnasium": (None, CARTPOLE),
    }[kind]
    curriculum = Curriculum.load(name) if name else cart_pole()
    given = {"chunk": 2, "evaluate_every": 0, "settings": settings, **changes}
    job = Job(curriculum, programs, **given)
    return job if "frames" in changes else replace(job, frames=3 * 2 * job.frames_of_update)


def cart_pole():
    settings = {"env": "CartPole-v1", "max_episode_steps": 12}
    return Curriculum(
        [
            Task("short", maximum=12, settings=settings),
            Task("long", after=["short"], maximum=12, settings=settings),
        ]
    )


LOOPS = {"minigrid": MiniGridLoop, "addition": AdditionLoop, "gymnasium": GymnasiumLoop}


@pytest.mark.parametrize("kind", LOOPS)
def test_its_probabilities_are_those_of_a_teacher_and_the_others_are_not_changed(folder, kind):
    """Fed with the same returns; `mr` beside it trains as it does alone."""
    texts = ("mr:window=4", f"{EXAMPLE}:LeastRecent", f"{EXAMPLE}:LeastRecent:sharpness=2")
    job = jobs(kind, texts, seeds=2)
    _, metrics = small_jobs.trained(LOOPS[kind](job), 3)
    for i, run in enumerate(job.runs):
        teacher = Teacher(job.curriculum, run.program, seed=0)
        for t in range(len(metrics.episodes)):
            assert np.allclose(teacher.distribution, metrics.probability[t, i], atol=2e-5)
            episodes, returns = metrics.episodes[t, i], metrics.returns[t, i]
            seen = np.flatnonzero(episodes)
            names = job.curriculum.names
            teacher.update({names[c]: float(returns[c] / episodes[c]) for c in seen})
            mastery = [teacher.mastery[name] for name in names]
            assert np.allclose(mastery, metrics.mastery[t, i], atol=2e-5)
    _, alone = small_jobs.trained(LOOPS[kind](replace(job, programs=texts[:1])), 3)
    assert np.array_equal(alone.returns, metrics.returns[:, :2])


@pytest.mark.slow
def test_in_one_batch_it_trains_as_one_run_after_the_other(folder, monkeypatch):
    """As on a GPU: every run in one `vmap`, a chunk in one function."""
    job = jobs("addition", ("mr", OWN, "own.py:Forgetful", "uniform"), seeds=2)
    _, one_by_one = small_jobs.trained(AdditionLoop(job), 2)
    monkeypatch.setattr(compiled, "in_turn", lambda devices: False)
    _, together = small_jobs.trained(AdditionLoop(job), 2)
    assert np.allclose(one_by_one.probability[:2], together.probability[:2], atol=1e-5)
    assert not np.allclose(together.probability[:, 2], together.probability[:, 6])  # uniform


def curves(directory):
    with contextlib.closing(sqlite3.connect(Path(directory) / "run.db")) as db:
        return db.execute("SELECT * FROM training ORDER BY 1, 2, 3").fetchall()


@pytest.mark.parametrize("kind", LOOPS)
def test_stopped_and_resumed_it_is_the_same(folder, kind):
    job = jobs(kind, ("mr", OWN))
    train(job, "whole")
    stopped = train(job, "parts", TrainOptions(minutes=0))
    assert stopped.ended is None
    assert resume("parts").update == job.updates
    assert curves("parts") == curves("whole")
    assert read_job("parts") == job
    assert load_results("parts").programs == ("mr", OWN)
    with contextlib.closing(sqlite3.connect("parts/run.db")) as db:
        stored = json.loads(db.execute("SELECT job FROM job").fetchone()[0])
    assert stored["programs"][1] == OWN
    assert stored["sources"][OWN]["file"] == str(folder / "own.py")


def test_a_run_directory_is_shown_without_its_program(folder):
    job = jobs("addition", ("mr", OWN))
    train(job, "run", TrainOptions(minutes=0))
    Path("own.py").unlink()
    assert read_job("run").programs == ("mr", OWN)
    shown = job_entry(Place(Path("run"), "run"))
    assert [program["name"] for program in shown["programs"]] == ["mr", "Forgetful"]
    with pytest.raises(
        ProgramError, match=r"no file '.*/own.py' .*; the job was started with /.*/own\.py"
    ):
        resume("run")


def test_a_changed_program_is_noticed(folder):
    train(jobs("addition", (OWN,), frames=1000), "run", TrainOptions(minutes=0))
    Path("own.py").write_text(FORGETFUL.replace("+ 0.1", "+ 0.2"))
    with pytest.warns(MasteryWarning, match=f"source of the program '{OWN}' has changed"):
        assert resume("run", TrainOptions(minutes=0)).ended is None
    notes = []
    resume("run", TrainOptions(minutes=0, note=notes.append))
    assert "has changed" in notes[0]
    Path("own.py").write_text(FORGETFUL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resume("run", TrainOptions(minutes=0))


@pytest.mark.filterwarnings("ignore:the source of the program")
@pytest.mark.parametrize("kind", ["addition", "gymnasium"])
def test_a_state_that_no_longer_fits_is_an_error(folder, kind):
    train(jobs(kind, ("mr", OWN)), "run", TrainOptions(minutes=0))
    Path("own.py").write_text(FORGETFUL.replace('"luck"', '"fortune"'))
    with pytest.raises(CheckpointError, match=r"does not fit your own program: .*own.fortune is"):
        resume("run")
    Path("own.py").write_text(FORGETFUL)
    assert resume("run").ended


def test_a_module_is_found_in_the_current_directory(folder):
    Path("mine_trained").mkdir()
    Path("mine_trained/programs.py").write_text(FORGETFUL)
    job = jobs("gymnasium", ("mine_trained.programs:Forgetful",))
    train(job, "run", TrainOptions(minutes=0))
    assert resume("run").ended


@pytest.mark.parametrize("kind", ["minigrid", "addition"])
def test_what_jax_cannot_compile_is_refused_before_anything_is_written(folder, kind):
    job = jobs(kind, ("mr", "only_numpy.py:OnlyNumPy"))
    with pytest.raises(
        ProgramError, match=r"'only_numpy.py:OnlyNumPy'.*does not run under jax.jit"
    ):
        train(job, "run")
    assert not Path("run").exists()


def test_in_gymnasium_numpy_is_enough(folder):
    assert train(jobs("gymnasium", ("only_numpy.py:OnlyNumPy",)), "run").ended


def test_a_program_that_turns_bad_stops_the_job(folder):
    job = jobs("gymnasium", ("mr", "turns_bad.py:TurnsBad"), chunk=60, frames=60 * 32 * 3)
    with pytest.raises(ProgramError, match=r"'turns_bad.py:TurnsBad' gave invalid .* update 101: "):
        train(job, "run", TrainOptions(checkpoint_seconds=0))
    assert len(load_results("run").frames) == 1  # the first chunk


def test_a_job_reads_texts_and_says_what_is_wrong(folder):
    job = jobs("addition", [f" {OWN} ", "mr"])
    assert job.programs == (OWN, "mr")
    assert list(job.own) == [OWN]
    assert Job.from_dict(job.to_dict()) == job
    with pytest.raises(ProgramError, match="did you mean 'Forgetful'"):
        train(jobs("addition", ("own.py:Forgetfull",)), "run")
    assert not Path("run").exists()


def test_a_job_of_the_paper_can_have_one(folder):
    part = PaperJob(
        "mine", "addition-3", ("mr", OWN), settings={**vars(ADDITION)}, seeds=1, frames=640,
        chunk=2, small={},
    )  # fmt: skip
    outcomes = list(run_paper([part], Path("out")))
    assert [outcome.ended is not None for _, outcome in outcomes] == [True]
    assert list(run_paper([part], Path("out")))  # the same job: it may be resumed
    assert Path("out/curves/mine.npz").exists()


REGISTERS = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

class Mine(CartPoleEnv):
    pass

gymnasium.register("Mine-v0", entry_point="mine_envs:Mine", max_episode_steps=12)
"""


def test_environments_of_a_package_in_the_current_directory(folder):
    Path("mine_envs.py").write_text(REGISTERS)
    try:
        env = make_by_settings("a", {"env": "mine_envs:Mine-v0"})
        assert type(env.unwrapped).__name__ == "Mine"
    finally:
        gymnasium.registry.pop("Mine-v0")
        sys.modules.pop("mine_envs")
    with pytest.raises(MasteryError, match=f"run in the folder that holds it, not {folder}"):
        make_by_settings("a", {"env": "mine_others:Mine-v0"})


@pytest.mark.slow
def test_killed_on_the_command_line_and_resumed(folder):
    """Two programs in MiniGrid; the process is killed while it trains."""
    few = (
        "--frames", "8k", "--evaluate-every", "0", "--chunk", "2", "--save-every", "0",
        "--set", "envs=4", "--set", "frames=32", "--set", "batch=64", "--set", "ahead=4",
        "--set", "memory=none", "--set", "width=8",
    )  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLE.parent.parent), "COLUMNS": "200"}

    def command(*rest):
        return [sys.executable, "-m", "mastery", "train", *rest]

    texts = ("blocked-unlock-pickup", "--program", f"{OWN},own.py:Forgetful:rate=0.5,mr")
    subprocess.run(command(*texts, *few, "-o", "whole"), env=environment, check=True)
    killed = subprocess.Popen(command(*texts, *few, "-o", "parts"), env=environment)
    deadline = time.monotonic() + 120
    while killed.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(sqlite3.OperationalError):
            if Path("parts/run.db").exists() and len(curves("parts")) > 0:
                break
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    subprocess.run(command("--resume", "parts"), env=environment, check=True)
    assert curves("parts") == curves("whole")
    assert read_job("parts").programs == (OWN, "own.py:Forgetful:rate=0.5", "mr")
