"""The page of the rules says what the curves say, and names every program."""

import runpy
from pathlib import Path

from mastery.programs.named import PROGRAMS

ROOT = Path(__file__).parents[2]
PAPER = {
    "mr", "gprop-linreg", "gamax-linreg", "gamax-window", "gamax-online", "naive", "sampling",
    "boltzmann-window", "exp3s", "competence", "uniform", "target", "sequential",
}  # fmt: skip
OURS = {"auto"}  # has a page of its own


def test_the_table_of_measurements_is_that_of_the_curves(capsys):
    runpy.run_path(str(ROOT / "benchmarks" / "rules.py"))["table"](ROOT / "docs" / "data" / "rules")
    page = (ROOT / "docs" / "results" / "rules.md").read_text()
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 23
    assert [row for row in rows if row not in page] == []


def test_every_rule_has_its_row():
    page = (ROOT / "docs" / "rules.md").read_text()
    for name in set(PROGRAMS) - PAPER - OURS:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` | ")][:1]
        assert row.count(" | ") == 4
        assert "arxiv.org" in row or "the same" in row
