"""Import a user's own code: the current directory is on the import path meanwhile."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def importable(*folders: Path) -> Iterator[None]:
    """Put folders, then the current directory, at the front of the import path for a while."""
    added = []
    for folder in (Path.cwd(), *reversed(folders)):
        place = str(folder.resolve())
        if place not in sys.path:
            sys.path.insert(0, place)
            added.append(place)
    importlib.invalidate_caches()  # files may be new
    try:
        yield
    finally:
        for place in added:
            if place in sys.path:
                sys.path.remove(place)
