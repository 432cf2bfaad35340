"""The run directory by itself: what it never overwrites, and where it goes on from."""

import contextlib
import hashlib
import itertools
import shutil
import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mastery import CheckpointError, Curriculum, MasteryError
from mastery.learners.ppo import PPOSettings
from mastery.rundir.database import open_database
from mastery.rundir.metrics import Metrics
from mastery.rundir.milestones import is_milestone, kept_chunks, kept_runs
from mastery.rundir.results import load_results, read_curves
from mastery.rundir.store import Store
from mastery.training.job import Job, read_job
from mastery.training.train import job_to_resume, resume, train

JOB = Job(
    Curriculum.load("blocked-unlock-pickup"),
    frames=640,
    settings=PPOSettings(envs=4, frames=16, batch=64),
    chunk=2,
)


def metrics(returns=0.5):
    """A chunk of two updates, one run and three tasks; an episode of the first task in each."""
    shape = (2, 1, 3)
    first = np.zeros(shape, np.float32)
    first[..., 0] = 1
    score = first * np.float32(returns)
    return Metrics(first, first, first.astype(int), score, first * 64, progress=-first / 4)


def written(directory, chunks=3):
    with Store(directory, JOB) as store:
        for i in range(1, chunks + 1):
            store.record(2 * i, float(i), metrics(0.1 * i), None, {"x": np.full((1, 2), i)})
    return directory


def test_a_chunk_is_rows_of_means_and_sums(tmp_path):
    written(tmp_path / "job", 1)
    with contextlib.closing(sqlite3.connect(tmp_path / "job" / "run.db")) as db:
        rows = db.execute("SELECT * FROM training").fetchall()
    # step, run, task, probability, mastery at the end, frames, episodes, mean return, progress
    assert rows[0] == (2, 0, 0, 1.0, 1.0, 128, 2, pytest.approx(0.1), -0.25)
    assert rows[1] == (2, 0, 1, 0.0, 0.0, 0, 0, None, 0.0)


def test_a_job_of_format_2_is_read_and_goes_on(tmp_path):
    directory = written(tmp_path / "job")
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db, db:
        db.execute("ALTER TABLE training DROP COLUMN progress")
        db.execute("UPDATE job SET format = 2")
    assert np.isnan(load_results(directory).progress).all()
    with Store(directory) as store:
        store.record(8, 4.0, metrics())
    progress = load_results(directory).progress
    assert np.isnan(progress[:3]).all()
    assert progress[3].tolist() == [[-0.25, 0, 0]]


def agents_of(i):
    """What plays like this after chunk i, of the one run."""
    return [0], {"learner.agent.x": np.full((1, 2), i)}


def kept(directory):
    """The files of agents, which must be those that are listed."""
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db, db:
        rows = db.execute("SELECT step, file FROM agents ORDER BY step").fetchall()
    db.close()
    assert [name for _, name in rows] == sorted(p.name for p in (directory / "agents").iterdir())
    return [step for step, _ in rows]


def test_a_job_of_format_3_goes_on_and_keeps_agents_from_then_on(tmp_path):
    directory = written(tmp_path / "job")
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db, db:
        db.execute("DROP TABLE agents")
        db.execute("UPDATE job SET format = 3")
    db.close()
    assert len(load_results(directory).frames) == 3
    with Store(directory) as store:
        assert store.rewind()[0] == 6
        store.record(8, 4.0, metrics(), None, None, None, {8: agents_of(4)})
    assert kept(directory) == [8]


def test_agents_of_few_moments_are_kept_evenly(tmp_path):
    """By hand: all of up to twelve chunks of two updates; then every second one, every fourth."""
    with Store(tmp_path / "job", JOB) as store:
        for i in range(1, 27):
            moments = {2 * i: agents_of(i)} if is_milestone(i) else {}
            moments |= {0: agents_of(0)} if i == 1 else {}
            store.record(2 * i, float(i), metrics(), None, None, None, moments)
            if i == 12:
                assert kept(store.directory) == list(range(0, 25, 2))
            elif i == 13:
                assert kept(store.directory) == list(range(0, 25, 4))
    assert kept(tmp_path / "job") == [0, 8, 16, 24, 32, 40, 48]


@given(st.integers(0, 100_000))
def test_there_are_six_to_twelve_of_them_however_long_a_job_is(chunks):
    found = kept_chunks(chunks)
    assert found[0] == 0
    assert min(chunks, 6) <= len(found) - 1 <= 12
    gaps = {b - a for a, b in itertools.pairwise(found)}
    assert len(gaps) <= 1
    assert chunks - found[-1] < max(gaps, default=1)
    assert all(is_milestone(chunk) for chunk in found)  # each was written when it was trained


def test_of_which_runs():
    assert kept_runs(["mr"] * 3 + ["uniform"] * 3) == [0, 1, 3, 4]
    assert kept_runs(["mr"]) == [0]
    many = [f"mr entropy={i}" for i in range(9) for _ in range(10)]
    assert kept_runs(many) == list(range(0, 90, 10))
    assert len(kept_runs([str(i) for i in range(100)])) == 32


def test_it_goes_back_and_drops_later_agents(tmp_path):
    directory = tmp_path / "job"
    with Store(directory, JOB) as store:
        for i in range(1, 4):
            arrays = {"x": np.full((1, 2), i)} if i == 2 else None
            store.record(2 * i, float(i), metrics(), None, arrays, None, {2 * i: agents_of(i)})
    half = directory / "agents" / ".000000000008.agent.1.1.tmp"
    half.write_text("half")
    shutil.copy(directory / "agents" / "000000000006.agent", directory / "agents" / "mine.agent")
    with Store(directory) as store:
        assert store.rewind()[0] == 4
    assert not half.exists()
    (directory / "agents" / "mine.agent").unlink()  # not one of ours, and left
    assert kept(directory) == [2, 4]


def test_some_curves_are_those_after_an_update_and_of_the_first_tasks(tmp_path):
    whole = load_results(written(tmp_path / "job", 4))
    with open_database(tmp_path / "job") as db:
        some = read_curves(db, runs=1, tasks=2, after=4)
    assert some.frames.tolist() == whole.frames[2:].tolist()
    assert some.mastery.tolist() == whole.mastery[2:, :, :2].tolist()
    assert some.returns.shape == (2, 1, 2)


def test_it_goes_back_to_the_last_checkpoint_and_keeps_two(tmp_path):
    directory = written(tmp_path / "job")
    with Store(directory) as store:
        store.record(8, 4.0, metrics())  # without a checkpoint
        assert store.step == 8
        (directory / "checkpoints" / ".000000000010.ckpt.1.1.tmp").write_text("half")
        step, arrays = store.rewind()
        assert (step, arrays["x"].tolist()) == (6, [[3, 3]])
        assert store.step == 6
        names = sorted(path.name for path in (directory / "checkpoints").iterdir())
        assert names == ["000000000004.ckpt", "000000000006.ckpt"]


@pytest.mark.parametrize("harm", ["byte", "version", "empty", "gone"])
def test_a_bad_checkpoint_is_passed_over_and_named(tmp_path, harm):
    directory = written(tmp_path / "job")
    last = directory / "checkpoints" / "000000000006.ckpt"
    if harm in ("byte", "version"):
        content = bytearray(last.read_bytes())
        content[-40 if harm == "byte" else len("mastery ")] ^= 2
        last.write_bytes(content)
    elif harm == "empty":
        last.write_bytes(b"")
    else:
        last.unlink()
    with Store(directory) as store:
        assert store.rewind()[0] == 4
        (note,) = store.notes
    assert "000000000006.ckpt" in note
    assert "using the previous checkpoint, of update 4" in note


def test_where_no_checkpoint_is_good_nothing_is_thrown_away(tmp_path):
    directory = written(tmp_path / "job")
    for path in (directory / "checkpoints").iterdir():
        path.write_bytes(b"")
    with Store(directory) as store, pytest.raises(CheckpointError, match="nothing was changed"):
        store.rewind()
    with Store(directory) as store:
        assert store.step == 6


def test_a_checkpoint_of_a_later_version_is_no_damage(tmp_path):
    directory = written(tmp_path / "job")
    last = directory / "checkpoints" / "000000000006.ckpt"
    body = last.read_bytes()[:-32].replace(b"mastery 1\n", b"mastery 2\n", 1)
    last.write_bytes(body + hashlib.sha256(body).digest())
    with Store(directory) as store, pytest.raises(CheckpointError, match="use the release that"):
        store.rewind()
    assert last.exists()


@pytest.mark.parametrize(
    "change", ["UPDATE job SET format = 99", "DROP TABLE job", "UPDATE job SET job = '{}'"]
)
def test_a_database_that_cannot_be_read_is_not_overwritten(tmp_path, change):
    directory = written(tmp_path / "job")
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db, db:
        db.execute(change)
    with pytest.raises(MasteryError):
        train(JOB, directory)
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db:
        assert db.execute("SELECT count(*) FROM training").fetchone() == (9,)


def test_a_job_that_never_began_gives_way(tmp_path):
    (tmp_path / "run.db").touch()
    (tmp_path / "checkpoints").mkdir()
    Store(tmp_path, JOB).close()
    assert read_job(tmp_path) == JOB


def test_a_job_that_is_over_stays_over_when_its_end_is_only_rounded(tmp_path):
    directory = written(tmp_path / "job", 4)
    with Store(directory) as store:
        store.record(10, 5.0, metrics(), None, {"x": np.zeros((1, 2))}, "640 frames are done")
    assert resume(directory, frames=630).ended == "640 frames are done"
    assert read_job(directory).frames == 640
    text = (
        "job has already trained 640 frames per run, and only 100 are asked for; nothing was "
        "changed; ask for 640 or more"
    )
    for refused in (resume, job_to_resume):
        with pytest.raises(MasteryError, match=text):
            refused(directory, frames=100)
        assert read_job(directory).frames == 640
    with pytest.raises(MasteryError, match="frames is 0"):
        resume(directory, frames=0)


def test_nothing_is_left_behind_when_a_job_cannot_be_trained(tmp_path):
    from mastery import Task

    twice = [Task(name, 0, 1, settings={"env": "MiniGrid-Unlock-v0"}) for name in ("a", "b")]
    with pytest.raises(MasteryError, match="the same environment"):
        train(Job(Curriculum(twice)), tmp_path / "job")
    assert not (tmp_path / "job").exists()
