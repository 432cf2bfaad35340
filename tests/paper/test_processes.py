"""Several jobs at the same time, each in a process of its own, by the command line. (That they are
trained and drawn is checked in test_run.py.)"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from mastery.cli.paper import _one_by_one
from mastery.errors import MasteryError
from mastery.paper import processes
from mastery.paper.experiments import chosen
from mastery.rundir.results import load_results
from mastery.rundir.store import Store
from mastery.training.train import Trained, TrainOptions

LONG = ["addition-128", "obstructed-maze-today"]


@pytest.fixture
def started(monkeypatch):
    """On eight cores, with processes that end at once: the name and the devices of each."""
    found = []

    class Process:
        def __init__(self, target, args):
            self.events, self.part, self.folder, self.devices, *_ = args

        def start(self):
            found.append((self.part.name, self.devices))
            self.events.put((self.part.name, Trained(self.folder, 1, "done", False)))

        def join(self):
            pass

    monkeypatch.setattr(processes, "cores", lambda: 8)
    monkeypatch.setattr(processes, "_context", SimpleNamespace(Queue=queue.Queue, Process=Process))
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.9")
    return found


@pytest.mark.parametrize(
    ("names", "jobs", "devices"),
    [([], 3, 2), ([], 16, 1), (["addition"], 16, 2), (["addition-64"], 16, 8)],
)
def test_jobs_at_the_same_time_share_the_cores(tmp_path, started, names, jobs, devices):
    list(processes.together(chosen(names), tmp_path, jobs, print))
    assert len(started) == len(chosen(names))
    assert {found for _, found in started} == {devices}


def test_as_many_cores_as_before_where_they_share_a_run(tmp_path, monkeypatch, started):
    """addition-64, scaled down, is one run, of which two cores do half each."""
    part = chosen(["addition-64"])[0]
    job = part.job(0.01)
    assert [job.parts(n) for n in (1, 2, 3, 8)] == [1, 2, 2, 2]
    with Store(tmp_path / part.name, job) as store:
        store.begin_session("mastery paper", 0)
        assert store.last_hardware()["devices"] == 1
    list(processes.together([part], tmp_path, 4, print, scale=0.01))
    assert started == [("addition-64", 1)]
    alone = []
    monkeypatch.setattr("mastery.training.devices.cores", lambda: 8)
    monkeypatch.setattr("mastery.training.devices.prepare", alone.append)
    monkeypatch.setattr("mastery.paper.run.run", lambda *given, **options: ())
    for folder in (tmp_path, tmp_path / "new"):
        list(_one_by_one([part], folder, 0.01, TrainOptions()))
    assert alone == [1, 8]


def test_after_ctrl_c_the_jobs_of_one_program_all_save_before_the_command_ends(
    tmp_path, monkeypatch
):
    """Each saves in a thread of its own, which would end with the command."""
    parts, saved = chosen(["agents"]), []

    def side_by_side(group, *given):
        for part in group:
            saved.append(part)
            yield part, Trained(tmp_path, 1, None, interrupted=part is group[0])

    monkeypatch.setattr("mastery.training.devices.accelerated", lambda: True)
    monkeypatch.setattr("mastery.training.devices.prepare", lambda devices: None)
    monkeypatch.setattr("mastery.paper.side_by_side.groups", lambda *given: [parts[:2], parts[2:]])
    monkeypatch.setattr("mastery.cli.paper._side_by_side", side_by_side)
    ends = _one_by_one(parts, tmp_path, 0.01, TrainOptions())
    assert [part for part, _ in ends] == saved == parts[:2]


def test_one_job_of_each_learner_begins_first_and_then_the_longest(tmp_path, started):
    names = ["addition-64", "obstructed-maze", "key-corridor"]
    parts = [part for part in chosen(names) if "baselines" not in part.name]
    list(processes.together(parts, tmp_path, 2, print))
    assert [name for name, _ in started] == [
        "key-corridor-2018", "key-corridor-today", "addition-64",
        "obstructed-maze-2018", "obstructed-maze-today",
    ]  # fmt: skip


def test_ctrl_c_before_they_have_begun(tmp_path):
    with command(tmp_path) as process:
        wait_for(lambda: workers(process), process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "stopped; run the same command again to resume" in out
    assert not any((tmp_path / name).exists() for name in LONG)


@pytest.mark.slow
def test_what_ends_early_is_saved_and_goes_on(tmp_path):
    """A job dies, and the other goes on; Ctrl-C; all of it again; and then nobody is there."""
    with begun(tmp_path) as process:
        dies = workers(process)[0]
        before = [points(tmp_path / name) for name in LONG]
        os.kill(dies, signal.SIGKILL)
        wait_for(
            lambda: any(points(tmp_path / n) > b + 1 for n, b in zip(LONG, before, strict=True)),
            process,
        )
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        assert "its process ended with exit code -9; run the same command to resume" in err
        assert out.count("stopped; run the same command again to resume") == 1
        assert err.count("stopping after this chunk") == 1
    saved = [points(tmp_path / name) for name in LONG]
    with begun(tmp_path, [n + 1 for n in saved]) as process:
        both = workers(process)
        assert len(both) == 2
        process.kill()
        wait_for(lambda: not any(map(cmdline, both)))
    for name in LONG:
        assert load_results(tmp_path / name).ended is None
        assert list((tmp_path / name / "checkpoints").iterdir())


@contextlib.contextmanager
def command(folder):
    """It trains both jobs for long."""
    arguments = ["paper", *LONG, "--scale", "0.1", "--jobs", "2", "--out", str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "mastery", *arguments, "--save-every", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def begun(folder, least=(1, 1)):
    """The same, when each has written so many points."""
    with command(folder) as process:
        wait_for(
            lambda: all(points(folder / n) >= k for n, k in zip(LONG, least, strict=True)), process
        )
        yield process


def points(directory):
    try:
        return len(load_results(directory).steps)
    except MasteryError:  # it is not there yet
        return 0


def wait_for(done, process=None, seconds=240):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.1)


def workers(process):
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in found if "spawn_main" in cmdline(pid)]


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
