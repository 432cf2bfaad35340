"""Prompts are saved and resumed bit for bit, both levels, and refuse what does not fit."""

import json

import numpy as np
import pytest

from mastery import CheckpointError, Curriculum, Prompts, Task, Teacher, checkpoint
from mastery.programs.named import PROGRAMS

TASKS = Curriculum([Task("a"), Task("b"), Task("c", after=("a",), settings={"difficulty": 50})])
DIFFICULT = Curriculum([Task(n, settings={"difficulty": 10 * i}) for i, n in enumerate("abc")])


def make(program="auto", n=30, curriculum=DIFFICULT, seed=3, **settings):
    labels = ["abc"[i % 3] for i in range(n)]
    return Prompts(range(n), Teacher(curriculum, program, seed=seed), labels, seed=seed, **settings)


def play(prompts, steps, seed, hold=2):
    """Some draws stay without a report, and some reports come in part; returns what was drawn."""
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(steps):
        batch = prompts.next(7)
        drawn.append((batch.ids.tolist(), batch.tickets.tolist()))
        some = random.permutation(7)[hold:]
        rewards = (random.random((len(some), 4)) < 0.4).astype(float)
        given = {"tokens": [12] * len(some), "tickets": batch.tickets[some]}
        prompts.report(batch.ids[some], rewards, final=bool(random.random() < 0.8), **given)
    return drawn


def same(a, b):
    """Equal states: the plain parts as text, the arrays by bytes."""
    arrays = [x.pop("arrays") | x["teacher"].pop("state") for x in (a, b)]
    assert json.dumps(a) == json.dumps(b)
    assert arrays[0].keys() == arrays[1].keys()
    for name, array in arrays[0].items():
        assert array.dtype == arrays[1][name].dtype
        assert array.tobytes() == arrays[1][name].tobytes(), name


@pytest.mark.parametrize("program", [*PROGRAMS, "uniform:gate=greso", "auto:by_cost=1"])
def test_a_resumed_run_goes_on_exactly(program, tmp_path):
    whole = make(program, update_every=5)
    play(whole, 12, 0)
    whole.save(tmp_path / "p.mastery")
    state = whole.state_dict()
    loaded = Prompts.load(tmp_path / "p.mastery")
    fresh = make(program, update_every=5, seed=9)
    fresh.load_state_dict(state)
    after = play(whole, 12, 1)
    for other in (loaded, fresh):
        assert play(other, 12, 1) == after
        same(whole.state_dict(), other.state_dict())


def test_added_and_retired_prompts_and_tasks_are_saved(tmp_path):
    whole = make("auto")
    play(whole, 5, 0)
    whole.teacher.change(Curriculum([*whole.teacher.curriculum, Task("d")]))
    whole.add(["d", "a", "d"])
    whole.retire([0, 4, 30])
    play(whole, 5, 1)
    whole.save(tmp_path / "p")
    loaded, fresh = Prompts.load(tmp_path / "p"), make("auto", seed=5)
    fresh.load_state_dict(whole.state_dict())  # made before the changes
    after = play(whole, 5, 2)
    for other in (loaded, fresh):
        assert play(other, 5, 2) == after
        same(whole.state_dict(), other.state_dict())
    assert fresh.teacher.curriculum.names == whole.teacher.curriculum.names


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: make(even=0.5), "the state has even=0.25, but this object has 0.5"),
        (lambda: make("mr"), "the state has program"),
        (lambda: make(n=33), "the state has 30 prompts, and this object 33"),
        (
            lambda: Prompts(range(3), Teacher(DIFFICULT, "auto"), ["b", "a", "c"]),
            "prompt 0 is of task 'b', and in the state of 'a'",
        ),
    ],
)
def test_a_state_of_other_prompts_is_refused(other, message):
    state = make().state_dict()
    prompts = other()
    before = prompts.state_dict()
    with pytest.raises(CheckpointError, match=message):
        prompts.load_state_dict(state)
    same(before, prompts.state_dict())


@pytest.mark.parametrize(
    "damage",
    [
        lambda s: s["arrays"].pop("pool.at"),
        lambda s: s["arrays"].update({"pool.order": s["arrays"]["pool.order"][:-1]}),
        lambda s: s["arrays"].update({"pool.task": s["arrays"]["pool.task"] + 7}),
        lambda s: s["arrays"].update({"tickets.row": s["arrays"]["tickets.row"] + 99}),
        lambda s: s["arrays"].update({"pool.flat": s["arrays"]["pool.flat"].astype(float)}),
        lambda s: s.update(random={"bit_generator": "MT19937"}),
        lambda s: s.update(tasks=[1, 2]),
        lambda s: s["teacher"].update(state={}),
    ],
)
def test_a_damaged_state_changes_nothing(damage):
    prompts = make()
    play(prompts, 4, 0)
    state = prompts.state_dict()
    damage(state)
    before = prompts.state_dict()
    with pytest.raises(CheckpointError):
        prompts.load_state_dict(state)
    same(before, prompts.state_dict())


def test_files_that_are_not_of_prompts_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="not from Prompts"):
        make().load_state_dict({"at": 3})
    Teacher(TASKS).save(tmp_path / "teacher")
    with pytest.raises(CheckpointError, match="holds 'teacher', not 'prompts'"):
        Prompts.load(tmp_path / "teacher")
    checkpoint.write(tmp_path / "empty", "prompts", {}, {})
    with pytest.raises(CheckpointError, match="does not hold prompts"):
        Prompts.load(tmp_path / "empty")


def test_a_custom_program_is_passed_again(tmp_path):
    class Even:
        def init(self, noise):
            return ()

        def observe(self, state, evidence, noise):
            return state

        def distribution(self, state):
            return np.full(3, 1 / 3)

    prompts = make(Even())
    play(prompts, 3, 0)
    prompts.save(tmp_path / "p")
    with pytest.raises(CheckpointError, match="has a custom program"):
        Prompts.load(tmp_path / "p")
    loaded = Prompts.load(tmp_path / "p", program=Even())
    assert play(loaded, 3, 1) == play(prompts, 3, 1)
