"""Every program has its place and its picture, and the pictures are those of the script."""

import re
import runpy

import pytest
from docs_pages import DOCS, PAGES, links

from mastery import Curriculum
from mastery.programs.named import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_shown(name):
    picture = DOCS / "img" / "programs" / f"{name}.svg"
    assert picture.exists()
    shown = [p for p in PAGES if picture in {(p.parent / link).resolve() for link in links(p)}]
    assert any(f"`{name}`" in page.read_text() or f"# {name}" in page.read_text() for page in shown)


def test_a_picture_is_what_the_script_draws():
    script = runpy.run_path(str(DOCS / "program_pictures.py"))
    curriculum = Curriculum.load("obstructed-maze")
    drawn = script["draw"]("mr", curriculum, *script["watch"](curriculum, "mr"))
    kept = (DOCS / "img" / "programs" / "mr.svg").read_text()
    assert re.search(r"all mastered at \d+", drawn)[0] in kept
    assert drawn.count("<polygon") == kept.count("<polygon") == len(curriculum)
