"""The page of `auto` says what the measurements say."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "data" / "auto"


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs" / "results" / "auto.md").read_text()


def rows(text):
    return [line for line in text.splitlines() if line.startswith("| ") and " --- " not in line]


def test_the_tables_of_training_are_those_of_the_curves(page, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    runpy.run_path(str(ROOT / "benchmarks" / "auto.py"))["tables"](DATA)
    printed = rows(capsys.readouterr().out)
    assert len(printed) == 3 * (8 + 10) + 6 + 7  # three curricula, the parts, and addition
    assert [row for row in printed if row not in page] == []


def test_the_tables_of_prompts_are_those_of_the_runs(page, capsys):
    prompts = runpy.run_path(str(ROOT / "benchmarks" / "prompts.py"))
    prompts["brief"](prompts["load"](DATA / "prompts.csv")[0])
    printed = rows(capsys.readouterr().out)
    assert len(printed) == (1 + 10) + (1 + 14)
    assert [row for row in printed if row not in page] == []


def test_every_program_that_is_recommended_for_prompts_is_ahead_of_uniform():
    prompts = runpy.run_path(str(ROOT / "benchmarks" / "prompts.py"))
    runs, _ = prompts["load"](DATA / "prompts.csv")
    mean = lambda key: sum(r.area for r in runs[key].values()) / len(runs[key])  # noqa: E731
    behind = {
        key.program
        for key in runs
        if key.order == "none" and mean(key) < mean(key._replace(program="uniform"))
    }
    safe = sorted({key.program for key in runs} - behind - {"uniform"})
    which = (ROOT / "docs" / "which.md").read_text()
    *most, last = (f"`{program}`" for program in safe)
    assert f"leaves {', '.join(most)} and {last}." in which.replace("\n  ", " ")


def test_the_table_of_hidden_orders_is_that_of_the_runs(page, capsys, monkeypatch):
    orders = runpy.run_path(str(ROOT / "benchmarks" / "orders.py"))
    monkeypatch.setattr("sys.argv", ["orders.py", "--redraw", str(DATA / "orders.csv")])
    orders["main"]()
    printed = rows(capsys.readouterr().out)
    assert len(printed) > 10
    assert [row for row in printed if row not in page] == []


def test_the_costs_of_a_wrong_order_are_those_of_the_curves(monkeypatch):
    """The table in docs/which.md: mean areas relative to those of `uniform`."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    auto = runpy.run_path(str(ROOT / "benchmarks" / "auto.py"))
    orders = {"true": None, "none": None, **dict.fromkeys(auto["WRONG"]["auto"])}
    rows = {order: [] for order in orders}
    for curriculum in ("key-corridor", "blocked-unlock-pickup", "obstructed-maze"):
        found = auto["curves"].load(DATA / "curves" / f"{curriculum}.npz")
        mean = {program: found.area(program).mean() for program in found.runs}
        without = {"auto": auto["name"](auto["NONE"]), "mr": auto["name"](auto["WITHOUT"])}
        for order in rows:
            for program in ("mr", "auto"):
                given = auto["name"](auto["text"](program, order))
                given = {"true": program, "none": without[program]}.get(order, given)
                found_area = mean[given] / mean["uniform"] if given in mean else None
                rows[order].append("–" if found_area is None else f"{found_area:.2f}")
    page = (ROOT / "docs" / "which.md").read_text()
    for order, cells in rows.items():
        row = f"| {order} | " + " | ".join(cells) + " |"
        assert row in page, row
