"""The search of the site, opened as a file in a real browser, finds the right page first."""

import os
import subprocess
import sys

import pytest
from docs_pages import ROOT

pytest.importorskip("mkdocs")
sync_api = pytest.importorskip("playwright.sync_api")
browser = pytest.importorskip("browser")

QUESTIONS = {
    "resume SB3": "guides/resume.html",
    "unordered prompts": "prompts.html",
    "cite": "cite.html",
    "wrong order": "which.html",
    "own program": "guides/own-program.html",
    "TRL": "adapters/trl.html",
    "no order": "auto.html",
    "make_vec": "reference/minigrid.html",
}
LINKS = ".md-search-result__item > a.md-search-result__link"


def test_the_search_finds_the_right_page_first(tmp_path):
    path = browser.find()
    if path is None:
        pytest.skip("there is no browser")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", tmp_path]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, check=True, env=environment)
    with sync_api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = chromium.new_page()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "index.html").as_uri())
        box = page.locator("input.md-search__input")
        found = {}
        for question in QUESTIONS:
            box.fill("")
            box.press_sequentially(question)
            page.wait_for_timeout(500)
            first = page.locator(LINKS).first.get_attribute("href")
            found[question] = first.partition("?")[0].removeprefix((tmp_path).as_uri() + "/")
        chromium.close()
    assert found == QUESTIONS
    assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in asked)
