"""A job goes on after kills, full disks and damaged files, to the bit as if nothing had been.

Real processes that are really killed. Each starts Python and JAX anew, so there are few of them
here and many in the slow test.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from survival import command, duration, everything, killed, run

from mastery import Curriculum, MasteryError
from mastery.rundir.results import load_results
from mastery.training.job import Job
from mastery.training.train import resume, train

CURRICULUM = Curriculum.load("blocked-unlock-pickup")

RECURRENT = (
    "train", "blocked-unlock-pickup", "--program", "mr,uniform", "--frames", "25k",
    "--evaluate-every", "10k", "--episodes", "2", "--save-every", "0.2",
    "--set", "envs=4", "--set", "frames=64", "--set", "batch=128", "--set", "ahead=4",
)  # fmt: skip
SMALL = (  # half the time to compile
    *RECURRENT, "--set", "memory=none", "--frames", "15k", "--evaluate-every", "5k",
)  # fmt: skip
CHUNKS = 6  # of 10 updates of 4 · 64 frames
ADDITION = (
    "train", "addition-3", "--program", "mr,gprop-linreg", "--examples", "64k",
    "--evaluate-every", "20k", "--episodes", "20", "--save-every", "0.2",
    "--set", "batch=64", "--set", "width=16", "--set", "tests=20", "--set", "validation=20",
)  # fmt: skip


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """What is compiled once is not compiled again."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    few = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "COLUMNS": "200"}
    return {**os.environ, **cache, **few}


@pytest.fixture(scope="module")
def uninterrupted(environment, tmp_path_factory):
    directory = tmp_path_factory.mktemp("jobs") / "whole"
    run(environment, *SMALL, "--out", directory)
    found = everything(directory)
    assert len(found[0]) == CHUNKS
    assert len(found[1][0]) == CHUNKS * 2 * 3
    assert len(found[1][-1]) == CHUNKS + 1  # agents, also the untrained ones
    return directory, found


@pytest.fixture(scope="module")
def stopped(environment, uninterrupted, tmp_path_factory):
    directory = tmp_path_factory.mktemp("jobs") / "half"
    run(environment, *SMALL, "--out", directory, "--minutes", "0.0001")
    run(environment, "train", "--resume", directory, "--minutes", "0.0001")
    assert len(list((directory / "checkpoints").glob("*.ckpt"))) == 2
    return directory


@pytest.fixture
def half(stopped, tmp_path):
    """A job that has stopped on the way, with two checkpoints."""
    shutil.copytree(stopped, tmp_path / "half")
    return tmp_path / "half"


@pytest.mark.slow
def test_a_job_killed_at_random_instants_ends_the_same(environment, uninterrupted, tmp_path):
    _, expected = uninterrupted
    seconds = duration(environment, tmp_path / "timed", SMALL)
    assert everything(tmp_path / "timed") == expected  # two equal jobs are equal to the bit
    assert killed(environment, tmp_path / "job", 2, seconds, expected, 0, SMALL) >= 1


@pytest.mark.slow
def test_so_does_one_that_learns_to_add(environment, tmp_path):
    run(environment, *ADDITION, "--out", tmp_path / "whole")
    expected = everything(tmp_path / "whole")
    assert len(expected[0]) == 10
    seconds = duration(environment, tmp_path / "timed", ADDITION)
    assert everything(tmp_path / "timed") == expected
    ends = killed(environment, tmp_path / "job", 20, seconds, expected, 0, ADDITION)
    print(f"20 kills, {ends} jobs came to their end, each the same to the bit")


@pytest.mark.slow
def test_so_does_a_run_that_cores_share(environment, tmp_path):
    flags = f"{environment['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    shared = {**environment, "XLA_FLAGS": flags, "NPROC": "1"}
    job = tuple("mr" if word == "mr,gprop-linreg" else word for word in ADDITION)
    run(shared, *job, "--out", tmp_path / "whole")
    assert load_results(tmp_path / "whole").sessions[-1].hardware["devices"] == 2
    expected = everything(tmp_path / "whole")
    seconds = duration(shared, tmp_path / "timed", job)
    assert everything(tmp_path / "timed") == expected
    ends = killed(shared, tmp_path / "job", 10, seconds, expected, 0, job)
    print(f"10 kills, {ends} jobs came to their end, each the same to the bit")


@pytest.mark.slow
def test_a_job_killed_at_fifty_random_instants_ends_the_same(environment, tmp_path):
    run(environment, *RECURRENT, "--out", tmp_path / "whole")
    expected = everything(tmp_path / "whole")
    seconds = duration(environment, tmp_path / "timed", RECURRENT)
    ends = killed(environment, tmp_path / "job", 50, seconds, expected, 1, RECURRENT)
    print(f"50 kills, {ends} jobs came to their end, each the same to the bit")


def test_ctrl_c_saves_and_says_how_to_go_on(environment, uninterrupted, tmp_path):
    directory = tmp_path / "job"
    process = subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.signal(signal.SIGINT, "
         "signal.default_int_handler); import sys; from mastery.__main__ import main; "
         "sys.argv[0] = 'mastery'; main()", *SMALL, "--out", str(directory)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 240
    while not list(directory.glob("checkpoints/*.ckpt")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 130, output
    assert "progress is saved" in output
    told = re.search(r"mastery train --resume (\S+)", output)
    assert told, output
    assert Path(told[1]).resolve() == directory.resolve()  # from here, if that is shorter
    rest = run(environment, "train", "--resume", directory)
    assert "Done: trained 15,360 frames per run." in rest
    assert everything(directory) == uninterrupted[1]


def test_a_damaged_checkpoint_falls_back_to_the_one_before(environment, uninterrupted, half):
    last = max((half / "checkpoints").glob("*.ckpt"))
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 1
    last.write_bytes(content)
    result = subprocess.run(
        command("train", "--resume", half), env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "is damaged" in result.stderr
    assert "using the previous checkpoint, of update 10" in result.stderr
    assert everything(half) == uninterrupted[1]


def test_a_full_disk_loses_nothing(environment, uninterrupted, half):
    """A limit on the size of files: writing fails in the midst of a checkpoint, as on a full
    disk."""
    before = everything(half)
    limit = ("bash", "-c", 'ulimit -f 256; exec "$@"', "bash")
    message = run(environment, "train", "--resume", half, rc=2, prefix=limit)
    assert "cannot write" in message
    assert "File too large" in message
    assert "Resume with" in message
    assert everything(half)[2] == before[2]
    run(environment, "train", "--resume", half)
    assert everything(half) == uninterrupted[1]


def test_a_place_that_cannot_be_written_to(environment, tmp_path):
    message = run(environment, *SMALL, "--out", "/proc/mastery-job", rc=2)
    assert "cannot write to /proc/mastery-job" in message
    (tmp_path / "file").write_text("")
    with pytest.raises(MasteryError, match="is a file; choose a new or empty folder"):
        train(Job(CURRICULUM), tmp_path / "file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    with pytest.raises(MasteryError, match="is not empty"):
        train(Job(CURRICULUM), tmp_path / "full")
    with pytest.raises(MasteryError, match="is not a run directory"):
        resume(tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.tex"]


# root may write anywhere, unless this right is taken away
ROOT = getattr(os, "geteuid", lambda: 1)() == 0
PLAIN = ("setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override") if ROOT else ()


@pytest.mark.skipif(ROOT and not shutil.which("setpriv"), reason="root, and there is no setpriv")
def test_a_read_only_directory(environment, uninterrupted, tmp_path):
    directory = tmp_path / "job"
    shutil.copytree(uninterrupted[0], directory)
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o500 if path.is_dir() else 0o400)
    message = run(
        environment, "train", "--resume", directory, "--frames", "90k", rc=2, prefix=PLAIN
    )
    assert "cannot write" in message
    assert everything(directory) == uninterrupted[1]


def test_a_directory_in_use_and_one_that_is_taken(environment, uninterrupted):
    directory, expected = uninterrupted
    lock = sqlite3.connect(directory / "lock", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    message = run(environment, "train", "--resume", directory, "--frames", "90k", rc=2)
    assert "is in use: another process is training in it" in message
    lock.close()
    with pytest.raises(MasteryError, match="already holds a job; continue it with --resume"):
        train(Job(CURRICULUM), directory)
    assert everything(directory) == expected


def test_another_device_is_refused_unless_one_says_so(environment, uninterrupted, half):
    with contextlib.closing(sqlite3.connect(half / "run.db")) as db, db:
        db.execute("UPDATE sessions SET hardware = replace(hardware, 'cpu', 'NVIDIA H200')")
        db.execute("""UPDATE sessions SET versions = replace(versions, '"jax": "', '"jax": "0.')""")
        # one that mastery has used, and used to name
        db.execute(
            """UPDATE sessions SET versions = replace(versions, '{', '{"optax": "0.2.4", ')"""
        )
    before = everything(half)
    message = run(environment, "train", "--resume", half, rc=2)
    assert "was trained elsewhere: device 'NVIDIA H200', here 'cpu'" in message
    assert "--elsewhere" in message
    assert everything(half) == before
    result = subprocess.run(
        command("train", "--resume", half, "--elsewhere", "--minutes", "0.0001"),
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "other versions than before: jax 0." in result.stderr
    assert "optax" not in result.stderr


@pytest.mark.slow
def test_more_devices_than_before_give_the_same_bits(environment, uninterrupted, half):
    flags = f"{environment['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    run({**environment, "XLA_FLAGS": flags, "NPROC": "1"}, "train", "--resume", half)
    sessions = load_results(half).sessions
    assert [session.hardware["devices"] for session in sessions] == [1, 1, 2]
    assert everything(half) == uninterrupted[1]


def test_a_job_can_be_made_longer_but_not_shorter(environment, uninterrupted, tmp_path):
    directory = tmp_path / "job"
    shutil.copytree(uninterrupted[0], directory)
    message = run(environment, "train", "--resume", directory, "--frames", "10k", rc=2)
    assert "already trained 15,360 frames per run, and only 10,000 are asked for" in message
    assert "Done" in run(environment, "train", "--resume", directory, "--frames", "17k")
    steps, (training, *_), _ = everything(directory)
    assert steps[:CHUNKS] == uninterrupted[1][0]
    assert len(steps) == CHUNKS + 1
    assert training[: CHUNKS * 6] == uninterrupted[1][1][0]


def test_the_live_view_in_a_terminal(environment, tmp_path):
    """One line a task, in a real terminal."""
    import pty

    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        command(*SMALL, "--frames", "5k", "--out", tmp_path / "job"),
        env={**environment, "TERM": "xterm-256color"},
        stdout=terminal, stderr=terminal, stdin=terminal, close_fds=True,
    )  # fmt: skip
    os.close(terminal)
    output = b""
    with contextlib.suppress(OSError):  # Linux says so at the end
        while part := os.read(controller, 65536):
            output += part
    assert process.wait(timeout=240) == 0, output.decode()
    text = output.decode()
    for words in ("compiling", "share of training", "BlockedUnlockPickup", "frames/s", "Done"):
        assert words in text, text
    assert Path(tmp_path / "job" / "run.db").exists()
