"""The parts of the paper's page, as HTML and as Markdown: tables and sections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """A table; `ids` name its rows, so that links can lead to them."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    ids: Sequence[str] = ()

    def markdown(self) -> str:
        rows = [self.head, ["---"] * len(self.head), *self.rows]
        return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"

    def html(self) -> str:
        head = "".join(f"<th class='left'>{to_html(cell)}</th>" for cell in self.head)
        ids = [f' id="{key}"' for key in self.ids] or [""] * len(self.rows)
        body = "".join(
            f"<tr{at}>" + "".join(f"<td class='left wrap'>{to_html(c)}</td>" for c in row) + "</tr>"
            for at, row in zip(ids, self.rows, strict=True)
        )
        table = f"<table><tr>{head}</tr>{body}</table>"
        return f'<div class="scroll" tabindex="0" role="region" aria-label="table">{table}</div>'


def to_html(cell: str) -> str:
    """HTML for text with `code` and **bold**."""
    parts = escape(cell).split("`")
    text = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))
    parts = text.split("**")
    return "".join(f"<b>{p}</b>" if i % 2 else p for i, p in enumerate(parts))


@dataclass(frozen=True)
class Section:
    """A heading, a paragraph, figures by name, and a table."""

    title: str
    text: str = ""
    figures: tuple[str, ...] = ()
    table: Table | None = None

    @property
    def key(self) -> str:
        """Its id on the page."""
        return "section-" + "-".join(re.findall(r"\w+", self.title.lower()))

    @property
    def note(self) -> str:
        """What unfolding it will show."""
        n = len(self.figures)
        parts = [f"{n} figure{'s' * (n > 1)}"] * bool(n) + ["table"] * bool(self.table)
        return ", ".join(parts)
