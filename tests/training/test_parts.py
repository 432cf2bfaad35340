"""A job in parts, without a cluster: how it is split, and that it is one job to all who read it."""

import contextlib
import dataclasses
import json
import shutil
import sqlite3

import numpy as np
import pytest

from mastery import CheckpointError, Curriculum, MasteryError, checkpoint, load_agent, resume
from mastery.cluster import train as cluster
from mastery.curriculum import Task
from mastery.page import data
from mastery.page.places import find_places
from mastery.page.server import Watched
from mastery.paper.cluster import _kept
from mastery.paper.curves import from_results, load, save
from mastery.rundir.export import training_table
from mastery.rundir.metrics import Evaluation, Metrics
from mastery.rundir.parts import holds_job, parts_of
from mastery.rundir.results import list_jobs, load_results
from mastery.rundir.split import find_part, read_split
from mastery.rundir.store import Store
from mastery.training.job import Job, read_job
from mastery.training.parts import Together, create_parts, parts_to_resume, split_job
from mastery.training.train import Trained, TrainOptions, train

CURRICULUM = Curriculum.load("blocked-unlock-pickup")
SETTINGS = {"envs": 4, "frames": 32, "batch": 64, "ahead": 2, "width": 8, "memory": "none"}


def job(**changes):
    small = dataclasses.replace(Job(CURRICULUM).settings, **SETTINGS)
    given = {
        "programs": ("mr", "gprop-linreg:window=20"), "seeds": 2, "frames": 512, "settings": small,
        "chunk": 2, "evaluate_every": 256, "episodes": 1,
    }  # fmt: skip
    return Job(CURRICULUM, **(given | changes))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("jobs") / "whole"
    train(job(), directory)
    return directory


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The same job in three parts; two of them have several runs or programs."""
    directory = tmp_path_factory.mktemp("jobs") / "job"
    create_parts(job(), directory, 3)
    shown = []
    outcome = resume(directory, TrainOptions(report=shown.append))
    assert outcome.ended == "trained 512 frames per run"
    return directory, shown


@pytest.fixture
def folder(trained, tmp_path):
    shutil.copytree(trained[0], tmp_path / "job")
    return tmp_path / "job"


def test_parts_are_consecutive_runs():
    parts = split_job(job(), 3)
    assert [part.only for part in parts] == [(0, 1), (1, 2), (2, 4)]
    assert [run for part in parts for run in part.runs] == job().runs
    assert all(part.every_run == job().runs for part in parts)
    assert Job.from_dict(json.loads(json.dumps(parts[1].to_dict()))) == parts[1]
    assert "only" not in job().to_dict()  # as before there were parts
    # of the runs whose agents are kept, each part has its own
    assert [part.kept for part in split_job(job(seeds=4), 4)] == [[0, 1], [], [0, 1], []]


def test_what_cannot_be_split_is_refused(tmp_path):
    with pytest.raises(MasteryError, match="parts is 5, and the job has 4 runs; give at most 4"):
        split_job(job(), 5)
    with pytest.raises(MasteryError, match=r"--stop-when-return looks at every run .* --parts 1"):
        create_parts(job(stop_return=0.5), tmp_path / "job", 2)
    assert not (tmp_path / "job").exists()
    assert len(split_job(job(stop_mastered=0.9), 1)) == 1
    with pytest.raises(MasteryError, match=r"only is \(3, 5\); the job has runs 0 to 3"):
        job(only=(3, 5))


def test_each_run_is_equal_to_the_bit_to_that_of_the_whole_job(whole, trained):
    a, b = load_results(whole), load_results(trained[0])
    for field in dataclasses.fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, np.ndarray) and field.name != "seconds":
            np.testing.assert_array_equal(x, y, field.name)
        elif field.name in ("labels", "programs", "changes", "seeds", "ended", "job"):
            assert x == y, field.name
    for policy, found in a.evaluations.items():
        for x, y in zip(found, b.evaluations[policy], strict=True):
            np.testing.assert_array_equal(x, y)
    for name, x in training_table(a).items():
        if name != "seconds":
            np.testing.assert_array_equal(x, training_table(b)[name])
    last = [max((d / "checkpoints").iterdir()) for d in (whole, *parts_of(trained[0]))]
    one, *each = [checkpoint.read(path, "mastery.runs")[1] for path in last]
    for name, array in one.items():
        np.testing.assert_array_equal(array, np.concatenate([part[name] for part in each]))


def test_it_is_one_job_to_those_who_read_it(whole, trained):
    folder, shown = trained
    assert holds_job(folder)
    (listed,), (same,) = list_jobs(folder), list_jobs(whole)
    assert dataclasses.replace(listed, path=whole, created=same.created) == same
    (place,), (other,) = find_places([folder])[0], find_places([whole])[0]
    entry, expected = data.job_entry(place), data.job_entry(other)
    own = ("key", "name", "path", "version", "created", "seconds", "speed", "sessions")
    alike = [name for name in expected if name not in (*own, "checkpoint")]
    assert {n: entry[n] for n in alike} == {n: expected[n] for n in alike}
    curves, expected = data.job_curves(place), data.job_curves(other)
    for name in ("frames", "steps", "bins"):
        assert curves[name] == expected[name]
    for name in ("mastery", "returns", "probability", "share", "episodes"):
        np.testing.assert_array_equal(curves[name], expected[name])
    for run in range(4):
        a, b = load_agent(folder, run), load_agent(whole, run)
        assert (a.run, a.frames) == (b.run, b.frames)
    assert load_agent(folder).run == load_agent(whole).run  # the best
    assert load_agent(folder, at=256).run == load_agent(whole, at=256).run
    with pytest.raises(MasteryError, match=r"there is no run 4: .* has runs 0 to 3"):
        load_agent(folder, 4)
    last = shown[-1]
    assert (last.update, last.updates, last.frames) == (4, 4, 4 * 512)
    assert {label: means.runs for label, means in last.programs.items()} == {
        "mr": 2, "gprop-linreg:window=20": 2,
    }  # fmt: skip
    # what is combined is what was recorded
    results = load_results(whole)
    np.testing.assert_allclose(last.mastery, results.mastery[-1].mean(0), rtol=1e-6)
    np.testing.assert_array_equal(Together(*parts_to_resume(folder)).whole().mastery, last.mastery)


def test_a_part_that_is_behind_shows_its_last_values(tmp_path):
    create_parts(job(), tmp_path / "job", 2)
    results = load_results(tmp_path / "job")
    assert results.mastery.shape == (0, 4, 3)
    resume(parts_of(tmp_path / "job")[1])
    results = load_results(tmp_path / "job")
    assert results.ended is None
    assert results.mastery.shape == (2, 4, 3)
    assert np.isnan(results.mastery[:, :2]).all()
    assert (results.episodes[:, :2] == 0).all()
    (place,) = find_places([tmp_path / "job"])[0]
    entry = data.job_entry(place)
    assert (entry["state"], entry["frames"], entry["total"]) == ("stopped", 256, 512)
    save(from_results(results), tmp_path / "curves.npz")  # as after `mastery paper --cluster`
    assert (load(tmp_path / "curves.npz").mastery[:, :2] == 0).all()
    (note,) = entry["notes"]
    assert note.startswith("Runs 0 to 1 (mr; seeds 0 to 1) are at 0 frames")
    assert data.job_curves(place)["mastery"].shape == (4, 3, 2)


def test_to_stop_one_part_is_to_stop_the_job(tmp_path):
    create_parts(job(), tmp_path / "job", 2)
    outcome = resume(tmp_path / "job", TrainOptions(stop=lambda: True))
    assert (outcome.ended, outcome.interrupted) == (None, False)
    assert [len(load_results(part).steps) for part in parts_of(tmp_path / "job")] == [1, 0]


def test_on_a_cluster_the_outcome_is_what_was_saved_and_not_what_was_shown(
    trained, tmp_path, monkeypatch
):
    """A part shows its progress twice a second at most, and its last may be lost on the way."""
    parts = create_parts(job(), tmp_path / "job", 3)

    def train_parts(*given):
        for part, done in zip(parts, parts_of(trained[0]), strict=True):
            shutil.copytree(done, part.directory, dirs_exist_ok=True)
            yield part, Trained(part.directory, 4, "trained", False)

    monkeypatch.setattr(cluster, "train_parts", train_parts)
    work = cluster.Work(tmp_path / "job", job(), parts)
    outcome = cluster._one(None, work, TrainOptions())
    assert (outcome.update, outcome.ended) == (4, "trained 512 frames per run")


def test_training_goes_on_when_nobody_reads_its_progress_any_more(trained, monkeypatch):
    """As after `mastery train … --cluster ADDRESS | head`."""
    work, told = cluster.Work(trained[0], *parts_to_resume(trained[0])), []
    progress = Together(*work[1:]).whole()

    def gone(progress):
        told.append(progress)
        raise BrokenPipeError

    def train_parts(*given):
        for part in work.parts:
            yield part, progress
            yield part, Trained(part.directory, 4, "trained", False)

    monkeypatch.setattr(cluster, "train_parts", train_parts)
    assert cluster._one(None, work, TrainOptions(report=gone)).update == 4
    assert len(told) == 1


def test_where_curves_cannot_be_saved_the_other_jobs_of_the_paper_go_on(folder, tmp_path):
    """On a cluster, where an error here would end all parts."""
    (tmp_path / "curves").write_text("mine")
    outcome = Trained(folder, 4, "trained", False)
    assert "cannot write to" in _kept(folder, tmp_path, 1.0, outcome)
    assert _kept(folder, tmp_path, 1.0, "it failed") == "it failed"
    (tmp_path / "curves").unlink()
    assert _kept(folder, tmp_path, 1.0, outcome) is outcome
    assert (tmp_path / "curves" / "job.npz").exists()


@pytest.mark.slow
def test_a_longer_job_is_a_longer_job_of_each_part(folder, tmp_path):
    resume(folder, frames=768)
    train(job(frames=768), tmp_path / "longer")
    a, b = load_results(tmp_path / "longer"), load_results(folder)
    np.testing.assert_array_equal(a.mastery, b.mastery)
    assert read_job(folder) == read_job(tmp_path / "longer") == job(frames=768)
    with pytest.raises(MasteryError, match="already trained 768 frames per run, and only 512"):
        resume(folder, frames=512)
    assert read_job(folder).frames == 768


def test_parts_can_be_read_on_another_machine(folder):
    """They have no write-ahead log, which needs memory that writers and readers share."""
    for part in parts_of(folder):
        with sqlite3.connect(part / "run.db") as db:
            assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        db.close()
    with Store(parts_of(folder)[0]):  # also once it was resumed
        assert not (parts_of(folder)[0] / "run.db-wal").exists()


def test_a_transaction_that_was_killed_is_undone_for_readers(folder, tmp_path):
    """Some of it is in run.db already; the journal has what was there before."""
    part, copy = parts_of(folder)[0], tmp_path / "copy"
    copy.mkdir()
    with contextlib.closing(sqlite3.connect(part / "run.db", isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")  # pages are written before the transaction ends
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE training SET mastery = -1")
        db.execute("UPDATE job SET ended = NULL")
        db.execute("CREATE TABLE more AS SELECT * FROM training, chunks")
        for name in ("run.db", "run.db-journal"):
            shutil.copy(part / name, copy / name)
        db.execute("ROLLBACK")
    a, b = load_results(part), load_results(copy)
    np.testing.assert_array_equal(a.mastery, b.mastery)
    assert a.ended == b.ended


def test_a_folder_that_is_not_what_it_should_be(folder):
    with pytest.raises(MasteryError, match="already holds a job; continue it with --resume"):
        create_parts(job(), folder, 2)
    marker = folder / "parts.json"
    content = json.loads(marker.read_text())
    assert find_part(folder, 3) == (folder / "parts" / "2", 1)
    assert read_split(folder).job == content["job"]
    for broken, message in (
        ("{", "damaged"),
        (json.dumps(content | {"format": 2}), "has format 2, but this mastery reads format 1"),
        (json.dumps(content | {"runs": []}), "damaged"),
        (json.dumps({"format": 1}), "damaged"),
    ):
        marker.write_text(broken)
        with pytest.raises(CheckpointError, match=message):
            load_results(folder)
        with pytest.raises(CheckpointError, match=message):
            resume(folder)
        assert message in list_jobs(folder)[0].state
        index = json.loads(Watched([folder.parent]).index()[0])
        assert [message in problem["text"] for problem in index["problems"]] == [True]


def test_parts_of_addition_end_when_their_own_runs_have_learned(tmp_path):
    """The last values of a part that has ended stay, also its last evaluation."""
    tasks = [Task("one", 0.0, 1.0, settings={"digits": 1})]
    adding = Job(Curriculum(tasks), programs=("mr",), seeds=2, frames=10_240, chunk=1)
    parts = create_parts(adding, tmp_path / "job", 2)
    for part, ends in zip(parts, (1, 3), strict=True):
        with Store(part.directory) as store:
            store.begin_session("", 0)
            for update in range(1, ends + 1):
                of_one = np.full((1, 1, 1), update / ends)
                metrics = Metrics(
                    *(of_one, of_one, np.ones((1, 1, 1), int), of_one, np.full((1, 1, 1), 1280)),
                    solved=np.array([[ends if update == ends else 0]]),
                )
                tested = Evaluation(*np.full((3, 1, 2, 1), update / ends))
                store.record(
                    update, 1.0, metrics, tested, ended="learned" if update == ends else None
                )
    results = load_results(tmp_path / "job")
    assert results.ended == "learned"
    assert results.solved.tolist() == [1280, 3840]
    assert results.mastery[:, :, 0].T.tolist() == [[1, 1, 1], [1 / 3, 2 / 3, 1]]
    assert from_results(results).sampled.tolist() == [[1], [1]]
