"""Which run directories there are in the places that were given, and what is wrong with others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mastery.errors import MasteryError


@dataclass(frozen=True)
class Place:
    """A run directory; `key` is what the page calls it by, the same from call to call."""

    path: Path
    name: str  # its own if that is the only one, or else the whole path

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(str(self.path.resolve()).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Problem:
    """What the page says of something that it cannot show."""

    path: str
    text: str

    def __str__(self) -> str:
        return self.text if self.path in self.text else f"{self.path}: {self.text}"


def check_folders(folders: Iterable[Path]) -> None:
    """Before anything is done: are these folders at all?"""
    for folder in folders:
        if not folder.is_dir():
            raise MasteryError(
                f"there is no folder {folder}; give run directories, or their folder"
            )


def find_places(folders: Iterable[Path]) -> tuple[list[Place], list[Problem]]:
    """The run directories that these folders are or hold, each once, and what was left out.

    What leads out of a folder by a link is left out: who gives a folder does not mean to show
    what lies elsewhere.
    """
    paths: dict[Path, Path] = {}  # by what they are when all links are followed
    problems = []
    for folder in folders:
        try:
            inside = (
                [folder] if _holds_job(folder) else [p for p in _children(folder) if _holds_job(p)]
            )
        except OSError as error:
            problems.append(Problem(str(folder), f"cannot be listed: {error.strerror}"))
            continue
        if not inside:
            problems.append(Problem(str(folder), "there is no training job in it yet"))
        for path in inside:
            if leads_out(path, folder):
                text = "a link in it leads out of the folder that was given; give it by itself"
                problems.append(Problem(str(path), text))
            else:
                paths.setdefault(path.resolve(), path)
    names = [real.name for real in paths]
    return [
        Place(path, name if names.count(name) == 1 else str(path))
        for path, name in zip(paths.values(), names, strict=True)
    ], problems


def leads_out(path: Path, folder: Path) -> bool:
    """Whether a run directory, or what is read of it, lies outside of this folder."""
    root = folder.resolve()
    inside = (path / name for name in ("run.db", "run.db-wal", "lock", "checkpoints"))
    links = [p for p in inside if p.is_symlink()]
    return not all(p.resolve().is_relative_to(root) for p in (path, *links))


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def _holds_job(path: Path) -> bool:
    try:
        return (path / "run.db").is_file()
    except OSError:  # a folder that we may not look into
        return False
