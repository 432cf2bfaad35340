"""run.db: its tables, and every query that reads them.

Reading needs no JAX and works while a job is training. `mastery.rundir.store` writes the rows.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.errors import CheckpointError, MasteryError
from mastery.rundir.metrics import SCORES
from mastery.rundir.milestones import agent_name

FORMAT = 6
RECORDED = 5  # written by `mastery.record`: format 4 and the tables of RECORDED_SCHEMA
# format 2 has no learning progress, 3 no agents of earlier moments, 4 no measures
READABLE = (2, 3, 4, 5, 6)

SCHEMA = """
CREATE TABLE job (format INTEGER NOT NULL, job TEXT NOT NULL, created TEXT NOT NULL, ended TEXT);
CREATE TABLE runs (run INTEGER PRIMARY KEY, label TEXT NOT NULL, program TEXT NOT NULL,
    seed INTEGER NOT NULL, changes TEXT NOT NULL);
CREATE TABLE tasks (task INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE sessions (started TEXT NOT NULL, step INTEGER NOT NULL, command TEXT NOT NULL,
    versions TEXT NOT NULL, hardware TEXT NOT NULL);
CREATE TABLE chunks (step INTEGER PRIMARY KEY, frames INTEGER NOT NULL, seconds REAL NOT NULL);
CREATE TABLE training (step INTEGER NOT NULL, run INTEGER NOT NULL, task INTEGER NOT NULL,
    probability REAL NOT NULL, mastery REAL NOT NULL, frames INTEGER NOT NULL,
    episodes INTEGER NOT NULL, return REAL, progress REAL,
    PRIMARY KEY (step, run, task)) WITHOUT ROWID;
CREATE TABLE evaluation (step INTEGER NOT NULL, run INTEGER NOT NULL, task INTEGER NOT NULL,
    policy TEXT NOT NULL, return REAL NOT NULL, success REAL, length REAL,
    PRIMARY KEY (step, run, task, policy)) WITHOUT ROWID;
CREATE TABLE solved (step INTEGER NOT NULL, run INTEGER PRIMARY KEY, frames INTEGER NOT NULL);
CREATE TABLE checkpoints (step INTEGER PRIMARY KEY, file TEXT NOT NULL);
"""
# since format 4
AGENTS = "CREATE TABLE IF NOT EXISTS agents (step INTEGER PRIMARY KEY, file TEXT NOT NULL);"
# since format 6: numbers of a learner, such as the tokens that it generated in an update
MEASURES = """
CREATE TABLE IF NOT EXISTS measures (step INTEGER NOT NULL, run INTEGER NOT NULL,
    name TEXT NOT NULL, value REAL NOT NULL, PRIMARY KEY (step, name, run)) WITHOUT ROWID;
"""
SCHEMA += AGENTS + MEASURES
RECORDED_SCHEMA = """
CREATE TABLE tests (step INTEGER PRIMARY KEY, frames INTEGER NOT NULL);
CREATE TABLE scalars (step INTEGER NOT NULL, name TEXT NOT NULL, frames INTEGER NOT NULL,
    value REAL NOT NULL, PRIMARY KEY (step, name)) WITHOUT ROWID;
CREATE TABLE notes (step INTEGER NOT NULL, frames INTEGER NOT NULL, time TEXT NOT NULL,
    text TEXT NOT NULL);
CREATE TABLE marks (step INTEGER PRIMARY KEY, about TEXT NOT NULL, sums BLOB NOT NULL);
"""
TESTED = "evaluation"  # the policy's name in recorded evaluations

Arrays = list[NDArray[Any]]

# what SQLite and our own code may raise when run.db holds something else than we wrote
_DAMAGE = (
    sqlite3.Error, sqlite3.Warning, ArithmeticError, AttributeError, LookupError, MemoryError,
    OSError, RecursionError, TypeError, ValueError,
)  # fmt: skip


@contextlib.contextmanager
def reading(directory: Path, parsing: bool = False) -> Iterator[None]:
    """Re-raise read errors as a CheckpointError that names run.db.

    Args:
        directory: The run directory.
        parsing: Re-raise every MasteryError too: it is about the content of run.db.
    """
    try:
        yield
    except _DAMAGE as error:
        if isinstance(error, CheckpointError) or (type(error) is MasteryError and not parsing):
            raise
        plain = isinstance(error, sqlite3.Error | MasteryError) or type(error) is ValueError
        reason = str(error) if plain else f"{type(error).__name__}: {error}"
        raise damaged(directory, reason) from None


def damaged(directory: Path, reason: str) -> CheckpointError:
    """The error that a run directory's database is damaged, and what to do."""
    line = " ".join(reason.split())  # SQLite may quote a whole table
    return CheckpointError(
        f"cannot read {directory / 'run.db'}: {line}; it is damaged or not from mastery: "
        "restore a copy of it, or train again in another folder"
    )


def checkpoint_name(step: int) -> str:
    """The file name of the checkpoint after an update."""
    return f"{step:012d}.ckpt"


@contextlib.contextmanager
def open_database(directory: Path) -> Iterator[sqlite3.Connection]:
    """Open a snapshot of a run directory's database for reading.

    Read errors inside the block are re-raised with the file's name.

    Raises:
        MasteryError: If there is no run.db in the directory.
        CheckpointError: If run.db cannot be read.
    """
    path = directory / "run.db"
    if not path.is_file():
        raise MasteryError(f"{directory} is not a run directory: it has no run.db")
    with reading(directory), contextlib.closing(_connect(path)) as db:
        db.execute("BEGIN")  # all queries see one snapshot
        yield db


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    db = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
    try:
        db.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        db.close()
        if path.with_name("run.db-journal").exists():
            # its writer was killed in a transaction: SQLite undoes it, if it may write here
            db = sqlite3.connect(uri.replace("mode=ro", "mode=rw"), uri=True, isolation_level=None)
            db.execute("PRAGMA query_only = ON")
            return db
        # SQLite needs to create files next to run.db. If it cannot, and there is no -wal file,
        # no process is writing: read run.db alone
        if path.with_name("run.db-wal").exists():
            raise
        db = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
    except BaseException:
        db.close()
        raise
    return db


def read_description(
    directory: Path, db: sqlite3.Connection
) -> tuple[dict[str, Any], str, str | None]:
    """The job as `Job.to_dict` wrote it, when it was created, and why it is finished or None."""
    text, created, ended = read_text(directory, db)
    description = json.loads(text)
    if not isinstance(description, dict):
        raise ValueError("the job is not a table of settings")
    return description, created, ended


def read_text(directory: Path, db: sqlite3.Connection) -> tuple[str, str, str | None]:
    """Like `read_description`, with the job as JSON text."""
    try:
        row = db.execute("SELECT format, job, created, ended FROM job").fetchone()
    except sqlite3.OperationalError:
        row = None
    if row is None:
        raise MasteryError(
            f"{directory} holds no job: it was stopped before it started; train again"
        )
    if row[0] not in READABLE:
        raise CheckpointError(
            f"{directory} has format {row[0]}, but this mastery reads formats "
            f"{READABLE[0]} to {READABLE[-1]}; use the release that wrote it"
        )
    return _text(row[1]), _text(row[2]), None if row[3] is None else _text(row[3])


def _text(value: Any) -> str:
    """The value of a column of text; SQLite may return anything from a damaged file."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} stands where text should be")
    return value


def is_recorded(directory: Path) -> bool:
    """Whether `mastery.record` wrote the run.db of a directory; False if it cannot be read."""
    try:
        with open_database(directory) as db:
            row = db.execute("SELECT format FROM job").fetchone()
            return row is not None and row[0] == RECORDED
    except MasteryError:
        return False


def score_name(job: Mapping[str, Any]) -> str:
    """The name of a job's score; jobs of earlier versions do not hold it."""
    return str(job["score"]) if "score" in job else SCORES[job["unit"]]


def total_frames(job: Mapping[str, Any]) -> int | None:
    """The frames per run of the finished job, in whole chunks; None if unknown."""
    if job.get("kind") == "recorded":
        return None if job["total"] is None else int(job["total"])
    chunk = int(job["per_update"]) * int(job["chunk"])
    return -(-int(job["frames"]) // chunk) * chunk


def read_runs(db: sqlite3.Connection) -> list[tuple[str, str, int, str]]:
    """Label, program, seed and changed settings (JSON) of each run."""
    rows = db.execute("SELECT label, program, seed, changes FROM runs ORDER BY run")
    return [(_text(label), _text(name), int(seed), _text(c)) for label, name, seed, c in rows]


def read_sessions(db: sqlite3.Connection) -> list[tuple[str, int, str, str, str]]:
    """Start, update, command, versions and hardware (JSON) of each session."""
    rows = db.execute(
        "SELECT started, step, command, versions, hardware FROM sessions ORDER BY rowid"
    )
    return [(_text(a), int(step), _text(b), _text(c), _text(d)) for a, step, b, c, d in rows]


def count(db: sqlite3.Connection, table: str) -> int:
    """The number of rows of a table."""
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def last_chunks(db: sqlite3.Connection, number: int) -> list[tuple[int, int, float]]:
    """Updates, frames and seconds up to the last chunks, newest first."""
    query = "SELECT step, frames, seconds FROM chunks ORDER BY step DESC LIMIT ?"
    rows = db.execute(query, (number,))
    return [(int(step), int(frames), float(seconds)) for step, frames, seconds in rows]


def last_point(db: sqlite3.Connection) -> tuple[int, float, float]:
    """Updates, frames (costs may be fractions) and seconds up to the last point; zeros if none."""
    query = "SELECT step, frames, seconds FROM chunks ORDER BY step DESC LIMIT 1"
    step, frames, seconds = db.execute(query).fetchone() or (0, 0, 0.0)
    return int(step), float(frames), float(seconds)


def seconds_at(db: sqlite3.Connection, step: int) -> float | None:
    """The seconds up to the chunk that ends with this update; None if there is none."""
    row = db.execute("SELECT seconds FROM chunks WHERE step = ?", (step,)).fetchone()
    return None if row is None else float(row[0])


def checkpoints(db: sqlite3.Connection) -> list[tuple[int, str]]:
    """Update and file name of each checkpoint, newest first."""
    rows = db.execute("SELECT step, file FROM checkpoints ORDER BY step DESC").fetchall()
    for step, name in rows:
        if not isinstance(step, int) or step < 1 or name != checkpoint_name(step):
            raise ValueError(f"its list of checkpoints has {name!r:.40} for update {step!r:.40}")
    return rows


def agents(db: sqlite3.Connection) -> list[tuple[int, str]]:
    """Update and file name of the agents of each kept moment, newest first; see `milestones`."""
    if db.execute("SELECT format FROM job").fetchone()[0] < 4:
        return []
    rows = db.execute("SELECT step, file FROM agents ORDER BY step DESC").fetchall()
    for step, name in rows:
        if not isinstance(step, int) or step < 0 or name != agent_name(step):
            raise ValueError(f"its list of agents has {name!r:.40} for update {step!r:.40}")
    return rows


def read_solved(db: sqlite3.Connection, runs: int) -> NDArray[np.float64]:
    """The frames until each run had learned every task; NaN if not yet."""
    solved = np.full(runs, np.nan)
    for run, when in db.execute("SELECT run, frames FROM solved"):
        solved[run] = when
    return solved


def last_evaluated(db: sqlite3.Connection) -> int:
    """The update of the last evaluation; 0 if there is none."""
    return int(db.execute("SELECT coalesce(max(step), 0) FROM evaluation").fetchone()[0])


# max(policy) is sampled, or greedy if there is no other
_LAST_EVALUATION = (
    "FROM evaluation WHERE step = (SELECT max(step) FROM evaluation) "
    "AND policy = (SELECT max(policy) FROM evaluation) GROUP BY run"
)


def best_runs(db: sqlite3.Connection) -> dict[int, float]:
    """The mean return of each run in the last evaluation, best first; empty if there was none."""
    query = f"SELECT run, avg(return) {_LAST_EVALUATION} ORDER BY avg(return) DESC, run"
    return {int(run): float(mean) for run, mean in db.execute(query)}


def final_returns(db: sqlite3.Connection, chunks: int) -> list[float]:
    """The mean over tasks of each run's return in the last evaluation.

    If there was none, in training over the last chunks; runs with an unknown task are omitted.
    """
    rows = db.execute(f"SELECT avg(return) {_LAST_EVALUATION}").fetchall()
    if not rows:
        rows = db.execute(
            "SELECT avg(mean) FROM (SELECT run, sum(return * episodes) / sum(episodes) AS mean "
            "FROM training WHERE step IN (SELECT step FROM chunks ORDER BY step DESC LIMIT ?) "
            "GROUP BY run, task) GROUP BY run HAVING count(mean) = count(*)",
            (chunks,),
        ).fetchall()
    return [float(mean) for (mean,) in rows]


def recent_training(db: sqlite3.Connection, chunks: int) -> Arrays:
    """Episodes and their mean return in each of the last chunks, oldest first; each (chunks, runs,
    tasks)."""
    found = _columns(
        db,
        "SELECT episodes, return FROM training WHERE step IN (SELECT step FROM chunks "
        f"ORDER BY step DESC LIMIT {int(chunks)}) ORDER BY step, run, task",
        "if",
    )
    return [x.reshape(-1, count(db, "runs"), count(db, "tasks")) for x in found]


def has_progress(db: sqlite3.Connection) -> bool:
    """Whether the database records learning progress; format 2 does not."""
    return any(row[1] == "progress" for row in db.execute("PRAGMA table_info(training)"))


def read_points(db: sqlite3.Connection, after: int) -> Arrays:
    """Updates, frames and seconds of every chunk after an update."""
    query = f"SELECT step, frames, seconds FROM chunks WHERE step > {int(after)} ORDER BY step"
    steps, frames, seconds = _columns(db, query, "iff")
    return [steps, _whole(frames), seconds]


def read_training(db: sqlite3.Connection, after: int, tasks: int) -> Arrays:
    """Probability, mastery, progress, return, episodes and frames, by step, run and task.

    Args:
        db: An open database.
        after: Only what comes after this update.
        tasks: Only the first tasks.
    """
    beta = "progress" if has_progress(db) else "NULL"
    query = (
        f"SELECT probability, mastery, {beta}, return, episodes, frames FROM training "
        f"WHERE step > {int(after)} AND task < {int(tasks)} ORDER BY step, run, task"
    )
    *found, played = _columns(db, query, "ffffif")
    return [*found, _whole(played)]


def read_evaluation(db: sqlite3.Connection, policy: str, after: int, tasks: int) -> Arrays:
    """The frames of each evaluation; and return, success and length, by step, run and task."""
    some = (
        f"FROM evaluation WHERE policy = '{policy}' AND step > {int(after)} AND task < {int(tasks)}"
    )
    query = f"SELECT frames FROM chunks WHERE step IN (SELECT step {some}) ORDER BY step"
    values = _columns(db, f"SELECT return, success, length {some} ORDER BY step, run, task", "fff")
    return _columns(db, query, "i") + values


def read_tests(db: sqlite3.Connection, tasks: int) -> Arrays:
    """The frames of each recorded evaluation, and its scores (evaluations, tasks); NaN if none."""
    steps, frames = _columns(db, "SELECT step, frames FROM tests ORDER BY step", "if")
    where, task, score = _columns(
        db, f"SELECT step, task, return FROM evaluation WHERE task < {int(tasks)}", "iif"
    )
    scores = np.full((len(steps), tasks), np.nan)
    scores[np.searchsorted(steps, where), task] = score
    return [_whole(frames), scores]


def read_scalars(db: sqlite3.Connection) -> dict[str, Arrays]:
    """The frames and values of each recorded scalar."""
    rows = db.execute("SELECT name, frames, value FROM scalars ORDER BY name, step")
    found: dict[str, list[tuple[float, float]]] = {}
    for name, frames, value in rows:
        found.setdefault(_text(name), []).append((float(frames), float(value)))
    return {name: [_whole(x[:, 0]), x[:, 1]] for name, x in _arrays(found)}


def read_measures(db: sqlite3.Connection, after: int, runs: int) -> dict[str, Arrays]:
    """The frames (points,) and values (points, runs) of each number of the learner."""
    if db.execute("SELECT format FROM job").fetchone()[0] < 6:
        return {}
    names = db.execute("SELECT DISTINCT name FROM measures ORDER BY name").fetchall()
    found = {}
    for name in (_text(row[0]) for row in names):
        rows = db.execute(
            "SELECT chunks.frames, run, value FROM measures JOIN chunks USING (step) "
            "WHERE name = ? AND step > ? ORDER BY step, run",
            (name, int(after)),
        ).fetchall()
        frames, run, values = np.moveaxis(np.array(rows, np.float64).reshape(-1, runs, 3), 2, 0)
        if (frames != frames[:, :1]).any() or (run != np.arange(runs)).any():
            raise ValueError(f"measures lacks rows of {name!r}")
        found[name] = [_whole(frames[:, 0]), values]
    return found


def _arrays(
    found: Mapping[str, list[tuple[float, float]]],
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    return ((name, np.array(rows)) for name, rows in found.items())


def read_notes(db: sqlite3.Connection) -> list[tuple[float, str, str]]:
    """Frames, time and text of each note."""
    rows = db.execute("SELECT frames, time, text FROM notes ORDER BY step, rowid")
    return [(float(frames), _text(when), _text(text)) for frames, when, text in rows]


def read_mark(db: sqlite3.Connection, step: int) -> tuple[str, bytes] | None:
    """The unfinished point at an update, as it was saved; None if there is none."""
    row = db.execute("SELECT about, sums FROM marks WHERE step = ?", (step,)).fetchone()
    return None if row is None else (_text(row[0]), bytes(row[1]))


def _whole(x: NDArray[Any]) -> NDArray[Any]:
    """Counts as int64, unless some are fractions: costs can be."""
    return x.astype(np.int64) if (x == np.rint(x)).all() else x


def _columns(db: sqlite3.Connection, query: str, types: str) -> Arrays:
    """The columns of a query as arrays.

    Args:
        db: An open database.
        query: A SELECT.
        types: One letter per column: i for int64, f for float64 (NULL becomes NaN).
    """
    kinds = [(str(i), np.int64 if t == "i" else np.float64) for i, t in enumerate(types)]
    rows: NDArray[Any] = np.fromiter(db.execute(query), np.dtype(kinds))
    return [np.ascontiguousarray(rows[name]) for name, _ in kinds]


def is_training(directory: str | Path) -> bool:
    """Whether a process holds the directory's lock. Creates no file and keeps no lock."""
    path = Path(directory) / "lock"
    if not path.is_file():
        return False
    try:
        lock = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=0)
        with contextlib.closing(lock):
            lock.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    except sqlite3.Error:
        pass  # not a lock file of ours
    return False
