"""What is recorded is what the loop saw, whatever happens to the process."""

import contextlib
import copy
import gc
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from loops import make_teacher, play, rows

import mastery
from mastery.recording import recorder as recorder_module
from mastery.rundir.database import is_training
from mastery.rundir.results import list_jobs, load_results

HERE = Path(__file__).parent


def test_numbers_are_those_of_the_loop(tmp_path):
    """The first 512 updates are a point each; then two are one."""
    teacher, seen = make_teacher(), []
    recorder = mastery.record(teacher, tmp_path / "mine")
    names = teacher.curriculum.names
    for step in range(600):
        probability, task, score = teacher.distribution.copy(), teacher.sample(), step / 600
        teacher.update({task: [score, 0.0]}, cost={task: 5})
        explained = teacher.explain()
        seen.append((probability, names.index(task), score / 2, explained))
    recorder.close()
    found = load_results(tmp_path / "mine")
    assert found.steps.tolist() == [*range(1, 513), *range(514, 601, 2)]
    assert found.frames.tolist() == [5 * step for step in found.steps]
    for point, (probability, task, mean, explained) in enumerate(seen[:512]):
        assert np.array_equal(found.probability[point, 0], probability)
        assert np.array_equal(found.mastery[point, 0], explained.mastery)
        assert np.array_equal(found.progress[point, 0], explained.progress)
        assert found.returns[point, 0, task] == pytest.approx(mean, abs=1e-15)
        assert found.episodes[point, 0].tolist() == [2 * (i == task) for i in range(3)]
        assert found.played[point, 0].tolist() == [5 * (i == task) for i in range(3)]
    for point, (first, second) in enumerate(zip(seen[512::2], seen[513::2], strict=True), 512):
        assert found.probability[point, 0] == pytest.approx((first[0] + second[0]) / 2)
        assert np.array_equal(found.mastery[point, 0], second[3].mastery)
        if first[1] == second[1]:
            expected = (first[2] + second[2]) / 2
            assert found.returns[point, 0, first[1]] == pytest.approx(expected)
    assert np.isnan(found.returns[0, 0]).sum() == 2
    assert (found.unit, found.score, found.total) == ("frames", "return", None)
    assert found.ended == "the loop ended"


def test_without_costs_each_return_counts_one(tmp_path):
    teacher = make_teacher()
    with mastery.record(teacher, tmp_path, score="accuracy", total=100, label="mine"):
        teacher.update({"easy": [0.1, 0.2, 0.3], "hard": 0.5})
    found = load_results(tmp_path)
    assert (found.unit, found.score, found.total) == ("returns", "accuracy", 100)
    assert found.frames.tolist() == [4]
    assert found.played.tolist() == [[[3, 0, 1]]]
    assert found.returns[0, 0, 0] == pytest.approx(0.2)
    assert found.labels == ("mine",)


def test_costs_may_be_fractions(tmp_path):
    teacher = make_teacher()
    with mastery.record(teacher, tmp_path, unit="seconds"):
        teacher.update({"easy": 1.0}, cost={"easy": 0.25})
        teacher.update({"easy": 1.0, "hard": 0.0}, cost={"easy": 0.25, "hard": 0.25})
    found = load_results(tmp_path)
    assert found.frames.tolist() == [0.25, 0.75]
    assert found.share[1, 0].tolist() == [0.5, 0.0, 0.5]


def test_each_return_of_a_teacher_per_episode_is_a_time_step(tmp_path):
    teacher = make_teacher(per_episode=True)
    with mastery.record(teacher, tmp_path):
        teacher.update({"easy": [0.1, 0.2, 0.3]})
        teacher.update({"easy": 0.4})
    found = load_results(tmp_path)
    assert found.steps.tolist() == [3, 4]
    assert found.episodes[:, 0, 0].tolist() == [3, 1]


def test_evaluations_notes_and_scalars(tmp_path):
    teacher = make_teacher()
    with mastery.record(teacher, tmp_path) as recorder:
        recorder.evaluate({"easy": 0.0})
        teacher.update({"easy": 0.5})
        recorder.log(loss=2.0, entropy=np.float32(0.5))
        recorder.log(loss=4.0, broken=float("nan"))
        recorder.note("halved the learning rate")
        teacher.update({"easy": 0.5})
        recorder.evaluate({"easy": 0.25, "hard": 0.125})
    found = load_results(tmp_path)
    tested = found.evaluations["evaluation"]
    assert tested.frames.tolist() == [0, 2]
    assert np.array_equal(
        tested.returns[:, 0], [[0, np.nan, np.nan], [0.25, np.nan, 0.125]], equal_nan=True
    )
    assert {name: x.values.tolist() for name, x in found.scalars.items()} == {
        "loss": [[3.0]],
        "entropy": [[0.5]],
    }
    assert found.scalars["loss"].frames.tolist() == [1]
    (remark,) = found.remarks
    assert (remark.run, remark.frames, remark.text) == (0, 1, "halved the learning rate")


def test_a_program_of_your_own_is_recorded(tmp_path):
    built = mastery.Recipe.parse("mr").build(make_teacher().curriculum)
    teacher = make_teacher(program=built)
    with mastery.record(teacher, tmp_path):
        teacher.update({"easy": 0.5})
    (job,) = list_jobs(tmp_path)
    assert job.programs[0].startswith("Program")


def test_what_is_wrong_is_named_and_nothing_is_recorded(tmp_path):
    teacher = make_teacher()
    with pytest.raises(mastery.MasteryError, match="needs a Teacher"):
        mastery.record(None, tmp_path)
    with pytest.raises(mastery.MasteryError, match="seed is -1"):
        mastery.record(teacher, tmp_path, seed=-1)
    (tmp_path / "file").write_text("")
    with pytest.raises(mastery.MasteryError, match="is a file"):
        mastery.record(teacher, tmp_path / "file")
    recorder = mastery.record(teacher, tmp_path / "mine")
    with pytest.raises(mastery.MasteryError, match="did you mean 'easy'"):
        recorder.evaluate({"eazy": 1.0})
    with pytest.raises(mastery.MasteryError, match="give one number"):
        recorder.evaluate({"easy": float("nan")})
    with pytest.raises(mastery.MasteryError, match="log takes numbers"):
        recorder.log(loss="high")
    with pytest.raises(mastery.MasteryError, match="must be a text"):
        recorder.note(3)
    with pytest.raises(mastery.MasteryError, match=r"is recorded in .* already"):
        mastery.record(teacher, tmp_path / "other")
    assert mastery.record(teacher, tmp_path / "mine") is recorder
    recorder.close()
    recorder.close()
    with pytest.raises(mastery.MasteryError, match="is closed"):
        recorder.log(loss=1.0)
    other = mastery.Teacher(mastery.Curriculum([mastery.Task("a", 0, 1)]), seed=0)
    with pytest.raises(mastery.MasteryError, match="another curriculum"):
        mastery.record(other, tmp_path / "mine")


def test_a_failed_update_is_not_recorded(tmp_path):
    teacher = make_teacher()
    with mastery.record(teacher, tmp_path):
        teacher.update({"easy": 0.5})
        with pytest.raises(mastery.ReturnsError):
            teacher.update({"easy": 0.5, "unknown": 1.0})
    assert load_results(tmp_path).steps.tolist() == [1]


def test_a_full_disk_ends_the_recording_and_not_the_training(tmp_path, monkeypatch):
    teacher, alone = make_teacher(), make_teacher()
    recorder = mastery.record(teacher, tmp_path)
    teacher.update({"easy": 0.5})
    recorder._part._db.execute("PRAGMA max_page_count = 1")  # no page more than there are
    monkeypatch.setattr(recorder_module, "EVERY", 0.0)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        play(teacher, 3000)
        recorder.note("unseen")
        recorder.evaluate({"easy": 1.0})
    assert ["training goes on" in str(w.message) for w in warned] == [True]
    alone.update({"easy": 0.5})
    play(alone, 3000)
    assert teacher.probabilities == alone.probabilities
    found = load_results(tmp_path)
    assert found.steps[0] == 1
    assert not found.training


def test_recording_does_not_change_the_teacher(tmp_path):
    recorded, alone = make_teacher(), make_teacher()
    with mastery.record(recorded, tmp_path):
        play(recorded, 300)
    play(alone, 300)
    assert recorded.probabilities == alone.probabilities


def test_copies_are_not_recorded(tmp_path):
    teacher = make_teacher()
    with mastery.record(teacher, tmp_path):
        for other in (copy.deepcopy(teacher), pickle.loads(pickle.dumps(teacher))):
            other.update({"easy": 1.0})
            assert other._observer is None
        teacher.update({"easy": 0.5})
    assert load_results(tmp_path).steps.tolist() == [1]


def test_threads_lose_nothing(tmp_path):
    teacher = make_teacher()
    recorder = mastery.record(teacher, tmp_path)

    def work():
        for _ in range(300):
            teacher.update({teacher.sample(): 0.5})
            recorder.log(loss=1.0)
            recorder.note("a thread")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    found = load_results(tmp_path)
    assert found.steps[-1] == found.episodes.sum() == 1200
    assert len(found.remarks) == 1200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_records_nothing(tmp_path):
    teacher = make_teacher()
    recorder = mastery.record(teacher, tmp_path)
    play(teacher, 10)
    child = os.fork()
    if child == 0:
        play(teacher, 500)
        recorder.flush()
        gc.collect()
        os._exit(teacher._observer is not None)
    assert os.waitpid(child, 0)[1] == 0
    assert is_training(recorder.directory)
    play(teacher, 20)
    recorder.close()
    assert load_results(tmp_path).steps[-1] == 20


def test_a_recorder_that_is_dropped_has_written(tmp_path):
    def loop():
        teacher = make_teacher()
        mastery.record(teacher, tmp_path)
        play(teacher, 100)

    loop()
    gc.collect()
    found = load_results(tmp_path)
    assert found.steps[-1] == 100
    assert not found.training


LOOP = """
import sys, time
from pathlib import Path
from loops import make_teacher, play
import mastery

folder, seed, how = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
teacher = make_teacher(seed)
recorder = mastery.record(teacher, folder)
if how == "kill":
    def at(step):
        if step in (500, 701):
            teacher.save(folder.parent / f"teacher-{step}")
        if step == 900:
            recorder.flush()
            print("ready", flush=True)
            time.sleep(60)
    play(teacher, 1000, recorder, at)
print("ready", flush=True)
sys.stdin.readline()
play(teacher, 300, recorder)
if how == "fail":
    raise RuntimeError
"""


def start(folder, seed, how):
    return subprocess.Popen(
        [sys.executable, "-c", LOOP, str(folder), str(seed), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=HERE,
    )


@pytest.mark.parametrize("step", [500, 701])
def test_killed_and_resumed_is_as_if_never_killed(tmp_path, step):
    """701 is inside a point, which covers 701 and 702."""
    straight = make_teacher(3)
    with mastery.record(straight, tmp_path / "straight") as recorder:
        play(straight, 1000, recorder)
    process = start(tmp_path / "killed", 3, "kill")
    assert process.stdout.readline() == "ready\n"
    assert is_training(tmp_path / "killed" / "mr-0")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    killed = load_results(tmp_path / "killed")
    assert killed.steps[-1] == 900
    assert not killed.training
    teacher = mastery.Teacher.load(tmp_path / f"teacher-{step}")
    with mastery.record(teacher, tmp_path / "killed") as recorder:
        play(teacher, 1000, recorder)
    found = rows(tmp_path / "killed" / "mr-0")
    expected = rows(tmp_path / "straight" / "mr-0")
    assert found == expected
    sessions = load_results(tmp_path / "killed").sessions
    assert [session.step for session in sessions] == [0, step]


def test_what_was_not_written_is_a_gap_and_said(tmp_path):
    teacher = make_teacher()
    with mastery.record(teacher, tmp_path):
        play(teacher, 100)
    play(teacher, 150)
    with mastery.record(teacher, tmp_path):
        play(teacher, 200)
    found = load_results(tmp_path)
    assert found.steps.tolist() == [*range(1, 101), *range(151, 201)]
    (remark,) = found.remarks
    assert "101 to 150 were not recorded" in remark.text


def test_a_teacher_that_goes_back_takes_its_recording_along(tmp_path):
    teacher = make_teacher()
    with mastery.record(teacher, tmp_path):
        play(teacher, 100)
        saved = teacher.state_dict()
        play(teacher, 200)
        teacher.load_state_dict(saved)
        play(teacher, 120)
    assert load_results(tmp_path).steps.tolist() == [*range(1, 121)]


def test_a_teacher_continues_its_own_run_among_others(tmp_path):
    teachers = [make_teacher(seed) for seed in range(3)]
    for teacher in teachers:
        with mastery.record(teacher, tmp_path):
            play(teacher, 50)
    with mastery.record(teachers[1], tmp_path) as recorder:
        assert recorder.directory == tmp_path / "mr-1"
    with pytest.raises(mastery.MasteryError, match="exists already"):
        mastery.record(make_teacher(), tmp_path, seed=2)
    twin = make_teacher(1)
    with mastery.record(twin, tmp_path, seed=7):
        play(twin, 60)
    with pytest.raises(mastery.MasteryError, match=r"mr-1 and .*mr-7 could both"):
        mastery.record(twin, tmp_path)
    with mastery.record(twin, tmp_path, seed=7) as recorder:
        assert recorder.directory == tmp_path / "mr-7"


def test_processes_side_by_side(tmp_path):
    """Four start at the same time, in the same folder."""
    processes = [start(tmp_path / "mine", seed, "end") for seed in range(4)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    assert load_results(tmp_path / "mine").training
    for process in processes:
        process.communicate("\n")
        assert process.returncode == 0
    found = load_results(tmp_path / "mine")
    assert found.seeds == (0, 1, 2, 3)
    assert found.mastery.shape[1:] == (4, 3)
    assert found.ended == "the loop ended"
    assert not found.training
    (job,) = list_jobs(tmp_path)
    assert (job.path, job.seeds) == (tmp_path / "mine", 4)


def test_a_loop_that_fails_is_not_finished(tmp_path):
    process = start(tmp_path / "mine", 0, "fail")
    process.communicate("\n")
    assert process.returncode == 1
    found = load_results(tmp_path / "mine")
    assert found.steps[-1] == 300
    assert found.ended is None


def test_the_folder_is_one_writer_each(tmp_path):
    teacher = make_teacher()
    with mastery.record(teacher, tmp_path):
        play(teacher, 10)
        twin = copy.deepcopy(teacher)
        with pytest.raises(mastery.MasteryError, match="is in use"):
            mastery.record(twin, tmp_path)


def test_it_is_written_within_a_second(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder_module, "EVERY", 0.0)
    teacher = make_teacher()
    with mastery.record(teacher, tmp_path) as recorder:
        play(teacher, 701)  # inside a point
        with contextlib.closing(sqlite3.connect(recorder.directory / "run.db")) as db, db:
            assert db.execute("SELECT max(step) FROM chunks").fetchone() == (701,)
        play(teacher, 702)
        with contextlib.closing(sqlite3.connect(recorder.directory / "run.db")) as db, db:
            last = db.execute("SELECT step FROM chunks ORDER BY step DESC LIMIT 2").fetchall()
    assert last == [(702,), (700,)]
