"""A cache of the newest points of a job that is being watched."""

from __future__ import annotations

import sqlite3

from mastery.rundir.curves import Curves
from mastery.rundir.database import seconds_at
from mastery.rundir.results import read_curves


class Tail:
    """Caches the points of the last, incomplete merged point, so they are read only once.

    The cache is dropped if it no longer matches the directory: if the directory was replaced, or
    the job resumed from an earlier update.
    """

    def __init__(self) -> None:
        # whose points, after which update, the points
        self._kept: tuple[object, int, Curves] | None = None

    def read(
        self, db: sqlite3.Connection, which: object, runs: int, tasks: int, after: int
    ) -> Curves:
        """The points after an update, from the cache and the database."""
        before = self._kept  # another page may change it meanwhile
        if before is not None:
            of, begin, kept = before
            if of == which and begin <= after <= kept.steps[-1] and _is_written(db, kept):
                later = read_curves(db, runs, tasks, after=int(kept.steps[-1]))
                return kept.after(after).then(later)
        return read_curves(db, runs, tasks, after)

    def keep(self, which: object, curves: Curves, after: int) -> None:
        """Cache the points after an update, if there are any."""
        rest = curves.after(after)
        self._kept = (which, after, rest) if len(rest.steps) else None


def _is_written(db: sqlite3.Connection, curves: Curves) -> bool:
    """Whether the database still has the last point; its wall-clock time identifies it."""
    return seconds_at(db, int(curves.steps[-1])) == float(curves.seconds[-1])
