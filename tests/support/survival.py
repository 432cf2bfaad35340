"""Jobs that run as processes, are killed, and must end as if nothing had happened."""

import contextlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

from mastery import MasteryError
from mastery.training.job import read_job


def command(*arguments):
    return [sys.executable, "-m", "mastery", *map(str, arguments)]


def run(environment, *arguments, rc=0, prefix=()):
    result = subprocess.run(
        [*prefix, *command(*arguments)],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == rc, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout if rc == 0 else result.stderr


def everything(directory):
    """All that a job has found out: its curves, the bytes of its last checkpoint, its agents."""
    with contextlib.closing(sqlite3.connect(directory / "run.db")) as db:
        found = [
            db.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
            for table in ("training", "measures", "evaluation", "solved")
        ]
        (file,) = db.execute("SELECT file FROM checkpoints ORDER BY step DESC LIMIT 1").fetchone()
        steps = db.execute("SELECT step, frames FROM chunks ORDER BY step").fetchall()
        agents = db.execute("SELECT step, file FROM agents ORDER BY step").fetchall()
    found.append({name: (directory / "agents" / name).read_bytes() for _, name in agents})
    return steps, found, (directory / "checkpoints" / file).read_bytes()


def go_on(environment, directory, job):
    """Resume a job, or begin it if it was killed before it was written down."""
    try:
        read_job(directory)
        what = command("train", "--resume", directory, "--save-every", "0.2")
    except MasteryError:
        what = command(*job, "--out", directory)
    return subprocess.Popen(
        what,
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def killed(environment, directory, kills, seconds, expected, seed, job):
    """Kill a job at so many random instants, and begin anew whenever it got to its end."""
    chance = random.Random(seed)
    ends = 0
    while kills or not ends:
        process = go_on(environment, directory, job)
        try:
            process.wait(chance.uniform(0, seconds) if kills else 300)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills -= 1
            continue
        output = process.communicate()[0]
        assert process.returncode == 0, output
        assert everything(directory) == expected
        left = {path.name for path in directory.glob("agents/*")}
        assert left == set(expected[1][-1])
        shutil.rmtree(directory)
        ends += 1
    return ends


def duration(environment, directory, job):
    start = time.monotonic()
    run(environment, *job, "--out", directory)
    return time.monotonic() - start
