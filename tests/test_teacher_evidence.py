"""How a teacher turns returns and costs into evidence, and when it warns."""

import os
import runpy
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from mastery import Curriculum, MasteryWarning, ReturnsError, Task, Teacher
from mastery.programs.named import PROGRAMS
from mastery.programs.states import leaves

# of the paper and as in the paper: they may leave a task out for long
MAY_STARVE = ("naive", "sampling", "boltzmann-window", "competence", "target", "sequential")


def small():
    return Curriculum([Task("easy"), Task("hard", after=("easy",))])


class Recorder:
    """A program that keeps the last evidence."""

    def init(self, noise):
        return {name: np.zeros(noise.shape[1]) for name in ("mean", "count", "variance", "cost")}

    def observe(self, state, evidence, noise):
        return {name: np.array(x, float) for name, x in evidence._asdict().items()}

    def distribution(self, state):
        return np.full(2, 0.5)


def evidence(teacher):
    state = teacher.state_dict()["state"]
    return {name: state[f"own.{name}"].tolist() for name in ("mean", "count", "variance", "cost")}


def test_an_update_becomes_evidence():
    teacher = Teacher(small(), Recorder())
    teacher.update({"easy": [0.0, 1.0, 1.0, 1.0], "hard": 0.25}, cost={"easy": [2, 3, 4, 1]})
    # the variance of 0, 1, 1, 1 is 0.75 · 0.25
    assert evidence(teacher) == {
        "mean": [0.75, 0.25],
        "count": [4, 1],
        "variance": [0.1875, 0],
        "cost": [10, 1],
    }
    teacher.update({"hard": [0.5, 0.5]}, cost={"hard": 7})
    assert evidence(teacher) == {
        "mean": [0, 0.5],
        "count": [0, 2],
        "variance": [0, 0],
        "cost": [0, 7],
    }


def test_every_return_is_a_time_step_of_its_own_if_wanted():
    teacher = Teacher(small(), Recorder(), per_episode=True)
    teacher.update({"easy": [0.0, 1.0]}, cost={"easy": 6})
    assert teacher.time_step == 2
    assert evidence(teacher) == {
        "mean": [1, 0],
        "count": [1, 0],
        "variance": [0, 0],
        "cost": [3, 0],
    }


@pytest.mark.parametrize(
    ("returns", "cost", "message"),
    [
        ({"easy": 1.0}, {"hard": 3}, "task 'hard' has a cost but no return"),
        ({"easy": [1.0, 0.0]}, {"easy": [1, 2, 3]}, "has 3 costs and 2 returns"),
        ({"easy": 1.0}, {"easy": -1}, "a cost is -1.0; it must be from 0"),
        ({"easy": 1.0}, {"easy": "much"}, "a cost must be a number"),
        ({"easy": 1.0}, 5, "cost takes {task: cost}, not 5"),
    ],
)
def test_a_wrong_cost_is_refused_and_nothing_has_changed(returns, cost, message):
    teacher = Teacher(small(), seed=0)
    with pytest.raises(ReturnsError, match=message):
        teacher.update(returns, cost=cost)
    assert teacher.time_step == 0


def test_a_tensor_that_requires_grad_is_a_number():
    torch = pytest.importorskip("torch")
    teacher = Teacher(small(), seed=0)
    teacher.update({"easy": torch.tensor([0.5, 1.0], requires_grad=True)})
    assert teacher.mastery["easy"] == 0.75


def test_shared_by_cost_the_cheap_task_is_drawn_more_often():
    teacher = Teacher(Curriculum([Task("short"), Task("long")]), "uniform:by_cost=1", seed=0)
    for _ in range(2000):
        teacher.update({"short": 0.5, "long": 0.5}, cost={"short": 10, "long": 90})
    # p ∝ 1 / mean cost, so each task gets the same share of what is spent
    assert teacher.probabilities["short"] == pytest.approx(0.9, abs=0.01)


def test_one_outlier_does_not_blind_the_teacher():
    teacher = Teacher(small(), seed=0)
    for _ in range(20):
        teacher.update({"easy": 0.05})
    with pytest.warns(MasteryWarning, match="task 'easy': a return of -1000 is far outside"):
        teacher.update({"easy": -1000.0})
    for _ in range(20):
        teacher.update({"easy": 0.05})
    assert teacher.mastery["easy"] == pytest.approx(0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        teacher.update({"easy": -1000.0})  # told once


def test_bounds_that_are_wrong_still_follow_the_returns():
    """As in the paper, r̄ beyond a bound moves it; here as far as the median goes with it."""
    teacher = Teacher(small(), seed=0)
    for t in range(40):
        teacher.update({"easy": 1.2 + 0.01 * (t % 2)})
    assert teacher.mastery["easy"] == pytest.approx(1)
    for _ in range(10):
        teacher.update({"easy": 0.6})
    assert teacher.mastery["easy"] == pytest.approx(0.6 / 1.205)


def test_scores_in_percent_are_told():
    teacher = Teacher(small(), seed=0)
    with pytest.warns(MasteryWarning, match="if your scores are in percent, divide them by 100"):
        teacher.update({"easy": 85.0})


@pytest.mark.filterwarnings("default:the program")
def test_a_program_that_follows_an_order_says_when_there_is_none():
    unordered = Curriculum([Task("a"), Task("b")])
    with pytest.warns(MasteryWarning, match="'mr' follows the order of the tasks, and"):
        Teacher(unordered, "mr")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Teacher(unordered, "learnability")
        Teacher(small(), "mr")


def snapshot(teacher):
    state = teacher.state_dict()
    found = {path: leaf.copy() for path, leaf in leaves(state["state"])}
    return teacher.time_step, state["random"]["state"], found


def equal(a, b):
    same = all(np.array_equal(a[2][path], b[2][path]) for path in a[2])
    return a[:2] == b[:2] and same


@pytest.mark.parametrize(
    "program",
    [
        "mr",
        "exp3s",
        "naive",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("sampling", "mopps", "greso")),
    ],
)
@pytest.mark.parametrize("per_episode", [False, True])
def test_an_interrupt_inside_an_update_leaves_all_or_nothing(program, per_episode):
    """An interrupt is aimed at every line that runs inside `update`."""

    def fresh():
        teacher = Teacher(small(), program, seed=0, per_episode=per_episode)
        for t in range(12):
            teacher.update({"easy": 0.1 * (t % 5), "hard": 0.05})
        return teacher

    update = {"easy": [0.5, 0.75], "hard": 0.25}
    before, after = fresh(), fresh()
    after.update(update)
    wanted = snapshot(before), snapshot(after)
    at, done = 0, False
    while not done:
        teacher, at, left = fresh(), at + 1, at + 1

        def trace(frame, event, argument):
            nonlocal left
            if event == "line" and "mastery" in frame.f_code.co_filename:
                left -= 1
                if not left:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            teacher.update(update)
            done = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        now = snapshot(teacher)
        assert equal(now, wanted[0]) or equal(now, wanted[1]), f"interrupted at line {at}"
        if at % 10 == 0:  # and it goes on as if nothing had happened
            teacher.sample()
    assert at > 50


class Slow(Recorder):
    """Takes its time to observe."""

    entered = threading.Event()

    def observe(self, state, evidence, noise):
        self.entered.set()
        time.sleep(0.5)
        return super().observe(state, evidence, noise)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_while_another_thread_is_inside_a_teacher():
    teacher = Teacher(small(), Slow(), seed=0)
    thread = threading.Thread(target=teacher.update, args=({"easy": 0.5},))
    thread.start()
    teacher.program.entered.wait()
    child = os.fork()
    if child == 0:
        teacher.sample()  # hangs if the lock was copied while it was held
        os._exit(0 if teacher.time_step == 1 else 1)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    thread.join()
    assert ended
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.filterwarnings("ignore:the program")
@pytest.mark.parametrize(
    "name",
    [name for name in PROGRAMS if name not in MAY_STARVE]
    + ["mr:gate=zero-variance", "mr:gate=retire", "uniform:gate=zero-variance"],
)
def test_no_rule_starves_a_task(name):
    """With a share ρ for 5 tasks and 16 draws, a task is unseen for more than n time-steps with a
    probability of at most (1 − ρ / 5)^(16 n): for ρ = 0.05 and n = 60 less than 1e-4."""
    path = Path(__file__).parent.parent / "benchmarks" / "starvation.py"
    wait = runpy.run_path(str(path))["wait"]
    assert wait(name, seed=1, most=60) < 60
