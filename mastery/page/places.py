"""Find the run directories in the given folders, and report those that cannot be shown."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mastery.errors import MasteryError
from mastery.rundir.parts import holds_job, is_folder, parts_of


@dataclass(frozen=True)
class Place:
    """A run directory. The page identifies it by `key`, which stays the same across calls."""

    path: Path
    name: str  # its directory name if unique, else the whole path

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(str(self.path.resolve()).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Problem:
    """Why the page cannot show something."""

    path: str
    text: str

    def __str__(self) -> str:
        return self.text if self.path in self.text else f"{self.path}: {self.text}"


def check_folders(folders: Iterable[Path]) -> None:
    """Raise MasteryError if any of these is not a folder."""
    for folder in folders:
        if not folder.is_dir():
            raise MasteryError(
                f"there is no folder {folder}; give run directories, or their folder"
            )


def find_places(folders: Iterable[Path]) -> tuple[list[Place], list[Problem]]:
    """Find the run directories among and in these folders, each once, and list what was left out.

    Run directories that a link leads to outside a folder are left out: giving a folder does not
    mean sharing what lies elsewhere.
    """
    paths: dict[Path, Path] = {}  # by resolved path
    problems = []
    for folder in folders:
        try:
            inside = (
                [folder] if holds_job(folder) else [p for p in _children(folder) if holds_job(p)]
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
    """Whether a run directory, or a file read from it, lies outside this folder."""
    with contextlib.suppress(MasteryError):  # whoever reads the job says what is wrong with it
        if is_folder(path) and any(leads_out(part, folder) for part in parts_of(path)):
            return True
    root = folder.resolve()
    inside = (path / name for name in ("run.db", "run.db-wal", "lock", "checkpoints"))
    links = [p for p in inside if p.is_symlink()]
    return not all(p.resolve().is_relative_to(root) for p in (path, *links))


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())
