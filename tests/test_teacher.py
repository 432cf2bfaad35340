"""The teacher: what people use."""

import copy
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from strategies import curricula

from mastery import (
    CheckpointError,
    Curriculum,
    MasteryError,
    Program,
    ProgramError,
    Recipe,
    ReturnsError,
    Task,
    Teacher,
)
from mastery.programs.named import PROGRAMS


class Unreadable:
    """Such as a tensor that still needs its gradient."""

    def __array__(self, *_, **__):
        raise RuntimeError("use detach")


def small():
    return Curriculum([Task("easy"), Task("hard", after=("easy",))])


def test_the_example_of_the_readme():
    teacher = Teacher(small(), program="mr", seed=0)
    task = teacher.sample()
    teacher.update({task: 0.4})
    assert set(teacher.probabilities) == {"easy", "hard"}
    assert sum(teacher.probabilities.values()) == pytest.approx(1)


def test_equal_seeds_do_equal_things_and_others_do_not():
    def run(seed):
        teacher = Teacher(Curriculum.load("key-corridor"), "gamax-window", seed=seed)
        tasks = []
        for t in range(60):
            tasks.append(teacher.sample())
            teacher.update({tasks[-1]: t % 7 / 10})
        return tasks

    assert run(1) == run(1) != run(2)


def test_several_returns_of_a_task_count_as_their_mean():
    one, many = Teacher(small(), seed=0), Teacher(small(), seed=0)
    for _ in range(5):
        one.update({"easy": 0.25})
        many.update({"easy": [0.0, 0.5], "hard": []})
    assert one.probabilities == many.probabilities
    assert many.time_step == 5


def test_per_episode_takes_each_return_as_a_time_step():
    one, many = Teacher(small(), seed=0), Teacher(small(), seed=0, per_episode=True)
    many.update({"easy": [0.0, 0.5], "hard": (0.25,)})
    for returns in ({"easy": 0.0}, {"easy": 0.5}, {"hard": 0.25}):
        one.update(returns)
    assert one.probabilities == many.probabilities
    assert many.time_step == 3


def test_a_time_step_without_returns_passes():
    teacher = Teacher(small(), seed=0)
    teacher.update({})
    assert teacher.time_step == 1


@pytest.mark.parametrize(
    "value",
    [0.5, 1, True, np.float32(0.5), np.int64(1), np.array(0.5), np.array([0.5, 1]), [1, 0.5]],
)
def test_numbers_of_all_kinds_are_returns(value):
    Teacher(small()).update({"easy": value})


@pytest.mark.parametrize(
    ("returns", "message"),
    [
        ({"easy": float("nan")}, "task 'easy': a return is nan; it must be within"),
        ({"easy": [0.1, float("inf")]}, "a return is inf; it must be within"),
        ({"easy": "0.4"}, "must be a number or a list of numbers, not '0.4'"),
        ({"easy": None}, "must be a number or a list of numbers, not None"),
        ({"easy": [[0.1]]}, "must be a number or a list of numbers, not [[0.1]]"),
        ({"easy": ["0.5"]}, "not ['0.5']"),
        ({"easy": np.array([b"0.5"])}, "must be a number"),
        ({"easy": np.datetime64("2020-01-01")}, "must be a number"),
        ({"easy": Unreadable()}, "must be a number"),
        ({"easy": 1e308}, "a return is 1e+308; it must be within"),
        ({"easy": [1e308, 1e308]}, "a return is 1e+308; it must be within"),
        ({"easy": 10**400}, "must be a number"),
        ({"easy": {"a": 1}}, "must be a number"),
        ({"easy": 1j}, "must be"),
        ({"hard": 0.1, "eazy": 0.1}, "no task 'eazy'; did you mean 'easy'?"),
        ({3: 0.1}, "no task 3"),
        ([("easy", 0.1)], "update takes {task: return}"),
        (0.5, "update takes {task: return}"),
    ],
)
def test_a_wrong_return_changes_nothing(returns, message):
    teacher = Teacher(small(), seed=0)
    teacher.update({"easy": 0.3})
    before = teacher.state_dict()
    with pytest.raises(ReturnsError) as caught:
        teacher.update(returns)
    assert message in str(caught.value)
    after = teacher.state_dict()
    assert before["random"] == after["random"]
    for path, value in before["state"].items():
        np.testing.assert_array_equal(value, after["state"][path])


def test_wrong_calls_say_what_is_right():
    with pytest.raises(MasteryError, match=r"use Curriculum.load\('key-corridor'\)"):
        Teacher("key-corridor")
    with pytest.raises(ProgramError, match="did you mean 'mr'"):
        Teacher(small(), "mrr")
    teacher = Teacher(small())
    for wrong in (-1, 1.5, "2", True, 10**20):
        with pytest.raises(MasteryError, match="whole number"):
            teacher.sample(wrong)
        with pytest.raises(MasteryError, match="whole number"):
            teacher.allocate(wrong)
    assert teacher.sample(0) == []
    for wrong in (-1, "x", 1.5):
        with pytest.raises(MasteryError, match="seed"):
            Teacher(small(), seed=wrong)
    for wrong in (5, object()):
        with pytest.raises(ProgramError, match="has no init"):
            Teacher(small(), wrong)
    with pytest.raises(ProgramError, match="OwnProgram is a class"):
        Teacher(small(), OwnProgram)
    with pytest.raises(ProgramError, match="for 6 tasks, and the curriculum has 2"):
        Teacher(small(), Recipe.parse("mr").build(Curriculum.load("key-corridor")))


def test_explain_is_a_table_and_data():
    teacher = Teacher(Curriculum.load("key-corridor"), seed=0)
    for t in range(12):
        teacher.update({"S3R1": 0.04 * t, "S3R2": 0.0})
    why = teacher.explain()
    rows = {row["task"]: row for row in why}
    # means of the last ten returns: 0.26 of a maximum of 0.5, and a slope of 0.04
    assert rows["S3R1"]["mastery"] == pytest.approx(0.52)
    assert rows["S3R1"]["progress"] == pytest.approx(0.04)
    assert rows["S3R1"]["learnability"] == 1
    assert rows["S3R2"]["learnability"] == pytest.approx(0.52)
    # eq. 1 with M_Succ = 0: 0.6·0.48 + 0.4·1, and 0.52⁶·0.6 for S3R2
    assert rows["S3R1"]["attention"] == pytest.approx(0.688)
    assert rows["S3R2"]["attention"] == pytest.approx(0.6 * 0.52**6)
    assert why.probability.tolist() == list(teacher.probabilities.values())
    text = str(why)
    assert text.splitlines()[0].split() == [
        "task", "returns", "mastery", "learnability", "progress", "attention", "redistributed",
        "probability",
    ]  # fmt: skip
    assert "0.688" in text
    assert len(text.splitlines()) == 7
    assert teacher.mastery["S3R1"] == pytest.approx(0.52)


def test_explain_of_many_tasks_prints_the_most_probable():
    teacher = Teacher(Curriculum.random(500), seed=0)
    assert len(str(teacher.explain()).splitlines()) == 42


class OwnProgram:
    """Trains on the task that was seen least."""

    def init(self, noise):
        xp = noise.__array_namespace__()
        return {"count": xp.zeros(noise.shape[1], dtype=xp.int32)}

    def observe(self, state, evidence, noise):
        return {"count": state["count"] + evidence.seen}

    def distribution(self, state):
        least = state["count"] == state["count"].min()
        return least / least.sum()


def test_a_program_of_ones_own(tmp_path):
    teacher = Teacher(small(), OwnProgram(), seed=0)
    teacher.update({"easy": 1.0})
    assert teacher.probabilities == {"easy": 0.0, "hard": 1.0}
    assert teacher.mastery == {"easy": 1.0, "hard": 0.0}  # measured for every program
    assert teacher.explain().returns.tolist() == [1, 0]
    assert np.isnan(teacher.explain().attention).all()
    assert teacher.time_step == 1
    teacher.save(tmp_path / "t")
    with pytest.raises(CheckpointError, match="custom program \\(OwnProgram\\)"):
        Teacher.load(tmp_path / "t")
    again = Teacher.load(tmp_path / "t", program=OwnProgram())
    assert again.probabilities == teacher.probabilities


def test_a_program_of_ones_own_that_is_wrong_is_told():
    class Wrong(OwnProgram):
        def distribution(self, state):
            return state["count"] * 1.0

    with pytest.raises(ProgramError, match="check_program"):
        Teacher(small(), Wrong()).sample()


class Fails(OwnProgram):
    def observe(self, state, evidence, noise):
        if evidence.mean.max() > 1:
            raise RuntimeError("no")
        return super().observe(state, evidence, noise)


def test_when_a_program_of_ones_own_fails_nothing_has_changed():
    teacher = Teacher(small(), Fails(), seed=0, per_episode=True)
    twin = Teacher(small(), Fails(), seed=0, per_episode=True)
    with pytest.raises(RuntimeError, match="no"):
        teacher.update({"easy": [0.1, 0.2, 1.5]})
    assert teacher.probabilities == twin.probabilities
    assert teacher.sample(20) == twin.sample(20)
    assert teacher.time_step == 0


def test_numpy_seeds_and_a_program_with_jax_arrays_will_do():
    program = jax.tree.map(jnp.asarray, Recipe.parse("mr").build(small()))
    teacher = Teacher(small(), program, seed=np.int64(3))
    teacher.update({"easy": 0.25})
    assert teacher.sample() in ("easy", "hard")


def test_what_a_program_of_ones_own_keeps_is_left_alone():
    class Keeps(OwnProgram):
        mine = np.array([0.5, 0.5])

        def distribution(self, state):
            return self.mine

    Teacher(small(), Keeps()).sample()
    Keeps.mine[0] = 0.25  # not read-only


def test_a_state_that_cannot_be_saved_is_refused_at_once():
    class Wrong(OwnProgram):
        def init(self, noise):
            return {"count": object()}

    with pytest.raises(ProgramError, match="'count'; it must consist of named tuples"):
        Teacher(small(), Wrong())


def test_a_built_program_is_told_from_another_when_it_is_loaded(tmp_path):
    build = lambda text: Recipe.parse(text).build(small())  # noqa: E731
    Teacher(small(), build("mr:delta=0.9"), seed=0).save(tmp_path / "t")
    Teacher.load(tmp_path / "t", program=build("mr:delta=0.9"))
    with pytest.raises(CheckpointError, match="make the teacher with the same"):
        Teacher.load(tmp_path / "t", program=build("mr:delta=0.1"))


@pytest.mark.parametrize("program", ["mr:progress=online", "mr:progress=window", "gamax-window"])
def test_a_long_plateau_does_not_end_in_nonsense(program):
    """Moving averages fade to the smallest numbers there are; dividing by those must not fail."""
    teacher = Teacher(small(), program, seed=0)
    teacher.update({"easy": 0.0, "hard": 0.0})
    for _ in range(8000):
        teacher.update({"easy": 1.0, "hard": 0.5})
    beta = abs(teacher.explain().progress)
    assert (beta < 1e-300).all()
    assert sum(teacher.probabilities.values()) == pytest.approx(1)


def test_tiny_and_large_returns_make_sense():
    for program in ("mr", "competence:exponent=8", "gprop-linreg"):
        for size in (1e-310, 1e-30, 1e30):
            teacher = Teacher(small(), program, seed=0)
            for r in (0.0, size, 0.0, -size) * 5:
                teacher.update({"easy": r, "hard": -r / 2})
                assert sum(teacher.probabilities.values()) == pytest.approx(1)
                assert min(teacher.probabilities.values()) >= 0
                teacher.sample()


def test_a_teacher_can_be_copied():
    teacher = Teacher(small(), "gamax-window", seed=0)
    teacher.update({"easy": 0.5})
    twin = copy.deepcopy(teacher)
    for _ in range(20):
        assert teacher.sample() == twin.sample()
        teacher.update({"easy": 0.25})
        twin.update({"easy": 0.25})
    twin.update({"hard": 1.0})
    assert teacher.time_step == twin.time_step - 1


def test_an_interrupted_update_leaves_the_state_as_it_was(monkeypatch):
    teacher = Teacher(small(), "mr", seed=0)
    teacher.update({"easy": 0.1})
    before = teacher.state_dict()["state"]

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Program, "record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        teacher.update({"easy": 0.9})
    for path, value in teacher.state_dict()["state"].items():
        np.testing.assert_array_equal(value, before[path])


def test_the_distribution_cannot_be_written_to():
    teacher = Teacher(small())
    with pytest.raises(ValueError, match="read-only"):
        teacher.distribution[0] = 1


def updates_from_threads(threads, each):
    """Every thread adds 1.0 to its own task; counts and means must be exact afterwards."""
    curriculum = Curriculum([Task(f"t{i}", 0, 2) for i in range(4)])
    teacher = Teacher(curriculum, "gamax-window", seed=0)
    errors = []

    def work(k):
        try:
            for _ in range(each):
                teacher.update({f"t{k % 4}": 1.0})
                teacher.sample()
        except Exception as error:  # pragma: no cover
            errors.append(error)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    state = teacher.state_dict()["state"]
    assert state["t"] == threads * each
    assert state["tasks.history.count"].tolist() == [threads * each / 4] * 4
    assert state["tasks.mean"].tolist() == [1.0] * 4
    assert len(set(state["tasks.history.times"].ravel().tolist())) == 40  # no time-step twice


def test_threads_lose_no_update():
    updates_from_threads(threads=16, each=100)


@pytest.mark.slow
def test_sixteen_threads_of_ten_thousand_updates_lose_none():
    updates_from_threads(threads=16, each=10_000)


class TeacherMachine(RuleBasedStateMachine):
    """Whatever is done to a teacher, one that was saved and loaded goes on bit for bit."""

    @initialize(
        curriculum=curricula(sizes=(1, 2, 3, 6)),
        program=st.sampled_from([*PROGRAMS, "mr:progress=sampling,distribution=gamax"]),
        seed=st.integers(0, 2**31),
        per_episode=st.booleans(),
    )
    def start(self, curriculum, program, seed, per_episode):
        if program == "adarft" and len(curriculum) > 1 and not len(curriculum.edges):
            program = "mopps"  # it needs difficulties
        self.curriculum, self.program = curriculum, program
        self.teacher = Teacher(curriculum, program, seed=seed, per_episode=per_episode)
        self.twin = Teacher(curriculum, program, seed=seed, per_episode=per_episode)

    def both(self, act):
        a, b = act(self.teacher), act(self.twin)
        assert a == b

    @rule(k=st.none() | st.integers(0, 20))
    def sample(self, k):
        self.both(lambda t: t.sample() if k is None else t.sample(k))

    @rule(n=st.integers(0, 50))
    def allocate(self, n):
        self.both(lambda t: t.allocate(n))

    @rule(data=st.data())
    def update(self, data):
        value = st.floats(-10, 10) | st.lists(st.floats(-1, 1), max_size=3)
        names = st.sampled_from(self.curriculum.names)
        returns = data.draw(st.dictionaries(names, value))
        self.both(lambda t: t.update(returns))

    @rule(bad=st.sampled_from([{"?": 1.0}, {"t0": float("nan")}, {"t0": "x"}, [1], None]))
    def wrong_update(self, bad):
        with pytest.raises(ReturnsError):
            self.teacher.update(bad)

    @rule()
    def wrong_state(self):
        with pytest.raises(CheckpointError):
            self.teacher.load_state_dict({"curriculum": "x"})

    @rule()
    def save_and_load(self):
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "teacher"
            self.teacher.save(path)
            self.teacher = Teacher.load(path)

    @rule()
    def through_a_state_dict(self):
        fresh = Teacher(
            self.curriculum, self.program, seed=99, per_episode=self.teacher.per_episode
        )
        fresh.load_state_dict(self.teacher.state_dict())
        self.teacher = fresh

    @invariant()
    def they_are_the_same(self):
        if hasattr(self, "teacher"):
            assert self.teacher.probabilities == self.twin.probabilities
            a, b = self.teacher.state_dict(), self.twin.state_dict()
            assert a["random"] == b["random"]
            for path, value in a["state"].items():
                assert value.dtype == b["state"][path].dtype
                np.testing.assert_array_equal(value, b["state"][path])


TestTeacherMachine = TeacherMachine.TestCase
TestTeacherMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_a_state_of_another_curriculum_program_or_shape_is_refused():
    state = Teacher(small(), "mr").state_dict()
    other = Curriculum([Task("easy"), Task("hard", maximum=2.0, after=("easy",))])
    for teacher, message in (
        (Teacher(other, "mr"), "belongs to another curriculum"),
        (Teacher(small(), "mr:delta=0.5"), "program 'mr', but this teacher has 'mr:delta=0.5'"),
        (Teacher(small(), "mr", per_episode=True), "per_episode"),
    ):
        with pytest.raises(CheckpointError, match=message):
            teacher.load_state_dict(state)
    broken = {**state, "state": {**state["state"], "tasks.mean": np.zeros(3)}}
    with pytest.raises(CheckpointError, match=r"tasks.mean is float64\[3\], not float64\[2\]"):
        Teacher(small(), "mr").load_state_dict(broken)
    with pytest.raises(CheckpointError, match="does not match this teacher"):
        Teacher(small(), "mr").load_state_dict({**state, "random": {"bit_generator": "MT19937"}})
    with pytest.raises(CheckpointError, match=r"must be a dictionary from state_dict.., not None"):
        Teacher(small(), "mr").load_state_dict(None)


def test_a_recipe_can_be_given():
    assert str(Teacher(small(), Recipe.parse("mr", delta=0.5)).recipe) == "mr:delta=0.5"
