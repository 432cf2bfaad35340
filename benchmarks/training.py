"""Frames per second of training with PPO on MiniGrid: this project and its peer, in one run.

    python benchmarks/training.py                    one run, beside torch-ac's PPO (two cores)
    python benchmarks/training.py --runs 100         a hundred runs at once (one GPU)
    python benchmarks/training.py --all              everything that is measured of training

Ours is the whole job as `mastery train` does it: teacher, environments with fresh levels, agent,
curves written into the run directory after every chunk, checkpoints; only compiling is not counted
and told apart. Evaluation, which the peer does not do, is left out (`--evaluate` counts it in). The
peer is torch-ac 1.4.0's PPO with 16 processes on MiniGrid-Unlock, without memory, as its authors
ran it (benchmarks/peers/torch_ac_unlock.py); with PyTorch's own number of threads, and with one,
which is often faster. All are measured in turn, several times. It is skipped if not installed:
`pip install --no-deps torch-ac==1.4.0`.

Where the time goes: the parts of an update, each compiled and timed by itself.

`--all` then runs what has a file of its own: start.py (seconds of a command, cold and warm),
seconds_to_learn.py (seconds until one agent has learned), same_learning.py (whether our kernels
learn as XLA's), and on a GPU `mastery paper` with 100 runs of 10M frames.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mastery import Curriculum, Task
from mastery.learners import ppo, ppo_minigrid
from mastery.minigrid.editions import find_edition
from mastery.training.devices import use_cores
from mastery.training.job import Job
from mastery.training.loops.compiled import each_run, in_turn
from mastery.training.train import TrainOptions, train

PEER = Path(__file__).parent / "peers" / "torch_ac_unlock.py"
PAPER = ("blocked-unlock-pickup", "key-corridor", "obstructed-maze")  # 100 runs with ten seeds
UNLOCK = Curriculum([Task("Unlock", 0.0, 0.5, settings={"env": "MiniGrid-Unlock-v0"})], "unlock")


def ours(job: Job, seconds: float) -> tuple[float, float]:
    """Frames per second, and seconds to the end of the first chunk."""
    began = time.perf_counter()
    seen: list[tuple[float, int]] = []

    def note(progress: Any) -> None:
        seen.append((time.perf_counter(), progress.frames))
        if time.perf_counter() - seen[0][0] >= seconds:
            raise StopIteration

    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(StopIteration):
        train(job, Path(folder) / "job", TrainOptions(report=note))
    (first, frames), (last, all_frames) = seen[0], seen[-1]
    return (all_frames - frames) / (last - first), first - began


def peer(seconds: float, threads: int | None) -> float:
    environment = dict(os.environ) | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
    command = [sys.executable, str(PEER), "--seconds", str(seconds)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(result.stdout.split()[-1])


def parts(job: Job) -> dict[str, float]:
    """Milliseconds of the parts of an update: of all runs at once, or on a CPU, where they take
    turns, of one."""
    settings, runs = job.settings, 1 if in_turn(jax.devices()) else len(job.runs)
    h = ppo.PPOHyper.of(settings)
    p = np.zeros(18, np.float32)
    p[:3] = 1 / 3
    keys = jax.random.split(jax.random.key(0), runs)

    def many(f: Any) -> Any:
        return jax.jit(partial(each_run, f))

    learner = many(lambda key: ppo_minigrid.begin(key, settings))(keys)
    edition = find_edition(settings.edition)
    levels = many(lambda key, envs: ppo_minigrid.with_levels(envs, key, p, edition))
    learner = learner._replace(envs=levels(keys, learner.envs))
    collect = many(lambda a, e, k: ppo_minigrid.collect(a, e, k, settings, h))
    improve = many(lambda a, o, f, k: ppo.improve(a, o, f, k, settings, h))
    _, frames, _ = collect(learner.agent, learner.envs, keys)
    calls = {
        "levels": partial(levels, keys, learner.envs),
        "playing": partial(collect, learner.agent, learner.envs, keys),
        "learning": partial(improve, learner.agent, learner.optimiser, frames, keys),
    }
    found = {}
    for name, call in calls.items():
        jax.block_until_ready(call())
        times = []
        for _ in range(10):
            start = time.perf_counter()
            jax.block_until_ready(call())
            times.append(time.perf_counter() - start)
        found[name] = 1e3 * statistics.median(times)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1, help="runs at once")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", default="lstm,none", help="of our agent")
    parser.add_argument("--curriculum", help="instead of Unlock alone, which is the peer's")
    parser.add_argument("--evaluate", action="store_true", help="count evaluation in")
    parser.add_argument("--all", action="store_true", help="the other benchmarks of training, too")
    given = parser.parse_args()
    curriculum = Curriculum.load(given.curriculum) if given.curriculum else UNLOCK
    use_cores(given.runs)
    device = jax.devices()[0].device_kind
    print(f"{device}, {os.cpu_count()} cores, {curriculum.name}, {given.runs} runs at once")

    jobs = {
        memory: Job(
            curriculum,
            seeds=given.runs,
            frames=10**12,
            settings=replace(ppo.PPOSettings(), memory=memory),
            evaluate_every=250_000 if given.evaluate else 0,
        )
        for memory in given.memory.split(",")
    }
    with_peer = given.runs == 1 and find_spec("torch_ac") is not None
    speeds: dict[str, list[float]] = {}
    compiled: dict[str, float] = {}
    for _ in range(given.repeats):
        for memory, job in jobs.items():
            name = f"mastery, {'LSTM' if memory == 'lstm' else 'no memory'}"
            speed, first = ours(job, given.seconds)
            speeds.setdefault(name, []).append(speed)
            compiled.setdefault(name, first)
        for name, threads in (("torch-ac, no memory", None), ("the same, one thread", 1)):
            if with_peer:
                speeds.setdefault(name, []).append(peer(given.seconds, threads))

    base = statistics.median(speeds["torch-ac, no memory"]) if with_peer else None
    print(f"\n{'':24}{'frames/s':>12}{'least … most':>26}{'× torch-ac':>12}{'first chunk':>13}")
    for name, found in speeds.items():
        middle = statistics.median(found)
        ratio = f"{middle / base:.1f}" if base else ""
        first_chunk = f"{compiled[name]:.0f} s" if name in compiled else ""
        spread = f"{min(found):,.0f} … {max(found):,.0f}"
        print(f"{name:24}{middle:>12,.0f}{spread:>26}{ratio:>12}{first_chunk:>13}")
    if given.runs == 1 and not with_peer:
        print("torch-ac is not installed: pip install --no-deps torch-ac==1.4.0")

    print("\nwhere the time of an update goes (ms; on a CPU of one run)")
    for memory, job in jobs.items():
        times = parts(job)
        whole = sum(times.values())
        shares = "  ".join(f"{name} {ms:.1f} ({ms / whole:.0%})" for name, ms in times.items())
        print(f"  memory {memory:5} {shares}")
    if given.all:
        the_rest()


def the_rest() -> None:
    """The benchmarks of training that have a file of their own, and the paper on a GPU."""
    here, gpu = Path(__file__).parent, not in_turn(jax.devices())
    learn = [] if gpu else ["blocked-unlock-pickup", "--preset", "default", "--most", "3"]
    starts = [
        ["--warm", "10", "--cold", "2", "--first-seed", "9100", name, "--stop-when-return", "0.8"]
        for name in PAPER
    ]
    commands = [
        *([str(here / "start.py"), *arguments] for arguments in (starts if gpu else [[]])),
        [str(here / "seconds_to_learn.py"), *learn],
        [str(here / "same_learning.py")],
    ]
    with tempfile.TemporaryDirectory() as folder:
        if gpu:
            jobs = [f"{name}-today" for name in PAPER]
            commands.append(["-m", "mastery", "paper", *jobs, "--seeds", "10", "--out", folder])
        for command in commands:
            print(f"\npython {' '.join(command)}", flush=True)
            began = time.perf_counter()
            subprocess.run([sys.executable, *command], check=True)
            print(f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
