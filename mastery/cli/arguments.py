"""Shared by several commands: the console, arguments and their parsing."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from mastery.curriculum import shipped
from mastery.errors import MasteryError, check_distinct, did_you_mean
from mastery.programs.own import read_program

console = Console()
if not console.is_terminal:
    console.width = 10_000  # nothing is wrapped or cut in a file or a pipe
MOST = 2**63 - 1  # what run.db can count

CurriculumArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help=f"A curriculum: a .toml or .json file, random-N, or one of {', '.join(shipped())}.",
    ),
]

OWN_PROGRAM = (  # for the help of options that take programs
    "Your own: [bold]file.py:Class[/bold] or [bold]package.module:Class[/bold], with arguments "
    "[bold]file.py:Class:delta=2[/bold]."
)


def check_place(path: Path | None, new: Path | None = None) -> None:
    """Check before the work starts that the output file can be written.

    Args:
        path: The file, if there is one.
        new: A folder that the work will create; the file may be in it.
    """
    if path is None:
        return
    try:
        if path.is_dir():
            raise MasteryError(f"cannot write {path}: it is a folder; give a file")
        folder = path.resolve().parent
        if new is not None and folder == new.resolve():
            return
        if not folder.is_dir():
            raise MasteryError(f"cannot write {path}: it must be a file in an existing folder")
        with suppress(FileNotFoundError):
            path.stat()  # raises what `exists` hides from Python 3.14 on: a name that is too long
        if path.is_file() or not path.exists():
            with tempfile.TemporaryFile(dir=folder):
                pass
        elif not os.access(path, os.W_OK):  # a terminal or a pipe
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise MasteryError(f"cannot write {path}: {error.strerror}; choose another place") from None


def check_folder(path: Path) -> None:
    """Check before the work starts that the output folder can be created and written to."""
    try:
        there = path.resolve()
        with suppress(FileNotFoundError, NotADirectoryError):
            there.stat()
        while not there.exists():
            there = there.parent
        if not there.is_dir():
            raise MasteryError(f"cannot write to {path}: {there} is not a folder")
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise MasteryError(
            f"cannot write to {path}: {error.strerror}; choose another place"
        ) from None


def quoted(path: Path) -> str:
    """A path to be copied into a shell: from here if that is shorter."""
    both = str(path.absolute()), os.path.relpath(path)
    return shlex.quote(min(both, key=len))


def this_command() -> str:
    """How to call `mastery` again in this shell: its path if the name alone would not be found."""
    if shutil.which("mastery"):
        return "mastery"
    called = Path(sys.argv[0])
    return quoted(called) if called.name == "mastery" else "python -m mastery"


def print_indented(name: str, *lines: str, column: int = 20) -> None:
    """Print a name and, beside it, lines that wrap at words in a terminal, and never elsewhere."""
    wide = max(console.width - column - 2, 20)
    rows = [
        row
        for line in lines
        for row in textwrap.wrap(line, wide, break_long_words=False, break_on_hyphens=False)
    ]
    for i, row in enumerate(rows or [""]):
        start = f"[bold]{escape(name.ljust(column))}[/bold]" if not i else " " * column
        console.print(f"  {start}{escape(row)}", highlight=False, soft_wrap=True)


def read_programs(text: str) -> list[str]:
    """Parse a comma-separated list of programs; MasteryError if one is given twice."""
    given = split_programs(text)
    recipes = [str(read_program(program)) for program in given]
    check_distinct("program", given, recipes)
    return recipes


def split_programs(text: str) -> list[str]:
    """Split a comma-separated list of programs; a setting belongs to the program before it.

    Example:
        >>> split_programs("mr:delta=0.8,window=20,own.py:Class:a=2,b=x")
        ['mr:delta=0.8,window=20', 'own.py:Class:a=2,b=x']
    """
    found: list[str] = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        if found and re.match(r"\w+\s*=", item):
            found[-1] += f",{item}"
        else:
            found.append(item)
    return found


def split_settings(items: Iterable[str]) -> dict[str, list[str]]:
    """Parse settings: `["a=1", "b=2,3"]` gives `{"a": ["1"], "b": ["2", "3"]}`."""
    found: dict[str, list[str]] = {}
    for item in items:
        key, equals, values = item.partition("=")
        key = key.strip()
        if not equals or not values.strip():
            raise MasteryError(f"{item!r} does not have the form setting=value")
        if key in found:
            raise MasteryError(f"{key!r} is set twice; for several values write {key}=first,second")
        found[key] = [value.strip() for value in values.split(",")]
    return found


def find_preset(learner: Any, name: str) -> Any:
    """The settings of a preset."""
    if name not in learner.presets:
        raise MasteryError(f"there is no preset {name!r}{did_you_mean(name, learner.presets)}")
    return learner.presets[name]


def read_setting(learner: Any, name: str, text: str) -> Any:
    """Parse the value of a setting."""
    kinds = {f.name: str(f.type) for f in fields(learner.settings)}
    if name not in kinds:
        raise MasteryError(f"the learner has no setting {name!r}{did_you_mean(name, kinds)}")
    kind = kinds[name]
    try:
        if kind == "bool":
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[
                text.lower()
            ]
        return {"int": int, "float": float, "str": str}[kind](text)
    except (KeyError, ValueError):
        wanted = {"bool": "true or false", "int": "a whole number", "float": "a number"}[kind]
        raise MasteryError(f"{name}={text} is invalid; it must be {wanted}") from None


def read_count(text: str) -> int:
    """Parse `2M`, `500k`, `1.5M` or `2_000_000` as a whole number."""
    match = re.fullmatch(r"(\d+(?:_\d+)*(?:\.\d+)?(?:e\d\d?)?)\s*([kKmMgGbB]?)", text.strip())
    if not match:
        raise MasteryError(f"{text!r} is not a number of frames; write 2M, 500k or 2000000")
    factor = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}[match[2].lower()]
    number = round(Decimal(match[1]) * factor)
    if number > MOST:
        raise MasteryError(f"{text.strip()[:30]!r} is too large; the most is {MOST:,}")
    return number
