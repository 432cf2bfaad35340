"""Two programs side by side: their graphs under one slider, and clips of their agents in step."""

import pytest
from made_jobs import write_job
from test_page_browser import node, percent, slide, table

from mastery.page import assemble, data
from mastery.page.places import Place

DOT = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"  # a GIF of one pixel
MOMENTS = (0, 192, 384)  # frames at which the agents were kept


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return write_job(tmp_path_factory.mktemp("beside") / "job")


@pytest.fixture(scope="module")
def report(job):
    """The first runs of mr (0) and uniform (3) have clips of the task `left`."""
    place = Place(job, "job")
    clips = {
        str(run): [{"frames": at, "text": f"{who}: {at // 8} steps", "gif": DOT} for at in MOMENTS]
        for run, who in ((0, "mr, seed 0"), (3, "uniform, seed 0"))
    }
    out = job.parent / "page.html"
    entry, curves = data.job_entry(place), data.job_curves(place)
    assemble.write(out, "beside", [entry], [curves], (), {place.key: {"left": clips}})
    return out.as_uri()


def begun(page, holder):
    """The GIF of a clip, and the number after it, which is new when it begins again."""
    gif, _, start = page.locator(f"{holder} img").get_attribute("src").partition("#")
    assert gif.endswith(DOT)
    return start


def test_one_slider_moves_both_graphs(report, job, visit):
    page = visit(report)
    assert not page.locator("#beside").is_visible()
    page.select_option("#beside-choice", label="uniform")
    assert page.inner_text("#graph-title").strip() == "mr"
    assert page.inner_text("#beside-title").strip() == "uniform"
    for point in (23, 4, 11):
        slide(page, point)
        for graph, program in (("#graph", "mr"), ("#beside-graph", "uniform")):
            mastery = table(job, "mastery", program)[point].mean(0)
            for task, found in enumerate(page.locator(f"{graph} .node").all()):
                assert f"mastery {percent(mastery[task])}" in found.get_attribute("aria-label")
    boxes = [page.locator(x).bounding_box() for x in ("#graph svg", "#beside-graph svg")]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    assert boxes[0]["y"] == boxes[1]["y"]


def test_clips_of_both_agents_are_of_one_moment_and_begin_together(report, visit):
    page = visit(report)
    page.select_option("#beside-choice", label="uniform")
    node(page, 1).click()
    holders, starts = ("#graph-clip", "#beside-clip"), set()
    for point, moment in ((23, 384), (14, 192), (5, 0)):  # 384, 240 and 96 frames
        slide(page, point)
        said = [page.inner_text(f"{holder} p") for holder in holders]
        assert said == [
            f"After {moment} frames: {who}, seed 0: {moment // 8} steps"
            for who in ("mr", "uniform")
        ]
        one, other = (begun(page, holder) for holder in holders)
        assert one == other
        starts.add(one)
    assert len(starts) == 3  # both began again each time
    tops = [page.locator(f"{holder} img").bounding_box()["y"] for holder in holders]
    assert tops[0] == tops[1]  # also if one of the graphs is higher
    page.locator("#beside-clip .moments button", has_text="192").click()
    assert page.text_content("#now").startswith("192 of 384")
    assert "After 192 frames: mr" in page.inner_text("#graph-clip")
    assert not page.locator("#agent-clip").is_visible()


def test_on_a_narrow_page_they_are_below_each_other(report, visit):
    page = visit(report, width=400)
    page.select_option("#beside-choice", label="uniform")
    first, second = (page.locator(x).bounding_box() for x in ("#graph svg", "#beside-graph svg"))
    assert first["y"] + first["height"] <= second["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
