"""The page of prompts says what the measurements say."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "data" / "prompts" / "levels.csv"


def test_the_table_of_both_levels_is_that_of_the_runs(capsys):
    prompts = runpy.run_path(str(ROOT / "benchmarks" / "prompts.py"))
    prompts["levels"](prompts["load"](DATA)[0])
    printed = [line for line in capsys.readouterr().out.splitlines() if " --- " not in line]
    assert len(printed) == 1 + 3 * 6
    page = (ROOT / "docs" / "results" / "prompts.md").read_text()
    assert [row for row in printed if row not in page] == []


def test_both_levels_are_ahead_under_every_program_that_is_recommended():
    prompts = runpy.run_path(str(ROOT / "benchmarks" / "prompts.py"))
    runs, _ = prompts["load"](DATA)

    def mean(key):
        return sum(result.area for result in runs[key].values()) / len(runs[key])

    for key in runs:
        if key.tasks == "both" and key.order == "none" and key.program in ("auto", "uniform"):
            assert mean(key) > mean(key._replace(tasks="categories"))
            assert mean(key) > mean(key._replace(tasks="prompts"))
