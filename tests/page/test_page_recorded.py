"""The page of a loop of the user's own: what it shows, live, in a notebook and by the commands."""

import csv
import html

import numpy as np
import pytest
from made_jobs import diamond
from test_page_browser import see_all, until
from test_page_server import serving
from typer.testing import CliRunner

from mastery import Teacher, record
from mastery.cli import app
from mastery.cli.page import write_report
from mastery.page.server import Server
from mastery.rundir.results import load_results

FIRST = [0.1, 0.3, 0.5, 0.5, 0.7, 0.9]  # the scores of the first task
LEFT = [None, None, 0.2, 0.4, None, 0.6]  # of the second; the others are never played

LONG = "completions/mean_length"  # as TRL names it


def play(folder, seed=0, close=True):
    """Six updates of 100 frames on each task; prints nothing, returns the recorder."""
    recorder = record(Teacher(diamond(), "mr", seed=seed), folder)
    for first, left in zip(FIRST, LEFT, strict=True):
        scores = {"first": first} | ({} if left is None else {"left": left})
        recorder.teacher.update(scores, cost=dict.fromkeys(scores, 100))
        recorder.log(rate=3e-4, entropy=-0.69 + 0.16 * first, **{LONG: first})
    recorder.evaluate(dict.fromkeys(diamond().names, 0.25))
    if close:
        recorder.close()
    return recorder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loop") / "mine"
    play(folder)
    return folder


@pytest.fixture(scope="module")
def report(folder):
    write_report([folder], folder.parent / "page.html")
    return (folder.parent / "page.html").as_uri()


def numbers_along(chart):
    """The numbers that are written along a chart's y-axis."""
    texts = chart.locator("svg.plot text.tick[text-anchor=end]").all_text_contents()
    return [float(text) for text in texts]


def test_the_mean_begins_at_once_and_counts_unseen_tasks_with_their_minimum(report, visit):
    page = visit(report)
    see_all(page)
    page.locator("#smooth").fill("1")
    left = [0, 0, 0.2, 0.4, 0.4, 0.6]  # as it was last, where it was not played
    expected = (np.array(FIRST) + left) / 4  # of four tasks, whose minimum is 0
    x, y = page.locator("#curve").evaluate("({ data: [{ x, y }] }) => [x, y]")
    assert y == pytest.approx(expected.tolist(), abs=1e-3)
    note = "A task that was not seen yet counts with its minimum."
    assert note in page.text_content("#curves-text")
    # so that the area under the curve is the score of the comparison
    area = np.average(expected, weights=np.diff(x, prepend=0))
    assert page.locator("#comparison tbody td").first.inner_text().startswith(f"{area:.2f}")
    page.get_by_role("radio", name="evaluation").click()
    assert note not in page.text_content("#curves-text")


def test_a_number_that_never_changes_is_at_its_place(report, visit):
    page = visit(report)
    see_all(page)
    rate = page.locator("#scalars .chart").nth(2)
    assert page.locator("#scalars figcaption").all_inner_texts() == [LONG, "entropy", "rate"]
    along = numbers_along(rate)
    assert min(along) < 3e-4 < max(along)
    assert min(along) > 0  # an axis from -1 to 1 would say that it is 0
    at = rate.evaluate("({ y }) => [y.at(2e-4), y.at(4e-4), y.at(3e-4)]")
    assert at[2] == pytest.approx((at[0] + at[1]) / 2)


def test_every_axis_has_two_numbers(report, visit):
    """From -0.674 to -0.546 there is but one multiple of 0.1."""
    page = visit(report)
    see_all(page)
    charts = page.locator(".chart")
    assert all(len(numbers_along(charts.nth(i))) > 1 for i in range(2 + 4))
    assert len(numbers_along(page.locator("#scalars .chart").nth(1))) > 1


def test_a_long_name_falls_on_no_other_one(report, visit):
    page = visit(report, width=400)
    see_all(page)
    wide = "(all) => all.map((x) => [x.scrollWidth, x.clientWidth])"
    for needed, there in page.locator("#scalars figcaption").evaluate_all(wide):
        assert needed <= there


def test_a_live_page_shows_what_the_loop_has_printed(tmp_path, visit):
    recorder = play(tmp_path / "mine", close=False)
    with serving(Server([tmp_path], port=0)) as server:
        page = visit(server.url)
        assert page.title() == "training · diamond"
        assert page.text_content("#now").startswith("900 of 900 frames")
        page.locator("#smooth").fill("1")
        page.locator("#graph .node").first.click()
        page.locator("#curve").scroll_into_view_if_needed()
        shown = "document.getElementById('curve').data.find((x) => x.name).y"
        assert page.evaluate(shown) == pytest.approx(FIRST, abs=1e-3)
        recorder.teacher.update({"first": 0.8}, cost={"first": 50})
        recorder.flush()
        until(page, f"$('now').textContent.startsWith('950 of 950') && {shown}.length === 7")
        assert page.evaluate(shown) == pytest.approx([*FIRST, 0.8], abs=1e-3)
        recorder.close()
        until(page, "document.title === 'finished · diamond'")


def test_a_notebook_shows_the_page(folder, tmp_path, browser):
    """The output of a cell, in a page of another kind."""
    recorder = play(tmp_path / "mine", close=False)
    output = recorder._repr_html_()
    recorder.close()
    (tmp_path / "notebook.html").write_text(f"<h1>Cell 1</h1><div>{output}</div>")
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url) if "http" in request.url else None)
    page.goto((tmp_path / "notebook.html").as_uri())
    inside = page.frame_locator("iframe")
    inside.locator("main[aria-busy=false]").wait_for()
    assert inside.locator("#graph .node .name").all_text_contents() == list(diamond().names)
    inside.locator("#time").fill("2")
    assert inside.locator("#now").text_content().startswith("400 of 900 frames")
    inside.get_by_role("button", name="Light or dark").click()
    assert wrong == []
    context.close()
    assert html.unescape(output).count("<iframe") == 1


def test_the_commands_work_on_a_recorded_folder(folder, tmp_path):
    def said(*command):
        result = CliRunner().invoke(app, list(map(str, command)))
        assert result.exit_code == 0, result.output
        return result.output

    assert "diamond" in (listed := said("runs", folder.parent))
    assert "900 frames" in listed
    assert "finished" in listed
    assert "first" in said("show", folder)
    said("report", folder, "-o", tmp_path / "page.html")
    said("export", folder, "--csv", tmp_path / "curves.csv")
    with (tmp_path / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["return"]) for row in rows if row["task"] == "first"] == FIRST
    assert load_results(folder).unit == "frames"


def test_charts_in_a_row_share_their_range_and_no_number_falls_on_a_title(report, visit):
    page = visit(report)
    see_all(page)
    ranges = page.locator("#panels .chart").evaluate_all("(all) => all.map(({ y }) => y.range)")
    assert len(ranges) == 4
    assert all(found == ranges[0] for found in ranges)
    for log in (False, True):
        page.set_checked("#log", log)
        chart = page.locator("#curve")
        title = chart.locator(".axis-title").bounding_box()
        texts = chart.locator("text.tick[text-anchor=middle]").all()
        assert len(texts) > 1
        for text in texts:
            box = text.bounding_box()
            assert box["y"] + box["height"] <= title["y"] + 1
