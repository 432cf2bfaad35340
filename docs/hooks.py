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
    "which.md": 1.6,
    "report.md": 1.6,
    "minigrid.md": 1.6,
    "programs.md": 1.6,
    "concepts/glossary.md": 2.0,
    "prompts.md": 2.0,
    "reference": 1.2,
    "notebooks.md": 0.3,
    "source": 0.2,
}  # what a search should find first
CODE = re.compile(r"(^(`{3,}).*?^\2$|`[^`]+`)|[^`]+|`", re.M | re.S)  # group 1, or else prose
ROW = re.compile(r"^\|.*\|$", re.M)
NAME = re.compile(r"(?<!`)`([a-z0-9]+(?:-[a-z0-9]+){1,2})`(?!`)")  # gprop-linreg: on one line
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, and for each file outside docs/ that a page links to."""
    texts = {DOCS / file.src_uri: Path(file.abs_src_path) for file in files.documentation_pages()}
    pages = {path: source.read_text("utf-8") for path, source in texts.items()}
    pages |= {path: notebook_text(path) for path in notebooks()}
    wanted = set((ROOT / "examples").glob("*.py"))
    for path, text in pages.items():
        for match in LINK.finditer(text):
            target = Path(os.path.normpath(path.parent / match[2]))
            if made_page(target) and target.suffix != ".ipynb":
                wanted.add(target)
    for path in sorted(wanted):
        add(files, config, path, source_page(path))
    for path in notebooks():
        made = made_page(path)
        assert made is not None
        add(files, config, path, led(pages[path], path, made))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of docs/ to the pages made above, and fill in what is generated."""
    here = DOCS / page.file.src_uri
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]  # here and not in the page, where GitHub would show it
    boost = BOOST.get(page.file.src_uri) or BOOST.get(page.file.src_uri.partition("/")[0], 1.0)
    page.meta["search"] = {"boost": boost}
    if not page.file.src_uri.startswith("source/"):
        markdown = led(markdown, here, here)
        markdown = ROW.sub(lambda row: NAME.sub(r'<code class="whole">\1</code>', row[0]), markdown)
        markdown = CODE.sub(lambda part: part[1] or whole_numbers(part[0]), markdown)
    if "<!-- commands -->" in markdown:
        markdown = markdown.replace("<!-- commands -->", commands())
    return markdown


def add(files: Files, config: MkDocsConfig, path: Path, text: str) -> None:
    made = made_page(path)
    assert made is not None
    uri = made.relative_to(DOCS).as_posix()
    files.append(File.generated(config, uri, content=text))


def made_page(path: Path) -> Path | None:
    """Where the page of a file outside docs/ would be, if it is one of the repository's."""
    if path.suffix == ".ipynb" and path.is_file():
        return DOCS / "source" / "notebooks" / f"{path.stem}.md"
    if path.is_relative_to(DOCS) or not path.is_relative_to(ROOT) or not path.is_file():
        return None
    return DOCS / "source" / f"{path.relative_to(ROOT).as_posix()}.md"


def led(text: str, origin: Path, here: Path) -> str:
    """The text of the file `origin`, with links that are right on the page `here`."""

    def lead(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(origin.parent / match[2]))
        made = made_page(target)
        if made is None and (origin == here or not target.is_relative_to(DOCS)):
            return match[0]
        anchor = "" if made else match[3] or ""
        return f"[{match[1]}]({os.path.relpath(made or target, here.parent)}{anchor})"

    return LINK.sub(lead, text)


def whole_numbers(text: str) -> str:
    """A text in which 5 %, 3 of 10 and intervals such as (0.1 … 0.3) are not broken over lines."""
    text = re.sub(r"(\d) (%|(?:µs|ms|s|min|[kMG]B)\b)", "\\1\u00a0\\2", text)
    text = re.sub(r"\b(\d+) of (\d+)\b", "\\1\u00a0of\u00a0\\2", text)
    text = re.sub(r"(\d\S*|[(]–) … ([-−+]?\d|[–∞]|> ?\d)", "\\1\u00a0…\u00a0\\2", text)
    return re.sub(r"([(]|\u00a0)> (\d)", "\\1>\u00a0\\2", text)


def source_page(path: Path) -> str:
    language = LANGUAGES.get(path.suffix, "text")
    text = path.read_text("utf-8").rstrip()
    return f"# {path.relative_to(ROOT).as_posix()}\n\n````{language}\n{text}\n````\n"


def notebooks() -> list[Path]:
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def notebook_text(path: Path) -> str:
    """A notebook as Markdown: its text, its code, and what the code printed and drew."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"]).rstrip()
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif cell["cell_type"] == "code" and text:
            parts.append(f"````python\n{text}\n````")
            parts += [shown for output in cell.get("outputs", []) if (shown := printed(output))]
    page = "\n\n".join(parts) + "\n"
    return page if page.startswith("# ") else f"# {path.stem}\n\n{page}"


def printed(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![output](data:image/png;base64,{''.join(data['image/png'].split())})"
    text = "".join(output.get("text") or data.get("text/plain", "")).rstrip()
    return f"````text\n{text}\n````" if text else ""


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
        examples = [re.sub(r"(?<=\S)(  +)(?=\S)", r"\1# ", example) for example in examples]
        lines += ["```sh", *examples, "```", ""] if examples else []
        rows = [row for parameter in command.params if (row := described(parameter))]
        lines += ["| argument | what it does | default |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def described(parameter: Any) -> str | None:
    if getattr(parameter, "hidden", False) or parameter.name == "help":
        return None
    shown = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if parameter.param_type_name == "argument":
        shown = f"`{(parameter.metavar or parameter.name).upper()}`"
    text = marked(getattr(parameter, "help", "") or "")
    text = re.sub(r"(`[^`]*`)|((?:ray start )?--[a-z-]+)", lambda m: m[1] or f"`{m[2]}`", text)
    text = re.sub(r"docs/(\S+)\.md", r"[the guide](../\1.md)", text)
    plain = type(parameter.default) in (int, float, str) and parameter.default != ""
    default = f'<code class="whole">{parameter.default}</code>' if plain else ""
    if isinstance(words := getattr(parameter, "show_default", None), str):
        default = words  # such as: a new folder in runs/
    text = re.sub(r"(`[^`]*`)|\|", lambda m: m[1] or "\\|", text)  # inside code a bar is a bar
    return f"| {shown} | {text} | {default} |"


def marked(text: str) -> str:
    """Rich's marks as Markdown, on one line per paragraph."""
    text = re.sub(r"\[bold\](.*?)\[/bold\]", r"`\1`", text)
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(part for part in paragraphs if part)
