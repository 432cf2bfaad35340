"""Imports go one way: a room imports what is below it, and itself."""

import ast
from collections import Counter
from pathlib import Path

import mastery

ROOT = Path(mastery.__file__).parent
# from the ground up; rooms of a row do not import each other
LAYERS = [
    {"errors", "forks", "random_numbers"},
    {"checkpoint", "curriculum", "statistics"},
    {"programs"},
    {"teacher"},
    {"prompts"},
    {"simulation", "drawing", "rundir", "minigrid", "reasoning"},
    {"learners"},
    {"training"},
    {"cluster"},
    {"page"},
    {"recording"},  # shows the page in notebooks
    {"adapters"},
    {"paper"},
    {"comparison"},
    {"cli"},
    {"__init__", "__main__"},
]
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}
# a picture of what was simulated
ALLOWED = {("simulation", "drawing")}


def room(parts):
    """The room of a module by its path below the package."""
    return parts[0] if len(parts) > 1 else Path(parts[0]).stem


def imports():
    """(file, the room it is in, the room it imports), also of imports inside functions."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                steps = name.split(".")
                if steps[0] == "mastery" and len(steps) > 1:
                    yield "/".join(parts), room(parts), steps[1]


def test_every_room_has_a_place():
    rooms = {path.stem for path in ROOT.iterdir() if path.suffix == ".py"}
    rooms |= {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(HEIGHT)


def test_no_import_goes_upwards_or_sideways():
    wrong = []
    for file, own, other in imports():
        if other not in HEIGHT or other == own or (own, other) in ALLOWED:
            continue  # a public name of the package itself, or its own room
        if HEIGHT[other] >= HEIGHT[own]:
            wrong.append(f"{file} imports {other}")
    assert wrong == []


def test_the_general_loop_knows_no_learner():
    """What is common to all loops imports none of them, and no learner."""
    for name in ("loop", "compiled", "named_arrays"):
        text = (ROOT / "training" / "loops" / f"{name}.py").read_text()
        assert "mastery.learners" not in text
        assert "mastery.minigrid" not in text


def test_the_top_level_is_small():
    assert len([path for path in ROOT.iterdir() if path.suffix == ".py"]) <= 8


def definitions(kind):
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, kind):
                yield path.relative_to(ROOT), node


def test_no_two_classes_have_the_same_name():
    """But for the callbacks of two libraries, which play the same part in each."""
    names = Counter(node.name for _, node in definitions(ast.ClassDef))
    assert [name for name, n in names.items() if n > 1] == ["CurriculumCallback"]


def test_functions_and_files_are_short():
    """Lines without the docstring; a command of the command line declares its options."""
    long = []
    for path, node in definitions(ast.FunctionDef):
        text = node.body[0].end_lineno - node.body[0].lineno + 1 if ast.get_docstring(node) else 0
        lines = node.end_lineno - node.lineno + 1 - text
        if lines > 60 and not node.name.endswith("_command"):
            long.append(f"{path}: {node.name} has {lines} lines")
    for path in sorted(ROOT.rglob("*.py")):
        if (lines := len(path.read_text().splitlines())) > 450:
            long.append(f"{path} has {lines} lines")
    assert not long
