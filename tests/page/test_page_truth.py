"""What the page says is true: each number, place and colour against another way to find it."""

import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest
from made_jobs import add_point, diamond, make_job, write_job
from test_page_browser import node, see_all, slide, until
from test_page_server import serving

from mastery import Teacher
from mastery.cli.page import write_report
from mastery.drawing.pictures import curves_svg
from mastery.page import assemble, data
from mastery.page.places import Place
from mastery.page.server import Server
from mastery.rundir.metrics import Metrics
from mastery.rundir.store import Store

DOT = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"  # a GIF of one pixel


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return write_job(tmp_path_factory.mktemp("truth") / "job")


@pytest.fixture(scope="module")
def report(job):
    write_report([job], job.parent / "report.html")
    return (job.parent / "report.html").as_uri()


@pytest.fixture(scope="module")
def with_curves(tmp_path_factory):
    """A page of a job with one seed, whose curves are changed."""
    folder = tmp_path_factory.mktemp("curves")
    one = make_job(programs=("mr",), seeds=1, points=3)
    place = Place(write_job(folder / "job", one, points=3), "job")

    def written(**changes):
        curves = data.job_curves(place) | changes
        assemble.write(folder / "page.html", "curves", [data.job_entry(place)], [curves])
        return (folder / "page.html").as_uri()

    return written


def by_task(rows):
    """Curves of one run, from a row for each task."""
    return np.array([rows], float)


# the numbers


def test_until_here_is_the_mean_since_the_start(with_curves, visit):
    frames = [10, 40, 100]  # points that last 10, 30 and 60 frames
    probability = np.array(
        [[0.70, 0.10, 0.10, 0.10], [0.05, 0.55, 0.30, 0.10], [0.04, 0.10, 0.06, 0.80]]
    )
    page = visit(with_curves(frames=frames, probability=by_task(probability.T)))
    for point in (2, 0, 1):
        slide(page, point)
        lengths = np.diff(frames, prepend=0)[: point + 1]
        means = np.average(probability[: point + 1], axis=0, weights=lengths)
        expected = [f"{100 * x:.0f} %" for x in means]
        assert page.locator("#why-bars td:last-child").all_inner_texts() == expected
    slide(page, 2)
    assert page.locator("#why-bars td:last-child").all_inner_texts() == [
        "11 %", "24 %", "14 %", "52 %",  # 7 + 1.5 + 2.4, …; the last point's are 4, 10, 6, 80
    ]  # fmt: skip
    node(page, 0).hover()
    assert "until here11 %the mean since the start" in page.text_content("#tip")


def test_one_hundred_percent_fits_on_a_small_disc(with_curves, visit):
    share = by_task([[0, 0, 0], [0.004] * 3, [0.05] * 3, [0.946] * 3])
    address = with_curves(mastery=np.ones((1, 4, 3)), share=share)
    for width in (1280, 400):
        page = visit(address, width)
        for task in range(4):
            disc, text = node(page, task).locator(".disc"), node(page, task).locator(".inside")
            if text.text_content() == "" and task < 2:
                continue  # nothing, rather than a part of it
            assert text.text_content() == "100 %"
            box, around = text.bounding_box(), disc.bounding_box()
            middle = box["x"] + box["width"] / 2
            assert middle == pytest.approx(around["x"] + around["width"] / 2, abs=1)
            # the corners of its digits, which are about 0.7 as high as its box, are on the disc
            assert np.hypot(box["width"] / 2, 0.7 * box["height"] / 2) <= around["width"] / 2


def hexadecimal(colour):
    """A colour as `#0072b2`."""
    if colour.startswith("#"):
        return colour.lower()
    return "#" + "".join(f"{int(x):02x}" for x in re.findall(r"\d+", colour)[:3])


def test_a_program_has_one_colour_in_the_page_the_drawings_and_the_figures(tmp_path, visit):
    from matplotlib.figure import Figure

    from mastery.paper.figures import _band

    programs = ("mr", "gamax-window", "gprop-linreg", "mr:delta=0.8", "uniform")
    write_job(tmp_path / "job", make_job(programs=programs, seeds=1, points=3), points=3)
    write_report([tmp_path / "job"], tmp_path / "page.html")
    page = visit((tmp_path / "page.html").as_uri())
    see_all(page)
    shown = page.locator("#curve path.curve:not(.faint)").evaluate_all(
        "(all) => all.map((x) => [getComputedStyle(x).stroke, x.getAttribute('stroke-dasharray')])"
    )
    key = page.locator("#curves-key line").evaluate_all(
        "(all) => all.map((x) => getComputedStyle(x).stroke)"
    )
    page_colours = [hexadecimal(colour) for colour, _ in shown]
    assert [hexadecimal(colour) for colour in key] == page_colours
    ink = hexadecimal(page.evaluate("getComputedStyle(document.body).color"))

    lines = {name: (np.arange(3), np.zeros((3, 1))) for name in programs}
    drawn = [x for x in ET.fromstring(curves_svg(lines, "x", "y")).iter() if "stroke" in x.attrib]
    own = [x for x in drawn if x.tag.endswith("line") and x.get("stroke-width") == "3"]
    assert len(own) == len(programs)
    for name, colour, (_, dash), line in zip(programs, page_colours, shown, own, strict=True):
        black = line.get("stroke") in ("#000000", "currentColor", "var(--ink)")
        assert colour == (ink if black else line.get("stroke").lower())
        assert bool(dash) == ("stroke-dasharray" in line.attrib)
        if name in ("mr:delta=0.8", "uniform"):  # which the paper does not have, or has in black
            continue
        axis = Figure().subplots()
        _band(axis, SimpleNamespace(frames=np.arange(3)), np.zeros((3, 1)), name)
        assert axis.lines[0].get_color().lower() == colour
    assert page_colours[0] == page_colours[3]  # the same program with another setting
    assert len(set(page_colours)) == 4


# what a loop of the user's own recorded


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two runs that count tokens, with a scalar and a note."""
    from mastery import record

    folder = tmp_path_factory.mktemp("recorded")
    for seed in range(2):
        teacher = Teacher(diamond(), "mr", seed=seed)
        with record(teacher, folder / "mine", unit="tokens", score="pass rate") as recorder:
            for step in range(12):
                teacher.update({"first": (step + seed) / 20}, cost={"first": 100 + 10 * step})
                recorder.log(loss=1 / (1 + step + seed))
                if step == 5 and seed == 1:
                    recorder.note("a <b>lower</b> rate")
            recorder.evaluate({"first": 0.25 + seed / 2})
    write_report([folder / "mine"], folder / "page.html")
    return (folder / "page.html").as_uri()


TOKENS = np.cumsum(100 + 10 * np.arange(12)).tolist()  # 100, 210, … 1860


def traces(chart):
    return chart.evaluate("({ data }) => data.filter((x) => x.name).map(({ x, y }) => [x, y])")


def test_tokens_and_time_steps_of_a_recorded_loop(recorded, visit):
    page = visit(recorded)
    see_all(page)
    page.locator("#smooth").fill("1")
    node(page, 0).click()
    assert page.text_content("#now") == "1.86k of 1.86k tokens"
    assert page.locator("#axis option").all_text_contents()[:2] == ["tokens", "time-steps"]
    ((x, y),) = traces(page.locator("#curve"))
    assert x == TOKENS
    assert y == pytest.approx([(step + 0.5) / 20 for step in range(12)], abs=1e-3)  # of two runs
    assert page.locator("#curve .axis-title").text_content() == "tokens"
    page.select_option("#axis", label="time-steps")
    assert traces(page.locator("#curve"))[0][0] == list(range(1, 13))
    assert page.locator("#curve .axis-title").text_content() == "time-steps"
    page.get_by_role("radio", name="evaluation").click()
    assert traces(page.locator("#curve")) == [[[12], [0.5]]]


def test_scalars_and_notes_of_a_recorded_loop(recorded, visit):
    page = visit(recorded)
    see_all(page)
    assert page.locator("#scalars figcaption").all_inner_texts() == ["loss"]
    ((x, y),) = traces(page.locator("#scalars .chart"))
    assert x == TOKENS
    expected = [(1 / (1 + step) + 1 / (2 + step)) / 2 for step in range(12)]
    assert y == pytest.approx(expected, rel=1e-4)
    mark = page.locator("#curve .mark")
    assert mark.locator("title").text_content() == "a <b>lower</b> rate"
    at = mark.locator("path").evaluate("(x) => x.getBoundingClientRect().left")
    assert at == pytest.approx(pixel_of(page.locator("#curve"), TOKENS[5]), abs=1.5)
    page.locator("#runs-details summary").click()
    assert page.inner_text(".remark").startswith("a <b>lower</b> rate 750 tokens · mr, seed 1 · ")


# the time in the charts


def pixel_of(chart, frames):
    """Where a time is on a chart's axis, by the numbers that are written along it."""
    ticks = chart.locator("svg.plot text.tick[text-anchor=middle]").evaluate_all(
        "(all) => all.map((x) => [x.textContent, x.getBoundingClientRect()])"
        ".map(([text, box]) => [Number(text.replace('k', 'e3')), box.left + box.width / 2])"
    )
    slope, start = np.polyfit(*np.array(ticks).T, 1)
    return start + slope * frames


def drag(page, chart, start, end):
    """Drag over a chart between two times."""
    left, right = pixel_of(chart, start), pixel_of(chart, end)
    box = chart.bounding_box()
    page.mouse.move(left, box["y"] + 60)
    page.mouse.down()
    page.mouse.move((left + right) / 2, box["y"] + 60)
    page.mouse.move(right, box["y"] + 60)
    page.mouse.up()


def cursor(chart):
    box = chart.locator(".cursor").evaluate("(x) => x.getBoundingClientRect().left")
    return box + 0.75  # the middle of its line


def test_the_time_cursor_is_right_after_a_zoom(report, visit):
    page = visit(report)
    see_all(page)
    slide(page, 11)
    charts = [page.locator("#curve"), page.locator("#where .chart").nth(1)]
    for chart in charts:
        assert cursor(chart) == pytest.approx(pixel_of(chart, 192), abs=1.5)
    before = cursor(charts[0])
    drag(page, charts[0], 160, 320)
    for chart in charts:
        assert cursor(chart) == pytest.approx(pixel_of(chart, 192), abs=1.5)
    assert abs(cursor(charts[0]) - before) > 100
    slide(page, 15)
    for chart in charts:
        assert cursor(chart) == pytest.approx(pixel_of(chart, 256), abs=1.5)
    slide(page, 3)  # 64 frames are outside
    assert not charts[0].locator(".cursor").is_visible()
    page.get_by_role("button", name="whole time").click()
    for chart in charts:
        assert cursor(chart) == pytest.approx(pixel_of(chart, 64), abs=1.5)


def test_a_click_on_a_curve_sets_the_time(report, visit):
    page = visit(report)
    see_all(page)
    for chart, frames in ((page.locator("#curve"), 96), (page.locator("#where .chart").last, 240)):
        box = chart.bounding_box()
        page.mouse.click(pixel_of(chart, frames) + 2, box["y"] + 50)
        assert page.text_content("#now") == f"{frames} of 384 frames"
        assert page.locator("#time").input_value() == str(frames // 16 - 1)


# while a job trains


@pytest.fixture
def training(tmp_path):
    """A job that trains, with one point: its store, the server and how to add a point."""
    random = np.random.default_rng(0)
    with (
        Store(tmp_path / "job", make_job(points=40)) as store,
        serving(Server([tmp_path / "job"], port=0)) as server,
    ):
        store.begin_session("", 0)

        def add(point):
            add_point(store, point, 40, random)

        yield server.url, add, store


def test_a_live_point_keeps_the_zoom(training, visit):
    url, add, _ = training
    for point in range(1, 9):
        add(point)
    page = visit(url)
    see_all(page)
    chart = page.locator("#curve")
    drag(page, chart, 32, 96)
    slide(page, 2)

    def seen():
        ticks = chart.locator("text.tick[text-anchor=middle]").all_text_contents()
        return ticks, chart.evaluate("({ x }) => x.range"), cursor(chart)

    before = seen()
    assert before[1] == pytest.approx([32, 96], abs=1)
    add(9)
    until(page, "$('time').max === '8'")
    assert seen() == before
    assert page.text_content("#now").startswith("48 of 640 frames")  # and the time
    page.get_by_role("button", name="whole time").click()
    assert chart.evaluate("({ x }) => x.range") == pytest.approx([0, 144], abs=2)


def checkpoint(store, point):
    """A point with a checkpoint."""
    shape = (1, 6, 4)
    metrics = Metrics(
        np.full(shape, 0.25), np.zeros(shape), np.ones(shape, int), np.zeros(shape),
        np.full(shape, 4), progress=np.zeros(shape),
    )  # fmt: skip
    store.record(point, 0.5 * point, metrics, None, {"x": np.zeros((6, 1))}, None)


def test_a_live_clip_arrives_though_a_checkpoint_came_meanwhile(training, visit):
    url, _, store = training
    checkpoint(store, 1)
    page = visit(url)
    waiting = []
    page.route("**/clip/**", lambda route: waiting.append(route))  # in place of an agent that plays
    node(page, 0).click()
    page.locator("#agent-clip button").click()
    until(page, "$('agent-clip').textContent.includes('playing')")
    checkpoint(store, 2)
    until(page, "$('time').max === '1'")
    (asked,) = waiting
    asked.fulfill(json={"frames": 16, "text": "mr, seed 0: 3 steps", "gif": DOT})
    page.wait_for_selector("#agent-clip img", timeout=3000)
    assert "After 16 frames: mr, seed 0: 3 steps" in page.text_content("#agent-clip")
    page.get_by_role("button", name="after 32 frames").click()  # the newer one can be seen too
    until(page, "$('agent-clip').textContent.includes('playing')")
    waiting[1].fulfill(json={"frames": 32, "text": "mr, seed 0: 2 steps", "gif": DOT})
    until(page, "$('agent-clip').textContent.includes('After 32 frames')")
    assert page.locator("#agent-clip img").count() == 1
