"""The page keeps what you did: in its address, while runs train, and as files."""

import contextlib
import csv
import io
import sqlite3
import struct
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import numpy as np
import pytest
from made_jobs import add_point, chain, diamond, make_job, write_job
from test_page_browser import node, see_all, slide, table, until
from test_page_server import serving
from test_page_truth import drag, pixel_of

from mastery.cli.page import write_report
from mastery.drawing.axes import quartiles
from mastery.page import assemble, data
from mastery.page.places import Place
from mastery.page.server import Server
from mastery.rundir.store import Store

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return write_job(tmp_path_factory.mktemp("address") / "job")


@pytest.fixture(scope="module")
def report(job):
    write_report([job], job.parent / "report.html")
    return (job.parent / "report.html").as_uri()


def said(page):
    """What the address says, by key."""
    _, _, after = page.url.partition("#")
    return dict(unquote(part).split("=", 1) for part in after.split("&") if part)


def at_rest(page):
    page.wait_for_selector("main[aria-busy=false]")


def seen(page):
    """What a user sees of the choices that were made."""
    see_all(page)
    return {
        "program": page.locator("#program-tabs [aria-checked=true]").all_text_contents(),
        "beside": page.locator("#beside-title").inner_text(),
        "task": page.text_content("#curves-focus"),
        "time": page.text_content("#now"),
        "node": node(page, 2).get_attribute("aria-label"),
        "chips": page.locator(".chip:has(:checked)").all_inner_texts(),
        "back": page.evaluate("getComputedStyle(document.body).backgroundColor"),
    }


def ranges(page):
    """The range of time of each chart."""
    return page.evaluate("[...document.querySelectorAll('.chart')].map(({ x }) => x.range)")


# the address


def test_what_is_chosen_is_in_the_address_and_comes_back(report, visit):
    page = visit(report)
    assert said(page) == {}
    first = seen(page)
    page.get_by_role("radio", name="uniform").click()
    page.select_option("#beside-choice", label="mr")
    node(page, 1).click()
    slide(page, 11)
    page.locator("label.chip:has([data-key='2'])").click()
    page.get_by_role("button", name="Light or dark").click()
    chosen = {"program": "uniform", "beside": "mr", "task": "left", "t": "192"}
    assert said(page) == {**chosen, "seeds": "0,1", "theme": "dark"}
    now = seen(page)
    assert all(now[part] != first[part] for part in first)
    page.reload()
    at_rest(page)
    assert seen(page) == now
    assert seen(visit(page.url)) == now  # someone else, who gets the link


def test_programs_that_are_left_out_are_in_the_address(report, visit):
    page = visit(report)
    page.locator("label.chip", has_text="uniform").click()
    assert said(page) == {"programs": "mr"}
    page = visit(page.url)
    assert page.locator("#program-tabs button").all_text_contents() == ["mr"]
    page.locator("label.chip", has_text="uniform").click()
    assert said(page) == {}


def test_how_charts_and_tables_look_is_in_the_address(report, visit):
    page = visit(report)
    see_all(page)
    page.select_option("#axis", "seconds")
    page.check("#log")
    page.check("#each")
    page.locator("#smooth").fill("12")
    page.select_option("#threshold", "0.5")
    page.locator("#comparison thead [data-key='task 0']").click()
    address = said(page)
    assert address.pop("sort").endswith("task 0")
    assert address == {"x": "seconds", "log": "1", "each": "1", "smooth": "12", "mastered": "0.5"}

    def looks(page):
        see_all(page)
        chart = page.locator("#curve").evaluate("({ x, data }) => [x.kind, data.length, data]")
        return chart, page.inner_text("#comparison-table"), page.text_content("#smooth-said")

    now = looks(page)
    assert looks(visit(page.url)) == now


def test_a_time_is_short_in_the_address(tmp_path, visit):
    place = Place(write_job(tmp_path / "job", make_job(points=3), points=3), "job")
    curves = data.job_curves(place) | {"frames": [20_480, 884_736, 1_228_800]}
    assemble.write(tmp_path / "page.html", "t", [data.job_entry(place)], [curves])
    page = visit((tmp_path / "page.html").as_uri())
    slide(page, 1)
    assert said(page) == {"t": "885k"}
    assert visit(page.url).locator("#time").input_value() == "1"


BAD = (
    "program=nobody&task=none&beside=mr&t=-5&seeds=77&jobs=gone&programs=nobody,",
    "x=years&what=__proto__&score=<img src=x>&mastered=often&sort=-nothing&theme=pink",
    "task=%E0%A4%A&t=%&program=%00&curriculum=%ff",
    "zoom=NaN~NaN&smooth=1e9&t=1e999",
    "zoom=9~1&smooth=-4&mastered=5&t=999999999999k",
    "zoom=0~Infinity&log=1",
    "zoom=-100~100&log=1",
    "zoom=1e300~2e300&log=yes&each=2",
    "=&&&=mr&t&==",
)


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_address_does_no_harm(report, visit, bad):
    page = visit(f"{report}#{bad}")
    see_all(page)
    assert page.locator("#program-tabs [aria-checked=true]").all_text_contents() == ["mr"]
    assert page.locator("#graph .node").count() == 4
    assert page.text_content("#curves-focus") == "All tasks: the mean return"
    assert page.locator("#threshold").input_value() == "0.9"
    assert "NaN" not in page.inner_text("main")
    paths = page.locator("#curves path").evaluate_all("(all) => all.map((x) => x.outerHTML)")
    assert not [path for path in paths if "NaN" in path or "Infinity" in path]
    slide(page, 3)
    assert page.text_content("#now") == "64 of 384 frames"
    assert said(page)["t"] == "64"


def test_another_address_changes_the_page_that_is_open(report, visit):
    page = visit(report)
    page.evaluate("location.hash = '#program=uniform&task=last&t=64'")
    until(page, "$('now').textContent === '64 of 384 frames'")
    assert page.text_content("#curves-focus") == "last"
    assert page.text_content("#curriculum-text").startswith("Under uniform")


# the time that charts share


def test_all_charts_share_a_zoom_that_stays(report, visit):
    page = visit(report)
    see_all(page)
    whole = ranges(page)
    drag(page, page.locator("#where .chart").first, 100, 250)
    found = ranges(page)
    assert len(found) == 9  # of all tasks, of each, and two of each program
    assert np.array(found) == pytest.approx(np.array([[100, 250]] * 9), abs=2)
    page.get_by_role("radio", name="uniform").click()
    node(page, 3).click()
    assert ranges(page) == found
    page.reload()
    at_rest(page)
    see_all(page)
    assert np.array(ranges(page)) == pytest.approx(np.array(found), abs=1e-3)
    page.locator("#curve").dblclick(position={"x": 300, "y": 100})
    assert ranges(page) == whole
    assert "zoom" not in said(page)


def test_wall_clock_and_updates_along_the_bottom(report, visit):
    page = visit(report)
    see_all(page)
    assert page.locator("#axis option").all_text_contents() == [
        "frames", "time-steps", "wall-clock",
    ]  # fmt: skip
    chart = page.locator("#curve")
    for axis, each, title in (
        ("seconds", 0.5, "time of training, all runs together, in seconds"),
        ("steps", 1, "time-steps"),
    ):
        page.select_option("#axis", axis)
        times = chart.evaluate("({ data }) => data.map(({ x }) => x)")
        assert all(x == (each * np.arange(1, 25)).tolist() for x in times)
        assert chart.locator(".axis-title").text_content() == title
        box = chart.bounding_box()
        page.mouse.click(pixel_of(chart, 6 * each), box["y"] + 50)
        assert page.text_content("#now") == "96 of 384 frames"
        assert page.locator("#where .cursor").first.is_visible()
    page.get_by_role("radio", name="evaluation, sampled policy").click()
    assert chart.evaluate("({ data }) => data[0].x") == [6, 12, 18, 24]


# the curves


def test_the_raw_curve_is_behind_the_smooth_one(report, job, visit):
    page = visit(report)
    see_all(page)
    node(page, 0).click()
    page.locator("#smooth").fill("9")
    returns = table(job, "return")[:, :, 0]
    known = returns.copy()
    for i in range(1, 24):  # as it was last, where nothing was played
        known[i] = np.where(np.isnan(known[i]), known[i - 1], known[i])
    smooth = np.full(returns.shape, np.nan)
    for i, run in np.argwhere(~np.isnan(returns)):
        smooth[i, run] = np.nanmean(known[max(i - 8, 0) : i + 1, run])
    faint, sharp = page.locator("#curve").evaluate(
        "({ data }) => [data.find((x) => x.faint).y, data.find((x) => x.name === 'mr').y]"
    )
    for found, expected in ((sharp, smooth), (faint, returns)):
        middle = quartiles(expected)[1]
        assert np.array(found, float) == pytest.approx(middle, abs=1e-3, nan_ok=True)
    paths = page.locator("#curve path.curve").evaluate_all(
        "(all) => all.map((x) => [x.matches('.faint'), Number(getComputedStyle(x).opacity)])"
    )
    assert [behind for behind, _ in paths] == [True, False, True, False]
    assert all((opacity < 0.5) == behind for behind, opacity in paths)
    assert page.text_content("#smooth-said") == "over 9 points"
    page.locator("#smooth").fill("1")
    assert page.locator("#curve path.faint").count() == 0


def test_each_seed_is_a_thin_line(report, job, visit):
    page = visit(report)
    see_all(page)
    node(page, 2).click()
    page.locator("#smooth").fill("1")
    page.get_by_label("each seed").check()
    faint = page.locator("#curve").evaluate(
        "({ data }) => data.filter((x) => x.faint).map((x) => x.y)"
    )
    expected = np.concatenate([table(job, "return", x)[:, :, 2].T for x in ("mr", "uniform")])
    assert np.array(faint, float) == pytest.approx(expected, abs=1e-3, nan_ok=True)
    widths = page.locator("#curve path.curve").evaluate_all(
        "(all) => all.map((x) => [x.matches('.faint'), parseFloat(x.getAttribute('stroke-width'))])"
    )
    thin, thick = ([w for behind, w in widths if behind == which] for which in (True, False))
    assert (len(thin), len(thick)) == (6, 2)
    assert max(thin) < min(thick) / 1.5


# jobs that train


def begun(directory, curriculum, created, points=0):
    """The store of a job that trains, as if begun at a time."""
    store = Store(directory, make_job(curriculum, seeds=1, points=40))
    store.begin_session("", 0)
    for point in range(1, points + 1):
        add_point(store, point, 40, np.random.default_rng(0))
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db, db:
        db.execute("UPDATE job SET created = ?", (created,))
    return store


def test_the_newest_job_that_trains_is_first(tmp_path, visit):
    write_job(tmp_path / "a", make_job(chain(2), seeds=1, points=2), points=2)  # just now, finished
    with (
        begun(tmp_path / "b", chain(3), "2001-01-01 00:00:00 UTC", points=2),
        begun(tmp_path / "c", diamond(), "2003-01-01 00:00:00 UTC", points=2),
        begun(tmp_path / "d", chain(5), "2002-01-01 00:00:00 UTC", points=2),
        serving(Server([tmp_path], port=0)) as server,
    ):
        page = visit(server.url)
        assert page.text_content("#title") == "diamond"
        assert page.title() == "training 5 % · diamond"  # 2 of 40 points
        page.select_option("#group", label="chain of 5 (1 job)")
        until(page, "$('title').textContent === 'chain of 5'")
        page.reload()
        at_rest(page)
        assert page.text_content("#title") == "chain of 5"  # which was chosen


def test_the_curriculum_is_drawn_before_the_first_point(tmp_path, visit):
    with (
        begun(tmp_path / "job", diamond(), "2003-01-01 00:00:00 UTC") as store,
        serving(Server([tmp_path], port=0)) as server,
    ):
        page = visit(server.url)
        assert page.locator("#graph .node .name").all_text_contents() == list(diamond().names)
        assert page.locator("#graph .edge:not(.back):not(.on)").count() == 4
        assert page.locator("#graph .node .inside").all_text_contents() == [""] * 4
        assert "the first point" in page.text_content("#curriculum-text").lower()
        assert not page.locator("#transport").is_visible()
        add_point(store, 1, 40, np.random.default_rng(0))
        until(page, "!$('transport').hidden")
        assert page.text_content("#curriculum-text").startswith("Under mr, after 16 frames")


def test_the_slider_says_how_far_and_how_long(tmp_path, visit):
    place = Place(write_job(tmp_path / "job", make_job(points=3), points=3), "job")
    curves = data.job_curves(place) | {"frames": [20_480, 40_960, 61_440]}
    entry = data.job_entry(place) | {
        "state": "training", "ended": None, "frames": 61_440, "total": 307_200, "speed": 2048.0,
    }  # fmt: skip
    assemble.write(tmp_path / "page.html", "t", [entry], [curves])
    page = visit((tmp_path / "page.html").as_uri())
    slide(page, 0)
    # 245,760 frames of each of six runs, 2,048 a second: 720 seconds
    assert page.text_content("#now") == "20.5k of 307k frames · 12 min left"
    assert page.locator("#time").get_attribute("aria-valuetext") == "20.5k frames"


# keys


def test_space_plays_and_arrow_keys_move_in_time(report, visit):
    page = visit(report)
    now = lambda: page.text_content("#now")  # noqa: E731
    for key, frames in (
        ("ArrowLeft", 368), ("ArrowLeft", 352), ("ArrowRight", 368), ("Home", 16),
        ("ArrowLeft", 16), ("ArrowRight", 32), ("End", 384), ("Home", 16),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert now() == f"{frames} of 384 frames"
    page.keyboard.press("Space")
    assert page.locator("#play").get_attribute("aria-label") == "Stop"
    until(page, "$('now').textContent.startsWith('48 ')")
    page.keyboard.press("Space")
    stopped = now()
    assert page.locator("#play").get_attribute("aria-label") == "Play the training back"
    page.wait_for_timeout(700)
    assert now() == stopped
    assert page.evaluate("scrollY") == 0  # the keys do not scroll as well
    page.locator("#log").focus()  # where a key has a meaning of its own
    page.keyboard.press("Space")
    assert page.locator("#log").is_checked()
    assert now() == stopped


# files


def test_a_chart_is_saved_as_csv_svg_and_png(report, job, visit):
    page = visit(report)
    see_all(page)
    page.locator("#smooth").fill("1")
    node(page, 3).click()
    chart = page.locator("#curve")

    def save(kind):
        chart.hover()
        chart.locator("[aria-haspopup=menu]").click()
        with page.expect_download() as waiting:
            chart.get_by_role("menuitem", name=kind).click()
        assert waiting.value.suggested_filename.endswith(f".{kind.lower()}")
        return waiting.value.path().read_bytes()

    heads, *rows = csv.reader(io.StringIO(save("CSV").decode(), newline=""))
    assert heads == ["curve", "frames", "value", "low quartile", "high quartile"]
    for name in ("mr", "uniform"):
        own = [row[1:] for row in rows if row[0] == name]
        found = np.array([[float(x) if x else np.nan for x in row] for row in own])
        assert found[:, 0].tolist() == (16 * np.arange(1, 25)).tolist()
        every = table(job, "return", name)[:, :, 3]
        played = ~np.isnan(every).all(1)
        expected = np.full((24, 3), np.nan)
        expected[played] = np.nanquantile(every[played], [0.5, 0.25, 0.75], axis=1).T
        assert found[:, 1:] == pytest.approx(expected, abs=1e-3, nan_ok=True)
    root = ET.fromstring(save("SVG"))
    strokes = [x.get("stroke") for x in root.iter(f"{SVG}path") if x.get("fill") == "none"]
    assert "rgb(0, 114, 178)" in strokes  # mr's
    assert "frames" in [x.text for x in root.iter(f"{SVG}text")]
    content = save("PNG")
    box = chart.locator("svg.plot").bounding_box()
    assert content.startswith(b"\x89PNG")
    size = struct.unpack(">II", content[16:24])
    assert size == pytest.approx((2 * box["width"], 2 * box["height"]), abs=1)
    assert page.text_content("#now") == "384 of 384 frames"  # a menu does not set the time


def test_every_chart_and_table_can_be_saved(report, visit):
    page = visit(report)
    see_all(page)
    until(page, "$('settings-save').firstChild || $('settings').hidden")
    charts = page.locator(".chart")
    assert charts.count() == 9
    for i in range(9):
        items = charts.nth(i).locator("[role=menuitem]").all_text_contents()
        assert items == ["PNG", "SVG", "CSV"]
    for name in ("the comparison", "the settings", "the runs"):
        assert page.get_by_role("button", name=f"Save {name} as CSV").count() == 1
