"""A shared teacher keeps what it has acknowledged, and counts nothing twice."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mastery import CheckpointError, Curriculum, MasteryError, Task, Teacher
from mastery.adapters import durable
from mastery.adapters.durable import DurableTeacher

TASKS = Curriculum([Task("easy"), Task("hard", after=("easy",))])
PROGRAMS = ["mr", "sampling"]  # the second draws random numbers when it is updated


def die(shared):
    """What the system does with a process that is killed."""
    os.close(shared._journal)
    os.close(shared._lock)


updates = st.fixed_dictionaries(
    {"client": st.sampled_from("ab"), "number": st.integers(0, 4), "again": st.integers(0, 5)}
)
steps = st.one_of(
    updates,
    st.just("kill"),
    st.just("close"),
    st.tuples(st.just("kill while writing"), st.integers(0, 60)),
)


@given(
    steps=st.lists(steps, max_size=25), every=st.integers(1, 9), program=st.sampled_from(PROGRAMS)
)
@settings(max_examples=40, deadline=None)
def test_nothing_is_lost_and_nothing_counts_twice(steps, every, program, tmp_path_factory):
    """Clients that send again what may have been lost, and a teacher that is killed at will."""
    folder = tmp_path_factory.mktemp("teacher")
    expected = Teacher(TASKS, program, seed=1)
    sent = {"a": [], "b": []}

    def begin():
        if (folder / "teacher.ckpt").exists() and every % 2:  # all that it needs is in the folder
            return DurableTeacher(folder, every=every)
        return DurableTeacher(folder, Teacher(TASKS, program, seed=1), every=every)

    shared = begin()
    for step in steps:
        if isinstance(step, dict):
            mine = sent[step["client"]]
            numbers = range(len(mine), len(mine) + step["number"])
            new = [{"easy": [n / 7], "hard": [0.3]} for n in numbers]
            first = max(0, len(mine) - step["again"])  # as if some had not been acknowledged
            mine += new
            for update in new:
                expected.update(update)
            assert shared.take(step["client"], first, mine[first:]) == (len(mine), "")
        elif step == "close":
            shared.close()
            shared = begin()
        else:
            if step != "kill":  # a batch of which only the first bytes reached the disk
                line = durable._line(["a", len(sent["a"]), [{"easy": [0.5], "hard": [0.5]}]])
                os.write(shared._journal, line[: step[1]][: len(line) - 1])
            die(shared)
            shared = begin()
        assert {c: n for c, n in shared.clients.items() if n} == {
            c: len(s) for c, s in sent.items() if s
        }
        found, wanted = shared.teacher.state_dict(), expected.state_dict()
        assert repr(found) == repr(wanted)
        assert len(list(folder.glob("journal-*"))) == 1
    shared.close()


def test_two_teachers_in_one_folder_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(durable, "PATIENCE", 0.0)
    first = DurableTeacher(tmp_path, Teacher(TASKS, "mr", seed=1))
    with pytest.raises(MasteryError, match="another teacher is using"):
        DurableTeacher(tmp_path, Teacher(TASKS, "mr", seed=1))
    first.close()
    DurableTeacher(tmp_path, Teacher(TASKS, "mr", seed=1)).close()


def test_what_is_wrong_on_disk_is_said(tmp_path):
    shared = DurableTeacher(tmp_path, Teacher(TASKS, "mr", seed=1))
    shared.take("a", 0, [{"easy": [0.5]}])
    shared.take("a", 1, [{"easy": [0.5]}])
    with pytest.raises(
        CheckpointError, match="holds 2 updates of client a, but 7 were acknowledged"
    ):
        shared.take("a", 7, [{"easy": [0.5]}])
    die(shared)
    with pytest.raises(CheckpointError, match="holds no teacher"):
        DurableTeacher(tmp_path / "empty")
    with pytest.raises(CheckpointError, match="the state belongs to another curriculum"):
        DurableTeacher(tmp_path, Teacher(Curriculum([Task("other")]), "mr"))
    with pytest.raises(CheckpointError, match="make the teacher with the same"):
        DurableTeacher(tmp_path, Teacher(TASKS, "uniform"))
    journal = next(tmp_path.glob("journal-*"))
    content = bytearray(journal.read_bytes())
    content[15] ^= 1
    journal.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged at line 1"):
        DurableTeacher(tmp_path, Teacher(TASKS, "mr", seed=1))
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="cannot use"):
        DurableTeacher(tmp_path / "file", Teacher(TASKS, "mr", seed=1))


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    shared = DurableTeacher(tmp_path, Teacher(TASKS, "mr", seed=1), every=2)
    shared.take("a", 0, [{"easy": [0.5]}])

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(CheckpointError, match="No space left"):
            shared.take("a", 1, [{"easy": [0.7]}])
        assert shared.clients == {"a": 1}
        assert shared.teacher.time_step == 1
    with monkeypatch.context() as patch:
        patch.setattr("mastery.checkpoint.write", _cannot)
        with pytest.warns(UserWarning, match="updates are still kept in the journal"):
            assert shared.take("a", 1, [{"easy": [0.7]}]) == (2, "")
    die(shared)
    shared = DurableTeacher(tmp_path, Teacher(TASKS, "mr", seed=1))
    assert shared.clients == {"a": 2}
    shared.close()
    with pytest.raises(MasteryError, match="was stopped"):
        shared.take("a", 2, [{"easy": [0.7]}])


def _cannot(*_):
    raise CheckpointError("cannot write: No space left on device")


class Fails:
    """A program of one's own that cannot take a return of 0.5."""

    def init(self, noise):
        return noise[0]

    def observe(self, state, evidence, noise):
        if evidence.mean[0] == 0.5:
            raise RuntimeError("no halves")
        return evidence.mean

    def distribution(self, state):
        return state * 0 + 0.5


def test_an_update_that_the_program_refuses_is_told_and_the_others_count(tmp_path):
    shared = DurableTeacher(tmp_path, Teacher(TASKS, Fails(), seed=1))
    batch = [{"easy": [x]} for x in (0.25, 0.5, 0.75)]
    assert shared.take("a", 0, batch) == (3, "RuntimeError: no halves")
    die(shared)
    with pytest.raises(CheckpointError, match="a custom program"):
        DurableTeacher(tmp_path)
    shared = DurableTeacher(tmp_path, program=Fails())
    assert shared.clients == {"a": 3}
    assert shared.teacher.time_step == 2
    shared.close()


def test_a_journal_that_cannot_be_opened_loses_nothing(tmp_path, monkeypatch):
    """The disk is full when a new journal is begun: the old one goes on."""
    shared = DurableTeacher(tmp_path, Teacher(TASKS, "mr", seed=1), every=3)
    real, failed = os.open, []

    def fail_once(path, *args):
        if "journal" in str(path) and not failed:
            failed.append(path)
            raise OSError(28, "No space left on device")
        return real(path, *args)

    monkeypatch.setattr(os, "open", fail_once)
    with pytest.warns(
        UserWarning, match="No space left on device; updates are still kept in the journal"
    ):
        assert shared.take("c", 0, [{"easy": [0.1]}] * 3) == (3, "")
    assert failed
    assert shared.take("c", 3, [{"easy": [0.2]}]) == (4, "")
    die(shared)
    again = DurableTeacher(tmp_path)
    assert again.clients == {"c": 4}
    assert again.teacher.time_step == 4
    assert again.take("c", 4, [{"easy": [0.2]}] * 3) == (7, "")  # and a new one is begun later
    die(again)
    assert DurableTeacher(tmp_path).clients == {"c": 7}
