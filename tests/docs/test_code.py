"""Every Python block of the README and of the pages runs, and every command exists.

The blocks of a page run one after the other in one namespace. A block after
`<!-- not run: reason -->` is left out; it must still be Python.
"""

import ast
import os
import re
import shlex
import subprocess
import sys

import pytest
import typer
from docs_pages import PAGES, ROOT, blocks, name, prose

from mastery.cli import app

PYTHON = [page for page in PAGES if any(b.language == "python" for b in blocks(page))]


@pytest.mark.parametrize("page", PYTHON, ids=name)
@pytest.mark.filterwarnings("ignore")
def test_python(page, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    namespace = {"__name__": "page"}
    try:
        for block in blocks(page):
            if block.language != "python":
                continue
            where = f"{name(page)}:{block.line}"
            ast.parse(block.text, where)
            if not block.not_run:
                exec(compile("\n" * (block.line - 1) + block.text, name(page), "exec"), namespace)
    finally:
        torch.set_num_threads(threads)


def test_few_blocks_are_not_run():
    left_out = [b for page in PAGES for b in blocks(page) if b.language == "python" and b.not_run]
    every = [b for page in PAGES for b in blocks(page) if b.language == "python"]
    assert len(left_out) <= 14, [b.not_run for b in left_out]
    assert len(every) > 3 * len(left_out)


def commands(page):
    """The shell commands of a page: those of its blocks, and those inside its sentences."""
    for block in blocks(page):
        if block.language in ("sh", ""):
            text = block.text.replace("\\\n", " ")
            yield from (line.strip() for line in text.split("\n"))
    text = re.sub(r"\s+", " ", "\n".join(prose(page)))
    yield from re.findall(r"`((?:mastery|python|make) [^`]+)`", text)


def words(command):
    try:
        return shlex.split(command, comments=True)
    except ValueError:  # an apostrophe in words that are not a command
        return []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands(page):
    group = typer.main.get_command(app)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for command in commands(page):
        match words(re.sub(r"\s\|.*", "", command)):
            case ["mastery", "--help" | "--version", *_]:
                pass
            case ["mastery", sub, *rest]:
                assert sub in group.commands, command
                known = {
                    option
                    for parameter in group.commands[sub].params
                    for option in (*parameter.opts, *parameter.secondary_opts)
                } | {"--help"}
                given = [word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)]
                assert set(given) <= known, command
            case ["python", path, *_] if path.endswith(".py") and "/" in path:
                assert (ROOT / path).exists(), command
            case ["make", *goals]:
                assert {goal for goal in goals if re.fullmatch(r"[a-z-]+", goal)} <= targets, (
                    command
                )


@pytest.mark.slow
@pytest.mark.parametrize("library", ["ray", "rllib"])
def test_the_script_of_an_adapter_runs_as_it_is_pasted(library, tmp_path):
    pytest.importorskip("ray")
    (script,) = [b.text for b in blocks(ROOT / "docs" / "adapters" / f"{library}.md") if b.not_run]
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_ADDRESS": "local"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "script.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert {"ray": "easy", "rllib": "near"}[library] in done.stdout
