"""The repository as a whole: it holds no code of others."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONGEST = 120  # characters of a line in a script or style sheet that a person wrote

BANNERS = re.compile(
    r"^\s*/[*]!"  # a comment that minifiers keep
    r"|@(?:license|licence|preserve|copyright)\b"
    r"|SPDX-License[-]Identifier"
    r"|\blicen[sc]ed\sunder\sthe\b"
    r"|\ball\srights\sreserved\b"
    r"|(?:copyright|[(]c[)]|©)[\s,(c)©]{1,8}(?:19|20)\d\d(?!.*The\smastery\sauthors)"
    r"|\bcopyright\s(?:[(]c[)]|©)\s(?!.*The\smastery\sauthors)",
    re.IGNORECASE | re.MULTILINE,
)
NAMES = re.compile(
    r"\.min\.(?:m?js|css)$|\.(?:js|css)\.map$|\.(?:woff2?|ttf|otf|eot|whl|jar|zip|tgz|tar\.gz)$"
    r"|(?:^|/)(?:vendor(?:ed)?|third[-_]?party|node_modules|bower_components)/"
)
NOT_OURS_TO_SCAN = {".git", ".venv", "build", "dist", "runs"}  # without git: what it ignores


def files(root):
    """Every file that git tracks or would; without git, all but what it ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return [root / name for name in found.stdout.split("\0") if name]
    return [
        path
        for path in root.rglob("*")
        if path.is_file()
        and not path.relative_to(root).parts[0].endswith((".egg-info", "_cache"))
        and not NOT_OURS_TO_SCAN & set(path.relative_to(root).parts)
    ]


def foreign(root):
    """The files that look as if others had written them, and why."""
    found = {}
    for path in files(root):
        name = path.relative_to(root).as_posix()
        if not path.is_file():  # deleted, and git has not heard of it
            continue
        if NAMES.search(name):
            found[name] = "its name"
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:  # a picture or numbers
            continue
        if banner := BANNERS.search(text):
            found[name] = banner[0].strip()
        elif path.suffix in (".js", ".css") and max(map(len, text.split("\n"))) > LONGEST:
            found[name] = "a long line"
    return found


def test_no_third_party_file_is_in_the_repository():
    assert len(files(ROOT)) > 100
    assert foreign(ROOT) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a/chart.js", "/" + "**\n * chart.js v9\n * Copyright" + " 2012-2024, Charts, Inc.\n */"),
        ("chart.js", "/" + "*! chart.js | MIT */\nlet x;"),
        ("chart.js", "// @" + "license MIT\n"),
        ("style.css", "/" + "* (c" + ") 2019 Somebody */"),
        ("tool.py", "# Copyright (c" + ") Somebody and its affiliates.\n"),
        ("tool.py", "# SPDX-License" + "-Identifier: BSD-3-Clause\n"),
        ("tool.py", '"""Licensed' + ' under the Apache License."""'),
        ("chart.js", f"let x = [{'1,' * 100}];"),
        ("plotly-basic.min.js", "let x;"),
        ("vendor/small.py", ""),
        ("fonts/some.woff2", "x"),
    ],
)
@pytest.mark.parametrize("git", [True, False])
def test_a_planted_file_is_found(tmp_path, name, text, git):
    (tmp_path / "LICENSE").write_text((ROOT / "LICENSE").read_text())
    (tmp_path / "own.js").write_text("let right = (c) => c;  // 2026\n")
    if git:
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert foreign(tmp_path) == {}
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert list(foreign(tmp_path)) == [name]
