"""The page's own files: HTML, a style sheet, and scripts that are ES modules.

page.html loads one module, page.js, which imports the others. `mastery watch` serves them as they
are. A browser imports nothing from file://, so the single file has all modules in one script:
`one_script` puts each after those that it imports, and drops `import` and `export`. All then share
one scope, so no name may be declared at the top level of two modules.
"""

from __future__ import annotations

import re
from importlib.resources import files

from mastery.errors import MasteryError

LOADED = re.compile(
    r'<link rel="stylesheet" href="(?P<style>[\w.-]+)">'
    r'|<script src="(?P<script>[\w.-]+)"></script>'
    r'|<script type="module" src="(?P<module>[\w.-]+)"></script>'
)
_IMPORT = re.compile(r"^import \{[^}]*\} from '\./([\w-]+\.js)';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |const )", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*|\bimport\b *[(.].*", re.MULTILINE)


def static(name: str) -> str:
    """Read one of the page's files."""
    return (files("mastery.page") / "static" / name).read_text(encoding="utf-8")


def parts() -> list[str]:
    """The names of all files that page.html loads, and of the modules they import."""
    found: list[str] = []
    for loaded in LOADED.finditer(static("page.html")):
        module = loaded["module"]
        found += modules(module) if module else [loaded["style"] or loaded["script"]]
    return found


def modules(entry: str) -> list[str]:
    """A module and all that it needs, each after those that it imports.

    Raises:
        MasteryError: Modules import each other.
    """
    found: list[str] = []

    def add(name: str, on_the_way: tuple[str, ...]) -> None:
        if name in on_the_way:
            raise MasteryError(f"modules import each other: {' → '.join((*on_the_way, name))}")
        if name not in found:
            for imported in _IMPORT.findall(static(name)):
                add(imported, (*on_the_way, name))
            found.append(name)

    add(entry, ())
    return found


def one_script(entry: str) -> str:
    """A module and all that it needs as one module, which imports nothing.

    Raises:
        MasteryError: Modules import each other, or import or export in a way that is not known.
    """
    return "\n".join(_bare(name) for name in modules(entry))


def _bare(name: str) -> str:
    """A module without `import` and `export`."""
    text = _EXPORT.sub("", _IMPORT.sub("", static(name)))
    if left := _LEFT.search(text):
        raise MasteryError(f"{name} cannot be put into one script with others: {left[0]}")
    return text
