"""The page on small screens, by the keyboard alone, and on paper."""

import io

import numpy as np
import pytest
from made_jobs import make_job, write_job
from PIL import Image
from test_page_browser import node, see_all

from mastery import Curriculum
from mastery.cli.page import write_report


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    write_job(folder / "job", make_job(seeds=2, points=8), points=8)
    write_report([folder / "job"], folder / "report.html")
    return (folder / "report.html").as_uri()


def wide(page):
    return page.evaluate("document.documentElement.scrollWidth")


# small screens


def test_values_beside_a_curve_do_not_widen_a_narrow_page(report, visit):
    page = visit(report, width=400)
    see_all(page)
    charts, seen = page.locator(".chart"), 0
    for i in range(charts.count()):
        box = charts.nth(i).bounding_box()
        for x in (0.3, 0.6, 0.98):
            page.mouse.move(box["x"] + x * box["width"], box["y"] + box["height"] / 2)
            assert wide(page) <= 400
            values = charts.nth(i).locator(".values")
            if values.is_visible():
                found, seen = values.bounding_box(), seen + 1
                assert found["x"] >= 0
                assert found["x"] + found["width"] <= 400
    assert seen > 2 * charts.count()


BROKEN = """(heads) => heads.flatMap((head) => {
    const walker = document.createTreeWalker(head, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) {
        const node = walker.currentNode;
        for (const { 0: word, index } of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
            const range = document.createRange();
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
            if (tops.size > 1) found.push(word);
        }
    }
    return found;
})"""


@pytest.mark.parametrize("width", [400, 320])
def test_headings_do_not_break_inside_words(tmp_path_factory, visit, width):
    folder = tmp_path_factory.mktemp("headings")
    names = Curriculum.load("blocked-unlock-pickup")
    the_job = make_job(names, ("mr", "gamax-window"), seeds=2, points=4)
    write_job(folder / "job", the_job, points=4)
    write_report([folder / "job"], folder / "page.html")
    page = visit((folder / "page.html").as_uri(), width=width)
    see_all(page)
    page.select_option("#beside-choice", index=1)
    heads = page.locator("h1, h2, h3, thead th, .tabs button, legend, #now")
    assert heads.count() > 20
    assert heads.evaluate_all(BROKEN) == []
    assert wide(page) <= width


# the keyboard

ACTIVE = """() => {
    const { activeElement: active } = document, box = active.getBoundingClientRect();
    const bar = document.getElementById('transport').getBoundingClientRect();
    return {
        id: active.id, text: active.textContent, inBar: Boolean(active.closest('#transport')),
        hidden: box.bottom > bar.top + 1 && box.top < bar.bottom && box.right > bar.left
            && box.left < bar.right,
        inSight: box.bottom > 0 && box.top < innerHeight,
    };
}"""


def active(page):
    """What has the focus; parts that come into sight may be drawn, and move it, for a moment."""
    for _ in range(100):
        found = page.evaluate(ACTIVE)
        if found["inSight"] and (found["inBar"] or not found["hidden"]):
            break
        page.wait_for_timeout(50)
    return found


def stops(page, most=200):
    """Every stop of the Tab key, once round the page."""
    found = []
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
        found.append(active(page))
    return found


@pytest.mark.parametrize(("width", "height"), [(1280, 700), (400, 600)])
def test_what_has_the_focus_is_not_behind_the_bar(report, visit, width, height):
    page = visit(report, width=width)
    page.set_viewport_size({"width": width, "height": height})
    found = stops(page)
    assert len(found) > 30
    behind = [stop for stop in found if stop["hidden"] and not stop["inBar"]]
    assert behind == []
    assert [stop for stop in found if not stop["inSight"]] == []


def test_play_and_the_slider_come_first(report, visit):
    page = visit(report)
    order = []
    for _ in range(3):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert order == ["skip", "play", "time"]
    page.keyboard.press("ArrowLeft")
    assert page.text_content("#now") == "112 of 128 frames"


def test_the_skip_link_leads_past_the_choices(report, visit):
    page = visit(report)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("Boolean(document.activeElement.closest('#curriculum'))")


def test_what_is_measured_is_one_stop_and_arrow_keys_choose(report, visit):
    page = visit(report)
    see_all(page)
    group = page.locator("#curves-what")
    names = group.locator("button").all_text_contents()
    assert len(names) == 3
    assert group.locator("[tabindex='0']").all_text_contents() == names[:1]
    group.locator("[tabindex='0']").focus()
    for key, expected in (("ArrowRight", names[1]), ("End", names[2]), ("ArrowRight", names[0])):
        page.keyboard.press(key)
        assert group.locator("[aria-checked=true]").all_text_contents() == [expected]
        assert page.evaluate("document.activeElement.textContent") == expected
    assert page.text_content("#now") == "128 of 128 frames"  # the arrow keys did not move the time


# paper


def brightness(page):
    """The mean of the whole page as it looks now, from 0 to 1."""
    shot = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("L")
    return float(np.asarray(shot).mean() / 255)


@pytest.mark.parametrize("chosen", [True, False])
def test_a_dark_page_is_printed_in_light_colours(report, visit, chosen):
    page = visit(report, dark=not chosen)
    if chosen:
        page.get_by_role("button", name="Light or dark").click()
    see_all(page)
    text = lambda: page.locator("#curve .tick").first.evaluate("(x) => getComputedStyle(x).fill")  # noqa: E731
    mr = lambda: page.locator("#curve path.curve:not(.faint)").first.get_attribute("stroke")  # noqa: E731
    disc = lambda: node(page, 0).locator(".disc").evaluate("(x) => x.style.fill")  # noqa: E731
    chip = lambda: page.locator(".chip line").last.get_attribute("stroke")  # noqa: E731
    dark = text(), mr(), disc(), chip()
    assert brightness(page) < 0.3
    page.emulate_media(media="print", color_scheme="light" if chosen else "dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert brightness(page) > 0.85
    assert mr() == "#0072B2"
    assert all(a != b for a, b in zip((text(), mr(), disc(), chip()), dark, strict=True))
    page.emulate_media(media="screen", color_scheme="light" if chosen else "dark")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert (text(), mr(), disc(), chip()) == dark
    assert brightness(page) < 0.3


def test_printing_changes_nothing_in_the_address(report, visit):
    page = visit(report, dark=True)
    page.pdf()
    assert "#" not in page.url
    assert page.evaluate("document.documentElement.dataset.theme") is None
