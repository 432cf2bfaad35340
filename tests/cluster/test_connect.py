"""Wrong addresses, and nodes that are not fit: each is said at once, with the remedy."""

import contextlib
import socket
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from mastery import MasteryError
from mastery.cli.places import place_of
from mastery.cluster import place, train
from mastery.cluster.connect import check_address, reason_of
from mastery.cluster.nodes import Node, Room, find_room
from mastery.cluster.place import check_versions, comes_back, look, offer
from mastery.cluster.train import told_failed
from mastery.errors import install
from mastery.rundir.machine import versions
from mastery.rundir.writing import lock_directory
from mastery.training.train import TrainOptions


@contextlib.contextmanager
def listening(answer=b""):
    """A server that says this, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with contextlib.suppress(OSError):
                talk = server.accept()[0]
                talk.sendall(answer)
                time.sleep(0.3)
                talk.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def test_a_wrong_address_is_refused_at_once(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(MasteryError, match=f"no Ray cluster at {closed}: .*refused; start a clust"):
        check_address(closed)
    for address in ("nonsense", "host", ":6379", "host:", "host:99999", "host:port"):
        with pytest.raises(MasteryError, match="give HOST:PORT or auto"):
            check_address(address)
    with pytest.raises(MasteryError, match="run this command on a machine of the cluster"):
        check_address("ray://127.0.0.1:10001")
    for host in ("a..b", 70 * "a"):
        with pytest.raises(MasteryError, match="no host has this name"):
            check_address(f"{host}:6379")
    for given, message in (
        (closed, f"no Ray cluster at {closed}"),
        ("ray://127.0.0.1:10001", "run this command on a machine of the cluster"),
    ):
        monkeypatch.setenv("RAY_ADDRESS", given)
        with pytest.raises(MasteryError, match=message):
            check_address("auto")


def test_auto_may_be_given_by_ray_s_variable_too(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    asked = "ray._private.services.canonicalize_bootstrap_address_or_die"
    monkeypatch.setattr(asked, lambda address: "host:port")
    with pytest.raises(MasteryError, match="the cluster's address is 'host:port'"):
        check_address("auto")

    def several(address):
        raise ConnectionError("Found multiple active Ray instances: {'10.0.0.1:1'}. Please choose.")

    monkeypatch.setattr(asked, several)
    with pytest.raises(MasteryError, match=r"instances: \{'10.0.0.1:1'\}; start a cluster"):
        check_address("auto")


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH", b"HTTP/1.1 400"])
def test_so_is_the_address_of_something_else(answer):
    with (
        listening(answer) as address,
        pytest.raises(MasteryError, match="something else listens there"),
    ):
        check_address(address)


def test_one_that_never_answers(monkeypatch):
    monkeypatch.setattr("mastery.cluster.connect.SECONDS", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(MasteryError, match="it does not answer"),
    ):
        check_address(f"127.0.0.1:{server.getsockname()[1]}")


def test_ray_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MasteryError) as caught:
        place_of("auto")
    assert str(caught.value) == f"--cluster needs ray: {install('ray')}"


def test_room_for_parts():
    def room(*nodes):
        return find_room([Node("id", "name", cpus, gpus) for cpus, gpus in nodes])

    assert room((8, 0), (8, 0)) == Room(2, 8, 0)
    assert room((4, 0), (8, 0), (17, 0)) == Room(1 + 2 + 4, 4, 0)
    assert room((8, 0), (32, 4), (32, 8)) == Room(12, 1, 1)  # the first has no GPU
    assert room((0, 4)) == Room(4, 0, 1)


def test_a_node_that_sees_the_folder_is_fit(tmp_path):
    with offer(tmp_path / "new" / "job") as probe:
        found = look(str(probe.folder), probe.token, "node")
        assert found["problem"] is None
        assert found["versions"] == versions()
        assert comes_back(probe, "node")
    assert not (tmp_path / "new").exists()


def test_a_node_that_is_not_fit(tmp_path, monkeypatch):
    with offer(tmp_path / "job") as probe:
        folder, token = str(probe.folder), probe.token

        def problem():
            return look(folder, token, "node")["problem"]

        (probe.folder / "driver").rename(probe.folder / "hidden")
        assert "does not see the folder (No such file or directory)" in problem()
        (probe.folder / "driver").write_text("of another job")
        assert "sees another folder under this path" in problem()
        (probe.folder / "driver").write_text(token)
        (probe.folder / "node").mkdir()  # it cannot be written
        assert "cannot write to the folder (Is a directory)" in problem()
        (probe.folder / "node").rmdir()
        monkeypatch.setattr(place, "is_training", lambda folder: False)
        assert "does not see locks of other machines" in problem()
        monkeypatch.setattr(place, "SEEN_SECONDS", 0.1)
        assert not comes_back(probe, "other")
    with pytest.raises(
        MasteryError, match=r"node b has other .*: jax 0\.1 \(here 0\.2\), numpy no"
    ):
        check_versions("node b", {"jax": "0.1"}, {"jax": "0.2", "numpy": "2.0"})


def test_a_folder_that_cannot_be_written_from_here():
    with pytest.raises(MasteryError, match="cannot write to /proc/job"), offer("/proc/job"):
        pass


def test_a_lock_of_a_dead_process_is_waited_for(tmp_path, monkeypatch):
    """Shared storage keeps it for a while."""
    from mastery.cluster import work

    lock, said = lock_directory(tmp_path), []
    order = work.Order(0, str(tmp_path), str(tmp_path), 1, 1, 0, {}, {}, str(tmp_path))
    threading.Timer(0.5, lock.close).start()
    began = time.monotonic()
    work._wait_for_lock(order, lambda kind, text: said.append((kind, text)))
    assert 0.3 < time.monotonic() - began < 30
    assert said == [("note", "waiting up to 150 seconds for the lock of a dead process")]


@pytest.mark.parametrize("options", [TrainOptions(stop=lambda: True), TrainOptions(minutes=0)])
def test_all_parts_are_stopped_when_that_is_asked_for(options, monkeypatch):
    """Ray is played: a task runs until it is cancelled."""
    cancelled, told, waits = [], [], []

    def wait(tasks, timeout):
        assert len(waits) < 9
        waits.append(tasks)
        return ([task for task in tasks if task in cancelled], None)

    ray = SimpleNamespace(wait=wait, cancel=cancelled.append, get=lambda found: found)
    messages = SimpleNamespace(
        stop=SimpleNamespace(remote=lambda: told.append("stop")),
        take=SimpleNamespace(remote=lambda: ([], {})),
    )
    monkeypatch.setattr(train, "_start_messages", lambda ray: messages)
    monkeypatch.setattr(train, "_submit", lambda cluster, messages, number, *given: number)
    monkeypatch.setattr(train, "_outcome", lambda ray, task, part, interrupted: interrupted)
    work = SimpleNamespace(unfinished=["one", "two"])
    ends = train.train_parts(SimpleNamespace(ray=ray), [work], options)
    assert list(ends) == [("one", False), ("two", False)]
    assert (cancelled, told) == ([0, 1], ["stop"])


def test_an_error_of_a_part_names_the_job_to_resume(tmp_path, monkeypatch):
    """A part that is resumed by itself would leave the others behind."""
    from mastery.cluster import work

    def fail(order, tell, messages):
        raise MasteryError(f"it is full. Resume with: mastery train --resume '{order.directory}'")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(work, "_train", fail)
    monkeypatch.setattr(work, "_here", lambda: "node")
    messages = SimpleNamespace(tell=SimpleNamespace(remote=lambda *given: None))
    order = work.Order(0, "/my job/parts/0", "/my job", 1, 1, 0, {}, versions(), str(tmp_path))
    assert work.train_part(order, messages) == {
        "error": "it is full. Resume with: mastery train --resume '/my job'"
    }


def test_the_reason_of_ray_is_its_last_line():
    assert reason_of(RuntimeError("Traceback\n  in f\nOSError: full\n")) == "OSError: full"
    assert reason_of(RuntimeError()) == "RuntimeError"


def test_each_reason_is_told_once():
    failed = {"part 0 (run 0)": "full", "part 1 (run 1)": "full", "part 2 (run 2)": "gone"}
    assert told_failed(failed, "AGAIN") == (
        "part 0 (run 0), part 1 (run 1): full; part 2 (run 2): gone. What was trained is saved; "
        "resume with: AGAIN"
    )
