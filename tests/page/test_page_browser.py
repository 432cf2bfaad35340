"""The page in a real browser, from a file and from `mastery watch`.

What it shows is compared with run.db, read by SQL. Nothing may be written to the console as an
error, and nothing asked of another host: `visit` checks that in every test.
"""

import contextlib
import json
import os
import re
import signal
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from made_jobs import add_point, chain, diamond, make_job, write_job
from test_page_data import HARMS, harm
from test_page_server import serving, start

from mastery import Curriculum
from mastery.cli.page import write_report
from mastery.drawing.axes import quartiles
from mastery.learners.ppo import PPOSettings
from mastery.page.server import Server
from mastery.paper.interactive import write_interactive
from mastery.paper.page import DATA, read_shipped
from mastery.programs.attention import View
from mastery.programs.recipe import Recipe
from mastery.rundir.store import Store
from mastery.statistics import (
    first_time,
    improvement,
    interquartile_mean,
    interval,
    upper_median,
)
from mastery.training.job import Job
from mastery.training.train import TrainOptions, train


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return write_job(tmp_path_factory.mktemp("browser") / "job")


@pytest.fixture(scope="module")
def report(job):
    write_report([job], job.parent / "report.html")
    return (job.parent / "report.html").as_uri()


@pytest.fixture(scope="module")
def watched(job):
    with serving(Server([job], port=0)) as server:
        yield server.url


@pytest.fixture(params=["file", "server"])
def address(request):
    return request.getfixturevalue("report" if request.param == "file" else "watched")


def table(job, metric, program="mr"):
    """(points, runs of the program, tasks), by SQL."""
    with contextlib.closing(sqlite3.connect(f"file:{job}/run.db?mode=ro", uri=True)) as db, db:
        (runs,) = db.execute("SELECT count(*) FROM runs WHERE label = ?", (program,)).fetchone()
        rows = db.execute(
            f"SELECT {metric} FROM training JOIN runs USING (run) WHERE label = ? "
            "ORDER BY step, run, task",
            (program,),
        ).fetchall()
    values = np.array([np.nan if x is None else x for (x,) in rows])
    return values.reshape(-1, runs, len(diamond()))


def node(page, task):
    return page.locator(f"#graph .node[data-task='{task}']")


def percent(x):
    return f"{int(np.floor(100 * x + 0.5))} %"


def until(page, condition, timeout=5000):
    """Wait for a condition, in which `$` finds an element by its id.

    (Playwright's own way to wait needs `eval`, which the page's policy forbids.)
    """
    end = time.monotonic() + timeout / 1000
    while not page.evaluate(f"(($) => Boolean({condition}))((id) => document.getElementById(id))"):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


def see_all(page):
    """Parts are drawn when they come into sight: make the window so high that all are."""
    page.set_viewport_size({"width": page.viewport_size["width"], "height": 12_000})
    until(page, "[...document.querySelectorAll('.chart')].every((chart) => chart.data)")
    until(page, "$('comparison-table').firstChild")


def curves(page):
    """The curves of the first job, as a page of `mastery watch` has them."""
    return page.evaluate("import('/model.js').then(({ page }) => [...page.curves.values()][0])")


def slide(page, point):
    page.locator("#time").fill(str(point))


def test_the_graph_shows_the_numbers_of_the_database_and_moves_with_the_slider(address, job, visit):
    page = visit(address)
    assert page.text_content("#title") == "diamond"
    assert "4 tasks · 2 programs · 6 runs · finished: all frames are done" in page.text_content(
        "#headline"
    )
    mastery, share = table(job, "mastery"), table(job, "frames")
    share = (share / share.sum(2, keepdims=True)).mean(1)
    for point in (23, 0, 11):
        slide(page, point)
        assert page.text_content("#now") == f"{16 * (point + 1)} of 384 frames"
        for task, name in enumerate(diamond().names):
            lately = share[max(point - 2, 0) : point + 1, task].mean()
            said = node(page, task).get_attribute("aria-label")
            numbers = rf"{name}: mastery (\d+) %, (\d+) % of training(?:, learned \d\w\w)?"
            m, s = map(int, re.fullmatch(numbers, said).groups())
            assert m == pytest.approx(100 * mastery[point, :, task].mean(), abs=0.51)
            assert s == pytest.approx(100 * lately, abs=0.51)
    small, large = (
        node(page, t).locator(".disc").evaluate("x => getComputedStyle(x).r") for t in (0, 1)
    )
    assert (float(small[:-2]) < float(large[:-2])) == (
        share[9:12, 0].mean() < share[9:12, 1].mean()
    )


def test_the_slider_is_moved_by_keys_and_the_play_button(report, visit):
    page = visit(report)
    page.locator("#time").focus()
    page.keyboard.press("ArrowLeft")
    assert page.text_content("#now") == "368 of 384 frames"
    page.keyboard.press("Home")
    assert page.text_content("#now") == "16 of 384 frames"
    before = node(page, 3).get_attribute("aria-label")
    page.get_by_role("button", name="Play the training back").click()
    until(page, "document.getElementById('now').textContent.startsWith('64 ')")
    page.get_by_role("button", name="Stop").click()
    assert node(page, 3).get_attribute("aria-label") != before


def test_hovering_tells_equation_1(report, job, visit):
    page = visit(report)
    page.locator("label.chip:has([data-key='1'])").click()  # one seed alone, so that it is exact
    page.locator("label.chip:has([data-key='2'])").click()
    slide(page, 14)
    mastery, beta = (table(job, metric)[14, 0] for metric in ("mastery", "progress"))
    recipe = Recipe.parse("mr")
    program = recipe.build(diamond())
    a = program.attention.attend((), View(mastery, beta, program.graph))
    anc, succ = program.graph.anc_succ(mastery)
    for task in range(4):
        node(page, task).hover()
        text = page.text_content("#tip")
        rows = dict(
            re.findall(r"(mastery M|M_Anc|attention a|a″|\[1 − M_Succ\])(-?[\d.]+(?:e-\d+)?)", text)
        )
        assert float(rows["mastery M"]) == pytest.approx(mastery[task], abs=6e-4)
        assert float(rows["M_Anc"]) == pytest.approx(anc[task], abs=6e-4)
        assert float(rows["[1 − M_Succ]"]) == pytest.approx(1 - succ[task], abs=6e-4)
        assert float(rows["attention a"]) == pytest.approx(a[task], rel=2e-2, abs=1e-4)
        assert float(rows["a″"]) == pytest.approx(program.redistribute(a)[task], rel=2e-2, abs=1e-4)
    bars = page.locator("#why-bars tbody tr")
    until_here = table(job, "probability")[:15, 0].mean(0)  # points are equally long
    passed = program.redistribute(a)
    assert [percent(p) for p in passed / passed.sum()] == [  # Prop
        bars.nth(i).locator("td").nth(5).text_content() for i in range(4)
    ]
    assert [percent(p) for p in until_here] == [
        bars.nth(i).locator("td").last.text_content() for i in range(4)
    ]


@pytest.mark.parametrize(
    "name",
    [
        "mr",
        "mr:delta=0.3,power=2,gamma_pred=0.5,gamma_succ=0.2,distribution=boltzmann,temperature=0.2",
        "gprop-linreg",
        "gamax-window",
        "mr:successors=0,unlearned=0,distribution=gamax",
    ],
)
def test_equations_1_to_3_are_those_of_the_package(watched, visit, name):
    page, random = visit(watched), np.random.default_rng(3)
    curriculum = Curriculum.load("obstructed-maze-full")
    recipe = Recipe.parse(name)
    program = recipe.build(curriculum)
    given = {"settings": dict(recipe.settings), "progress": recipe.progress}
    given |= {"attention": recipe.attention, "distribution": recipe.distribution}
    for _ in range(5):
        mastery, beta = random.uniform(size=9), random.normal(size=9)
        found = page.evaluate(
            """async ([program, curriculum, mastery, beta]) => {
                const { factors, orderOf } = await import('/equations.js');
                return factors(program, orderOf(curriculum), mastery, beta);
            }""",
            [given,
             {"tasks": list(curriculum.names), "edges": curriculum.edges.tolist()},
             mastery.tolist(), beta.tolist()],
        )  # fmt: skip
        a = program.attention.attend((), View(mastery, beta, program.graph))
        assert found["attention"] == pytest.approx(a)
        assert found["redistributed"] == pytest.approx(program.redistribute(a))
        assert found["learnability"] == pytest.approx(program.graph.anc_succ(mastery)[0])
        passed = program.redistribute(a)
        assert found["next"] == pytest.approx(program.converter.convert(passed, passed * 0))


def test_the_curves_are_medians_and_quartiles_over_the_seeds_that_are_chosen(address, job, visit):
    page = visit(address)
    see_all(page)
    page.locator("#smooth").fill("1")
    curve = page.locator("#curve")

    def shown(task):
        node(page, task).click()
        return curve.evaluate(
            "({ data }) => data.filter((t) => t.name).map((t) => [t.name, t.x, t.y, t.low, t.high])"
        )

    for task in (0, 2):
        for name, x, y, *spread in shown(task):
            assert x == (16 * np.arange(1, 25)).tolist()
            low, middle, high = quartiles(table(job, "return", name)[:, :, task])
            assert np.array(y, float) == pytest.approx(middle, abs=1e-3, nan_ok=True)
            for found, expected in zip(spread, (low, high), strict=True):
                assert np.array(found, float) == pytest.approx(expected, abs=1e-3, nan_ok=True)
    page.locator("label.chip:has([data-key='1'])").click()
    ((_, _, y, *_), _) = shown(0)
    expected = quartiles(table(job, "return")[:, [0, 2], 0])[1]
    assert np.array(y, float) == pytest.approx(expected, abs=1e-3, nan_ok=True)
    page.get_by_role("radio", name="evaluation, sampled policy").click()
    ((_, x, y, *_), _) = shown(3)
    with contextlib.closing(sqlite3.connect(job / "run.db")) as db, db:
        rows = db.execute(
            "SELECT return FROM evaluation WHERE policy = 'sampled' AND task = 3 "
            "AND run IN (0, 2) ORDER BY step"
        ).fetchall()
    assert x == [96, 192, 288, 384]
    assert y == pytest.approx(np.median(np.array(rows).reshape(4, 2), axis=1), abs=1e-3)
    assert curve.evaluate("({ x }) => x.kind") == "linear"
    page.check("#log")
    assert curve.evaluate("({ x }) => x.kind") == "log"


def test_a_smooth_curve_is_the_mean_of_the_last_five_points(watched, visit):
    page = visit(watched)
    smoothed = "(points) => import('/model.js').then((model) => model.smoothed(points))"
    assert page.evaluate(smoothed, [1, None, 0, 0.5, 0.5, 0.5, 2]) == pytest.approx(
        [1, None, 2 / 3, 2.5 / 4, 3 / 5, 2.5 / 5, 3.5 / 5]
    )
    assert page.evaluate(smoothed, [None, None, 3]) == [None, None, 3]


def test_hovering_over_a_curve_shows_values(report, visit):
    page = visit(report)
    page.locator("#curve").scroll_into_view_if_needed()
    page.locator("#curve").hover()
    text = page.text_content("#curve .values")
    assert re.search(r"mr: 0\.\d{3} \(0\.\d{3} … 0\.\d{3}\)", text)
    assert "uniform" in text


def test_a_click_on_a_task_focuses_it_and_keys_do_too(address, visit):
    page = visit(address)
    assert page.text_content("#curves-focus") == "All tasks: the mean return"
    node(page, 2).click()
    assert page.text_content("#curves-focus") == "right"
    assert page.locator("#panels figure.chosen figcaption").text_content() == "right"
    assert page.text_content("#agent-title") == "right"
    assert node(page, 2).get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    assert page.text_content("#curves-focus") == "All tasks: the mean return"
    node(page, 1).focus()
    page.keyboard.press("Enter")
    assert page.text_content("#curves-focus") == "left"
    page.get_by_role("button", name="all tasks").click()
    page.locator("#panels").get_by_role("button", name="last", exact=True).click()
    assert page.text_content("#curves-focus") == "last"


def test_everything_can_be_reached_by_the_tab_key(report, visit):
    page, found = visit(report), set()
    for _ in range(140):
        page.keyboard.press("Tab")
        found.add(page.evaluate(
            "[document.activeElement].map((e) => e.id || e.dataset.task || e.dataset.key)[0]"
        ))  # fmt: skip
    assert {"theme", "time", "play", "log", "score", "0", "3", "iqm", "task 2"} <= found
    assert "training" in found  # the choice of its radio group, which is one stop


def test_where_training_went(report, job, visit):
    page = visit(report)
    see_all(page)
    left, right = page.evaluate(
        "[...document.querySelectorAll('[data-series=mr] .chart')]"
        ".map((chart) => chart.data.map((trace) => trace.y))"
    )
    np.testing.assert_allclose(np.array(left).T, table(job, "probability").mean(1), atol=2e-4)
    mastery, frames = table(job, "mastery"), table(job, "frames")
    share = frames / frames.sum(2, keepdims=True)
    expected = np.zeros((3, 24))
    for point, run in np.ndindex(24, 3):
        m = mastery[point - 1, run] if point else np.zeros(4)
        anc = [1, m[0], m[0], min(m[:3])]
        for task in range(4):
            kind = 0 if m[task] >= 0.9 else 1 if anc[task] >= 0.5 else 2
            expected[kind, point] += share[point, run, task] / 3
    assert np.array(right) == pytest.approx(expected, abs=5e-4)
    assert np.array(right).sum(0) == pytest.approx(1, abs=1e-3)
    spent = page.locator("[data-series='mr'] .spent").inner_text().split()
    assert spent[0] == percent(expected[0].mean()).split()[0]


def scores(job, program):
    """Each run's area, (runs, 1): the mean over tasks and points, which are equally long."""
    returns = table(job, "return", program)
    last = np.zeros(returns.shape[1:])
    for point in returns:
        last = point[:] = np.where(np.isnan(point), last, point)
    return returns.mean((0, 2))[:, None]


def test_the_comparison_is_that_of_the_packages_statistics(address, job, visit):
    page = visit(address)
    see_all(page)
    cells = page.locator("#comparison tr[data-series='uniform'] > *")
    numbers = lambda i: [float(x) for x in re.findall(r"\d+\.\d+", cells.nth(i).inner_text())]  # noqa: E731
    ours, theirs = scores(job, "uniform"), scores(job, "mr")
    expected = interval(interquartile_mean, ours)
    assert numbers(1)[0] == pytest.approx(expected.value, abs=0.006)
    assert numbers(1)[1:] == pytest.approx(expected[1:], abs=0.02)
    expected = interval(improvement, ours, theirs)
    assert numbers(2)[0] == pytest.approx(expected.value, abs=0.006)
    assert numbers(2)[1:] == pytest.approx(expected[1:], abs=0.08)
    frames = 16 * np.arange(1, 25)
    for program in ("mr", "uniform"):
        row = page.locator(f"#comparison tr[data-series='{program}'] > td")
        each = np.stack(
            [first_time(frames, table(job, "mastery", program)[:, :, t], 0.9) for t in range(4)]
        )
        for i, times in enumerate([each.max(0), *each]):
            middle, said = upper_median(times), row.nth(2 + i).inner_text()
            assert said.split("\n")[0] == (f"{middle:.0f}" if np.isfinite(middle) else "> 384")
            if (done := np.isfinite(times).sum()) < 3:
                assert f"{done} of 3" in said
    assert any(">" in x for x in page.locator("#comparison td").all_inner_texts())  # some never did
    page.select_option("#threshold", "0.5")
    times = first_time(frames, table(job, "mastery")[:, :, 3], 0.5)
    assert (
        page.locator("#comparison tr[data-series='mr'] > td").last.inner_text()
        == f"{upper_median(times):.0f}"
    )


def test_the_statistics_are_those_of_the_package(watched, visit):
    page, random = visit(watched), np.random.default_rng(5)

    def found_by(expression, given):
        module = "const s = await import('/statistics.js')"
        return page.evaluate(f"async (given) => {{ {module}; return {expression}; }}", given)

    for runs, tasks in ((10, 6), (3, 1), (5, 4)):
        ours, theirs = random.uniform(size=(2, runs, tasks)).round(1)
        for name, python, groups in (
            ("interquartileMean", interquartile_mean, [ours]),
            ("improvement", improvement, [ours, theirs]),
        ):
            found = found_by(f"s.interval(s.{name}, given)", [g.tolist() for g in groups])
            expected = interval(python, *groups)
            assert found["value"] == pytest.approx(expected.value)
            assert (found["low"], found["high"]) == pytest.approx(expected[1:], abs=0.05)
    assert found_by("s.upperMedian(given)", [3, 1, 2, np.inf]) == 3
    assert found_by("s.upperMedian(given)", [1, np.inf]) == np.inf
    assert found_by("s.quantiles(given, [0.25, 0.5, 1])", [4, None, 0, 1]) == [0.5, 1, 4]


def test_the_table_is_sorted_by_its_heads_and_leads_to_the_runs(report, visit):
    page = visit(report)
    see_all(page)
    rows = page.locator("#comparison tbody tr")
    head = page.locator("#comparison thead").get_by_role("button", name="program")
    head.click()
    assert [rows.nth(i).get_attribute("data-series") for i in range(2)] == ["mr", "uniform"]
    head.focus()
    page.keyboard.press("Enter")
    assert [rows.nth(i).get_attribute("data-series") for i in range(2)] == ["uniform", "mr"]
    assert page.locator("#comparison th[aria-sort]").get_attribute("aria-sort") == "descending"
    assert page.evaluate("document.activeElement.dataset.key") == "program"
    rows.nth(0).get_by_role("link", name="3 runs").click()
    page.locator("#runs-details details[open]").first.wait_for()  # opens after the address changes
    assert page.locator("#runs-details details[open]").count() == 1
    assert "mastery train <diamond> & more" in page.text_content("#runs-details details[open]")


def test_programs_and_seeds_are_picked(report, visit):
    page = visit(report)
    page.locator("label.chip", has_text="uniform").click()
    assert page.locator("#program-tabs button").all_text_contents() == ["mr"]
    page.locator("label.chip", has_text="uniform").click()
    page.get_by_role("radio", name="uniform").first.click()
    assert page.text_content("#curriculum-text").startswith("Under uniform")


def test_several_directories_are_put_together_by_curriculum(tmp_path, job, visit):
    write_job(tmp_path / "other", make_job(programs=("mr",), seeds=2))
    write_job(tmp_path / "line", make_job(chain(3), ("mr",), seeds=1, points=4), points=4)
    write_report([job, tmp_path], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri())
    assert page.locator("#group option").all_text_contents() == [
        "diamond (2 jobs)",
        "chain of 3 (1 job)",
    ]
    tabs = page.locator("#program-tabs button")
    assert tabs.all_text_contents() == ["mr · job", "uniform", "mr · other"]
    page.locator("label.chip", has_text="other").first.click()
    assert tabs.all_text_contents() == ["mr", "uniform"]
    page.select_option("#group", label="chain of 3 (1 job)")
    until(page, "$('title').textContent === 'chain of 3'")
    assert page.locator("#graph .node").count() == 3
    assert page.text_content("#now") == "64 of 64 frames"


NASTY = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "<b>&amp;\"'`${1}",
    "{{7*7}} %s \\u003c",
)


@pytest.mark.parametrize("source", ["file", "server"])
def test_names_with_html_in_them_are_text(tmp_path, visit, source):
    folder = tmp_path / "<i>runs & more"
    the_job = make_job(diamond(NASTY, "<script>alert(3)</script>"), seeds=1, points=6)
    folder.mkdir()
    write_job(folder / "<u>job", the_job, points=6, ended="<b>over</b>")
    if source == "file":
        write_report([folder], tmp_path / "page.html")
        page = visit((tmp_path / "page.html").as_uri())
        look(page)
    else:
        with serving(Server([folder], port=0)) as server:
            look(visit(server.url))


def look(page):
    assert page.text_content("#title") == "<script>alert(3)</script>"
    assert "<b>over</b>" in page.text_content("#headline")
    see_all(page)
    for i, name in enumerate(NASTY):
        assert page.locator("#panels figcaption").nth(i).text_content() == name
        assert page.locator("#why-bars tbody th").nth(i).text_content() == name
        node(page, i).hover()
        assert page.locator("#tip strong").text_content() == name
        node(page, i).click()
        assert page.text_content("#curves-focus") == name
    page.locator("#where .chart").first.hover()
    assert NASTY[0] in page.text_content("#where .values")
    assert "<u>job" in page.text_content("#runs-table")
    assert page.locator("main img, main b:not(.spent b), main u, main script").count() == 0


def test_no_other_script_can_run(address, visit):
    page = visit(address, expected=["Content Security Policy"])
    page.evaluate("""() => {
        const script = document.createElement('script');
        script.textContent = 'window.ran = true';
        document.body.append(script);
        const image = '<img src="data:," onerror="window.ran = true">';
        document.body.insertAdjacentHTML('beforeend', image);
        const style = document.createElement('style');
        style.textContent = 'h1 { color: rgb(1, 2, 3) }';
        document.head.append(style);
    }""")
    page.wait_for_timeout(100)
    assert page.evaluate("window.ran") is None
    assert page.locator("#title").evaluate("(x) => getComputedStyle(x).color") != "rgb(1, 2, 3)"


def test_damaged_directories_are_told_and_the_rest_is_shown(tmp_path, job, visit):
    said = {how: harm(tmp_path / how, how) for how in HARMS}
    write_report([job, *(tmp_path / how for how in HARMS)], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri())
    told = page.locator("#problems .problem").all_text_contents()
    assert len(told) == len(HARMS)
    for how, text in said.items():
        (one,) = [x for x in told if x.startswith(str(tmp_path / how) + " ")]
        assert text.partition("has format")[2] in one
    assert page.text_content("#title") == "diamond"
    assert page.locator("#graph .node").count() == 4


def test_a_job_without_learning_progress_says_what_is_missing(tmp_path, visit):
    write_job(tmp_path / "old", make_job(seeds=1, points=6), points=6)
    with contextlib.closing(sqlite3.connect(tmp_path / "old" / "run.db")) as db, db:
        db.execute("ALTER TABLE training DROP COLUMN progress")
        db.execute("UPDATE job SET format = 2")
    write_report([tmp_path / "old"], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri())
    assert "Learning progress β was not kept" in page.text_content("#problems")
    cells = page.locator("#why-bars tbody tr").first.locator("td").all_text_contents()
    assert cells[1] == cells[3] == "–"
    assert cells[0] != "–" != cells[6]


def test_five_hundred_tasks_do_not_kill_the_page(tmp_path, visit):
    write_job(tmp_path / "many", make_job(chain(500), ("mr",), seeds=1, points=5), points=5)
    write_report([tmp_path / "many"], tmp_path / "page.html")
    began = time.monotonic()
    page = visit((tmp_path / "page.html").as_uri())
    see_all(page)
    assert time.monotonic() - began < 10
    assert "The first 200 of 500 tasks are shown" in page.text_content("#problems")
    assert "first 24 of 200 tasks" in page.text_content("#curves-text")
    assert "The first 40 of 200 tasks" in page.text_content("#comparison-text")
    slide(page, 1)
    assert page.locator("#why-bars tbody tr").count() == 40


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_wide_and_narrow_light_and_dark(report, visit, width, dark, request):
    page = visit(report, width, dark)
    see_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    back = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    ink = lambda: page.locator("#curve .tick").first.evaluate(  # noqa: E731
        "(x) => getComputedStyle(x).fill"
    )
    own, first = back(), ink()
    assert (sum(map(int, re.findall(r"\d+", own)[:3])) < 200) == dark
    page.get_by_role("button", name="Light or dark").click()
    assert back() != own
    assert ink() != first
    if keep := os.environ.get("MASTERY_SHOTS"):
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=Path(keep) / f"{request.node.name}.png", full_page=True)


def test_it_prints(report, visit):
    page = visit(report)
    content = page.pdf(print_background=True)
    assert content.count(b"/Type /Page\n") in range(2, 9)
    page.emulate_media(media="print")
    assert not page.locator("#transport").is_visible()
    assert not page.locator("#theme").is_visible()
    assert page.locator("#comparison table").is_visible()


def test_the_full_paper_is_small_and_soon_there(tmp_path, visit):
    write_interactive(read_shipped(DATA), tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size <= 10e6
    took = []
    for _ in range(2):
        page = visit((tmp_path / "page.html").as_uri())
        took.append(page.evaluate("performance.getEntriesByName('interactive')[0].startTime"))
    assert min(took) <= 2000
    page.select_option("#group", label="key-corridor (17 jobs)")
    until(page, "$('title').textContent === 'key-corridor'")
    see_all(page)
    assert page.locator("#comparison tr[data-series]").count() == 5  # the paper's four, and uniform
    page.locator("label.chip", has_text="ablation").click()  # 17 programs more
    until(page, "document.querySelectorAll('#program-tabs button').length === 22")


def test_a_job_of_a_hundred_runs_stays_responsive(tmp_path, visit):
    """100 runs × 6 tasks × 500 points."""
    the_job = make_job(chain(6), ("mr", "uniform"), seeds=50, points=500)
    write_job(tmp_path / "large", the_job, points=500)
    write_report([tmp_path / "large"], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri())
    see_all(page)
    took = page.evaluate("""() => [0, 50, 90].map((point) => {
        const slider = document.getElementById('time'), began = performance.now();
        slider.value = point;
        slider.dispatchEvent(new Event('input'));
        return performance.now() - began;
    })""")
    assert min(took) < 100


def test_a_live_run_adds_points_within_two_seconds(tmp_path, visit):
    """A real training job, watched from before its first point."""
    the_job = Job(
        Curriculum.load("blocked-unlock-pickup"), ("mr",), seeds=1, frames=128 * 2 * 500,
        settings=PPOSettings(envs=4, frames=32, batch=32, ahead=2, width=8, memory="none"),
        chunk=2, episodes=2, evaluate_every=0,
    )  # fmt: skip
    committed, stop = [], threading.Event()

    def report(progress):  # is called when a point has been written
        committed.append(time.monotonic())
        time.sleep(0.3)
        if stop.is_set():
            raise RuntimeError("enough")

    def run():
        with pytest.raises(RuntimeError, match="enough"):
            train(the_job, tmp_path / "live", TrainOptions(report=report))

    (tmp_path / "live").mkdir()
    thread = threading.Thread(target=run)
    with serving(Server([tmp_path / "live"], port=0)) as server:
        page = visit(server.url)
        assert page.text_content("#title") == "Nothing to see yet"
        thread.start()
        try:
            page.wait_for_selector("#graph .node", timeout=90_000)  # before the first point
            until(page, "!$('transport').hidden", timeout=90_000)
            for _ in range(4):
                number = len(committed) + 1
                until(page, f"$('time').max >= {number - 1}")
                assert time.monotonic() - committed[number - 1] < 2
            assert page.text_content("#live") == "live"
            assert "training" in page.text_content("#runs-table")
            assert re.match(r"[\d.]+k? of [\d.]+k? frames", page.text_content("#now"))
        finally:
            stop.set()
            thread.join(60)
        until(page, "$('runs-table').textContent.includes('stopped')", timeout=10_000)


def test_a_point_is_on_the_page_within_two_seconds_of_its_commit(tmp_path, visit):
    random = np.random.default_rng(0)
    with (
        Store(tmp_path / "job", make_job(points=400)) as store,
        serving(Server([tmp_path / "job"], port=0)) as server,
    ):
        store.begin_session("", 0)
        add_point(store, 1, 400, random)
        page = visit(server.url)
        for point in range(2, 6):
            add_point(store, point, 400, random)
            began = time.monotonic()
            until(page, f"$('now').textContent.startsWith('{16 * point} of')", timeout=5000)
            assert time.monotonic() - began < 2
        m = curves(page)["mastery"][1][2]
        uri = f"file:{tmp_path}/job/run.db?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as db:
            rows = db.execute(
                "SELECT mastery FROM training WHERE run = 1 AND task = 2 ORDER BY step"
            )
            assert m == pytest.approx([x for (x,) in rows], abs=1e-4)


def test_a_job_that_takes_the_place_of_another_is_not_mixed_with_it(tmp_path, visit):
    write_job(tmp_path / "job", points=6, ended=None)
    with serving(Server([tmp_path / "job"], port=0)) as server:
        page = visit(server.url)
        write_job(tmp_path / "other", points=9, ended=None)
        with contextlib.closing(sqlite3.connect(tmp_path / "other" / "run.db")) as db, db:
            db.execute("UPDATE training SET mastery = 0.125")
            db.execute("UPDATE job SET created = '2001-01-01 00:00:00 UTC'")
        (tmp_path / "job").rename(tmp_path / "old")
        (tmp_path / "other").rename(tmp_path / "job")
        until(page, "$('time').max === '8'", timeout=5000)
        assert curves(page)["mastery"][1][2] == [0.125] * 9


def test_when_the_server_ends_the_page_says_so(job, visit):
    process = start("watch", job, "--port", 0)
    url = re.search(r"http\S+", process.stdout.readline())[0]
    page = visit(url, expected=["ERR_CONNECTION_REFUSED"])
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    page.wait_for_selector("#live.lost", timeout=5000)
    assert page.locator("#graph .node").count() == 4


def test_a_clip_that_cannot_be_made_is_a_line_and_one_in_the_file_is_shown(tmp_path, job, visit):
    from mastery.page import assemble, data
    from mastery.page.places import Place

    with serving(Server([job], port=0)) as server:  # its checkpoint holds no agent
        page = visit(server.url)
        node(page, 0).click()
        page.locator("#agent-clip button").click()
        page.wait_for_selector("#agent-clip:has-text('There is no clip:')", timeout=60_000)
        slide(page, 3)  # the page has not waited for it
    place = Place(job, "job")
    dot = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    clips = {
        place.key: {"left": {"0": [{"frames": 16, "text": "mr, seed 0: 3 steps", "gif": dot}]}}
    }
    entry, curves = data.job_entry(place), data.job_curves(place)
    assemble.write(tmp_path / "page.html", "clips", [entry], [curves], (), clips)
    page = visit((tmp_path / "page.html").as_uri())
    node(page, 1).click()
    assert page.locator("#agent-clip img").get_attribute("alt") == "The agent on left"
    assert "3 steps" in page.text_content("#agent-clip")
    node(page, 0).click()
    assert "no clip in this file" in page.text_content("#agent-clip")


def test_what_is_asked_is_json(watched, visit):
    page = visit(watched)
    assert json.loads(page.evaluate("fetch('index.json').then((r) => r.text())"))["live"] is True
