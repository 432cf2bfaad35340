"""The site builds without a warning, and needs no network when it is read."""

import json
import os
import re
import subprocess
import sys

import pytest
from docs_pages import DOCS, ROOT

pytest.importorskip("mkdocs")


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
