"""The site builds without a warning, needs no network when it is read, and its search finds."""

import json
import os
import re
import subprocess
import sys

import browser
import pytest
from docs_pages import DOCS, ROOT

pytest.importorskip("mkdocs")

QUESTIONS = {
    "compare two programs with confidence intervals": "report.html",
    "checkpoint a curriculum in my PyTorch loader": "adapters/pytorch.html",
    "resume SB3": "guides/resume.html",
    "unordered prompts": "prompts.html",
    "cite": "cite.html",
    "wrong order": "which.html",
    "set aside": "auto.html",
    "own program": "guides/own-program.html",
    "TRL": "adapters/trl.html",
    "no order": "auto.html",
    "make_vec": "reference/minigrid.html",
    "train on several machines": "guides/clusters.html",
    "what does learnability mean": "concepts/glossary.html",
}
LINKS = ".md-search-result__item > a.md-search-result__link"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_every_page_is_built_and_found_by_the_search(site):
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    for page in DOCS.rglob("*.md"):
        made = page.relative_to(DOCS).with_suffix(".html").as_posix()
        assert (site / made).exists()
        assert made in found or made == "index.html"
    assert (site / "search" / "search_index.js").exists()  # for pages that are opened as files


def test_nothing_is_fetched_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text()
        fetched = re.findall(r"<(?:script|img|iframe)[^>]* src=\"?(https?:[^\"\s>]+)", text)
        fetched += re.findall(r"<link[^>]* href=\"?(https?:[^\"\s>]+)", text)
        assert fetched == [], page


def test_signatures_have_types(site):
    page = (site / "reference" / "teacher.html").read_text()
    text = re.sub(r"<[^>]+>", "", page)
    assert "curriculum: Curriculum" in text
    assert "Seed of the teacher's random numbers" in text


def test_the_search_finds_the_right_page_first(site):
    """In pages that are opened as files, in a real browser."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = browser.find()
    if path is None:
        pytest.skip("there is no browser")
    with sync_api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = chromium.new_page()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        box = page.locator("input.md-search__input")
        found = {}
        for question, answer in QUESTIONS.items():
            box.fill(question[:-1])
            box.press_sequentially(question[-1])  # each key is a search
            for _ in range(50):  # until its results are there
                page.wait_for_timeout(100)
                first = page.locator(LINKS).first.get_attribute("href")
                found[question] = first.partition("?")[0].removeprefix(site.as_uri() + "/")
                if found[question] == answer:
                    break
        chromium.close()
    assert found == QUESTIONS
    assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in asked)


def test_examples_in_docstrings_are_code(site):
    for page in sorted((site / "reference").glob("*.html")):
        assert "<blockquote>" not in page.read_text(), page  # what Markdown makes of >>>
    assert "Curriculum.load(" in re.sub(
        r"<[^>]+>", "", (site / "reference" / "teacher.html").read_text()
    )


def shown(page):
    return " ".join(re.sub(r"<[^>]+>", "", page.read_text()).split())


def test_the_reference_has_whole_returns_and_fields_and_no_private_names(site):
    teacher = shown(site / "reference" / "teacher.html")
    assert "rounded up or down at random so that the mean is exact" in teacher  # two lines
    assert "the mean of the task's returns; ignore it where count is 0" in teacher  # a comment
    for page in (site / "reference").glob("*.html"):
        assert not re.search(r"Bases: _| _\w+: \w+ = ", shown(page)), page
