"""A run directory as data for the page: compared with run.db by SQL, and thinned without a loss
that matters."""

import base64
import contextlib
import functools
import json
import shutil
import sqlite3

import numpy as np
import pytest
from made_jobs import add_point, chain, make_job, write_job
from packed import unpack

from mastery import MasteryError
from mastery.page import data, thinned
from mastery.page import tail as page_tail
from mastery.page.data import TASKS, Tail, job_entry
from mastery.page.packing import pack
from mastery.page.places import Place, find_places
from mastery.page.thinned import POINTS, as_bytes, fitting_bins
from mastery.rundir.store import Store


def as_lists(x):
    return np.moveaxis(x, 0, 2).tolist()


job_curves = functools.partial(data.job_curves, numbers=as_lists)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return write_job(tmp_path_factory.mktemp("data") / "job")


def place(path):
    return Place(path, path.name)


def ask(directory, query, *values):
    uri = f"file:{directory}/run.db?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as db:
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
        "sum(return * episodes), max(step), 2 * count(*) FROM training GROUP BY 1, 2, 3",
    )
    for i, run, task, p, episodes, returns, last, updates in rows:
        assert curves["episodes"][run][task][i] == pytest.approx(episodes / updates, rel=0.01)
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


@pytest.mark.parametrize("tail", [None, Tail()], ids=["read anew", "kept"])
def test_a_page_that_follows_a_job_has_in_the_end_what_one_that_comes_late_has(tmp_path, tail):
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
            news = job_curves(place(tmp_path / "job"), *asked, tail=tail)
            if news["from"]:
                assert len(news["frames"]) <= 8
                upto = news["from"]
                for name in (
                    "frames",
                    "mastery",
                    "returns",
                    "share",
                    "probability",
                    "progress",
                    "episodes",
                ):
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


class Follower:
    """Who asks for what is new, and compares it with what is read without anything kept."""

    def __init__(self, path):
        self.path, self.tail, self.asked = path, Tail(), (None, 0, None)

    def look(self):
        found = job_curves(place(self.path), *self.asked, tail=self.tail)
        assert str(found) == str(job_curves(place(self.path), *self.asked))  # NaN equals NaN
        self.asked = (found["bins"], found["full"], found["sessions"])
        return found


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(thinned, "POINTS", 4)  # so that points are soon put together


def test_each_point_of_a_job_that_is_followed_is_read_once(tmp_path, few, monkeypatch):
    random, read = np.random.default_rng(1), []

    def counted(*given, **named):
        read.append(read_curves(*given, **named))
        return read[-1]

    read_curves, tail, asked = page_tail.read_curves, Tail(), (None, 0, None)
    monkeypatch.setattr(page_tail, "read_curves", counted)
    with Store(tmp_path / "job", make_job(seeds=1, points=32)) as store:
        store.begin_session("", 0)
        for point in range(1, 33):
            add_point(store, point, 32, random)
            if point < 17:
                continue  # from then on eight points are one
            found = job_curves(place(tmp_path / "job"), *asked, tail=tail)
            asked = (found["bins"], found["full"], found["sessions"])
    assert [len(curves.steps) for curves in read] == [17] + [1] * 15


def test_points_that_were_taken_back_are_not_kept(tmp_path, few):
    """As when a job is killed, and goes on from its last checkpoint."""
    random, follower = np.random.default_rng(1), Follower(tmp_path / "job")
    with Store(tmp_path / "job", make_job(seeds=1, points=32)) as store:
        store.begin_session("", 0)
        for point in range(1, 24):
            add_point(store, point, 32, random)
            follower.look()
        assert follower.asked == (3, 2, 1)  # and seven points that wait for the eighth
        store._delete_after(21)
        assert len(follower.look()["frames"]) == 1
        store.begin_session("", 21)
        assert follower.look()["from"] == 0
        for point in range(22, 33):
            add_point(store, point, 32, random)
            follower.look()
        store._delete_after(26)
        for point in range(27, 32):  # all of it between two looks, and without a session
            add_point(store, point, 64, random)
        store._db.execute("UPDATE chunks SET seconds = seconds + 0.25 WHERE step > 26")
        follower.look()


def test_points_of_a_directory_that_was_replaced_are_not_kept(tmp_path, few):
    path = write_job(tmp_path / "job", make_job(seeds=1, points=32), points=23, ended=None)
    follower = Follower(path)
    follower.look()
    shutil.rmtree(path)
    write_job(path, make_job(chain(7), ("mr",), seeds=4, points=32), points=23, ended=None)
    assert len(follower.look()["mastery"][0]) == 7
    shutil.rmtree(path)
    write_job(path, make_job(chain(7), ("mr",), seeds=4, points=32), points=23, ended=None)
    with contextlib.closing(sqlite3.connect(path / "run.db")) as db, db:
        db.execute("UPDATE chunks SET seconds = seconds * 1.01")  # it takes another time
        db.execute("UPDATE training SET mastery = 0.125")
    assert follower.look()["mastery"][0][0] == [0.125]


def test_a_page_that_is_behind_another_is_told_what_it_has_not(tmp_path, few):
    ahead = Follower(write_job(tmp_path / "job", make_job(seeds=1, points=32), points=23))
    ahead.look()
    behind = Follower(ahead.path)
    behind.tail, behind.asked = ahead.tail, (3, 1, 1)
    assert len(behind.look()["frames"]) == 2


def test_what_is_kept_of_a_description_is_that_of_the_description(tmp_path):
    path = write_job(tmp_path / "job", make_job(seeds=1, points=3), points=3)
    assert job_entry(place(path))["total"] == 3 * 16
    with Store(path) as store:
        store.change(make_job(seeds=1, points=9))
    assert job_entry(place(path))["total"] == 9 * 16
    shutil.rmtree(path)
    write_job(path, make_job(chain(5), ("uniform",), seeds=2, points=3), points=3)
    entry = job_entry(place(path))
    assert entry["curriculum"]["tasks"] == [f"t{i}" for i in range(5)]
    assert [program["label"] for program in entry["programs"]] == ["uniform"]
    assert entry["runs"] == [[0, 0], [0, 1]]
    with contextlib.closing(sqlite3.connect(path / "run.db")) as db, db:
        db.execute("UPDATE job SET job = '{}'")
    with pytest.raises(MasteryError, match="damaged"):
        job_entry(place(path))
    with pytest.raises(MasteryError, match="damaged"):
        job_curves(place(path))


def test_bytes_are_the_same_numbers(job):
    plain, packed = job_curves(place(job)), job_curves(place(job), numbers=as_bytes)
    json.dumps(packed, allow_nan=False)  # it is JSON
    for name in ("probability", "share", "mastery", "progress", "returns", "episodes"):
        np.testing.assert_array_equal(_unpacked(packed[name]), plain[name])
    for policy, tests in plain["evaluations"].items():
        np.testing.assert_array_equal(
            _unpacked(packed["evaluations"][policy]["returns"]), tests["returns"]
        )
    assert np.isnan(plain["returns"]).any()


def _unpacked(sent):
    return np.frombuffer(base64.b64decode(sent["float64"]), "<f8").reshape(sent["shape"])


def test_a_page_is_never_too_large():
    assert fitting_bins(500, 100, 6) == 2
    assert fitting_bins(0, 1, 1) == fitting_bins(POINTS, 1, 1) == 0
    for points, runs, tasks in ((500, 100, 6), (10**6, 1, 3), (5000, 200, 200), (17, 1000, 200)):
        shown = -(-points // 2 ** fitting_bins(points, runs, tasks))
        assert shown * runs * tasks <= max(thinned.CELLS, thinned.FEWEST * runs * tasks)
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
    with contextlib.closing(sqlite3.connect(job / "run.db")) as db, db:
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
        return "damaged or not from mastery"
    query, said = {
        "old": (
            "UPDATE job SET format = 1",
            "has format 1, but this mastery reads formats 2 to 6",
        ),
        "unborn": ("DROP TABLE job", "it was stopped before it started"),
        "half": ("UPDATE job SET job = '{'", "damaged"),
    }[how]
    with contextlib.closing(sqlite3.connect(path / "run.db")) as db, db:
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


@pytest.mark.parametrize(
    ("numbers", "size", "exact"),
    [
        ([0.1234, 1.0, np.nan, 0.0], 2, True),
        ([12.5, -3.25, np.nan, 30000.0], 4, True),  # too large for two bytes with two decimals
        ([1e-9, -2.5e-7, np.nan, 0.3], 4, False),  # too many decimals: float32
        ([np.nan] * 4, 2, True),
    ],
)
def test_arrays_are_packed_and_found_again(numbers, size, exact):
    x = np.array(numbers).reshape(1, 2, 2)
    document = {"a": {"b": x}, "frames": [1, 2], "c": x[..., :1], "text": "ä"}
    data = pack(document)
    found = unpack(data)
    for given, restored in ((x, found["a"]["b"]), (x[..., :1], found["c"])):
        np.testing.assert_allclose(restored, given, rtol=1e-12 if exact else 1e-6)
    assert (found["frames"], found["text"]) == ([1, 2], "ä")
    head = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
    assert head["a"]["b"]["packed"][1] == size
