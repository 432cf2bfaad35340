"""The notebooks run top to bottom without a warning, are stored without outputs, and are listed."""

import ast
import importlib.util
import os
import re
import sys
import time
import tomllib
from pathlib import Path

import nbformat
import pytest
from matplotlib import font_manager  # builds its cache, which a kernel would report
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 60  # that a notebook may take, as its README says

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def execute(path, folder):
    """The notebook after its cells were run in a folder; warnings are errors, as in the suite."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    filters = [*options["filterwarnings"], "ignore:This process .* is multi-threaded"]  # by `!`
    lines = ["import warnings"]
    for text in filters:
        action, message, category = [*text.split(":"), "", ""][:3]
        kind = category or "Warning"
        lines.append(f"warnings.filterwarnings({action!r}, {message!r}, {kind})")
    notebook = read(path)
    quiet = "warnings.simplefilter('ignore')"  # the kernel warns itself when it shuts down
    setup, end = (nbformat.v4.new_code_cell(text) for text in ("\n".join(lines), quiet))
    notebook.cells = [setup, *notebook.cells, end]
    NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    notebook.cells = notebook.cells[1:-1]
    return notebook


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Kernels that know nothing of the user's settings, and find the command `mastery`."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    monkeypatch.delenv("MPLBACKEND", raising=False)
    assert font_manager.fontManager


@each
def test_a_notebook_runs(path, tmp_path, kernel):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    records = "recorder" in path.read_text()
    for _ in range(2 if records else 1):  # the second time, the first recording is there
        began = time.monotonic()
        cells = execute(path, folder).cells
        assert time.monotonic() - began < SECONDS
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    assert [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"] == []
    shown = [o.data for o in outputs if "data" in o]
    assert any("image/png" in data for data in shown), "no plot"
    assert records == any("<iframe" in data.get("text/html", "") for data in shown), "no page"


@each
def test_a_notebook_is_stored_without_outputs(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert path.stat().st_size < 20_000
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    for cell in notebook.cells:
        assert cell.metadata == {}
        if cell.cell_type == "code":
            assert cell.outputs == [], f"{cell.id}: clear all outputs before you commit"
            assert cell.execution_count is None, f"{cell.id}: clear all outputs before you commit"


@each
def test_a_notebook_begins_with_a_title_and_what_one_will_know(path):
    first, *cells = read(path).cells
    assert first.cell_type == "markdown"
    assert re.match(r"# \S.*\n\nAt the end you will ", first.source)
    for cell in cells:
        assert len(cell.source.splitlines()) <= 40


def defined(module):
    """The names that a module of ours defines or imports; without importing it."""
    spec = importlib.util.find_spec(module)
    names = set()
    for node in ast.walk(ast.parse(Path(spec.origin).read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
    return names


@each
def test_python_that_is_only_shown_compiles_and_imports_what_exists(path):
    for cell in read(path).cells:
        if cell.cell_type != "markdown":
            continue
        for block in re.findall(r"```python\n(.*?)```", cell.source, re.S):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and node.module.startswith("mastery"):
                    assert {alias.name for alias in node.names} <= defined(node.module)


@each
def test_the_links_of_a_notebook_lead_somewhere(path):
    links = re.findall(
        r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", "\n".join(c.source for c in read(path).cells)
    )
    assert links
    for link in links:
        assert link.startswith("https://") or (FOLDER / link).exists(), link


def test_the_list_has_a_line_for_each_notebook_in_their_order():
    text = (FOLDER / "README.md").read_text()
    listed = re.findall(r"^\d\. \[.+?\]\((\S+\.ipynb)\): \S", text, re.M)
    assert listed == [path.name for path in NOTEBOOKS]
    assert len(listed) >= 5
