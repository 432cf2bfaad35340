"""A run directory as data for the page: compared with run.db by SQL, and thinned without a loss
that matters."""

import json
import sqlite3

import numpy as np
import pytest
from made_jobs import add_point, chain, make_job, write_job

from mastery import MasteryError
from mastery.page import data
from mastery.page.data import POINTS, TASKS, fitting_bins, job_curves, job_entry
from mastery.page.found import Place, find_places
from mastery.runs.store import Store


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return write_job(tmp_path_factory.mktemp("data") / "job")


def place(path):
    return Place(path, path.name)


def ask(directory, query, *values):
    with sqlite3.connect(f"file:{directory}/run.db?mode=ro", uri=True) as db:
        return db.execute(query, values).fetchall()


def test_every_number_of_a_short_job_is_the_one_in_the_database(job):
    curves = job_curves(place(job))
    assert (curves["bins"], curves["from"], curves["full"]) == (0, 0, 24)
    assert curves["frames"] == [n for (n,) in ask(job, "SELECT frames FROM chunks ORDER BY step")]
    for step, run, task, p, m, frames, n, mean, beta in ask(job, "SELECT * FROM training"):
        at = lambda name: curves[name][run][task][step - 1]  # noqa: B023, E731
        assert at("probability") == pytest.approx(p, abs=1e-4)
        assert at("mastery") == pytest.approx(m, abs=1e-4)
        assert at("progress") == pytest.approx(beta, rel=1e-3)
        if n:
            assert at("returns") == pytest.approx(mean, abs=1e-3)
        else:
            assert np.isnan(at("returns"))
        query = "SELECT sum(frames) FROM training WHERE step = ? AND run = ?"
        ((total,),) = ask(job, query, step, run)
        assert at("share") == pytest.approx(frames / total, abs=1e-4)
    for step, run, task, policy, score, _, _ in ask(job, "SELECT * FROM evaluation"):
        found = curves["evaluations"][policy]
        assert found["returns"][run][task][found["frames"].index(16 * step)] == pytest.approx(
            score, abs=1e-3
        )


def test_what_is_put_together_is_as_by_sql(tmp_path):
    job = write_job(tmp_path / "long", make_job(seeds=1, chunk=2), points=POINTS + 31)
    curves = job_curves(place(job))
    assert curves["bins"] == 1
    assert len(curves["frames"]) == len(curves["mastery"][0][0]) == (POINTS + 31 + 1) // 2
    rows = ask(
        job,
        "SELECT (step / 2 - 1) / 2, run, task, avg(probability), sum(episodes), "
        "sum(return * episodes), max(step) FROM training GROUP BY 1, 2, 3",
    )
    for i, run, task, p, episodes, returns, last in rows:
        assert curves["probability"][run][task][i] == pytest.approx(p, abs=1e-4)
        ((m,),) = ask(
            job,
            "SELECT mastery FROM training WHERE step = ? AND run = ? AND task = ?",
            last, run, task,
        )  # fmt: skip
        assert curves["mastery"][run][task][i] == pytest.approx(m, abs=1e-4)
        if episodes:
            assert curves["returns"][run][task][i] == pytest.approx(returns / episodes, abs=1e-3)
    assert curves["frames"][-1] == 2 * 16 * (POINTS + 31)


def test_a_page_that_follows_a_job_has_in_the_end_what_one_that_comes_late_has(tmp_path):
    """It asks for what is new, from its last full point on, while 2^k becomes larger."""
    random, points = np.random.default_rng(1), POINTS + 40
    with Store(tmp_path / "job", make_job(seeds=1, points=points)) as store:
        store.begin_session("", 0)
        had = job_curves(place(tmp_path / "job"))
        anew = 0
        for point in range(1, points + 1):
            add_point(store, point, points, random)
            if point % 7 and point < points:
                continue
            asked = (had["bins"], had["full"], had["sessions"])
            news = job_curves(place(tmp_path / "job"), *asked)
            if news["from"]:
                assert len(news["frames"]) <= 8
                upto = news["from"]
                for name in ("frames", "mastery", "returns", "share", "probability", "progress"):
                    news[name] = _joined(had[name], news[name], upto)
            else:
                anew += 1
            had = news
        assert anew == 2  # at first, and when two points became one
        whole = job_curves(place(tmp_path / "job"))
        for name in ("frames", "mastery", "share", "probability", "progress", "full", "bins"):
            assert had[name] == whole[name]
        np.testing.assert_array_equal(had["returns"], whole["returns"])
        store.begin_session("", points)  # resumed: what was there may have been taken back
        assert job_curves(place(tmp_path / "job"), *asked)["from"] == 0


def _joined(old, new, upto):
    if not isinstance(new[0], list):
        return old[:upto] + new
    return [_joined(a, b, upto) for a, b in zip(old, new, strict=True)]


def test_a_page_is_never_too_large():
    assert fitting_bins(500, 100, 6) == 2
    assert fitting_bins(0, 1, 1) == fitting_bins(POINTS, 1, 1) == 0
    for points, runs, tasks in ((500, 100, 6), (10**6, 1, 3), (5000, 200, 200), (17, 1000, 200)):
        shown = -(-points // 2 ** fitting_bins(points, runs, tasks))
        assert shown * runs * tasks <= max(data.CELLS, data.FEWEST * runs * tasks)
        assert shown <= POINTS


def test_the_entry_tells_how_the_job_stands(tmp_path, job):
    entry = job_entry(place(job))
    assert entry["state"] == "finished"
    assert entry["ended"] == "all frames are done"
    assert (entry["frames"], entry["total"], entry["points"]) == (384, 384, 24)
    assert entry["speed"] == pytest.approx(16 * 6 / 0.5)  # six runs
    assert entry["checkpoint"]["step"] == 24
    assert [p["label"] for p in entry["programs"]] == ["mr", "uniform"]
    assert entry["runs"] == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert entry["curriculum"]["edges"] == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert entry["programs"][0]["settings"]["delta"] == 0.6
    assert entry["notes"] == []
    json.dumps(data.index([entry], [], live=False), allow_nan=False)  # it is JSON
    with Store(tmp_path / "now", make_job()):
        now = job_entry(place(tmp_path / "now"))
        assert (now["state"], now["frames"], now["speed"]) == ("training", 0, None)


def test_the_first_of_very_many_tasks(tmp_path):
    the_job = make_job(chain(TASKS + 300), ("mr",), seeds=1, points=3)
    entry = job_entry(place(write_job(tmp_path / "many", the_job, points=3)))
    assert len(entry["curriculum"]["tasks"]) == len(entry["curriculum"]["places"]) == TASKS
    assert entry["curriculum"]["count"] == TASKS + 300
    assert "The first 200 of 500 tasks are shown" in entry["notes"][0]
    curves = job_curves(place(tmp_path / "many"))
    assert len(curves["mastery"][0]) == TASKS


def test_a_job_of_format_2_says_what_is_missing(tmp_path):
    job = write_job(tmp_path / "old")
    with sqlite3.connect(job / "run.db") as db:
        db.execute("ALTER TABLE training DROP COLUMN progress")
        db.execute("UPDATE job SET format = 2")
    assert "Learning progress β was not kept" in job_entry(place(job))["notes"][0]
    assert "progress" not in job_curves(place(job))
    assert len(job_curves(place(job))["mastery"]) == 6


def harm(path, how):
    """A run directory as it should not be; gives what is said of it."""
    if how == "empty":
        path.mkdir()
        return "there is no training job in it yet"
    write_job(path, make_job(seeds=1, points=3), points=3)
    if how == "cut":
        content = (path / "run.db").read_bytes()
        for beside in path.glob("run.db-*"):
            beside.unlink()
        (path / "run.db").write_bytes(content[: len(content) // 2])
        return "damaged"
    if how == "garbage":
        (path / "run.db").write_text("not a database")
        return "damaged, or mastery did not write it"
    query, said = {
        "old": (
            "UPDATE job SET format = 1",
            "is of format 1, and this mastery reads formats 2 and 3",
        ),
        "unborn": ("DROP TABLE job", "it was stopped before it began"),
        "half": ("UPDATE job SET job = '{'", "damaged"),
    }[how]
    with sqlite3.connect(path / "run.db") as db:
        db.execute(query)
    return said


HARMS = ("empty", "cut", "garbage", "old", "unborn", "half")


@pytest.mark.parametrize("how", HARMS)
def test_what_cannot_be_read_is_told_and_the_rest_is_shown(tmp_path, job, how):
    said = harm(tmp_path / "bad", how)
    places, problems = find_places([job, tmp_path / "bad"])
    entries, unread = data.read_entries(places)
    assert [entry["name"] for entry in entries] == ["job"]
    (problem,) = [*problems, *unread]
    assert said in problem.text
    assert str(tmp_path / "bad") in problem.path + problem.text


def test_links_that_lead_out_are_left_out(tmp_path, job):
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "link").symlink_to(job)
    inside = folder / "inside"
    inside.mkdir()
    (inside / "run.db").symlink_to(job / "run.db")
    places, problems = find_places([folder])
    assert places == []
    assert [problem.text for problem in problems] == [
        "a link in it leads out of the folder that was given; give it by itself"
    ] * 2
    assert [p.name for p in find_places([folder / "link"])[0]] == ["job"]  # given by itself


def test_a_folder_gives_its_jobs_each_once_and_names_them_apart(tmp_path):
    for name in ("a/job", "b/job", "a/other"):
        (tmp_path / name).mkdir(parents=True)
        write_job(tmp_path / name, make_job(seeds=1, points=2), points=2)
    places, problems = find_places([tmp_path / "a", tmp_path / "b", tmp_path / "a" / "job"])
    assert [p.name for p in places] == [
        str(tmp_path / "a" / "job"), "other", str(tmp_path / "b" / "job"),
    ]  # fmt: skip
    assert len({p.key for p in places}) == 3
    assert problems == []
    with pytest.raises(MasteryError, match="not a run directory"):
        job_entry(place(tmp_path))
