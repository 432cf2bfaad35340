"""Every link, image and anchor of the README and of every page of the site exists."""

import re

import pytest
from docs_pages import DOCS, PAGES, ROOT, anchors, links, name


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links(page):
    missing = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if (
            not target.exists()
            or not target.is_relative_to(ROOT)
            or (anchor and target.suffix == ".md" and anchor not in anchors(target))
        ):
            missing.append(link)
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_to_the_world_are_few_and_safe(page):
    for link in links(page):
        assert not link.startswith("http:"), link


def test_every_picture_is_shown_somewhere():
    shown = {(page.parent / link).resolve() for page in PAGES for link in links(page)}
    pictures = {path for path in (DOCS / "img").rglob("*") if path.is_file()}
    assert {name(path) for path in pictures - shown} == set()
