"""No line of the README and of the pages is too long to read in an editor."""

import re

import pytest
from docs_pages import PAGES, ROOT, name

LONGEST = 100
MAY_BE_LONG = re.compile(
    r"\|"  # a table
    r"|\s*[-*]?\s*!?\[.*\]\([^)]*\)[.:,]?$"  # a picture or a link alone
    r"|\s*<img "
    r"|<p class=\"formula\">"
)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_line_is_long(page):
    long, language = [], None
    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        if line.startswith("```"):
            language = line[3:].strip() if language is None else None
        output = language == "text"
        if len(line) > LONGEST and not output and not MAY_BE_LONG.match(line):
            long.append((number, len(line)))
    assert long == []
