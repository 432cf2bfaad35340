"""A program of one's own, named by text: what is read, imported, made, and refused."""

import copy
import pickle
import re
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from command import mastery

from mastery import CheckpointError, Curriculum, ProgramError, Teacher, check_program
from mastery.errors import MasteryError
from mastery.programs.evidence import Evidence
from mastery.programs.own import OwnRecipe, read_program, same_program
from mastery.programs.program import Program
from mastery.programs.recipe import Recipe
from mastery.programs.side_by_side import build_switch
from mastery.simulation.simulate import simulate

CURRICULUM = Curriculum.load("key-corridor")
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "own_program.py"

SOURCE = '''
import mastery
from helper import weight  # beside this file

class Counting:
    """Less of what was seen more."""

    def __init__(self, sharpness=1, name="x", curriculum=None):
        self.given = sharpness, name, curriculum
        if sharpness == 13:
            raise ValueError("unlucky")

    def init(self, noise):
        return (0.0 * noise[0],)

    def observe(self, state, evidence, noise):
        return (state[0] + evidence.seen,)

    def distribution(self, state):
        return weight(state[0])

class Unfinished:
    def init(self, noise):
        return 0 * noise[0]

class Failing(Counting):
    def observe(self, state, evidence, noise):
        return (state[0] + 1 // len([]),)

class Doubled(Counting):
    def distribution(self, state):
        return 2 * weight(state[0])

class WithNumPy(Counting):
    def distribution(self, state):
        import numpy
        return weight(numpy.array(state[0]))

def counting(curriculum, sharpness=3):
    return Counting(sharpness, curriculum=curriculum)

def recipe():
    return mastery.programs.mr(delta=0.8)

ready = Counting("ready")
'''
HELPER = """
def weight(count):
    weight = 1 / (1 + count)
    return weight / weight.sum()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current directory, with the file above and a package with the same."""
    names = ("mine", "mine.programs", "helper")
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(SOURCE)
    Path("helper.py").write_text(HELPER)
    Path("mine").mkdir()
    Path("mine/__init__.py").touch()
    Path("mine/programs.py").write_text(SOURCE)
    yield tmp_path
    for name in names:
        sys.modules.pop(name, None)


def build(text):
    return read_program(text).build(CURRICULUM)


@pytest.mark.parametrize("place", ["own.py", "mine.programs", "mine/programs.py"])
def test_a_class_a_function_and_an_object_by_file_and_by_module(folder, place):
    before = list(sys.path)
    if "/" in place:  # what is beside the file can be imported
        Path("helper.py").rename("mine/helper.py")
    assert build(f"{place}:Counting").given == (1, "x", CURRICULUM)
    assert build(f"{place}:Counting:sharpness=2,name=y").given == (2, "y", CURRICULUM)
    assert build(f" {place}:Counting:sharpness=0.5, name=1e3 ").given == (0.5, 1000.0, CURRICULUM)
    assert build(f"{place}:counting:sharpness=4").given == (4, "x", CURRICULUM)
    assert build(f"{place}:ready").given[0] == "ready"
    assert isinstance(build(f"{place}:recipe"), Program)
    assert len(check_program(f"{place}:Counting", CURRICULUM)) == 5
    assert sys.path == before


def test_an_absolute_path_and_a_changed_file(folder):
    text = f"{folder}/own.py:Counting"
    first = type(build(text))
    assert type(build(text)) is first  # not imported again
    Path("own.py").write_text(SOURCE.replace("sharpness=1", "sharpness=7"))
    assert build(text).given[0] == 7
    assert type(build("own.py:Counting")) is type(build(text))


def test_the_text_is_data_and_imports_nothing():
    recipe = read_program("no_such.py:Class:a=1,b=x")
    assert recipe == OwnRecipe("no_such.py", "Class", {"a": "1", "b": "x"})
    assert str(recipe) == recipe.full == "no_such.py:Class:a=1,b=x"
    assert hash(recipe) == hash(read_program(" no_such.py:Class:a=1, b = x"))
    assert str(read_program("a.b:C")) == "a.b:C"
    assert recipe.source() == {}
    assert read_program(r"C:\mine\own.py:Class").place == r"C:\mine\own.py"
    assert isinstance(read_program("mr:delta=0.8"), Recipe)
    assert isinstance(read_program("naive:window=4"), Recipe)  # also with a module of that name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("other.py:C", r"there is no file '.*/other\.py' for the program 'other\.py:C'"),
        ("nowhere.programs:C", "no module 'nowhere' for the program .* in the current directory, "),
        ("mine.program:C", r"there is no module 'mine\.program' "),
        ("mrr:delta", "no module 'mrr'.*; did you mean 'mr'?"),
        ("own.py:Countin", "'own.py' has no 'Countin'; did you mean 'Counting'?"),
        ("own.py", "'own.py' does not name a program .*; write file.py:Class or "),
        ("mine.programs", "does not name a program of your own"),
        ("own.py:Counting:sharpness", "'sharpness' in .* does not have the form argument=value"),
        ("own.py:Counting:name=1,name=2", "'name' is set twice"),
        ("own.py:Counting:sharpnes=2", "has no argument 'sharpnes'; did you mean 'sharpness'?"),
        ("own.py:Counting:curriculum=2", "has no argument 'curriculum'"),
        ("own.py:recipe:delta=2", "has no argument 'delta'; it takes none"),
        (
            "own.py:Counting:sharpness=13",
            r"Counting\(sharpness=13\) failed: ValueError: unlucky \(/.*/own\.py, line 11\)",
        ),
        ("own.py:ready:sharpness=2", "'ready' in 'own.py' is an object, so it takes no arguments"),
        ("own.py:Unfinished", "own.py:Unfinished: .* has no observe"),
        ("own.py:mastery", "has no init"),
        ("syntax.py:C", r"'syntax.py:C' cannot be imported: SyntaxError: .*\(syntax.py, line 2\)"),
        ("wrong.py:C", r"cannot be imported: ZeroDivisionError: .* \(/.*/wrong\.py, line 2\)"),
        ("exits.py:C", "cannot be imported: SystemExit: 3"),
        ("lacks.py:C", "cannot be imported: ModuleNotFoundError: No module named 'absent'"),
        ("lacks:C", r"cannot be imported: ModuleNotFoundError: .*'absent' \(/.*/lacks\.py, line 1"),
        ("subprocess:getoutput:cmd=date", "'getoutput' in 'subprocess' is not called"),
    ],
)
def test_errors_name_the_thing_and_the_line(folder, text, message):
    Path("syntax.py").write_text("x = 1\ndef\n")
    Path("wrong.py").write_text("x = 1\n1 / 0\n")
    Path("exits.py").write_text("raise SystemExit(3)")
    Path("lacks.py").write_text("import absent")
    before = list(sys.path)
    with pytest.raises(ProgramError, match=message):
        build(text)
    assert sys.path == before


def test_what_is_neither_stays_an_error_of_the_known_programs():
    with pytest.raises(ProgramError, match="there is no program 'mrr'; did you mean 'mr'"):
        read_program("mrr:delta=0.8")
    with pytest.raises(ProgramError, match="must be a string"):
        read_program(3)


def test_a_teacher_by_text_is_saved_loaded_copied_and_pickled(folder):
    text = "own.py:Counting:sharpness=2"
    teacher = Teacher(CURRICULUM, text, seed=0)
    for _ in range(5):
        teacher.update({teacher.sample(): 0.5})
    teacher.save("t.ckpt")
    others = [Teacher.load("t.ckpt"), copy.deepcopy(teacher), pickle.loads(pickle.dumps(teacher))]
    tasks = teacher.sample(20)
    for other in others:
        assert other.state_dict()["program"] == text
        assert other.program.given == (2, "x", CURRICULUM)
        assert other.sample(20) == tasks
        assert other.mastery == teacher.mastery
    Path("own.py").rename("moved.py")
    with pytest.raises(CheckpointError, match=r"t.ckpt: there is no file '.*own.py'"):
        Teacher.load("t.ckpt")
    moved = Teacher.load("t.ckpt", program="moved.py:Counting:sharpness=2")
    assert moved.sample(20) == tasks
    with pytest.raises(CheckpointError, match="make the teacher with the same program"):
        Teacher.load("t.ckpt", program="moved.py:Counting:sharpness=3")


def test_the_same_program():
    assert same_program("mr", Recipe.parse("mr").full)
    assert same_program("a.py:C:x=1", "b.c:C:x=1")
    assert same_program("own C", "a.py:C:x=1")
    assert same_program("a.py:C", "own f.<locals>.C")
    assert not same_program("own C", "own D")
    assert not same_program("own C", "a.py:D")
    assert not same_program("a.py:C", "a.py:C:x=1")
    assert not same_program("a.py:C", "mr")
    with pytest.raises(MasteryError):
        same_program("nothing", "mr")


@pytest.mark.parametrize("backend", ["jax", "numpy"])
def test_simulate_by_text_is_simulate_with_the_object(folder, backend):
    given = {"seeds": 2, "steps": 30, "backend": backend}
    by_text, known = simulate(CURRICULUM, ["own.py:counting", "mr"], **given)
    assert by_text.program == "own.py:counting"
    (by_object,) = simulate(CURRICULUM, [build("own.py:Counting")], **given)
    assert np.array_equal(by_text.skill, by_object.skill)
    assert not np.array_equal(by_text.skill, known.skill)


def test_simulate_tests_the_program_first(folder):
    with pytest.raises(ProgramError, match=r"'own.py:Failing' fails: ZeroDivisionError.*line 28\)"):
        simulate(CURRICULUM, "own.py:Failing", seeds=1, steps=3)
    with pytest.raises(ProgramError, match=r"'own.py:Doubled': .*sums to (2|1.999)"):
        simulate(CURRICULUM, "own.py:Doubled", seeds=1, steps=3)
    with pytest.raises(ProgramError, match="simulate with --backend numpy"):
        simulate(CURRICULUM, "own.py:WithNumPy", seeds=1, steps=3, backend="jax")
    simulate(CURRICULUM, "own.py:WithNumPy", seeds=1, steps=3, backend="numpy")


@pytest.mark.slow
def test_under_vmap_each_run_has_the_distribution_of_its_own_program():
    """Two programs of one's own, with other arguments, beside two that are stacked."""
    least = f"{EXAMPLE}:LeastRecent:sharpness"
    texts = ["mr:window=4", f"{least}=0.1", "mr", f"{least}=2", f"{least}=0.1"]
    switches = build_switch(texts, CURRICULUM, compiled=True)
    assert switches.which.tolist() == [0, 1, 0, 2, 1]
    assert switches.slots == 10
    random, n = np.random.default_rng(0), len(CURRICULUM)
    tape = [
        (Evidence.single(random.random(n), random.random(n) < 0.4), random.random((3, n)))
        for _ in range(12)
    ]
    noise = random.random((3, n))

    @jax.jit
    @jax.vmap
    def run(switch):
        state, found = switch.init(jax.numpy.asarray(noise), switches.slots), []
        for evidence, fresh in tape:
            state = switch.observe(state, jax.tree.map(jax.numpy.asarray, evidence), fresh)
            found.append(switch.distribution(state))
        return jax.numpy.stack(found), switch.mastery(state), switch.progress(state)

    floats = jax.tree.map(lambda x: x.astype("f4") if x.dtype == np.float64 else x, switches)
    distributions, mastery, progress = run(floats)
    for i, text in enumerate(texts):
        program, meter = build(text), build("uniform" if "mr" not in text else text)
        state, measured = program.init(noise), meter.init(noise)
        for t, (evidence, fresh) in enumerate(tape):
            state = program.observe(state, evidence, fresh)
            measured = meter.observe(measured, evidence, fresh)
            assert np.allclose(distributions[i, t], program.distribution(state), atol=1e-4)
        assert np.allclose(mastery[i], meter.mastery(measured), atol=1e-5)
        assert np.allclose(progress[i], meter.view(measured).progress, atol=1e-5)


def test_the_template_of_the_documentation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (EXAMPLE.parent.parent / "docs" / "guides" / "own-program.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    Path("own.py").write_text(blocks[0])
    assert len(check_program("own.py:Failures:rate=0.2", CURRICULUM)) == 5
    Teacher(CURRICULUM, "own.py:Failures:rate=0.2").save("teacher.ckpt")
    assert Teacher.load("teacher.ckpt").program.rate == 0.2


def test_the_example_on_the_command_line(folder):
    folder.joinpath("least.py").write_bytes(EXAMPLE.read_bytes())
    few = ("--seeds", 1, "--steps", 5, "--backend", "numpy")
    text = "least:LeastRecent:sharpness=2"
    said = mastery("simulate", "key-corridor", "--program", text, "--against", "mr", *few)
    assert f"[1/2] {text}: time-step 0" in said
    said = mastery(
        "simulate", "key-corridor", "--against", f"{EXAMPLE}:LeastRecent:sharpness=2,mr", *few
    )
    assert "LeastRecent:sharpness=2: time-step 0" in said
    Teacher(CURRICULUM, f"{EXAMPLE}:LeastRecent", seed=0).save("t.ckpt")
    assert "0%" in mastery("show", "key-corridor", "--teacher", "t.ckpt")
    error = mastery("simulate", "key-corridor", "--program", "least.py:LeastRecen", *few, rc=2)
    assert error == "mastery: 'least.py' has no 'LeastRecen'; did you mean 'LeastRecent'?\n"
