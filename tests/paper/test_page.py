"""The page, from the curves that ship, by the command line and in a real browser."""

import re
from pathlib import Path

import pytest
from command import mastery

from mastery.paper.claims import CLAIMS


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    """Without a GPU, and without training anything."""
    folder = tmp_path_factory.mktemp("paper")
    text = mastery("paper", "--redraw", "--out", folder)
    assert f"Page: {folder / 'paper.html'}" in text
    return folder


def test_the_page_tells_every_claim_of_reinforcement_learning(redrawn):
    page = (redrawn / "paper.html").read_text()
    assert "Scaled down" not in page
    for claim in CLAIMS:
        assert page.count(claim.words.replace("'", "&#x27;")) == 2  # on the scorecard, and below
    assert "<td class='left wrap'>open: " not in page  # every claim is decided
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="(?!data:|#)(.*?)"', page) == ["interactive.html"]
    ids = re.findall(r' id="(.*?)"', re.sub(r'src="data:.*?"', "", page))
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#(.*?)"', page)) <= set(ids)
    assert 1e6 < (redrawn / "interactive.html").stat().st_size < 10e6


def test_every_figure_is_there_as_svg_and_png(redrawn):
    names = {path.stem for path in (redrawn / "figures").iterdir()}
    assert {
        "blocked-unlock-pickup-2018-teachers",
        "key-corridor-2018-teachers",
        "key-corridor-2018-mr",
        "obstructed-maze-2018-mr",
        "blocked-unlock-pickup-2018-mr",
        "shortcomings-2018",
        "probabilities-2018",
        "programs-2018",
        "ablation",
        "key-corridor-today-mr",
        "apart",
        "agents",
    } <= names
    for name in names:
        assert (redrawn / "figures" / f"{name}.svg").stat().st_size > 5000
        assert (redrawn / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_tables_are_markdown_too(redrawn):
    text = (redrawn / "paper.md").read_text()
    assert (
        "| the paper says | where | how it is judged | 2018: the paper's MiniGrid and agent |"
        in text
    )
    assert re.search(r"\| `key-corridor-2018` \| 120 \| 10,014,720 of 10,014,720", text)
    for name in re.findall(r"\(figures/(.*?)\)", text):
        assert (redrawn / "figures" / name).exists()


def opened(browser, folder, width, **options):
    context = browser.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=False, **options
    )
    found = context.new_page()
    found.goto((folder / "paper.html").as_uri())
    return found


def test_the_page_is_short_and_a_click_leads_to_the_figure(redrawn, browser):
    """Without scripts."""
    seen = opened(browser, redrawn, 1280)
    assert seen.locator("body").bounding_box()["height"] < 4000  # it was 20,668 pixels
    figure = seen.locator("#key-corridor-2018-mr")
    assert not figure.is_visible()
    seen.locator(".card a[href='#key-corridor-2018-mr']").first.click()
    assert figure.is_visible()
    box = figure.bounding_box()
    assert 0 <= box["y"] < 200
    assert box["height"] > 300  # the picture itself
    row = seen.locator("#claim-5")
    seen.locator(".card a[href='#claim-5']").last.click()
    assert 0 <= row.bounding_box()["y"] < 200
    contents = seen.locator("nav.contents a[href='#section-ablation']")
    assert contents.is_visible()  # it stays at the side
    contents.focus()
    seen.keyboard.press("Enter")
    assert seen.locator("#ablation").is_visible()
    seen.context.close()


def test_a_phone_scrolls_only_down(redrawn, browser):
    seen = opened(browser, redrawn, 400, color_scheme="dark")
    assert not seen.locator("nav.contents a").first.is_visible()
    seen.locator("nav.contents summary").click()
    assert seen.locator("nav.contents a").first.is_visible()
    for summary in seen.locator("section summary").all():
        summary.click()
    assert seen.locator("section summary").count() > 10
    inner = seen.locator("body").bounding_box()["width"]
    wide = max(box["width"] for box in (x.bounding_box() for x in seen.locator("section").all()))
    assert (inner, wide <= 400) == (400, True)
    for heading in seen.locator("h1, h2").all():
        box = heading.bounding_box()
        assert box["x"] + box["width"] <= 400
    assert seen.locator(".tally").bounding_box()["width"] <= 400
    seen.context.close()


def test_print_shows_everything_in_light_colours(redrawn, browser):
    seen = opened(browser, redrawn, 800, color_scheme="dark")
    assert not seen.locator("#ablation").is_visible()
    seen.emulate_media(media="print")
    for name in ("#ablation", "#claim-1", "#section-how-this-was-made", "#key-corridor-2018-mr"):
        assert seen.locator(name).is_visible()
        assert seen.locator(name).bounding_box()["height"] > 10
    assert not seen.locator("nav.contents").is_visible()
    seen.context.close()


def test_one_experiment_alone(tmp_path):
    mastery("paper", "ablation", "--redraw", "--out", tmp_path)
    assert [path.name for path in (tmp_path / "figures").glob("*.svg")] == ["ablation.svg"]


def test_an_experiment_beyond_the_paper_has_what_it_compares_with(tmp_path):
    mastery("paper", "apart", "--redraw", "--out", tmp_path)
    assert (
        "| 2018 | 16 of 30 | 7 of 30 | 29 of 30 | 0 of 30 |" in (tmp_path / "paper.md").read_text()
    )


def test_errors_say_what_to_do(tmp_path):
    assert "did you mean 'ablation'?" in mastery("paper", "ablaton", rc=2)
    assert "must be more than 0" in mastery("paper", "--scale", "0", rc=2)
    (tmp_path / "curves").mkdir()
    error = mastery("paper", "--redraw", "--out", tmp_path, rc=2)
    assert "there are no curves in" in error


def test_the_documentation_has_these_tables(redrawn):
    """What the pages of the paper say is what the curves say."""
    docs = Path(__file__).parents[2] / "docs"
    parts = ("paper-claims", "paper-curricula", "addition", "ablation", "paper-jobs")
    pages = [docs / "paper.md", *(docs / "results" / f"{part}.md" for part in parts)]
    results = "".join(page.read_text() for page in pages)
    rows = [line for line in (redrawn / "paper.md").read_text().splitlines() if line[:1] == "|"]
    assert len(rows) > 80
    missing = [row for row in rows if row not in results]
    assert not missing
