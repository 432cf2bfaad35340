"""Write the page as one file that works offline and can be mailed.

It embeds everything: the modules as one script, the style sheet, and the compressed data.
Its Content-Security-Policy allows only these scripts, by their hashes, and loads nothing else.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from mastery.checkpoint import replace_file
from mastery.errors import MasteryError
from mastery.page.clips import Clips
from mastery.page.data import Entry, index
from mastery.page.files import LOADED, one_script, static
from mastery.page.packing import pack
from mastery.page.places import Problem


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
    page = pieces(title, entries, curves, problems, clips)
    replace_file(path, (piece.encode() for piece in page))


def pieces(
    title: str,
    entries: Sequence[Entry],
    curves: Sequence[Mapping[str, Any]],
    problems: Sequence[Problem] = (),
    clips: Clips | None = None,
) -> Iterator[str]:
    """The text of the whole page; see `write`."""
    data = [_block("index", {**index(entries, problems, live=False), "clips": clips or {}})]
    data += [_block(e["key"], c) for e, c in zip(entries, curves, strict=True)]
    return _assembled(title, data)


def _assembled(title: str, data: Sequence[str]) -> Iterator[str]:
    page = static("page.html").replace("<title>mastery</title>", f"<title>{escape(title)}</title>")
    inside: dict[str, list[str]] = {"style": [], "script": []}

    def inlined(loaded: re.Match[str]) -> str:
        name = loaded["style"] or loaded["script"] or loaded["module"]
        tag, kind = "style" if loaded["style"] else "script", ""
        text = static(name)
        if loaded["module"]:
            text, kind = one_script(name), ' type="module"'
        inside[tag].append(_closed(name, text))
        return f"<{tag}{kind}>{inside[tag][-1]}</{tag}>"

    head, body = (LOADED.sub(inlined, text) for text in page.split("<!-- data -->"))
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {_hashes(inside['style'])}; script-src {_hashes(inside['script'])}"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield head.replace("<head>", f"<head>\n{meta}", 1)
    yield from data
    yield body


def _closed(name: str, text: str) -> str:
    """The text as a browser reads it inside an element, which it must not end."""
    if "</script" in text.lower() or "</style" in text.lower():
        raise MasteryError(f"{name} cannot be put into a page: it would end there")
    return text.replace("\r\n", "\n")


def _hashes(inside: Sequence[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inside]
    return " ".join(f"'sha256-{text}'" for text in hashes)


def _block(name: str, document: Mapping[str, Any]) -> str:
    """Compressed data in an element that is never executed; base64 cannot close the element."""
    packed = base64.b64encode(gzip.compress(pack(document), 9, mtime=0)).decode()
    return f'<script type="application/gzip" data-name="{escape(name)}">{packed}</script>\n'
