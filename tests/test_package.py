"""The package as a whole: its public names, and what importing it needs."""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import numpy as np

import mastery

ROOT = Path(__file__).parent.parent


def test_the_public_names_are_the_documented_ones():
    documented = re.findall(r"^\| \[`(\w+)`\]\(", (ROOT / "docs" / "api.md").read_text(), re.M)
    assert sorted(documented, key=str.casefold) == sorted(mastery.__all__, key=str.casefold)
    for name in mastery.__all__:
        assert getattr(mastery, name).__doc__


def test_importing_needs_numpy_only(tmp_path):
    """In a virtual environment that has NumPy and nothing else."""
    venv.create(tmp_path / "bare", symlinks=True)  # without pip
    python = tmp_path / "bare" / "bin" / "python"
    site = next((tmp_path / "bare" / "lib").glob("python*/site-packages"))
    where = Path(np.__file__).parent
    for part in (where, where.parent / "numpy.libs"):
        if part.exists():
            (site / part.name).symlink_to(part)
    (site / "mastery").symlink_to(ROOT / "mastery")
    code = """
import sys, mastery
teacher = mastery.Teacher(mastery.Curriculum.load("key-corridor"), seed=0)
teacher.update({teacher.sample(): 0.4})
print(teacher.explain())
print(mastery.simulate(teacher.curriculum, ["mr"], seeds=1, steps=20)[0].budget)
foreign = {m.split(".")[0] for m in sys.modules} & {"jax", "typer", "rich", "scipy", "networkx"}
assert not foreign, foreign
"""
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    command = subprocess.run(
        [python, "-m", "mastery"], capture_output=True, text=True, cwd=tmp_path
    )
    assert command.returncode == 2
    remedy = "pip install 'mastery-curriculum[cli]'"
    assert command.stderr == f"mastery: the command line needs typer: {remedy}\n"


def test_importing_does_not_load_jax_even_when_it_is_there():
    code = "import sys, mastery; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_wheel_would_hold_every_data_file():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    package = ROOT / "mastery"
    held = {
        path for pattern in options["package-data"]["mastery"] for path in package.glob(pattern)
    }
    found = {path for path in package.rglob("*") if path.is_file() and path.suffix != ".py"}
    assert {path for path in found if "__pycache__" not in path.parts} == held


def test_nothing_unpickles():
    for path in (ROOT / "mastery").rglob("*.py"):
        assert not re.search(
            r"^\s*(import|from) (pickle|dill|cloudpickle|joblib|shelve)", path.read_text(), re.M
        )
        assert "allow_pickle=True" not in path.read_text()
