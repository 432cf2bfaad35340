"""The teacher that Ray workers share: on a small cluster, with a worker, the teacher and a node
killed; and what its clients do."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from threading import Timer

import pytest

from mastery import Curriculum, MasteryError, ReturnsError, Task, Teacher
from mastery.rundir.results import load_results

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import ray

    from mastery.adapters import ray as adapter
    from mastery.adapters.ray import RemoteTeacher

pytestmark = pytest.mark.filterwarnings("ignore::Warning:ray", "ignore::ResourceWarning")
TASKS = Curriculum([Task("easy"), Task("hard", after=("easy",))])
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "ray_teacher.py"


def scenario(*arguments):
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--json", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_no_acknowledged_update_is_lost_when_worker_teacher_and_node_are_killed():
    found = scenario("--episodes", "150", "--kills-only")["with kills"]
    dead = [who for who in found["killed"] if who.startswith("worker")]
    assert len(dead) + found["workers that ended"] == 4
    assert {"the teacher", "the teacher's node"} < set(found["killed"])
    assert dead[0].startswith("worker 0")
    assert 2 <= len(dead) <= 3  # and one or two with the node
    assert found["acknowledged and missing"] == found["counted twice"] == 0
    assert found["same from the folder"]


@pytest.mark.slow
def test_the_same_with_ten_thousand_episodes_each():
    for found in scenario().values():
        assert found["acknowledged and missing"] == found["counted twice"] == 0
        assert found["same from the folder"]
        print(found)


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def teacher():
    return Teacher(TASKS, "mr", seed=0)


@ray.remote
def play(teacher, episodes):
    with teacher:
        for i in range(episodes):
            teacher.update({teacher.sample(): i / episodes})
    return teacher.client, teacher.acknowledged


def test_a_loop_on_one_worker_is_as_with_a_plain_teacher(cluster, tmp_path):
    remote, plain = RemoteTeacher.start(teacher(), tmp_path, "plain"), teacher()
    for i in range(30):
        returns = {"easy": i / 30, "hard": [0.0, i / 60]} if i % 3 else {"easy": 0.5}
        remote.update(returns)
        plain.update(returns)
    assert remote.probabilities == plain.probabilities
    assert remote.mastery == plain.mastery
    assert remote.time_step == remote.acknowledged == 30
    assert str(remote.explain()) == str(plain.explain())
    remote.refresh()
    drawn = remote.sample(4000)
    assert drawn.count("easy") / 4000 == pytest.approx(plain.probabilities["easy"], abs=0.05)
    remote.stop()


def test_a_handle_can_be_given_to_workers_and_the_teacher_die_meanwhile(cluster, tmp_path):
    remote = RemoteTeacher.start(teacher(), tmp_path, "shared")
    jobs = [play.remote(remote, 400) for _ in range(2)]
    remote.update({"easy": 0.5})
    ray.kill(remote.actor, no_restart=False)
    remote.update({"easy": 0.5})
    done = dict(ray.get(jobs))
    remote.flush()
    assert set(done.values()) == {400}
    assert remote.clients == done | {remote.client: 2}
    assert remote.time_step == 802
    remote.stop()
    with pytest.raises(MasteryError, match="no teacher named 'shared'"):
        remote.probabilities  # noqa: B018
    again = RemoteTeacher.start(teacher(), tmp_path, "shared")  # from the folder
    assert again.time_step == 802
    again.stop()


def test_stopping_waits_until_the_teacher_is_gone(cluster, tmp_path, monkeypatch):
    remote = RemoteTeacher.start(teacher(), tmp_path, "slow to die")
    kill = ray.kill
    monkeypatch.setattr(ray, "kill", lambda actor: Timer(0.5, kill, (actor,)).start())
    remote.stop()
    with pytest.raises(MasteryError, match="no teacher named 'slow to die'"):
        remote.probabilities  # noqa: B018


def test_a_worker_that_is_far_ahead_waits(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(adapter, "LIMIT", 5)
    remote = RemoteTeacher.start(teacher(), tmp_path, "slow")
    for _ in range(100):
        remote.update({"easy": 0.5})
        assert len(remote._waiting) < 5
    remote.stop()


def test_wrong_use_is_refused(cluster, tmp_path):
    remote = RemoteTeacher.start(teacher(), tmp_path, "right")
    with pytest.raises(ReturnsError, match="did you mean 'easy'"):
        remote.update({"eazy": 1.0})
    with pytest.raises(ReturnsError, match="a return is nan"):
        remote.update({"easy": float("nan")})
    assert remote.time_step == 0
    with pytest.raises(MasteryError, match=r"no teacher named 'left' is running; start it with"):
        RemoteTeacher("left")
    other = Teacher(Curriculum([Task("other")]), "mr")
    with pytest.raises(MasteryError, match="the state belongs to another curriculum"):
        RemoteTeacher.start(other, tmp_path, "right")
    with pytest.raises(MasteryError, match="a teacher of this name is already running in"):
        RemoteTeacher.start(teacher(), tmp_path / "other", "right")
    with pytest.raises(MasteryError, match="start needs a Teacher"):
        RemoteTeacher.start(TASKS, tmp_path)
    remote.stop()
    with pytest.raises(
        MasteryError, match=r"teacher\.ckpt: the state belongs to another curriculum"
    ):
        RemoteTeacher.start(other, tmp_path, "right")
    RemoteTeacher.start(teacher(), tmp_path / "other", "right").stop()  # the name is free


def test_waiting_has_an_end(cluster, tmp_path):
    remote = RemoteTeacher.start(teacher(), tmp_path, "late")
    remote.update({"easy": 0.5})
    with pytest.raises(MasteryError, match="has not answered; 1 updates are queued"):
        remote.flush(timeout=0.0)
    remote.flush()
    assert remote.time_step == 1
    remote.stop()


def test_the_actor_records_and_goes_on_after_it_was_killed(cluster, tmp_path):
    runs = tmp_path / "runs"
    remote = RemoteTeacher.start(teacher(), tmp_path / "teacher", "recorded", record=runs)
    for i in range(40):
        remote.update({"easy": i / 40}, cost={"easy": 3})
        if i == 20:
            remote.flush()
            ray.kill(remote.actor, no_restart=False)
    remote.stop()
    found = load_results(runs)
    assert found.steps.tolist() == [*range(1, 41)]
    assert found.returns[:, 0, 0].tolist() == pytest.approx([i / 40 for i in range(40)])
    assert (found.unit, found.frames[-1], len(found.seeds)) == ("frames", 120, 1)
    assert found.ended == "the loop ended"
    with pytest.raises(MasteryError, match=r"record is 3; it must be a folder"):
        RemoteTeacher.start(teacher(), tmp_path / "teacher", "recorded", record=3)
