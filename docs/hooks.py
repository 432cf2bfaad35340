"""What the site has beyond its Markdown files: sources, notebooks and the command line's help.

Pages link to files of the repository by relative paths, which work on GitHub. Here such a link
leads to a page with that file's source, made when the site is built.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LANGUAGES = {".py": "python", ".toml": "toml", ".js": "javascript", ".sh": "sh"}
BOOST = {
    "guides": 2.0,
    "reference": 1.2,
    "notebooks.md": 0.3,
    "source": 0.2,
}  # what a search should find first
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file outside docs/ that a page links to, and for each notebook."""
    wanted = {ROOT / "examples" / path.name for path in (ROOT / "examples").glob("*.py")}
    for file in list(files.documentation_pages()):
        page = DOCS / file.src_uri
        for match in LINK.finditer(page.read_text("utf-8")):
            target = outside(page, match[2])
            if target is not None and target.is_file():
                wanted.add(target)
    for path in sorted(wanted):
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, f"source/{name}.md", content=source_page(path, name)))
    for path in notebooks():
        uri = f"source/notebooks/{path.stem}.md"
        files.append(File.generated(config, uri, content=notebook_page(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of docs/ to the pages made above, and fill in what is generated."""
    here = DOCS / page.file.src_uri
    page.meta["search"] = {"boost": BOOST.get(page.file.src_uri.partition("/")[0], 1.0)}

    def lead(match: re.Match[str]) -> str:
        target = outside(here, match[2])
        if target is None or not target.is_file():
            return match[0]
        made = DOCS / "source" / f"{target.relative_to(ROOT).as_posix()}.md"
        return f"[{match[1]}]({os.path.relpath(made, here.parent)})"

    markdown = LINK.sub(lead, markdown)
    markdown = re.sub(r"^\|.*$", lambda line: whole_intervals(line[0]), markdown, flags=re.M)
    if "<!-- commands -->" in markdown:
        markdown = markdown.replace("<!-- commands -->", commands())
    if "<!-- notebooks -->" in markdown:
        markdown = markdown.replace("<!-- notebooks -->", notebook_list())
    return markdown


def outside(page: Path, link: str) -> Path | None:
    """The file of the repository that a link leads to, if it is outside docs/."""
    target = Path(os.path.normpath(page.parent / link))
    inside = target.is_relative_to(DOCS) or not target.is_relative_to(ROOT)
    return None if inside else target


def whole_intervals(row: str) -> str:
    """A row of a table in which intervals, such as (0.1 … 0.3), are not broken over lines."""
    return re.sub(r"\((\S+) … (\S+)\)", "(\\1\u00a0…\u00a0\\2)", row)


def source_page(path: Path, name: str) -> str:
    language = LANGUAGES.get(path.suffix, "text")
    text = path.read_text("utf-8").rstrip()
    return f"# {name}\n\n````{language}\n{text}\n````\n"


def notebooks() -> list[Path]:
    folders = (ROOT / "notebooks", DOCS / "notebooks")
    return sorted(path for folder in folders for path in folder.glob("*.ipynb"))


def notebook_list() -> str:
    lines = [f"- [{heading(path)}](source/notebooks/{path.stem}.md)" for path in notebooks()]
    return "\n".join(lines) or "There are none yet."


def heading(path: Path) -> str:
    found = re.search(r"^# (.+)$", notebook_page(path), re.M)
    return found[1] if found else path.stem


def notebook_page(path: Path) -> str:
    """A notebook as Markdown: its text, its code and what the code printed."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"]).rstrip()
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif cell["cell_type"] == "code" and text:
            parts.append(f"````python\n{text}\n````")
            parts += [f"````text\n{shown}\n````" for shown in printed(cell) if shown]
    page = "\n\n".join(parts) + "\n"
    return page if page.startswith("# ") else f"# {path.stem}\n\n{page}"


def printed(cell: dict[str, Any]) -> list[str]:
    found = []
    for output in cell.get("outputs", []):
        text = output.get("text") or output.get("data", {}).get("text/plain", "")
        found.append("".join(text).rstrip())
    return found


def commands() -> str:
    """Every command of `mastery`, with its arguments and options, from the program itself."""
    import typer

    from mastery.cli import app

    group: Any = typer.main.get_command(app)
    lines = []
    for name, command in group.commands.items():
        text = command.help or ""
        examples = re.findall(r"\[dim\](.*?)\[/dim\]", text)
        text = re.sub(r"\[dim\].*?\[/dim\]", "", text)
        lines += [f"## mastery {name}", "", marked(text), ""]
        lines += ["```sh", *examples, "```", ""] if examples else []
        rows = [row for parameter in command.params if (row := described(parameter))]
        lines += ["| argument or option | | default |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def described(parameter: Any) -> str | None:
    if getattr(parameter, "hidden", False) or parameter.name == "help":
        return None
    shown = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if parameter.param_type_name == "argument":
        shown = f"`{(parameter.metavar or parameter.name).upper()}`"
    text = marked(getattr(parameter, "help", "") or "")
    plain = type(parameter.default) in (int, float, str) and parameter.default != ""
    default = f"`{parameter.default}`" if plain else ""
    text = re.sub(r"(`[^`]*`)|\|", lambda m: m[1] or "\\|", text)  # inside code a bar is a bar
    return f"| {shown} | {text} | {default} |"


def marked(text: str) -> str:
    """Rich's marks as Markdown, on one line per paragraph."""
    text = re.sub(r"\[bold\](.*?)\[/bold\]", r"`\1`", text)
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(part for part in paragraphs if part)
