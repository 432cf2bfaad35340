"""Every public name is in the reference, and all that the reference names is there."""

import importlib
import re

import pytest
from docs_pages import DOCS, directives

import mastery
from mastery import minigrid, programs

REFERENCE = sorted((DOCS / "reference").glob("*.md"))
DOCUMENTED = [name for page in REFERENCE for name in directives(page)]


def find(path):
    """The object with a dotted path."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("mastery"):
                raise
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise AssertionError(path)


def test_every_public_name():
    assert set(mastery.__all__) - {"programs"} <= {n.rpartition(".")[2] for n in DOCUMENTED}
    assert {f"mastery.{name}" for name in mastery.__all__ if name != "programs"} <= set(DOCUMENTED)
    assert {f"mastery.programs.{name}" for name in programs.__all__} <= set(DOCUMENTED)


def test_every_public_name_of_minigrid():
    page = (DOCS / "reference" / "minigrid.md").read_text()
    assert [name for name in minigrid.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_nothing_is_documented_twice():
    assert len(DOCUMENTED) == len(set(DOCUMENTED))


@pytest.mark.parametrize("path", DOCUMENTED)
@pytest.mark.filterwarnings("ignore")
def test_what_is_documented_is_there(path):
    found = find(path)
    if callable(found):
        assert found.__doc__


def test_every_class_and_function_that_the_pages_import():
    """`from mastery.adapters.x import Y` in a page: Y is in the reference."""
    text = "".join(page.read_text() for page in (DOCS / "adapters").glob("*.md"))
    for module, names in re.findall(
        r"^from (mastery\.adapters\.\w+) import ([\w, ]+)$", text, re.M
    ):
        for name in names.split(", "):
            assert f"{module}.{name}" in DOCUMENTED
