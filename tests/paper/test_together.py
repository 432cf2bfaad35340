"""Several jobs at the same time, each in a process of its own, by the command line."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import mastery

from mastery.errors import MasteryError
from mastery.paper.curves import load
from mastery.runs.results import load_results

NAMES = ["addition-64", "obstructed-maze-papers-agent"]
LONG = ["addition-128", "obstructed-maze-papers-agent"]


def test_both_are_trained_and_drawn(tmp_path):
    command = ["paper", *NAMES, "--scale", "0.001", "--jobs", "2", "--out", tmp_path]
    text = mastery(*command)
    done = [
        "addition-64: 6,400 examples a run are done",
        f"{NAMES[1]}: 20,480 frames a run are done",
    ]
    for line in (*done, "addition-64: 6.4k examples (100%)", f"{NAMES[1]}: 41k frames (100%)"):
        assert line in text  # progress too, with the job's name
    assert f"The page: {tmp_path / 'paper.html'}" in text
    assert [len(load(tmp_path / "curves" / f"{name}.npz").seeds) for name in NAMES] == [1, 2]
    again = mastery(*command)
    assert all(line in again for line in done)
    assert "(100%)" not in again  # there was nothing left to train


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
        assert "its process ended with exit code -9; the same command goes on" in err
        assert out.count("stopped; the same command goes on") == 1
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
def begun(folder, least=(1, 1)):
    """A command that trains both jobs for long, when each has written so many points."""
    arguments = ["paper", *LONG, "--scale", "0.2", "--jobs", "2", "--out", str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "mastery", *arguments, "--save-every", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(
            lambda: all(points(folder / n) >= k for n, k in zip(LONG, least, strict=True)), process
        )
        yield process
    finally:
        process.kill()
        process.communicate()


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
