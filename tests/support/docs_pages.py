"""What the tests of the documentation read: pages, their headings, links and blocks of code."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "notebooks" / "README.md", *sorted(DOCS.rglob("*.md"))]


class Block(NamedTuple):
    language: str
    text: str
    line: int  # of its first line
    not_run: str  # why it is not run, if it says so


def name(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    """The fenced blocks of a page; `<!-- not run: reason -->` before one leaves it out."""
    found, inside, not_run = [], None, ""
    for number, line in enumerate(page.read_text("utf-8").split("\n"), 1):
        if inside is not None:
            if line == "```":
                found.append(Block(inside[0], "\n".join(inside[2]) + "\n", inside[1], not_run))
                inside, not_run = None, ""
            else:
                inside[2].append(line)
        elif line.startswith("```"):
            inside = (line[3:].strip(), number + 1, [])
        elif mark := re.match(r"<!-- not run: (.+) -->", line):
            not_run = mark[1]
        elif line.strip():
            not_run = ""
    assert inside is None, f"{name(page)}: a block does not end"
    return found


def prose(page):
    """The lines of a page, with those inside fenced blocks empty."""
    lines, fenced = [], False
    for line in page.read_text("utf-8").split("\n"):
        if line.startswith("```"):
            fenced = not fenced
            lines.append("")
        else:
            lines.append("" if fenced else line)
    return lines


def headings(page):
    return [line for line in prose(page) if re.match(r"#{1,6} ", line)]


def anchors(page):
    """The anchors of a page: its headings as GitHub and the site make them, and its names."""
    found, seen = set(), {}
    for heading in headings(page):
        text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading.lstrip("#").strip())
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        seen[anchor] = seen.get(anchor, -1) + 1
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
    return found | set(directives(page))


def directives(page):
    """The names that the reference documents on a page: `::: mastery.Teacher`."""
    return re.findall(r"^::: ([\w.]+)$", "\n".join(prose(page)), re.M)


def links(page):
    """The targets of links and images, without those inside code."""
    text = re.sub(r"`[^`\n]*`", "", "\n".join(prose(page)))
    found = re.findall(r"\]\(\s*([^)\s]+)(?:\s+\"[^\"]*\")?\)", text)
    return found + re.findall(r"<(?:img|a)[^>]* (?:src|href)=\"([^\"]+)\"", text)
