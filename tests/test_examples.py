"""Every example runs, as the command in its first lines says."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_example(path):
    assert f"python examples/{path.name}" in path.read_text()
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_mr_beats_uniform_in_the_corridor():
    """The README's claim, on seeds that it does not show."""
    sys.path.insert(0, str(EXAMPLES[0].parent))
    try:
        from corridor import train
    finally:
        sys.path.pop(0)
    mr, uniform = (
        [train(program, seed) for seed in range(100, 108)] for program in ("mr", "uniform")
    )
    assert sorted(mr)[4] < sorted(uniform)[4]
