"""A job on a Ray cluster of a few nodes on this machine; some die, and some are unfit."""

import contextlib
import json
import os
import re
import resource
import signal
import time
import urllib.request

import numpy as np
import pytest
from small_cluster import SmallCluster, kill, mastery, trainer

from mastery import MasteryError, checkpoint
from mastery.rundir.parts import parts_of
from mastery.rundir.results import list_jobs, load_results

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
        assert x == y or (name == "curriculum" and x.fingerprint == y.fingerprint)
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


@pytest.mark.slow
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


def test_a_node_with_other_versions_is_named(tmp_path):
    (tmp_path / "numpy-0.0.1.dist-info").mkdir()
    (tmp_path / "numpy-0.0.1.dist-info" / "METADATA").write_text("Name: numpy\nVersion: 0.0.1\n")
    place = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with SmallCluster(1) as cluster:
        cluster.add(PYTHONPATH=place)
        text = train(*SMALL, "--out", tmp_path / "job", "--cluster", cluster.address, rc=2)
    assert (
        f"has other versions, which may change digits: numpy 0.0.1 (here {np.__version__})" in text
    )
    assert "install the same ones on all nodes" in text
    assert not (tmp_path / "job").exists()


@pytest.mark.slow
def test_a_node_that_does_not_see_the_folder_is_named(cluster, tmp_path):
    own = "/proc/self/cwd/job"  # here it is one folder, and in each process of Ray another
    text = train(*SMALL, "--out", own, "--cluster", cluster.address, rc=2, cwd=tmp_path)
    assert re.search(r"node \S+ .*does not see the folder", text), text
    assert "give a folder on storage that all nodes share" in text
    assert not (tmp_path / "job").exists()


@pytest.mark.slow
def test_a_node_that_dies_changes_nothing(tmp_path):
    """Twelve runs in three parts. All processes of one node are killed in the middle; its part is
    resumed on another. The page shows the job meanwhile; the end is equal to the bit."""
    train(*TWELVE, "--out", tmp_path / "whole")
    job = tmp_path / "watched" / "job"
    with SmallCluster(4) as cluster, watched(tmp_path / "watched") as page:
        process = mastery("train", *TWELVE, "--out", job, "--cluster", cluster.address,
                          "--parts", "3")  # fmt: skip
        wait_for(lambda: (job / "parts.json").exists(), process)
        parts = parts_of(job)
        wait_for(lambda: sum(points(part) > 3 for part in parts) >= 2, process)
        (seen,) = page("index.json")["jobs"]
        assert (seen["state"], len(seen["runs"])) == ("training", 12)
        curves = page(f"curves/{seen['key']}")
        assert curves["mastery"]["shape"][:2] == [12, 3]
        victim = next(node for node in cluster.nodes if trainer(node) is not None)
        began = [load_results(part).sessions for part in parts]
        kill(victim)
        text = done(process)
    assert "Done: trained 61,440 frames per run." in text
    told = re.search(r"part (\d) .*: its process on .* ended; resuming on", text)
    assert told, text
    sessions = load_results(parts[int(told[1])]).sessions
    assert len(sessions) == len(began[int(told[1])]) + 1
    assert 0 < sessions[-1].step < 240
    print(f"part {told[1]} was resumed from update {sessions[-1].step}")
    assert_equal(tmp_path / "whole", job)


@contextlib.contextmanager
def watched(folder):
    """`mastery watch` on a folder: a function that gets JSON from it."""
    folder.mkdir()
    with mastery("watch", folder, "--port", "0") as process:
        address = re.search(r"http://\S+", process.stdout.readline())[0]

        def get(path):
            with urllib.request.urlopen(address + path, timeout=60) as answer:
                return json.loads(answer.read())

        try:
            yield get
        finally:
            process.kill()


@pytest.mark.slow
def test_ctrl_c_saves_all_parts_and_says_how_to_go_on(cluster, tmp_path):
    train(*TWELVE, "--out", tmp_path / "whole")
    job = tmp_path / "job"
    process = mastery("train", *TWELVE, "--out", job, "--cluster", cluster.address, "--parts", "4")
    wait_for(lambda: (job / "parts.json").exists(), process)
    wait_for(lambda: any(points(part) > 2 for part in parts_of(job)), process)
    process.send_signal(signal.SIGINT)
    text = done(process, 130)
    assert "stopping: parts finish their chunk and save" in text
    told = re.search(r"mastery train --resume (\S+) --cluster (\S+)", text)
    assert told, text
    assert told[2] == cluster.address
    assert load_results(job).ended is None
    assert not load_results(job).training
    for part in parts_of(job):  # nothing is lost
        if n := points(part):
            assert int(max((part / "checkpoints").glob("*.ckpt")).stem) == 10 * n
    process = mastery("train", "--resume", job, "--cluster", cluster.address, "--minutes", "0.02")
    assert "Resume with" in done(process)
    text = train("--resume", job, "--cluster", cluster.address)
    assert "Done: trained 61,440 frames per run." in text
    assert_equal(tmp_path / "whole", job)


@pytest.mark.slow
def test_a_node_that_is_stopped_hands_its_part_on(tmp_path):
    """`ray stop` ends a process with SIGTERM. It saves, and the part is resumed elsewhere."""
    job = tmp_path / "job"
    with SmallCluster(3) as cluster:
        process = mastery("train", *TWELVE, "--seeds", "1", "--out", job, "--cluster",
                          cluster.address, "--parts", "2")  # fmt: skip
        wait_for(lambda: any(map(trainer, cluster.nodes)), process)
        (victim,) = [pid for pid in map(trainer, cluster.nodes) if pid is not None][:1]
        wait_for(lambda: (job / "parts.json").exists(), process)
        wait_for(lambda: all(points(part) > 1 for part in parts_of(job)), process)
        os.kill(victim, signal.SIGTERM)
        text = done(process)
    assert "Done: trained 61,440 frames per run." in text
    assert "resuming on" in text


@pytest.mark.slow
def test_full_storage_loses_nothing(cluster, tmp_path):
    """Files of one part cannot grow any more, as on a full disk; the other part goes on."""
    job = tmp_path / "job"
    arguments = (*TWELVE, "--seeds", "1", "--out", job, "--cluster", cluster.address)
    process = mastery("train", *arguments, "--parts", "2")
    wait_for(lambda: any(map(trainer, cluster.nodes)), process)
    full = next(pid for pid in map(trainer, cluster.nodes) if pid is not None)
    wait_for(lambda: (job / "parts.json").exists(), process)
    wait_for(lambda: all(points(part) > 1 for part in parts_of(job)), process)
    resource.prlimit(full, resource.RLIMIT_FSIZE, (4096, 4096))
    text = done(process, rc=2)
    assert re.search(r"part \d \(runs? .*\): cannot write", text), text
    told = re.search(r"resume with: mastery train --resume (\S+) --cluster", text)
    assert told, text
    assert told[1] == str(job)
    assert f"--resume {job}/parts" not in text
    assert sorted(load_results(part).ended is None for part in parts_of(job)) == [False, True]
    text = train("--resume", job, "--cluster", cluster.address)
    assert "Done: trained 61,440 frames per run." in text


@pytest.mark.slow
def test_each_part_has_a_gpu_and_finds_what_was_compiled_before(tmp_path, monkeypatch):
    """The GPUs are Ray's alone, so JAX computes on a CPU."""
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")  # of these tests
    with SmallCluster(2, gpus=1) as cluster:
        train(*SMALL, "--out", tmp_path / "job", "--cluster", cluster.address)
    assert len(parts_of(tmp_path / "job")) == 2
    assert list((tmp_path / "job" / "compiled").glob("*"))


@pytest.mark.slow
def test_the_paper_in_parts(cluster, tmp_path):
    arguments = ("paper", "addition-64", "blocked-unlock-pickup", "--scale", "0.002", "--out",
                 tmp_path, "--cluster", cluster.address)  # fmt: skip
    text = done(mastery(*arguments), seconds=500)
    assert "Page: " in text
    names = {path.name for path in tmp_path.iterdir() if (path / "parts.json").exists()}
    assert {"addition-64", "blocked-unlock-pickup-2018", "blocked-unlock-pickup-today"} <= names
    assert all((tmp_path / "curves" / f"{name}.npz").exists() for name in names)
    again = done(mastery(*arguments))  # nothing is left to train
    assert "Page: " in again
