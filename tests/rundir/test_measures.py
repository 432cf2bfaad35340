"""Other numbers of a learner, such as tokens: written, read back, and absent in older formats."""

import contextlib
import sqlite3

import numpy as np
import pytest
from small_jobs import job

from mastery import CheckpointError, Curriculum
from mastery.learners.addition import AdditionSettings
from mastery.page.data import job_curves
from mastery.page.places import Place
from mastery.rundir.metrics import Metrics
from mastery.rundir.results import load_results
from mastery.rundir.store import Store
from mastery.training.job import Job
from mastery.training.train import TrainOptions, resume, train

JOB = job(seeds=1, frames=96, chunk=2)  # two runs, two tasks, 16 frames in an update


def record(store, tokens, checkpoint=True):
    """One more chunk of two updates; `tokens` is (updates, runs)."""
    ones = np.ones((2, 2, 2))
    scalars = {"tokens": np.array(tokens), "share": np.array(tokens) / 1000}
    metrics = Metrics(ones / 2, ones, ones.astype(int), ones, ones, scalars=scalars)
    arrays = {"x": np.zeros((2, 1))} if checkpoint else None
    store.record(store.step + 2, 1.0 * store.step, metrics, None, arrays)


@pytest.fixture
def directory(tmp_path):
    with Store(tmp_path / "job", JOB) as store:
        record(store, [[100, 200], [300, 401]])
        record(store, [[1, 2], [3, 4]])
    return tmp_path / "job"


def change(directory, *statements):
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db, db:
        for statement in statements:
            db.execute(statement)


def test_measures_are_means_over_the_updates_of_a_chunk(directory):
    scalars = load_results(directory).scalars
    assert list(scalars) == ["share", "tokens"]
    assert scalars["tokens"].frames.tolist() == [32, 64]
    assert scalars["tokens"].values.tolist() == [[200, 300.5], [2, 3]]
    assert np.allclose(scalars["share"].values, [[0.2, 0.3005], [0.002, 0.003]])


def test_the_page_has_them_also_when_it_asks_for_the_last_points_only(directory):
    place = Place(directory, "job")
    for known in ({}, {"bins": 0, "since": 1, "sessions": 0}):
        found = job_curves(place, **known)
        assert found["from"] == known.get("since", 0)
        tokens = found["scalars"]["tokens"]
        assert tokens == {"frames": [32, 64], "values": [[200, 2], [300.5, 3]]}


def test_what_is_done_again_is_written_once(directory):
    with Store(directory) as store:
        record(store, [[7, 7], [7, 7]], checkpoint=False)
        assert store.rewind()[0] == 4
        assert load_results(directory).scalars["tokens"].frames.tolist() == [32, 64]
        record(store, [[8, 8], [8, 8]])
    assert load_results(directory).scalars["tokens"].values.tolist()[-1] == [8, 8]


def test_a_job_without_measures_has_none(tmp_path):
    ones = np.ones((1, 2, 2))
    with Store(tmp_path / "job", JOB) as store:
        store.record(2, 1.0, Metrics(ones / 2, ones, ones.astype(int), ones, ones))
    assert load_results(tmp_path / "job").scalars == {}


@pytest.mark.parametrize("old", [3, 4])
def test_older_formats_are_read_and_have_measures_from_then_on(directory, old):
    agents = ["DROP TABLE agents"] if old == 3 else []
    change(directory, *agents, "DROP TABLE measures", f"UPDATE job SET format = {old}")
    assert load_results(directory).scalars == {}
    assert len(load_results(directory).frames) == 2
    with Store(directory) as store:
        record(store, [[5, 6], [5, 6]])
    scalars = load_results(directory).scalars["tokens"]
    assert scalars.frames.tolist() == [96]
    assert scalars.values.tolist() == [[5, 6]]
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db:
        assert db.execute("SELECT format FROM job").fetchone() == (6,)


def test_a_job_of_format_4_is_resumed_to_the_same_end(tmp_path):
    settings = AdditionSettings(batch=32, batches=2, tests=10, validation=20, width=8)
    few = Job(
        Curriculum.load("addition-3"), settings=settings, frames=64 * 10 * 3, evaluate_every=0
    )
    train(few, tmp_path / "whole")
    train(few, tmp_path / "old", TrainOptions(minutes=1e-6))
    change(tmp_path / "old", "DROP TABLE measures", "UPDATE job SET format = 4")
    assert resume(tmp_path / "old").ended == "trained 1,920 examples per run"
    whole, old = load_results(tmp_path / "whole"), load_results(tmp_path / "old")
    assert old.frames.tolist() == whole.frames.tolist()
    assert np.array_equal(old.returns, whole.returns, equal_nan=True)
    assert np.array_equal(old.probability, whole.probability)


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM measures WHERE step = 2 AND run = 1 AND name = 'tokens'",
        # as many rows as runs, but of two chunks
        "DELETE FROM measures WHERE name = 'tokens' AND step = 2 + 2 * run",
        "DELETE FROM measures WHERE name = 'tokens' AND step = 4 - 2 * run",
        "UPDATE measures SET value = 'many'",
        "DROP TABLE measures",
    ],
)
def test_damaged_measures_are_reported(directory, harm):
    change(directory, harm)
    with pytest.raises(CheckpointError, match=r"cannot read .*run\.db.* damaged"):
        load_results(directory)
