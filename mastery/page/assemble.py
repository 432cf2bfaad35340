"""Write the page as one file that works offline and can be mailed.

It embeds everything: the scripts (with Plotly), the style sheet, and the compressed data. Its
Content-Security-Policy allows only these scripts, by their hashes, and loads nothing else.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from mastery.checkpoint import replace_file
from mastery.errors import MasteryError
from mastery.page.clips import Clips
from mastery.page.data import Entry, index, to_json
from mastery.page.places import Problem


def static(name: str) -> str:
    """Read one of the page's static files."""
    return (files("mastery.page") / "static" / name).read_text(encoding="utf-8")


def parts() -> list[str]:
    """The names of the files that page.html loads."""
    return [a or b for a, b in _LOADED.findall(static("page.html"))]


def write(
    path: Path,
    title: str,
    entries: Sequence[Entry],
    curves: Sequence[Mapping[str, Any]],
    problems: Sequence[Problem] = (),
    clips: Clips | None = None,
) -> None:
    """Write the whole page.

    Args:
        path: The HTML file to write.
        title: The page's title.
        entries: The jobs.
        curves: The curves of each job, in the same order.
        problems: What could not be shown.
        clips: Clips by job and task.
    """
    whole = json.dumps({**index(entries, problems, live=False), "clips": clips or {}})
    data = [_block("index", whole)]
    data += [_block(e["key"], to_json(c)) for e, c in zip(entries, curves, strict=True)]
    replace_file(path, (part.encode() for part in _assembled(title, data)))


_LOADED = re.compile(r'<link rel="stylesheet" href="([\w.-]+)">|<script src="([\w.-]+)"></script>')


def _assembled(title: str, data: Sequence[str]) -> Iterator[str]:
    page = static("page.html").replace("<title>mastery</title>", f"<title>{escape(title)}</title>")
    inside = {name: static(name).replace("\r\n", "\n") for name in parts()}
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {_hashes(inside, '.css')}; script-src {_hashes(inside, '.js')}"
    )
    head, body = page.replace(
        "<head>", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">', 1
    ).split("<!-- data -->")

    def inlined(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        kind = "style" if name.endswith(".css") else "script"
        return f"<{kind}>{inside[name]}</{kind}>"

    yield _LOADED.sub(inlined, head)
    yield from data
    yield _LOADED.sub(inlined, body)


def _hashes(inside: Mapping[str, str], kind: str) -> str:
    for name, text in inside.items():
        if "</script" in text.lower() or "</style" in text.lower():
            raise MasteryError(f"{name} cannot be put into a page: it would end there")
    return " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for name, text in inside.items()
        if name.endswith(kind)
    )


def _block(name: str, text: str) -> str:
    """Compressed data in an element that is never executed; base64 cannot close the element."""
    packed = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
    return f'<script type="application/gzip" data-name="{escape(name)}">{packed}</script>\n'
