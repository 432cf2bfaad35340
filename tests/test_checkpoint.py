"""Files that hold a teacher: whole or refused, whatever happens to them or to the writer."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mastery import CheckpointError, Curriculum, Teacher, checkpoint


def taught(steps=20):
    teacher = Teacher(Curriculum.load("key-corridor"), "mr", seed=1)
    for t in range(steps):
        teacher.update({teacher.sample(): t / 40})
    return teacher


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("c") / "teacher"
    taught().save(path)
    return path.read_bytes()


def refused(content, folder, match=None, **options):
    path = folder / "damaged"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=match) as caught:
        Teacher.load(path, **options)
    assert "damaged" in str(caught.value)
    assert "\n" not in str(caught.value)


def of_version(version, content):
    """An intact file of another version."""
    body = content[:-32].replace(b"mastery 1\n", b"mastery %d\n" % version, 1)
    return body + hashlib.sha256(body).digest()


def test_a_flipped_byte_in_the_version_is_damage(content, tmp_path):
    """So an earlier checkpoint is used, where the version error would stop the reader."""
    path = tmp_path / "damaged"
    for place in range(len(b"mastery 1\n")):
        changed = bytearray(content)
        changed[place] ^= 2
        path.write_bytes(changed)
        with pytest.raises(checkpoint.Damaged):
            checkpoint.read(path, "teacher")
    path.write_bytes(of_version(2, content))
    with pytest.raises(CheckpointError, match="has version 2") as caught:
        checkpoint.read(path, "teacher")
    assert not isinstance(caught.value, checkpoint.Damaged)


def test_any_flipped_byte_is_found(content, tmp_path):
    random.seed(0)
    places = {
        *range(120),
        *range(len(content) - 40, len(content)),
        *random.sample(range(len(content)), 300),
    }
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << random.randrange(8)
        refused(bytes(changed), tmp_path)


def test_any_truncation_is_found(content, tmp_path):
    random.seed(1)
    for length in {
        0,
        1,
        8,
        9,
        10,
        17,
        18,
        len(content) - 1,
        *random.sample(range(len(content)), 100),
    }:
        refused(content[:length], tmp_path)
    refused(content + b"x", tmp_path, "damaged")


def test_other_files_are_told_apart(content, tmp_path):
    refused(b"hello\n" * 20, tmp_path, "not a mastery file")
    refused(of_version(2, content), tmp_path, "has version 2")
    refused(
        content, tmp_path, "belongs to another curriculum", curriculum=Curriculum.load("addition-9")
    )
    with pytest.raises(CheckpointError, match="No such file"):
        Teacher.load(tmp_path / "missing")
    with pytest.raises(CheckpointError, match="Is a directory"):
        Teacher.load(tmp_path)
    checkpoint.write(tmp_path / "other", "agent", {}, {})
    with pytest.raises(CheckpointError, match="holds 'agent', not 'teacher'"):
        Teacher.load(tmp_path / "other")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    teacher, path = taught(), tmp_path / "teacher"
    teacher.save(path)
    old = path.read_bytes()
    with pytest.raises(CheckpointError, match="No such file or directory; nothing was changed"):
        teacher.save(tmp_path / "no" / "folder" / "teacher")
    with pytest.raises(CheckpointError, match="cannot write"):
        teacher.save(tmp_path)  # a folder
    with pytest.raises(CheckpointError, match="null"):
        teacher.save("a\0b")
    if Path("/dev/full").exists():
        with pytest.raises(CheckpointError, match="No space left on device"):
            teacher.save("/dev/full")  # really full
        assert not Path("/dev/full").is_file()
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["teacher"]


def test_a_writer_that_fails_half_way_leaves_the_old_file_and_no_rubbish(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def parts():
        yield b"new"
        raise OSError(28, "No space left on device")

    with pytest.raises(CheckpointError, match="No space left on device; nothing was changed"):
        checkpoint.replace_file(path, parts())
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_link_is_followed_and_a_pipe_is_written_to(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    checkpoint.replace_file(tmp_path / "link", [b"content"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"content"
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        checkpoint.replace_file(tmp_path / "pipe", [b"content"])
        assert reader.stdout.read() == b"content"


def test_what_a_killed_writer_left_is_removed_after_an_hour(tmp_path):
    old, new = tmp_path / ".file.1.2.tmp", tmp_path / ".file.3.4.tmp"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    checkpoint.replace_file(tmp_path / "file", [b"x"])
    assert not old.exists()
    assert new.exists()


HALF = """
import os, signal, sys
from mastery import checkpoint
def parts():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)
checkpoint.replace_file(sys.argv[1], parts())
"""


def test_what_a_killed_writer_left_is_removed_by_the_next_write(tmp_path):
    path = tmp_path / "file"
    killed = subprocess.run([sys.executable, "-c", HALF, path])
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    machine, pid, _ = left.name.removeprefix(".file.").removesuffix(".tmp").split(".")
    kept = {
        f".file.{machine}.{os.getppid()}.7.tmp",  # of a process that runs
        f".file.{machine[::-1]}.{pid}.7.tmp",  # of another machine
        f".file.2.{machine}.{pid}.7.tmp",  # of another file
    }
    for name in kept:
        (tmp_path / name).write_bytes(b"half")
    checkpoint.replace_file(path, [b"whole"])
    assert {found.name for found in tmp_path.iterdir()} == {"file", *kept}


def test_a_whole_file_with_the_wrong_content_is_refused(content, tmp_path):
    """The checksum is right, so someone meant it; still no traceback and nothing of theirs runs."""
    meta, arrays = checkpoint.read(write(tmp_path, content), "teacher")
    for change in (
        {"program": 3},
        {"program": "mrr"},
        {"curriculum": {}},
        {"curriculum": {**meta["curriculum"], "edges": [[0, 99]]}},
        {"curriculum": {**meta["curriculum"], "names": ["a"]}},
        {"random": {"state": -1}},
        {"time_step": "x"},
    ):
        checkpoint.write(tmp_path / "damaged", "teacher", {**meta, **change}, arrays)
        with pytest.raises(CheckpointError):
            Teacher.load(tmp_path / "damaged")
    del meta["program"]
    checkpoint.write(tmp_path / "damaged", "teacher", meta, arrays)
    with pytest.raises(CheckpointError, match="does not hold a teacher"):
        Teacher.load(tmp_path / "damaged")
    start = b'{"kind": "teacher", "meta": {}, "arrays": [["a", '
    for header in (b"{", b"{}", start + b'"O", [1]]]}', start + b'"<f8", [99999999]]]}'):
        body = b"mastery 1\n" + len(header).to_bytes(8, "little") + header + b" " * 40
        refused(body + hashlib.sha256(body).digest(), tmp_path, "its content is malformed")


def write(folder, content):
    path = folder / "content"
    path.write_bytes(content)
    return path


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text("abc.", min_size=1, max_size=5),
        st.tuples(
            st.sampled_from(["f8", "f4", "i4", "i8", "?", "u1"]),
            st.lists(st.integers(0, 3), max_size=3),
        ),
        max_size=4,
    )
)
def test_arrays_of_any_kind_come_back(tmp_path_factory, described):
    generator = np.random.default_rng(0)
    arrays = {
        name: generator.integers(0, 2, shape).astype(dtype)
        for name, (dtype, shape) in described.items()
    }
    path = tmp_path_factory.mktemp("a") / "arrays"
    checkpoint.write(path, "arrays", {"x": [1, None]}, arrays)
    meta, back = checkpoint.read(path, "arrays")
    assert meta == {"x": [1, None]}
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)


WRITER = """
import sys
from mastery import Curriculum, Teacher
teacher = Teacher(Curriculum.random(3000), "gprop-linreg", seed=0)
teacher.save(sys.argv[1])
print("ready", flush=True)
while True:
    teacher.update({"task-1": 0.5})
    teacher.save(sys.argv[1])
"""


def kill_while_saving(path, times):
    """kill -9 at random instants; after each the file must load."""
    random.seed(2)
    seen = set()
    for _ in range(times):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(random.uniform(0, 0.05))
            os.kill(process.pid, signal.SIGKILL)
        teacher = Teacher.load(path)
        seen.add(teacher.time_step)
    return seen


def test_a_writer_killed_at_any_instant_leaves_a_whole_file(tmp_path):
    assert len(kill_while_saving(tmp_path / "teacher", 6)) > 1


@pytest.mark.slow
def test_two_hundred_writers_killed_at_any_instant_leave_a_whole_file(tmp_path):
    assert len(kill_while_saving(tmp_path / "teacher", 200)) > 5
