"""What is read back from a run directory, against numbers that were written into it by hand."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from small_jobs import add, job, many_points, two_points

from mastery import MasteryError
from mastery.drawing.axes import quartiles
from mastery.rundir.database import is_training, open_database
from mastery.rundir.results import list_jobs, load_results
from mastery.rundir.store import Store

NAN = np.nan


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "two"
    two_points(directory)
    return directory


def test_the_curves_are_what_was_written(directory):
    results = load_results(directory)
    assert results.labels == ("mr", "mr", "uniform", "uniform")
    assert results.seeds == (0, 1, 0, 1)
    assert results.curriculum == job().curriculum
    assert results.curriculum.name == "two & more"
    assert results.steps.tolist() == [1, 2]
    assert results.frames.tolist() == [16, 32]
    assert results.seconds.tolist() == [2.5, 5.0]
    np.testing.assert_array_equal(
        results.returns,  # the mean of the episodes
        [[[0.5, NAN], [0.75, NAN], [0.25, 0], [0.75, 0]],
         [[0.75, 0.125], [NAN, 0.5], [0.75, 0.25], [0.25, NAN]]],
    )  # fmt: skip
    assert results.episodes[1].tolist() == [[2, 2], [0, 1], [1, 1], [1, 0]]
    assert results.probability[0].tolist() == [[0.75, 0.25], [1, 0], [0.5, 0.5], [0.5, 0.5]]
    assert results.mastery[1, 0].tolist() == [0.75, 0.125]
    assert results.played[1, 1].tolist() == [4, 12]
    assert results.share[1, 1].tolist() == [0.25, 0.75]


def test_the_evaluations_are_what_was_written(directory):
    greedy, sampled = load_results(directory).evaluations.values()
    assert greedy.frames.tolist() == sampled.frames.tolist() == [32]
    assert greedy.returns[0].tolist() == [[0.5, 0.25], [0.75, 0.5], [0.25, 0], [0.125, 0]]
    assert sampled.returns[0].tolist() == [[0.5, 0], [1, 0], [0, 0], [0, 0]]
    assert greedy.success[0, 3].tolist() == [1, 0.5]
    assert sampled.length[0, 3].tolist() == [30, 40]


def test_what_is_known_of_the_job(directory):
    results = load_results(directory)
    assert {k: v.tolist() for k, v in results.groups.items()} == {"mr": [0, 1], "uniform": [2, 3]}
    assert results.total == 48
    assert results.ended is None
    assert not results.training
    assert results.job["settings"]["envs"] == 2
    (session,) = results.sessions
    assert session.command == "mastery train & see"
    assert session.step == 0
    assert session.versions["numpy"] == np.__version__
    assert session.hardware["device"]


def test_runs_of_a_grid_are_told_apart_by_their_settings(tmp_path):
    many_points(tmp_path, job(programs=("mr",), grid={"learning_rate": (0.001, 0.002)}), 1)
    results = load_results(tmp_path)
    assert list(results.groups) == ["mr learning_rate=0.001", "mr learning_rate=0.002"]
    assert results.changes[2] == {"learning_rate": 0.002}


def test_before_the_first_chunk_everything_is_empty(tmp_path):
    Store(tmp_path / "new", job()).close()
    results = load_results(tmp_path / "new")
    assert results.returns.shape == results.share.shape == (0, 4, 2)
    assert results.evaluations["greedy"].returns.shape == (0, 4, 2)
    assert results.sessions == ()


def test_quartiles_are_of_what_is_known():
    values = np.array([[0.0, 1, 2, 3, 4], [NAN, 1, 3, NAN, 2], [NAN] * 5])
    np.testing.assert_array_equal(quartiles(values).T, [[1, 2, 3], [1.5, 2, 2.5], [NAN] * 3])
    assert quartiles(np.array([5.0])).tolist() == [5, 5, 5]


def test_a_job_can_be_read_while_it_trains(tmp_path):
    one = np.ones((4, 2))
    with Store(tmp_path / "now", job()) as store:
        add(store, one / 2, one, one, one, one)
        assert load_results(tmp_path / "now").training
        (summary,) = list_jobs(tmp_path)
        assert summary.state == "training"
        with open_database(tmp_path / "now") as db:
            count = db.execute("SELECT count(*) FROM chunks").fetchone()
            add(store, one / 2, one, one, one, one)
            assert db.execute("SELECT count(*) FROM chunks").fetchone() == count == (1,)
        assert len(load_results(tmp_path / "now").frames) == 2
    assert not load_results(tmp_path / "now").training
    (tmp_path / "now" / "lock").unlink()
    assert not is_training(tmp_path / "now")
    assert not (tmp_path / "now" / "lock").exists()


def test_looking_does_not_disturb_who_wants_to_train(directory):
    assert not is_training(directory)
    with Store(directory):
        assert is_training(directory)
    assert not is_training(directory)


def test_the_list_of_jobs(directory, tmp_path):
    shutil.copytree(directory, tmp_path / "a")
    many_points(tmp_path / "b", job(seeds=1, frames=16), 1, evaluated=False)
    two_points(tmp_path / "c", evaluated=False)
    (tmp_path / "no job").mkdir()
    (tmp_path / "file").write_text("")
    a, b, c = sorted(list_jobs(tmp_path), key=lambda found: found.path)
    assert (a.path, a.curriculum, a.programs) == (tmp_path / "a", "two & more", ("mr", "uniform"))
    assert (a.seeds, a.frames, a.total, a.state) == (2, 32, 48, "stopped")
    assert a.created.endswith("UTC")
    assert (a.best, a.worst) == (0.5, 0)  # sampled, mean over tasks: of (1, 0) and of (0, 0)
    assert (b.frames, b.total, b.state) == (16, 16, "finished: all frames are done")
    assert b.best is b.worst is None  # there is a task that was not played
    # run 0: (1 + 1.5) / 4 and 0.25 / 2; run 1: 3 / 4 and 0.5; run 2: 0.5 and 0.125; run 3: 0.5, 0
    assert c.best == pytest.approx((0.75 + 0.5) / 2)
    assert c.worst == pytest.approx((0.5 + 0.0) / 2)
    (alone,) = list_jobs(directory)
    assert alone.frames == 32


def damaged(directory):
    """A copy of it in each way in which a run directory can be broken, with what is said then."""

    def copy(name):
        shutil.copytree(directory, directory.parent / name)
        return directory.parent / name / "run.db"

    def change(name, statement):
        with contextlib.closing(sqlite3.connect(copy(name))) as db, db:
            db.execute(statement)
        db.close()

    copy("empty").write_bytes(b"")
    copy("garbage").write_bytes(b"not a database at all" * 100)
    path = copy("cut")
    path.write_bytes(path.read_bytes()[:6000])
    change("rows", "DELETE FROM training WHERE step = 2 AND run = 3 AND task = 1")
    change("text", "UPDATE training SET probability = 'x' WHERE run = 0")
    change("json", "UPDATE job SET job = '{}'")
    change("no json", "UPDATE job SET job = '{'")
    change("format", "UPDATE job SET format = 99")
    change("tables", "DROP TABLE training")
    change("unborn", "DELETE FROM job")
    return {
        "empty": "holds no job",
        "garbage": "damaged",
        "cut": "damaged",
        "rows": "damaged",
        "text": "damaged",
        "json": "damaged",
        "no json": "damaged",
        "format": "format 99",
        "tables": "damaged",
        "unborn": "holds no job",
    }


def test_damaged_directories_are_named_and_do_not_break_the_list(tmp_path):
    two_points(tmp_path / "good")
    broken = damaged(tmp_path / "good")
    for name, message in broken.items():
        with pytest.raises(MasteryError, match=message) as error:
            load_results(tmp_path / name)
        assert str(tmp_path / name) in str(error.value)
    found = {summary.path.name: summary for summary in list_jobs(tmp_path)}
    assert set(found) == {"good", *broken}
    assert found["good"].state == "stopped"
    for name in ("empty", "garbage", "json", "no json", "format", "unborn"):
        assert broken[name] in found[name].state
        assert found[name].best is None


def test_what_is_no_run_directory(tmp_path):
    with pytest.raises(MasteryError, match="not a run directory"):
        load_results(tmp_path)
    assert list_jobs(tmp_path) == []
    with pytest.raises(MasteryError, match="cannot list"):
        list_jobs(tmp_path / "none")


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="nothing is closed to root")
def test_a_directory_that_cannot_be_written_to(directory, tmp_path):
    shutil.copytree(directory, tmp_path / "closed")
    for path in (tmp_path / "closed").glob("run.db-*"):
        path.unlink()
    (tmp_path / "closed").chmod(0o555)
    try:
        assert len(load_results(tmp_path / "closed").frames) == 2
    finally:
        (tmp_path / "closed").chmod(0o755)


def test_results_need_no_jax(directory):
    code = f"""
import sys
from pathlib import Path
from mastery.cli.page import write_report
from mastery.rundir import export, results
results.load_results({str(directory)!r})
write_report([Path({str(directory)!r})], Path({str(directory)!r}) / "report.html")
results.list_jobs({str(directory)!r})
assert not {{"jax", "pyarrow", "tensorboard"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
