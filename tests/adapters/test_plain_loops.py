"""A curriculum in a loop of one's own takes ten lines at most. (That the examples run, with the
command in their first lines, is checked in tests/test_examples.py.)"""

import difflib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.parametrize("name", ["ppo", "supervised"])
def test_the_difference_is_ten_lines_at_most(name):
    plain, taught = (
        (EXAMPLES / f"{stem}.py").read_text().splitlines() for stem in (name, f"{name}_curriculum")
    )
    changed = [line for line in difflib.ndiff(plain, taught) if line[0] in "+-"]
    assert 0 < len(changed) <= 10
