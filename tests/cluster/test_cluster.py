"""A job on a Ray cluster of three nodes on this machine; with nodes that die, and that are unfit."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from small_cluster import SmallCluster, kill, mastery, trainer

from mastery import Curriculum, MasteryError, checkpoint
from mastery.rundir.parts import parts_of
from mastery.rundir.results import list_jobs, load_results
from mastery.training.job import Job

TINY = (
    "--evaluate-every", "2k", "--episodes", "2", "--save-every", "0", "--set", "envs=4",
    "--set", "frames=64", "--set", "batch=128", "--set", "ahead=4", "--set", "width=16",
    "--set", "memory=none",
)  # fmt: skip
SMALL = ("blocked-unlock-pickup", "--seeds", "3", "--frames", "5k", *TINY)
TWELVE = (
    "blocked-unlock-pickup", "--program", "mr,gprop-linreg,uniform", "--seeds", "4", "--frames",
    "60k", *TINY,
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    with SmallCluster(3) as cluster:
        yield cluster


def done(process, rc=0, seconds=300):
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == rc, out + err
    assert "Traceback" not in err
    return out + err


def train(*arguments, rc=0, **options):
    return done(mastery("train", *arguments, **options), rc)


def wait_for(what, process=None, seconds=240):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)


def points(part):
    with contextlib.suppress(MasteryError):
        return len(load_results(part).steps)
    return 0


def agents(directory):
    """The arrays of the last checkpoint: agents, optimisers, teachers, environments."""
    last = max((directory / "checkpoints").glob("*.ckpt"))
    return checkpoint.read(last, "mastery.runs")[1]


def assert_equal(whole, folder):
    """A job in parts is to the bit as one that was trained in one process."""
    a, b = load_results(whole), load_results(folder)
    for name in ("labels", "programs", "seeds", "changes", "ended", "curriculum", "unit", "total"):
        x, y = getattr(a, name), getattr(b, name)
        assert x == y or name == "curriculum" and x.fingerprint == y.fingerprint
    for name in (
        "steps", "frames", "probability", "mastery", "progress", "returns", "episodes", "played",
    ):  # fmt: skip
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)
    assert a.evaluations.keys() == b.evaluations.keys()
    for policy, found in a.evaluations.items():
        for x, y in zip(found, b.evaluations[policy], strict=True):
            np.testing.assert_array_equal(x, y, policy)
    one, each = agents(whole), [agents(part) for part in parts_of(folder)]
    for name, array in one.items():
        np.testing.assert_array_equal(array, np.concatenate([part[name] for part in each]), name)


def test_a_job_in_parts_is_one_job(cluster, tmp_path):
    text = train(*SMALL, "--out", tmp_path / "job", "--cluster", cluster.address)
    assert "Done: trained 5,120 frames per run." in text
    results = load_results(tmp_path / "job")
    assert results.seeds == (0, 1, 2)
    assert results.mastery.shape == (2, 3, 3)
    assert [load_results(part).seeds for part in parts_of(tmp_path / "job")] == [(0,), (1,), (2,)]
    (listed,) = list_jobs(tmp_path)
    assert (listed.seeds, listed.frames, listed.state[:8]) == (3, 5120, "finished")
    # one more chunk, here
    text = train("--resume", tmp_path / "job", "--frames", "7k")
    assert "Done: trained 7,680 frames per run." in text


def test_a_node_that_is_not_fit_is_named(cluster, tmp_path):
    """It has another version of NumPy; and does not see the folder."""
    (tmp_path / "numpy-0.0.1.dist-info").mkdir()
    (tmp_path / "numpy-0.0.1.dist-info" / "METADATA").write_text("Name: numpy\nVersion: 0.0.1\n")
    place = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    other = cluster.add(PYTHONPATH=place)
    try:
        text = train(*SMALL, "--out", tmp_path / "job", "--cluster", cluster.address, rc=2)
    finally:
        kill(other)
    assert f"has other versions, which may change digits: numpy 0.0.1 (here {np.__version__})" in text
    assert "install the same ones on all nodes" in text
    assert not (tmp_path / "job").exists()
    # here it is one folder, and in each process of Ray another
    own = "/proc/self/cwd/job"
    text = train(*SMALL, "--out", own, "--cluster", cluster.address, rc=2, cwd=tmp_path)
    assert re.search(r"node \S+ .*does not see the folder", text), text
    assert "give a folder on storage that all nodes share" in text
    assert not (tmp_path / "job").exists()
