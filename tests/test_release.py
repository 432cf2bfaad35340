"""What a release needs: metadata, files for users and contributors, versions that agree."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import mastery
from mastery.errors import install, needs

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PAGES = ["CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize(
    "path",
    [
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "CODE_OF_CONDUCT.md",
        ".github/ISSUE_TEMPLATE/bug.yml",
        ".github/ISSUE_TEMPLATE/feature.yml",
        ".github/ISSUE_TEMPLATE/question.yml",
        ".github/pull_request_template.md",
        ".github/workflows/docs.yml",
        ".github/workflows/release.yml",
        ".github/workflows/tests.yml",
        "mastery/py.typed",
    ],
)
def test_there_is(path):
    assert (ROOT / path).is_file()


def test_the_metadata_is_complete():
    assert PROJECT["license"] == "MIT"
    assert PROJECT["authors"] == [{"name": "The mastery authors"}]
    assert PROJECT["keywords"]
    assert PROJECT["urls"]["Paper"] == "https://arxiv.org/abs/2008.06456"
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    classifiers = PROJECT["classifiers"]
    assert "Typing :: Typed" in classifiers
    assert [c for c in classifiers if "Python :: 3." in c] == [
        f"Programming Language :: Python :: {version}" for version in PYTHONS
    ]
    # PEP 639: the licence is said once, and PyPI refuses it said twice
    assert not any(c.startswith("License ::") for c in classifiers)


def test_the_version_is_the_same_everywhere():
    assert PYPROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "mastery.__version__"}
    newest = re.search(r"^## (\S+) – (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert newest.groups() == (mastery.__version__, str(citation["date-released"]))
    assert citation["version"] == mastery.__version__


def test_the_paper_is_cited():
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"][0]
    assert paper["title"] == "Mastering Rate based Curriculum Learning"
    assert [a["family-names"] for a in paper["authors"]] == ["Willems", "Lahlou", "Bengio"]
    assert paper["url"].endswith("2008.06456")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere_and_lines_are_short(page):
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, heading = link.partition("#")
        if "://" not in link:
            assert (ROOT / (path or page)).exists(), link
        if heading and path in ("", *PAGES):
            titles = re.findall(r"^#+ (.*)$", (ROOT / (path or page)).read_text(), re.M)
            assert heading in {title.lower().replace(" ", "-") for title in titles}
    for line in text.splitlines():
        assert len(line) <= 100 or line.lstrip().startswith("|") or line.startswith("      "), line


def test_files_that_contributing_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:mastery|tests|docs|examples|benchmarks|\.github)/[^`\s]*)`", text)
    assert len(named) > 30
    for path in named:
        if not re.search("NAME|LIBRARY", path):  # a file that a contributor writes
            assert (ROOT / path).exists(), path


def test_contributing_lists_every_room():
    part = (ROOT / "CONTRIBUTING.md").read_text().partition("    mastery/\n")[2]
    listed = re.findall(r"^      ([a-z_]+)/", part.partition("    tests/")[0], re.M)
    rooms = {path.name for path in (ROOT / "mastery").iterdir() if (path / "__init__.py").exists()}
    assert sorted(listed) == sorted(rooms)


def test_contributing_describes_every_extra():
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## Extras")[2].partition("## ")[0]
    described = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert sorted(described) == sorted(set(EXTRAS) - {"docs", "test"})


def extras_in_messages():
    """(file, extra) of every `needs(…, "extra")` and of every `install("extra")`."""
    for path in sorted((ROOT / "mastery").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            called = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if called in ("needs", "install"):
                for found in ast.walk(node.args[-1]):
                    if isinstance(found, ast.Constant):
                        yield name, found.value


def test_messages_name_extras_that_exist():
    found = {pair for pair in extras_in_messages() if pair[1] is not None}
    assert len(found) > 15
    named = {extra for _, extras in found for extra in extras.split(",")}
    assert named == set(EXTRAS) - {"docs", "test"}


def test_a_message_names_the_distribution_that_pip_would_build():
    with pytest.raises(mastery.MasteryError) as caught, needs("this", "cli"):
        import no_such_package  # noqa: F401
    assert str(caught.value) == f"this needs no_such_package: {install('cli')}"
    assert install("cli") == f"pip install '{PROJECT['name']}[cli]'"


def test_no_text_would_install_a_project_of_another_name():
    """On PyPI `mastery` is a stranger's package."""
    wanted = rf"pip install '?mastery[a-z-]*|mastery[a-z-]*\[({'|'.join(EXTRAS)})[],]"
    command = ["git", "grep", "-oIE", wanted]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = dict.fromkeys(line.partition(":")[0] for line in found.splitlines())
    # it looks where such texts are known to be
    assert {"pyproject.toml", "docs/adapters.md", "tests/test_package.py"} <= texts.keys()
    assert set((ROOT / "examples").glob("*_*.py")) & {ROOT / text for text in texts}
    names = [re.search(r"mastery[a-z-]*", line.partition(":")[2])[0] for line in found.splitlines()]
    assert set(names) == {PROJECT["name"]}


def test_the_address_is_written_everywhere_or_nowhere():
    address = PROJECT["urls"].get("Repository")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation.get("repository-code") == address
    places = [".github/ISSUE_TEMPLATE/config.yml", "CODE_OF_CONDUCT.md", "README.md"]
    for path in places if address else []:
        assert address in (ROOT / path).read_text(), f"{path} lacks {address}"


def test_pypi_gets_a_readme_without_relative_links(tmp_path):
    text = (ROOT / "README.md").read_text()
    (tmp_path / "README.md").write_text(text)
    command = [ROOT / ".github" / "absolute_links.py", "https://example.org/x", "v1"]
    subprocess.run([sys.executable, *command], cwd=tmp_path, check=True)
    made = (tmp_path / "README.md").read_text()
    before, after = (re.findall(r"\]\(([^)\s]+)\)", page) for page in (text, made))
    assert len(before) == len(after) > 30
    for link, new in zip(before, after, strict=True):
        kind = "raw" if link.endswith((".png", ".svg")) else "blob"
        relative = not re.match(r"https:|#", link)
        assert new == (f"https://example.org/x/{kind}/v1/{link}" if relative else link)


def test_workflows_test_every_python_and_publish_without_a_token():
    flows = {path.stem: yaml.safe_load(path.read_text()) for path in WORKFLOWS}
    assert flows["tests"]["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS
    publish = flows["release"]["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    for path in WORKFLOWS:
        assert "secrets." not in path.read_text()
        assert flows[path.stem]["permissions"] == {"contents": "read"}


def test_workflows_run_targets_that_exist():
    targets = {*re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)}
    for path in WORKFLOWS:
        for target in re.findall(r"\bmake ([a-z-]+)", path.read_text()):
            assert target in targets, f"{path.name} runs make {target}"


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("citation-file-format", "CITATION.cff"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-workflows", ".github/workflows/*.yml"),
    ],
)
def test_files_of_github_fit_their_schema(schema, files):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    found = sorted(ROOT.glob(files))
    assert found
    done = subprocess.run([*command, *found], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
