"""One teacher for workers on several Ray nodes, with a worker, the teacher and a node killed.

    python benchmarks/ray_teacher.py [--workers 4] [--episodes 10000] [--kills-only] [--json]

Each worker plays its episodes: a task from the teacher, and a return for it. It writes down, in a
file of its own, how many updates were acknowledged. While they play, one worker is killed, then the
teacher, then the node that the teacher runs on with its workers; an episode takes a millisecond or
more, and the last fifth waits for that, so that all of it happens while they play. At the end what
the teacher has is held against what the workers wrote: no acknowledged update may be missing, none
may count twice, and what the folder holds must be the same teacher. Then the same without any kill
and without waiting, for the throughput. Needs `pip install 'mastery-curriculum[ray]'`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import ray
from ray.cluster_utils import Cluster

from mastery import Curriculum, Teacher
from mastery.adapters.durable import DurableTeacher
from mastery.adapters.ray import RemoteTeacher

CURRICULUM = Curriculum.load("key-corridor")
GO = "go"  # a file: all are killed that will be


@ray.remote(max_retries=0)
def play(
    number: int, episodes: int, record: str, pace: float = 0.0, hold: bool = False
) -> tuple[str, int]:
    """Episodes of a learner that gets better; with a record of what was acknowledged."""
    teacher = RemoteTeacher(f"teacher-{Path(record).name}", seed=number)
    random = np.random.default_rng(number)
    with Path(record, f"worker-{number}").open("w") as file:
        print(os.getpid(), teacher.client, file=file, flush=True)
        noted = 0
        for episode in range(episodes):
            if hold and episode == held(episodes):
                teacher.flush()
                noted = teacher.acknowledged
                print(noted, file=file, flush=True)
                while not Path(record, GO).exists():
                    time.sleep(0.01)
            score = float(random.random() * episode / episodes)
            time.sleep(pace)
            teacher.update({teacher.sample(): score})
            if teacher.acknowledged > noted:
                noted = teacher.acknowledged
                print(noted, file=file, flush=True)
        teacher.flush()
        print(teacher.acknowledged, file=file, flush=True)
    return teacher.client, teacher.acknowledged


def held(episodes: int) -> int:
    """After how many a worker waits, so that none has come to its end when the node is killed."""
    return episodes * 4 // 5


def start(folder: Path, options: dict[str, object] | None = None) -> RemoteTeacher:
    name = f"teacher-{folder.name}"
    return RemoteTeacher.start(new(), folder / "teacher", name, every=2_000, options=options)


def new() -> Teacher:
    return Teacher(CURRICULUM, "mr", seed=0)


def noted(folder: Path, worker: int) -> int:
    """What a worker has written of its acknowledged updates."""
    path = folder / f"worker-{worker}"
    lines = path.read_text().split("\n")[1:-1] if path.exists() else []
    return int(lines[-1]) if lines else 0


def wait(folder: Path, worker: int, episodes: int) -> None:
    while noted(folder, worker) < episodes:
        time.sleep(0.01)


def kills(cluster: Cluster, folder: Path, workers: int, episodes: int) -> dict[str, object]:
    """The run with the kills, on two nodes besides the head; the teacher may be on either."""
    nodes = [
        cluster.add_node(wait=False, num_cpus=workers, resources={name: workers, "teacher": 1})
        for name in "ab"
    ]
    cluster.wait_for_nodes()
    teacher = start(folder, {"resources": {"teacher": 0.001}})
    began = time.perf_counter()
    pace = max(0.001, 4 / episodes)
    jobs = [
        play.options(resources={"ab"[i % 2]: 1}).remote(i, episodes, str(folder), pace, hold=True)
        for i in range(workers)
    ]
    wait(folder, 0, episodes // 10)
    os.kill(int((folder / "worker-0").read_text().split()[0]), signal.SIGKILL)
    wait(folder, 2, episodes // 5)
    os.kill(ray.get(teacher.actor.where.remote())[0], signal.SIGKILL)
    for i in (1, 2):  # it is back
        wait(folder, i, min(noted(folder, i) + 1, held(episodes)))
    where = teacher._call(lambda actor: actor.where.remote())[1]
    cluster.remove_node(next(node for node in nodes if node.node_id == where), allow_graceful=False)
    (folder / GO).touch()
    finished, dead = {}, []
    for i, job in enumerate(jobs):
        try:
            client, acknowledged = ray.get(job)
            finished[client] = acknowledged
        except ray.exceptions.RayError:
            dead.append(f"worker {i} after {noted(folder, i)} acknowledged")
    seconds = time.perf_counter() - began
    killed = [*dead, "the teacher", "the teacher's node"]
    return {"killed": killed, **check(folder, teacher, workers, finished, episodes, seconds)}


def undisturbed(folder: Path, workers: int, episodes: int) -> dict[str, object]:
    teacher = start(folder)
    ray.get([play.remote(i, 100, str(folder)) for i in range(workers)])  # start the processes
    for i in range(workers):
        (folder / f"worker-{i}").unlink()
    before = teacher.clients
    began = time.perf_counter()
    jobs = [play.remote(i, episodes, str(folder)) for i in range(workers)]
    finished = dict(ray.get(jobs))
    seconds = time.perf_counter() - began
    found = check(folder, teacher, workers, finished, episodes, seconds, before)
    return found


def check(folder, teacher, workers, finished, episodes, seconds, before=None):
    """What the teacher has against what the workers noted."""
    applied = {c: n for c, n in teacher.clients.items() if n and c not in (before or {})}
    missing = twice = 0
    for i in range(workers):
        client = (folder / f"worker-{i}").read_text().split()[1]
        missing += max(0, noted(folder, i) - applied.get(client, 0))
        twice += max(0, applied.get(client, 0) - episodes)
    for client, acknowledged in finished.items():
        missing += abs(acknowledged - applied[client]) + abs(acknowledged - episodes)
    steps = teacher.time_step
    total = sum(teacher.clients.values())
    state = teacher.state_dict()
    teacher.stop()
    again = DurableTeacher(folder / "teacher", new())  # as after an end of the whole cluster
    same = repr(again.teacher.state_dict()) == repr(state)
    again.close()
    return {
        "workers that ended": len(finished),
        "updates": sum(applied.values()),
        "acknowledged and missing": missing,
        "counted twice": twice + abs(total - steps),
        "same from the folder": same,
        "updates/s": round(sum(applied.values()) / seconds),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--kills-only", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    quick = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    head = {"num_cpus": given.workers, "_system_config": quick, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    with tempfile.TemporaryDirectory() as folder:
        calm, killed = Path(folder, "calm"), Path(folder, "killed")
        calm.mkdir()
        killed.mkdir()
        found = {"with kills": kills(cluster, killed, given.workers, given.episodes)}
        if not given.kills_only:
            found["without"] = undisturbed(calm, given.workers, given.episodes)
    ray.shutdown()
    cluster.shutdown()
    if given.json:
        print(json.dumps(found))
    else:
        print(
            f"{given.workers} workers × {given.episodes} episodes, 3 nodes, ray {ray.__version__}"
        )
        for name, row in found.items():
            print(f"{name}:")
            for key, value in row.items():
                print(f"  {key:<26} {', '.join(value) if isinstance(value, list) else value}")
    lost = any(
        row["acknowledged and missing"] or row["counted twice"] or not row["same from the folder"]
        for row in found.values()
    )
    return int(lost)


if __name__ == "__main__":
    sys.exit(main())
