"""A damaged run.db: reading and resuming end in an error of ours, and no checkpoint is lost."""

import contextlib
import json
import random
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from test_store import JOB, agents_of, metrics

from mastery import CheckpointError, MasteryError
from mastery.page.data import job_curves, job_entry
from mastery.page.places import Place
from mastery.rundir.results import list_jobs, load_results
from mastery.rundir.store import Store
from mastery.training.agent import load_agent
from mastery.training.job import read_job
from mastery.training.train import resume

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # inf in a curve
WRONG = (None, "x", "", "{", "[]", "-1", b"\xff\xfe", -1, 2**62, 1e300, float("inf"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole") / "job"
    with Store(directory, JOB) as store:
        store.begin_session("mastery train", 0)
        for i in range(1, 4):
            arrays = {"x": np.full((1, 2), i)}
            store.record(2 * i, float(i), metrics(), None, arrays, None, {2 * i: agents_of(i)})
    return directory


def copy(directory, folder):
    shutil.rmtree(folder / "job", ignore_errors=True)
    return Path(shutil.copytree(directory, folder / "job"))


def files(directory):
    return sorted(path.name for path in directory.glob("[ac]*/*"))  # agents and checkpoints


def read(directory):
    place = Place(directory, "job")
    results = load_results(directory)
    assert isinstance(results.total, int), results.score
    read_job(directory)
    job_entry(place)
    job_curves(place)


def go_on(directory):
    """All that resuming reads, without the training."""
    read_job(directory)
    with Store(directory) as store:
        assert store.ended is None or isinstance(store.ended, str)
        store.last_hardware()
        store.rewind()
        store.recent(5)
        assert isinstance(store.seconds, float)


def tried(directory):
    """Read and resume; the errors' messages."""
    before = files(directory)
    said = []
    list_jobs(directory.parent)
    for attempt in (read, go_on):
        try:
            attempt(directory)
        except MasteryError as error:
            said.append(str(error))
    assert all(str(directory) in text and "\n" not in text for text in said)
    assert files(directory) == before
    return said


def test_the_whole_directory_is_read_and_resumed(whole, tmp_path):
    assert tried(copy(whole, tmp_path)) == []


@pytest.mark.parametrize("seed", range(8))
def test_random_damage_gives_errors_of_ours_and_removes_no_checkpoint(whole, tmp_path, seed):
    generator = random.Random(seed)
    content = (whole / "run.db").read_bytes()
    found = 0
    for _ in range(50):
        changed, at = bytearray(content), generator.randrange(len(content))
        length = generator.choice((1, 16, 512, 4096))
        match generator.choice(("flip", "zero", "cut", "noise", "page")):
            case "flip":
                for _ in range(generator.choice((1, 8, 64))):
                    changed[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
            case "zero":
                changed[at : at + length] = bytes(len(changed[at : at + length]))
            case "cut":
                del changed[at:]
            case "noise":
                changed[at : at + length] = generator.randbytes(len(changed[at : at + length]))
            case "page":  # one page in place of another
                pages = len(content) // 4096
                to, of = (4096 * generator.randrange(pages) for _ in range(2))
                changed[to : to + 4096] = content[of : of + 4096]
        directory = copy(whole, tmp_path)
        (directory / "run.db").write_bytes(changed)
        found += bool(tried(directory))
    assert found > 10


def tables(directory):
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db:
        found = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return [
            (name, row[1]) for (name,) in found for row in db.execute(f"PRAGMA table_info({name})")
        ]


def set_value(directory, table, column, value):
    """A value in a table without the conditions that would refuse it."""
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db, db:
        db.execute(f"CREATE TABLE other AS SELECT * FROM {table}")
        db.execute(f"DROP TABLE {table}")
        db.execute(f"ALTER TABLE other RENAME TO {table}")
        new = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"  # bytes: not UTF-8
        db.execute(f"UPDATE {table} SET {column} = {new}", (value,))
    db.close()


def test_any_wrong_value_gives_an_error_of_ours_and_removes_no_checkpoint(whole, tmp_path):
    for table, column in tables(whole):
        for value in WRONG:
            directory = copy(whole, tmp_path)
            set_value(directory, table, column, value)
            said = tried(directory)
            if table in ("agents", "checkpoints") or (
                table == "job" and column in ("format", "job")
            ):
                assert said, (table, column, value)


def test_any_wrong_setting_of_the_job_gives_an_error_of_ours(whole, tmp_path):
    with contextlib.closing(sqlite3.connect(whole / "run.db")) as db, db:
        job = json.loads(db.execute("SELECT job FROM job").fetchone()[0])
    db.close()
    changes = [{name: value} for name in job for value in (None, "x", -1, 0, 1e300, [], {}, [1])]
    changes += [
        {"curriculum": job["curriculum"] | {name: value}}
        for name in job["curriculum"]
        for value in (None, "x", -1, [], {}, [1], [[0, 99]])
    ]
    for change in changes:
        directory = copy(whole, tmp_path)
        with contextlib.closing(sqlite3.connect(directory / "run.db")) as db, db:
            db.execute("UPDATE job SET job = ?", (json.dumps(job | change),))
        db.close()
        tried(directory)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("DELETE FROM checkpoints", "does not list the checkpoint 000000000004.ckpt"),
        ("DELETE FROM checkpoints WHERE step = 6", "not list the checkpoint 000000000006.ckpt"),
        ("UPDATE checkpoints SET file = '../../x'", "checkpoints has '../../x' for update 6"),
        ("UPDATE checkpoints SET step = step + 20", "checkpoints has '000000000006.ckpt' for up"),
        ("DROP TABLE checkpoints", "no such table: checkpoints"),
        ("DELETE FROM agents WHERE step = 4", "does not list the agents 000000000004.agent"),
        ("UPDATE agents SET file = '../../x'", "agents has '../../x' for update 6"),
        ("UPDATE agents SET step = step + 20", "agents has '000000000006.agent' for update 26"),
        ("DELETE FROM chunks WHERE step = 2", "chunks has 2 rows up to the checkpoint of update 6"),
        ("DELETE FROM training WHERE task = 1", "training has 6 rows up to the checkpoint"),
        ("UPDATE sessions SET hardware = '{'", "JSONDecodeError"),
    ],
)
def test_a_job_is_not_resumed_from_a_list_that_is_wrong(whole, tmp_path, change, text):
    directory = copy(whole, tmp_path)
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db, db:
        db.execute(change)
    db.close()
    before = (directory / "run.db").read_bytes()
    with pytest.raises(CheckpointError) as caught:
        resume(directory)
    assert text in str(caught.value)
    assert "restore a copy of it, or train again in another folder" in str(caught.value)
    readable = "DELETE FROM chunks" not in change and "training" not in change
    readable &= "sessions" not in change
    assert ("its curves can still be read" in str(caught.value)) == readable
    assert (directory / "run.db").read_bytes() == before
    names = sorted(path.name for path in (directory / "checkpoints").iterdir())
    assert names == ["000000000004.ckpt", "000000000006.ckpt"]
    if "file" in change:
        with pytest.raises(CheckpointError, match=r"list of (agents|checkpoints)"):
            load_agent(directory)


def test_a_file_of_a_killed_job_is_removed_and_others_are_left(whole, tmp_path):
    """The next chunk's checkpoint that was not listed yet, and one that is too old."""
    directory = copy(whole, tmp_path)
    folder = directory / "checkpoints"
    for name in ("000000000002.ckpt", "000000000008.ckpt", "mine.ckpt"):
        shutil.copy(folder / "000000000004.ckpt", folder / name)
    with Store(directory) as store:
        assert store.rewind()[0] == 6
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["000000000004.ckpt", "000000000006.ckpt", "mine.ckpt"]
    shutil.copy(folder / "000000000004.ckpt", folder / "000000000010.ckpt")
    with Store(directory) as store, pytest.raises(CheckpointError, match=r"000000000010\.ckpt"):
        store.rewind()


def test_so_is_a_file_of_agents(whole, tmp_path):
    """The next chunk's, and one that was dropped; all of a job that was killed at its start."""
    directory = copy(whole, tmp_path)
    folder = directory / "agents"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["000000000002.agent", "000000000004.agent", "000000000006.agent"]
    shutil.copy(folder / names[0], folder / "000000000008.agent")
    with Store(directory) as store:
        assert store.rewind()[0] == 6
    assert sorted(path.name for path in folder.iterdir()) == names
    shutil.copy(folder / names[0], folder / "000000000010.agent")
    with Store(directory) as store, pytest.raises(CheckpointError, match=r"000000000010\.agent"):
        store.rewind()
    Store(tmp_path / "new", JOB).close()
    shutil.copytree(folder, tmp_path / "new" / "agents", ignore=lambda *_: names[1:])
    (tmp_path / "new" / "agents" / "000000000010.agent").unlink()
    shutil.copy(folder / names[0], tmp_path / "new" / "agents" / "000000000000.agent")
    with Store(tmp_path / "new") as store:
        assert store.rewind() == (0, None)
    assert list((tmp_path / "new" / "agents").iterdir()) == []


def test_a_lock_that_is_not_ours_is_named(whole, tmp_path):
    directory = copy(whole, tmp_path)
    (directory / "lock").write_bytes(b"not a database" * 100)
    with pytest.raises(CheckpointError, match=r"cannot lock .*lock: .*; delete this file"):
        Store(directory)
