"""Tables, choosers and files of the page, in a real browser."""

import contextlib
import csv
import io
import json
import re
import shutil
import sqlite3
import struct
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from made_jobs import add_point, chain, make_job, write_job
from test_page_browser import see_all, until
from test_page_server import serving

from mastery.cli.page import write_report
from mastery.page import assemble, data
from mastery.page.places import Place
from mastery.page.server import Server
from mastery.rundir.store import Store
from mastery.training.job import Job

DELTAS = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.7", "0.8", "0.9")
MANY = ("mr", "uniform", *(f"mr:delta={delta}" for delta in DELTAS))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_job(folder / "job")
    write_report([folder / "job"], folder / "report.html")
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Ten programs."""
    folder = tmp_path_factory.mktemp("many")
    write_job(folder / "job", make_job(programs=MANY, seeds=2))
    write_report([folder / "job"], folder / "report.html")
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Two settings with three values each: one spans two decades, the other does not."""
    folder = tmp_path_factory.mktemp("sweep")
    grid = {"learning_rate": (1e-4, 1e-3, 1e-2), "entropy": (0.001, 0.002, 0.004)}
    write_job(folder / "sweep", make_job(programs=("mr",), seeds=2, points=6, grid=grid), points=6)
    write_report([folder / "sweep"], folder / "report.html")
    return folder


@pytest.fixture(scope="module")
def with_changed_entry(tmp_path_factory):
    """A page of one job whose entry says something else."""
    folder = tmp_path_factory.mktemp("entry")
    place = Place(write_job(folder / "job", points=6, ended=None), "job")

    def written(name, **changes):
        entry = data.job_entry(place) | changes
        assemble.write(folder / f"{name}.html", name, [entry], [data.job_curves(place)])
        return (folder / f"{name}.html").as_uri()

    return written


def saved(page, press):
    """What is downloaded when something is pressed: its name and its bytes."""
    with page.expect_download() as waiting:
        press()
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def saved_csv(page, label):
    name, content = saved(page, page.get_by_role("button", name=f"Save {label} as CSV").click)
    return name, list(csv.reader(io.StringIO(content.decode(), newline="")))


def active(page):
    return page.evaluate(
        "(({ dataset, textContent }) => dataset.key ?? textContent)(document.activeElement)"
    )


# files


def test_csv_is_quoted_and_keeps_every_digit(tmp_path, visit):
    write_job(tmp_path / "job", points=2)
    with serving(Server([tmp_path / "job"], port=0)) as server:
        page = visit(server.url)
        rows = [["a,b", 'say "x"', "two\nlines"], [0.1 + 0.2, None, 1e-7], [True, "é", 12345678]]
        text = page.evaluate("(rows) => import('/downloads.js').then((m) => m.csvOf(rows))", rows)
    assert text == (
        '"a,b","say ""x""","two\nlines"\r\n0.30000000000000004,,1e-7\r\ntrue,é,12345678\r\n'
    )


def test_a_picture_is_saved_as_it_looks(sweep, visit):
    page = visit((sweep / "report.html").as_uri(), dark=True)
    see_all(page)
    figure = page.locator("#settings-slices figure[data-setting=entropy]")
    opener = figure.get_by_role("button", name="Save entropy")

    def choose(text):
        opener.click()
        figure.get_by_role("menuitem", name=text).click()

    name, content = saved(page, lambda: choose("SVG"))
    assert name == "diamond-entropy.svg"
    root = ET.fromstring(content)
    back, *rest = root.iter(f"{SVG}rect")
    assert back.get("fill") == "rgb(27, 31, 35)"
    assert not rest
    circle = next(root.iter(f"{SVG}circle"))
    shown = figure.locator("circle").first
    for look in ("fill", "stroke", "opacity", "stroke-width", "r"):
        value = shown.evaluate("(x, name) => getComputedStyle(x).getPropertyValue(name)", look)
        assert circle.get(look) == value
    text = next(root.iter(f"{SVG}text"))
    assert text.get("font-size") == "11.5px"
    assert "sans-serif" in text.get("font-family")
    assert text.get("fill") == "rgb(163, 173, 180)"
    assert text.get("text-anchor") == "end"
    assert not [x for x in root.iter() if x.get("class") or x.get("style")]

    name, content = saved(page, lambda: choose("PNG"))
    assert name == "diamond-entropy.png"
    assert content.startswith(b"\x89PNG")
    box = figure.locator("svg").bounding_box()
    width, height = struct.unpack(">II", content[16:24])
    assert (width, height) == pytest.approx((2 * box["width"], 2 * box["height"]), abs=1)


def test_a_menu_is_used_by_keys(sweep, visit):
    page = visit((sweep / "report.html").as_uri())
    see_all(page)
    figure = page.locator("#settings-slices figure").first
    opener, menu = figure.locator("[aria-haspopup=menu]"), figure.locator("[role=menu]")
    opener.focus()
    for key in ("Enter", "Space"):
        page.keyboard.press(key)
        assert opener.get_attribute("aria-expanded") == "true"
        assert active(page) == "PNG"
        page.keyboard.press("ArrowDown")
        assert active(page) == "SVG"
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        assert active(page) == "PNG"
        page.keyboard.press("ArrowUp")
        assert active(page) == "CSV"
        page.keyboard.press("Escape")
        assert not menu.is_visible()
        assert opener.get_attribute("aria-expanded") == "false"
        assert active(page).startswith("save ")
    opener.click()
    page.locator("#title").click()
    assert not menu.is_visible()
    opener.click()
    name, content = saved(page, figure.get_by_role("menuitem", name="CSV").click)
    assert name.endswith(".csv")
    assert len(content.decode().splitlines()) == 1 + 18


# the comparison


def shown_column(page, number):
    cells = page.locator(f"#comparison tbody tr > :nth-child({number})")
    return [cells.nth(i).inner_text().split()[0] for i in range(cells.count())]


def test_sort_marks_say_the_truth_and_the_best_comes_first(many, visit):
    page = visit(many)
    see_all(page)
    for key, number, first in (("iqm", 2, "descending"), ("task 0", 5, "ascending")):
        head = page.locator(f"#comparison thead [data-key='{key}']")
        other = "ascending" if first == "descending" else "descending"
        for said in (first, other):
            head.click()
            assert page.locator("#comparison th[aria-sort]").get_attribute("aria-sort") == said
            assert head.inner_text().endswith("↑" if said == "ascending" else "↓")
            values = [float(x) for x in shown_column(page, number) if x != ">"]
            assert len(set(values)) > 1
            assert values == sorted(values, reverse=said == "descending")


def test_the_comparison_as_csv_has_the_numbers_in_full(report, visit):
    page = visit(report)
    see_all(page)
    name, (heads, *rows) = saved_csv(page, "the comparison")
    assert name == "diamond-comparison.csv"
    assert [row[0] for row in rows] == ["mr", "uniform"]
    for row in rows:
        found = dict(zip(heads, row, strict=True))
        value, low, high = (float(found[f"score, IQM{x}"]) for x in ("", " low", " high"))
        cell = page.locator(f"#comparison tr[data-series='{row[0]}'] td").first.inner_text()
        assert re.findall(r"[\d.]+", cell) == [f"{x:.2f}" for x in (value, low, high)]
        assert low < value < high
        assert len(found["score, IQM"]) > 8
        assert found["runs"] == "3"
        assert found["frames"] == "384"
        assert int(found["frames until M ≥ 0.9, first"]) % 16 == 0
    assert [row[heads.index("P(better) than mr")] == "" for row in rows] == [True, False]
    # uniform: two runs of three never master the last task
    last = [heads.index(f"{x} M ≥ 0.9, last") for x in ("frames until", "runs with")]
    assert [rows[1][i] for i in last] == ["", "1"]


# the runs


def test_a_recorded_job_of_unknown_length(with_changed_entry, visit):
    remarks = [
        {"run": 1, "frames": 20500, "text": "<b>lower</b> rate", "time": "2026-01-02 03:04:05 UTC"}
    ]
    page = visit(
        with_changed_entry(
            "recorded", kind="recorded", total=None, frames=20500, remarks=remarks, settings={}
        )
    )
    row = page.locator("#runs-table tbody tr")
    assert row.locator("td").nth(1).inner_text().strip() == "20.5k frames"
    assert row.locator("meter").count() == 0
    assert "stopped after 20.5k frames a run" in page.text_content("#headline")
    page.locator("#runs-details summary").click()
    facts = page.inner_text("#runs-details dl")
    assert "recorded\nfrom Python" in facts
    assert "trained by" not in facts
    assert "--resume" not in facts
    remark = page.locator("#runs-details .remark").inner_text()
    assert remark == "<b>lower</b> rate 20.5k frames · mr, seed 1 · 2026-01-02 03:04:05 UTC"
    assert not page.locator("#settings").is_visible()  # there is nothing to say
    _, (heads, values) = saved_csv(page, "the runs")
    found = dict(zip(heads, values, strict=True))
    assert (found["job"], found["done"], found["total"]) == ("job", "20500", "")


def test_a_job_that_can_go_on_says_how_where_it_can(tmp_path, visit):
    write_job(tmp_path / "job", points=6, ended=None)
    with serving(Server([tmp_path / "job"], port=0)) as server:
        page = visit(server.url)
        page.locator("#runs-details summary").click()
        facts = page.inner_text("#runs-details dl")
        assert "mastery train --resume" in facts
        assert "trained by" in facts


def test_the_window_title_says_how_the_job_stands(with_changed_entry, visit):
    for name, title, changes in (
        ("ended", "finished · diamond", {"state": "finished", "ended": "done"}),
        ("stopped", "stopped · diamond", {}),
        ("training", "training 42 % · diamond", {"state": "training", "frames": 42, "total": 100}),
        ("endless", "training · diamond", {"state": "training", "total": None}),
    ):
        assert visit(with_changed_entry(name, **changes)).title() == title


def test_a_job_that_is_deleted_leaves_nothing(tmp_path, visit):
    write_job(tmp_path / "runs" / "job", points=6, ended=None)
    with serving(Server([tmp_path / "runs"], port=0)) as server:
        page = visit(server.url)
        assert page.title() == "stopped · diamond"
        shutil.rmtree(tmp_path / "runs" / "job")
        until(page, "$('title').textContent === 'Nothing to see yet'")
        assert page.title() == "mastery"
        assert "task" not in page.text_content("#headline")
        assert not page.locator("#live").is_visible()
        assert not page.locator("#choose").is_visible()
        assert not page.locator("#transport").is_visible()


# choosing


def chosen(page, row="programs"):
    return page.locator(f"[data-row={row}] .chip:has(:checked)").all_inner_texts()


def tabs(page):
    return page.locator("#program-tabs button").all_text_contents()


def test_programs_are_searched_and_chosen_together(many, visit):
    page = visit(many)
    assert len(chosen(page)) == 10
    page.get_by_role("button", name="none programs").click()
    assert chosen(page) == []
    assert page.inner_text("#choose .missing") == "Choose a program above."
    assert not page.locator("#curves").is_visible()
    assert "the curves begin" not in page.text_content("#headline")
    page.get_by_role("searchbox", name="Search programs").fill("DELTA 0.7")
    seen = page.locator("[data-row=programs] .pick:visible").all_inner_texts()
    assert seen == ["mr:delta=0.7"]
    page.get_by_role("button", name="all programs").click()  # those that are found
    assert chosen(page) == tabs(page) == ["mr:delta=0.7"]
    assert not page.locator("#choose .missing").is_visible()
    assert page.locator("#curves").is_visible()
    page.get_by_role("searchbox", name="Search programs").fill("")
    page.get_by_role("button", name="all programs").click()
    assert len(chosen(page)) == len(tabs(page)) == 10


def test_only_one_program(many, visit):
    page = visit(many)
    pick = page.locator("[data-row=programs] .pick", has_text="uniform")
    only = pick.get_by_role("button", name="only uniform", include_hidden=True)
    assert not only.is_visible()
    pick.hover()
    only.click()
    assert chosen(page) == tabs(page) == ["uniform"]
    page.locator("label.chip", has_text="delta=0.1").click(modifiers=["Alt"])
    assert chosen(page) == tabs(page) == ["mr:delta=0.1"]
    page.locator("label.chip", has_text="delta=0.9").dblclick()
    assert chosen(page) == tabs(page) == ["mr:delta=0.9"]
    page.locator("label.chip", has_text="delta=0.8").click()
    assert chosen(page) == ["mr:delta=0.8", "mr:delta=0.9"]


def test_chips_are_one_stop_and_arrow_keys_lead_on(many, visit):
    page = visit(many)
    page.locator("[data-key='all programs']").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert active(page).endswith(" mr")
    page.keyboard.press("ArrowRight")
    assert active(page).endswith(" uniform")
    page.keyboard.press("Space")
    assert "uniform" not in chosen(page)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # only
    assert chosen(page) == ["uniform"]
    page.keyboard.press("Tab")  # the next group
    assert active(page) == "0"


def test_many_seeds_are_searched_too_and_few_are_not(tmp_path, report, visit):
    the_job = make_job(programs=("mr",), seeds=12, points=4)
    write_job(tmp_path / "job", the_job, points=4)
    write_report([tmp_path / "job"], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri())
    page.get_by_role("button", name="none seeds").click()
    assert page.inner_text("#choose .missing") == "Choose a program and a seed above."
    page.get_by_role("searchbox", name="Search seeds").fill("11")
    page.get_by_role("button", name="all seeds").click()
    assert chosen(page, "seeds") == ["11"]
    assert page.locator("#choose [type=search]").count() == 1
    page = visit(report)
    assert page.locator("#choose [type=search]").count() == 0
    assert page.get_by_role("button", name="all seeds").count() == 0


def test_the_choice_stays_while_a_job_trains(tmp_path, visit):
    random = np.random.default_rng(0)
    with (
        Store(tmp_path / "job", make_job(programs=MANY, seeds=1, points=9)) as store,
        serving(Server([tmp_path / "job"], port=0)) as server,
    ):
        store.begin_session("", 0)
        add_point(store, 1, 9, random)
        page = visit(server.url)
        page.get_by_role("button", name="none programs").click()
        search = page.get_by_role("searchbox", name="Search programs")
        search.press_sequentially("0.5")
        add_point(store, 2, 9, random)
        until(page, "$('runs-table').textContent.includes('32 of')")
        assert search.input_value() == "0.5"
        assert active(page) == "search programs"
        assert chosen(page) == []
        page.locator("label.chip", has_text="delta=0.5").click()
        assert tabs(page) == ["mr:delta=0.5"]


# settings


def test_changed_settings_are_in_the_entry(sweep):
    entry = data.job_entry(Place(sweep / "sweep", "sweep"))
    with contextlib.closing(sqlite3.connect(sweep / "sweep" / "run.db")) as db, db:
        rows = db.execute("SELECT changes FROM runs ORDER BY run").fetchall()
    assert entry["changes"] == [json.loads(text) for (text,) in rows]
    assert len(entry["changes"]) == 18


def test_settings_that_differ_come_first_and_the_others_are_folded(tmp_path, visit):
    write_job(tmp_path / "one", make_job(points=4), points=4)
    one = make_job(points=4)
    settings = replace(one.settings, entropy=0.5, memory="none")
    write_job(tmp_path / "two", Job(
        one.curriculum, ("mr",), frames=64, settings=settings, chunk=1, environments="gymnasium"
    ), points=4)  # fmt: skip
    write_report([tmp_path], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri())
    see_all(page)
    until(page, "$('settings-table').firstChild")
    rows = page.locator("#settings-table tbody tr")
    assert page.locator("#settings-table thead th").all_text_contents() == ["setting", "one", "two"]
    assert [rows.nth(i).locator("th, td").all_text_contents() for i in range(rows.count())] == [
        ["entropy", str(one.settings.entropy), "0.5"],
        ["memory", "lstm", "none"],
    ]
    same = len(vars(one.settings)) - 2
    assert page.text_content("#settings-text") == f"2 of {same + 2} settings differ."
    assert page.text_content("#settings-same summary") == f"{same} settings the same in all runs"
    assert not page.locator("#settings-same dl").is_visible()
    _, (heads, *cells) = saved_csv(page, "the settings")
    assert heads == ["setting", "differs", "one", "two"]
    assert cells[0] == ["entropy", "true", str(one.settings.entropy), "0.5"]
    assert len(cells) == same + 2
    assert ["envs", "false", "2", "2"] in cells
    assert page.locator("#settings-slices figure").get_attribute("data-setting") == "entropy"


def test_a_sweep_has_a_slice_for_each_setting(sweep, visit):
    page = visit((sweep / "report.html").as_uri())
    see_all(page)
    until(page, "$('settings-slices').children.length === 2")
    assert page.locator("#settings-table thead th").count() == 1 + 9
    curves = data.job_curves(Place(sweep / "sweep", "sweep"))
    each = np.diff(curves["frames"], prepend=0) / curves["frames"][-1]
    scores = [area(np.array(run, float), each) for run in curves["returns"]]
    with contextlib.closing(sqlite3.connect(sweep / "sweep" / "run.db")) as db, db:
        changes = [json.loads(x) for (x,) in db.execute("SELECT changes FROM runs ORDER BY run")]
    for name in ("learning_rate", "entropy"):
        figure = page.locator(f"#settings-slices figure[data-setting={name}]")
        circles = figure.locator("circle")
        assert circles.count() == 18
        at = circles.evaluate_all(
            "(all) => all.map((x) => ['cx', 'cy'].map((k) => Number(x.getAttribute(k))))"
        )
        x, y = np.array(at).T
        values = np.array([run[name] for run in changes])
        # on a log axis the middle of 1e-4 … 1e-2 is 1e-3; on another 0.002 is at a third
        middle = 1 / 2 if name == "learning_rate" else 1 / 3
        low, high = x[values == values.min()][0], x[values == values.max()][0]
        inner = np.unique(x[(values > values.min()) & (values < values.max())])
        assert inner == pytest.approx([low + middle * (high - low)], abs=0.01)
        slope, at_zero = np.polyfit(scores, y, 1)
        assert slope < 0
        assert y == pytest.approx(slope * np.array(scores) + at_zero, abs=0.05)
        line = np.array(
            re.findall(r"[-\d.e]+", figure.locator("path.median").get_attribute("d")), float
        ).reshape(-1, 2)
        medians = [np.median(y[values == value]) for value in np.unique(values)]
        assert line[:, 1] == pytest.approx(medians, abs=0.05)
    circles.first.hover()
    assert re.search(r"entropy 0\.001 · score 0\.\d{3}", page.inner_text("#tip"))


def area(returns, each):
    """The mean over tasks of the area under a run's curve; what is not known is as it was last."""
    tasks = []
    for points in returns:
        last, total = 0.0, 0.0
        for x, weight in zip(points, each, strict=True):
            last = last if np.isnan(x) else x
            total += weight * last
        tasks.append(total)
    return float(np.mean(tasks))


def test_programs_that_differ_in_a_setting_have_a_slice(many, visit):
    page = visit(many)
    see_all(page)
    until(page, "$('settings-slices').firstChild")
    figures = page.locator("#settings-slices figure")
    assert figures.count() == 1
    assert figures.get_attribute("data-setting") == "mr: delta"
    assert figures.locator("circle").count() == 2 * 9  # all but uniform


# tabs and notes


def test_tabs_are_one_stop_and_arrow_keys_choose(report, visit):
    page = visit(report)
    group = page.locator("#program-tabs")
    assert group.locator("[tabindex='0']").all_text_contents() == ["mr"]
    group.locator("[tabindex='0']").focus()

    def press(key):
        page.keyboard.press(key)
        (checked,) = group.locator("[aria-checked=true]").all_text_contents()
        assert group.locator("[tabindex='0']").all_text_contents() == [checked]
        assert page.evaluate("document.activeElement.textContent") == checked
        return checked

    assert [press(key) for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Home", "End")] == [
        "uniform", "mr", "uniform", "mr", "uniform",
    ]  # fmt: skip
    assert page.text_content("#curriculum-text").startswith("Under uniform")
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.closest('#program-tabs')")


def test_a_note_does_not_widen_a_narrow_page_and_goes_by_escape(tmp_path, visit):
    write_job(tmp_path / "job", make_job(chain(9), ("mr",), seeds=1, points=4), points=4)
    write_report([tmp_path / "job"], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri(), width=400)
    tip, nodes = page.locator("#tip"), page.locator("#graph .node")
    for i in range(nodes.count()):
        nodes.nth(i).focus()
        assert tip.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        box = tip.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400
    page.wait_for_timeout(100)  # what has the focus was scrolled into sight, with its note
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    nodes.first.hover()
    assert tip.is_visible()
    page.mouse.wheel(0, 200)
    until(page, "$('tip').hidden")
