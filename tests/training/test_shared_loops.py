"""Several jobs in one compiled program, as on a GPU, each in a thread of its own."""

import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from small_jobs import job as small_job

from mastery.errors import MasteryError
from mastery.paper.side_by_side import groups, side_by_side
from mastery.rundir.results import load_results
from mastery.rundir.store import Store
from mastery.training.loops import compiled
from mastery.training.loops.minigrid import MiniGridLoop
from mastery.training.loops.shared import SharedLoops, may_share
from mastery.training.parts import create_parts
from mastery.training.train import Trained, train

CURVES = ("probability", "mastery", "returns", "episodes", "played", "progress")


class Part:
    """A job of an experiment, as small as can be."""

    def __init__(self, name, **changes):
        self.name, self._changes = name, changes

    def job(self, scale=1.0):
        given = {"seeds": 1, "chunk": 2, "frames": 64, "evaluate_every": 64, "episodes": 1}
        return small_job(**{**given, **self._changes})

    def without_tests(self):
        """The same without evaluations."""
        return Part(self.name, **{**self._changes, "evaluate_every": 0})


SHORT = Part("short", names=("easy",), programs=("mr",))
LONG = Part("long", names=("easy", "middle", "hard"), frames=128, seed=1)


@pytest.fixture
def batched(monkeypatch):
    """All runs at the same time, as on a GPU."""
    monkeypatch.setattr(compiled, "in_turn", lambda devices: False)


def keep_nothing(directory, folder, scale):
    pass


@pytest.fixture
def no_curves(monkeypatch):
    monkeypatch.setattr("mastery.paper.run.keep_curves", keep_nothing)


def same(one, other):
    found, expected = load_results(one), load_results(other)
    assert found.evaluations.keys() == expected.evaluations.keys()
    return all(
        np.array_equal(getattr(found, name), getattr(expected, name), equal_nan=True)
        for name in CURVES
    ) and all(
        np.array_equal(evaluation.returns, expected.evaluations[policy].returns)
        for policy, evaluation in found.evaluations.items()
    )


@pytest.mark.parametrize(
    ("short", "long", "compared"),
    [
        (SHORT.without_tests(), LONG.without_tests(), 1),
        pytest.param(SHORT, LONG, 2, marks=pytest.mark.slow),
    ],
)
def test_jobs_of_other_curricula_and_lengths_end_as_if_alone(
    short, long, compared, batched, no_curves, tmp_path
):
    said = []
    parts = [long, short]
    ends = {
        part.name: outcome
        for part, outcome in side_by_side(
            parts, tmp_path, lambda part, what: said.append((part.name, what.update))
        )
    }
    assert [ends[name].update for name in ("short", "long")] == [4, 8]
    assert all(end.ended and not end.interrupted for end in ends.values())
    assert [update for name, update in said if name == "long"] == [2, 4, 6, 8]
    for part in parts[:compared]:
        train(part.job(), tmp_path / "alone" / part.name)
        assert same(tmp_path / part.name, tmp_path / "alone" / part.name)
    # again: both are finished, and nothing is trained
    again = side_by_side(parts, tmp_path, lambda part, what: said.append(what))
    assert [outcome.update for _, outcome in again] == [8, 4]


@pytest.mark.slow
def test_a_job_that_fails_does_not_stop_the_other(batched, no_curves, tmp_path, monkeypatch):
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "notes.txt").write_text("mine")
    ends = {
        part.name: outcome
        for part, outcome in side_by_side([SHORT, LONG], tmp_path, lambda part, what: None)
    }
    assert "is not empty" in ends["short"]
    assert ends["long"].ended
    train(LONG.job(), tmp_path / "alone")
    assert same(tmp_path / "long", tmp_path / "alone")


@pytest.mark.slow
def test_ctrl_c_saves_all_and_they_go_on(batched, no_curves, tmp_path):
    parts = [Part("one", frames=480), Part("two", names=("easy",), programs=("mr",), frames=480)]
    said = []

    def say(part, what):
        said.append(what)
        if len(said) == 2:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.5)

    ends = [outcome for _, outcome in side_by_side(parts, tmp_path, say)]
    assert all(end.interrupted and end.ended is None for end in ends)
    ends = [outcome for _, outcome in side_by_side(parts, tmp_path, lambda part, what: None)]
    assert all(end.ended for end in ends)
    for part in parts:
        train(part.job(), tmp_path / "alone" / part.name)
        assert same(tmp_path / part.name, tmp_path / "alone" / part.name)


def test_after_an_error_that_is_not_mastery_s_the_other_jobs_save(tmp_path, monkeypatch):
    ends = []

    def fail():
        raise OSError("the disk is full")

    without_training(monkeypatch, short=fail)
    with pytest.raises(OSError, match="the disk is full"):
        ends.extend(part.name for part, _ in side_by_side([SHORT, LONG], tmp_path, print))
    assert ends == ["long"]


def test_jobs_save_and_stop_when_nobody_takes_their_outcomes(tmp_path, monkeypatch):
    saved = without_training(monkeypatch, short=lambda: None)
    ends = side_by_side([SHORT, LONG], tmp_path, print)
    assert next(ends)[0] is SHORT
    (other,) = [thread for thread in threading.enumerate() if thread.name == "long"]
    ends.close()
    other.join(10)
    assert saved == ["long"]


def without_training(monkeypatch, short):
    """The job `long` trains until it is stopped, and is then in the list of those that saved."""
    saved = []

    def run_part(part, folder, scale, options):
        if part.name == "short":
            short()
        else:
            while not options.stop():
                time.sleep(0.01)
            time.sleep(0.5)
            saved.append(part.name)
        return Trained(folder / part.name, 2, None, False)

    shared = SimpleNamespace(views=[SimpleNamespace(close=lambda: None)] * 2)
    monkeypatch.setattr("mastery.paper.side_by_side.MiniGridLoop", lambda job: None)
    monkeypatch.setattr("mastery.paper.side_by_side.SharedLoops", lambda loops: shared)
    monkeypatch.setattr("mastery.paper.side_by_side.run_part", run_part)
    return saved


@pytest.mark.slow
def test_a_second_ctrl_c_ends_the_process_and_does_not_abort_it(tmp_path):
    script = f"""
import signal
from pathlib import Path
from mastery.paper.side_by_side import side_by_side
from mastery.training.loops import compiled
from test_shared_loops import Part

signal.signal(signal.SIGINT, signal.default_int_handler)
compiled.in_turn = lambda devices: False
long = {{"frames": 640_000, "chunk": 400}}
parts = [Part("one", **long), Part("two", **long, programs=("uniform",))]
try:
    list(side_by_side(parts, Path({str(tmp_path)!r}), lambda part, what: print(what, flush=True)))
except KeyboardInterrupt:
    raise SystemExit(130) from None
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout.readline().startswith("Progress(")
    process.send_signal(signal.SIGINT)
    while not process.stdout.readline().startswith("stopping"):
        pass
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0]
    assert process.returncode == 130, rest


def test_an_error_reaches_every_job(batched):
    shared = SharedLoops([MiniGridLoop(part.job()) for part in (SHORT, LONG)])
    found = []

    def work(loop):
        try:
            loop.advance(["no carry"])
        except Exception as error:
            found.append(type(error))
        finally:
            loop.close()

    threads = [threading.Thread(target=work, args=(view,)) for view in shared.views]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 2
    assert found[0] is found[1]


def test_which_jobs_may_share(tmp_path):
    other = small_job(frames=64, chunk=1)
    assert may_share([SHORT.job(), LONG.job()])
    assert not may_share([SHORT.job(), other])
    parts = [SHORT, Part("other", chunk=1), LONG]

    def found():
        return [[part.name for part in group] for group in groups(parts, tmp_path, 1.0)]

    assert found() == [["short", "long"], ["other"]]
    create_parts(SHORT.job(), tmp_path / "short", 1)  # as on a cluster: each part has its own loop
    assert found() == [["short"], ["other"], ["long"]]


def test_other_jobs_in_the_folder_are_refused_before_anything_is_trained(tmp_path):
    with Store(tmp_path / "short", Part("short", names=("easy",), frames=1024).job()):
        pass
    with pytest.raises(MasteryError, match="holds another job"):
        list(side_by_side([SHORT, LONG], tmp_path, lambda part, what: None))
    assert not (tmp_path / "long").exists()
