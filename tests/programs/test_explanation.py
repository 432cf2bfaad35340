"""What `explain` says of the order that `auto` has found, and the program that is the default."""

import numpy as np
import pytest

from mastery import Curriculum, Job, Task, Teacher
from mastery.programs.explanation import FoundOrder

CHAIN = Curriculum([Task("a"), Task("b", after=("a",)), Task("c", after=("b",))], name="chain")


def learn(teacher, names, steps=60):
    """Each task in turn succeeds for some time-steps, and goes on; the others fail."""
    known = []
    for name in names:
        known.append(name)
        for _ in range(steps):
            teacher.update({t: [float(t in known)] * 8 for t in teacher.curriculum.names})


def test_the_order_that_was_found_against_the_given_one():
    teacher = Teacher(CHAIN, "auto", seed=0)
    nothing = teacher.explain().found
    assert nothing.order == []
    assert nothing.trust == 0.5
    assert [state for *_, state in nothing.edges] == ["open", "open"]
    learn(teacher, ["b", "a"])  # b before a; c never
    found = teacher.explain().found
    assert found.order == ["b", "a"]
    assert found.edges == [("a", "b", "contradicts"), ("b", "c", "open")]
    assert found.trust == pytest.approx(1 / 3)  # none agrees, one is against: (0 + 1) / (0 + 1 + 2)
    text = str(teacher.explain())
    assert "learned so far: b, a" in text
    assert "0 of 2 edges agree with this, 1 contradict it, 1 are open; trust 0.33" in text
    assert "contradicted: a → b" in text


def test_a_right_order_earns_trust():
    teacher = Teacher(CHAIN, "auto", seed=0)
    learn(teacher, ["a", "b", "c"])
    found = teacher.explain().found
    assert found.order == ["a", "b", "c"]
    assert {state for *_, state in found.edges} == {"agrees"}
    # a has no ancestors; b and c were learned when theirs had a mastery of at least one half
    assert found.trust == pytest.approx(3 / 4)


def test_other_programs_find_no_order():
    assert Teacher(CHAIN, "mr").explain().found is None


def test_an_explanation_names_a_few_of_many():
    names = tuple(f"t{i}" for i in range(100))
    given = np.array([[i, i + 1] for i in range(99)])
    learned = np.append(0, np.arange(99, 0, -1))  # the last first, the first not yet
    best, still = np.ones(100), np.zeros(100, int)
    text = str(FoundOrder(names, learned, given, 0.01, "t5", best, still))
    assert text.splitlines()[0].startswith("learned so far: t99, t98, ")
    assert "… (99 of 100)" in text
    assert "0 of 99 edges agree" in text
    assert text.splitlines()[2].endswith(", …")
    assert "set aside" not in text


@pytest.mark.parametrize(("score", "waits"), [(0.0, True), (0.5, False)])
def test_a_block_is_named_only_while_no_other_task_makes_progress(score, waits):
    """Before the first success all training goes to one task; tasks that succeed half of the time
    share it."""
    teacher = Teacher(Curriculum([Task("a"), Task("b"), Task("c")]), "auto", seed=0)
    for _ in range(40):
        teacher.update({name: [0.0, 2 * score] * 8 for name in "abc"})
    explained = teacher.explain()
    assert ("nearly all training goes to" in str(explained)) == waits
    assert explained.found.block is not None
    assert (explained.attention.max() > 0.9) == waits


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-2, 8)])
def test_a_task_that_stands_still_is_set_aside_and_not_called_learned(low, high):
    tasks = [Task(name, low, high) for name in ("easy", "stuck", "hard")]
    teacher = Teacher(Curriculum(tasks), seed=0)
    for _ in range(400):
        shares = {"easy": 0.9, "stuck": 0.2, "hard": 0.0}
        teacher.update({t: [low + share * (high - low)] * 8 for t, share in shares.items()})
    found = teacher.explain().found
    assert found.order == ["easy", "stuck"]  # as the program counts, which moves on from both
    assert found.set_aside == ["stuck"]
    assert found.best[1] == pytest.approx(0.2, abs=0.02)
    assert found.still[1] > 300
    lines = str(found).splitlines()
    assert lines[0] == "learned so far: easy"
    rose = f"no rise for {found.still[1]} time-steps"
    assert lines[1] == f"set aside, no progress: stuck (best 0.20, {rose})"


def test_a_task_that_falls_again_was_learned():
    teacher = Teacher(Curriculum([Task("a"), Task("b")]), seed=0)
    for score in [0.9] * 60 + [0.5] * 60:
        teacher.update({"a": [score] * 8, "b": [0.0] * 8})
    found = teacher.explain().found
    assert found.order == ["a"]
    assert found.set_aside == []


def test_the_default_follows_an_order_or_needs_none():
    free = Curriculum([Task("a"), Task("b")])
    assert str(Teacher(CHAIN).recipe) == "mr"
    assert str(Teacher(free).recipe) == "auto"  # and no warning that there is no order
    digits = [Task(f"{n}", settings={"digits": n}) for n in (1, 2)]
    assert Job(Curriculum(digits)).programs == ("auto",)
    assert Job(Curriculum.load("addition-3")).programs == ("mr",)
