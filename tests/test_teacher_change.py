"""A teacher whose tasks change while it runs: every program, what stays is kept exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mastery import (
    Curriculum,
    CurriculumError,
    MasteryError,
    MasteryWarning,
    ProgramError,
    Task,
    Teacher,
    record,
)
from mastery.programs.named import PROGRAMS
from mastery.programs.states import leaves
from mastery.rundir.results import load_results

GATES = [f"uniform:gate={gate}" for gate in ("zero-variance", "retire", "greso")]
EVERY = [*PROGRAMS, *GATES, "auto:by_cost=1,reprobe=0.1", "mr:progress=sampling", "mr:window=4"]
pytestmark = pytest.mark.filterwarnings("ignore:the program")


def curriculum(names, edges=()):
    """Tasks in the given order; an edge (i, j) with i < j."""
    return Curriculum(
        [
            Task(
                name,
                after=tuple(names[i] for i, k in edges if k == j),
                settings={"difficulty": ord(name) - 97},
            )
            for j, name in enumerate(names)
        ]
    )


def play(teacher, steps, seed):
    random = np.random.default_rng(seed)
    drawn = []
    for t in range(steps):
        tasks = teacher.sample(3)
        drawn.append(tasks)
        returns = {task: (random.random(4) < 0.2 + 0.05 * t % 1).astype(float) for task in tasks}
        teacher.update(returns, cost={task: float(random.integers(1, 9)) for task in returns})
    return drawn


def arrays(teacher):
    return {path: np.array(leaf) for path, leaf in leaves(teacher._state)}


@st.composite
def changes(draw):
    """A curriculum, and another that shares some of its tasks, in other places and orders."""

    def some():
        names = draw(st.permutations("abcdef"))[: draw(st.integers(1, 6))]
        pairs = [(i, j) for j in range(len(names)) for i in range(j)]
        edges = draw(st.sets(st.sampled_from(pairs), max_size=5)) if pairs else set()
        return curriculum(names, sorted(edges))

    return some(), some()


@pytest.mark.parametrize("program", EVERY)
@given(pair=changes(), steps=st.integers(0, 25), seed=st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_what_stays_is_kept_and_what_is_new_starts_fresh(program, pair, steps, seed):
    old, new = pair
    if program == "adarft" and any(len(c) < 2 for c in pair):
        return
    teacher = Teacher(old, program, seed=seed)
    play(teacher, steps, seed)
    before, time_step = arrays(teacher), teacher.time_step
    explained = {row["task"]: row for row in teacher.explain()}
    teacher.change(new)
    after, fresh = arrays(teacher), arrays(Teacher(new, program, seed=seed))
    assert teacher.time_step == time_step
    assert before.keys() == after.keys()
    own = {"attention", "attention.total"} if program in ("exp3s", "odm") else set()
    for path, leaf in after.items():
        if not leaf.ndim:  # of the program as a whole
            indexes = {"held", "attention.task"} | (
                {"attention"} if program == "sequential" else set()
            )
            assert path in indexes or leaf == before[path]
            continue
        assert leaf.shape == fresh[path].shape
        for j, name in enumerate(new.names):
            if name in old:
                assert leaf[..., j].tobytes() == before[path][..., old.index(name)].tobytes()
            elif path != "noise" and path not in own:
                assert leaf[..., j].tobytes() == fresh[path][..., j].tobytes()
    for row in teacher.explain():
        if row["task"] in explained:
            assert row["mastery"] == explained[row["task"]]["mastery"]
            assert row["returns"] == explained[row["task"]]["returns"]
    assert teacher.distribution.sum() == pytest.approx(1)
    # it goes on, is saved and resumed
    twin = Teacher(new, program, seed=99)
    twin.load_state_dict(teacher.state_dict())
    assert play(twin, 12, seed) == play(teacher, 12, seed)
    assert repr(twin.state_dict()) == repr(teacher.state_dict())


@pytest.mark.parametrize("program", EVERY)
def test_a_task_that_comes_and_goes_unseen_leaves_no_trace(program):
    old = curriculum("abc", [(0, 1)])
    teacher, twin = (Teacher(old, program, seed=3) for _ in range(2))
    for each in (teacher, twin):
        play(each, 20, 1)
    teacher.change(curriculum("abcd", [(0, 1)]))
    teacher.change(old)
    teacher._random = twin._random  # new tasks may draw some
    a, b = arrays(teacher), arrays(twin)
    assert {path for path, leaf in a.items() if leaf.tobytes() != b[path].tobytes()} <= (
        {"attention"} if program == "sequential" else set()
    )


def test_the_held_task_and_the_block_move_with_their_task():
    naive = Teacher(curriculum("abcdef"), "naive", seed=2)
    play(naive, 3, 0)
    (held,) = [name for name, p in naive.probabilities.items() if p == 1]
    others = [name for name in "fedcba" if name != held]
    naive.change(curriculum([*others[:3], held, *others[3:], "g"]))
    assert naive.probabilities[held] == 1
    naive.change(curriculum(others))  # it is gone: another is held
    assert max(naive.probabilities.values()) == 1
    auto = Teacher(curriculum("abcdef"), "auto", seed=2)
    for _ in range(40):
        auto.update({name: [0.0] * 4 for name in "abcdef"})
    block = auto.explain().found.block
    others = [name for name in "fedcba" if name != block]
    auto.change(curriculum([*others, block]))
    assert auto.explain().found.block == block
    auto.change(curriculum(others))
    assert auto.explain().found.block is None
    auto.update({others[0]: [0.0] * 4})
    assert auto.explain().found.block in others


@pytest.mark.parametrize("program", ["exp3s", "odm"])
def test_bandits_give_a_new_task_the_mean_of_the_others(program):
    teacher = Teacher(curriculum("abcd"), program, seed=0)
    play(teacher, 60, 0)
    teacher.change(curriculum("abcde"))
    p = teacher.probabilities
    rest = [p[name] for name in "abcd"]
    assert min(rest) <= p["e"] <= max(rest)


def test_levels_are_gone_through_again_where_a_new_task_needs_it():
    chain = curriculum("abc", [(0, 1), (1, 2)])
    teacher = Teacher(chain, "sequential", seed=0)
    for _ in range(25):
        teacher.update(dict.fromkeys("abc", 1.0))
    assert teacher.probabilities["c"] == 1
    teacher.change(curriculum("abcd", [(0, 1), (1, 2)]))  # d is on the first level
    assert teacher.probabilities["d"] > 0


def test_the_program_can_follow_another_order():
    teacher = Teacher(curriculum("ab", [(0, 1)]), "mr", seed=0)
    assert teacher.probabilities["b"] < 0.5
    teacher.change(curriculum("ba", [(0, 1)]))
    assert teacher.probabilities["b"] > 0.5


@pytest.mark.parametrize(
    ("new", "error", "message"),
    [
        ("key-corridor", MasteryError, "change needs a Curriculum"),
        (Curriculum([Task("a", 0, 2)]), CurriculumError, "task 'a' has the bounds 0 and 1, and"),
    ],
)
def test_wrong_changes_are_refused_and_change_nothing(new, error, message):
    teacher = Teacher(curriculum("ab"), "auto", seed=0)
    play(teacher, 5, 0)
    before = repr(teacher.state_dict())
    with pytest.raises(error, match=message):
        teacher.change(new)
    assert repr(teacher.state_dict()) == before


def test_a_custom_program_keeps_its_tasks():
    class Even:
        def init(self, noise):
            return ()

        def observe(self, state, evidence, noise):
            return state

        def distribution(self, state):
            return np.full(2, 1 / 2)

    teacher = Teacher(curriculum("ab"), Even())
    with pytest.raises(ProgramError, match="custom program cannot change"):
        teacher.change(curriculum("a"))


def test_a_recording_ends_when_the_tasks_change(tmp_path):
    teacher = Teacher(curriculum("ab"), "auto", seed=0)
    record(teacher, tmp_path / "first")
    play(teacher, 5, 0)
    with pytest.warns(MasteryWarning, match="record into another folder"):
        teacher.change(curriculum("abc"))
    found = load_results(tmp_path / "first")
    assert (found.ended, found.returns.shape[2]) == ("the tasks changed", 2)
    with record(teacher, tmp_path / "second"):
        play(teacher, 5, 0)
    assert load_results(tmp_path / "second").returns.shape[2] == 3
