"""Which settings learn in the fewest seconds on a GPU with one agent: how `fast` was chosen.

    python benchmarks/choose_fast.py [--seeds 3] [--first-seed 500] [SETTINGS ...]

SETTINGS are environments x frames, epochs and minibatch, such as 512x128/4/8192. For each of them,
and each learning rate, agents learn every curriculum; the runs of all curricula and learning rates
are one compiled program. Learned: a mean training return of 0.8 on every task over the last five
chunks. Seconds are these frames at the speed of a single run, which is measured by itself. The next
settings compile while the GPU trains. Choose with seeds that nothing is reported on.

`fast` was chosen with gradients clipped to a norm of 2. It has 0.05 since agents were found to lose
what they had learned (stays_learned.py), and so have those trained here.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mastery import Curriculum
from mastery.learners.ppo import PPO, PPOSettings
from mastery.rundir.results import RECENT
from mastery.training.devices import prepare
from mastery.training.job import Job
from mastery.training.loops.compiled import CompiledLoop, compile_chunk
from mastery.training.loops.early import EarlyCompiler
from mastery.training.loops.minigrid import MiniGridLoop

CURRICULA = ("blocked-unlock-pickup", "key-corridor", "obstructed-maze")
USUAL = [
    "512x128/4/8192",
    "512x128/2/8192",
    "1024x64/2/8192",
    "1024x64/2/4096",
    "1024x64/4/16384",
    "512x64/2/4096",
    "2048x32/2/8192",
    "1024x32/2/4096",
    "1024x64/1/4096",
    "1024x64/3/8192",
]
GOAL = 0.8
CHUNK_FRAMES = 131_072  # as in mastery train


def settings_of(text: str) -> PPOSettings:
    shape, epochs, batch = text.split("/")
    envs, frames = map(int, shape.split("x"))
    ahead = min(max(frames // 8, 4), 16)  # episodes are rarely shorter than eight frames
    return replace(
        PPO.presets["fast"],
        envs=envs,
        frames=frames,
        epochs=int(epochs),
        batch=int(batch),
        ahead=ahead,
    )


def chunk_of(settings: PPOSettings) -> int:
    return min(max(round(CHUNK_FRAMES / settings.per_update), 1), 10)


def speed(loop: MiniGridLoop) -> float:
    """Frames per second of a single run, compiled before."""
    carry, _ = loop.advance(loop.begin())
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(8):
            carry, _ = loop.advance(carry)
        jax.block_until_ready(carry)
        best = min(best, time.perf_counter() - began)
    return 8 * loop.job.chunk * loop.job.frames_of_update / best


def frames_to_learn(
    loops: list[CompiledLoop], chunk: Any, most: float
) -> list[np.ndarray[Any, Any]]:
    """Frames of each run of each loop until it has learned; infinite if it has not."""
    carries, plans = [loop.begin()[0] for loop in loops], [loop.plan for loop in loops]
    found = [np.full(len(loop.job.runs), np.inf) for loop in loops]
    recent: list[deque[Any]] = [deque(maxlen=RECENT) for _ in loops]
    frames = 0
    while frames < most and any(np.isinf(x).any() for x in found):
        carries, metrics = chunk(carries, plans)
        frames += loops[0].job.chunk * loops[0].job.frames_of_update
        for loop, one, last, learned in zip(loops, metrics, recent, found, strict=True):
            own = loop.own_metrics([one])
            last.append((own.episodes.sum(0), own.returns.sum(0)))
            n, total = (np.sum(x, 0) for x in zip(*last, strict=True))
            if len(last) == RECENT:
                there = ((n > 0) & (total >= GOAL * n)).all(-1) & np.isinf(learned)
                learned[there] = frames
    return found


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """While no other process trains."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def one(text: str, given: argparse.Namespace) -> None:
    """Print the rows of these settings."""
    prepare(1)
    settings = settings_of(text)
    rates = tuple(map(float, given.rates.split(",")))
    usual: dict[str, Any] = {
        "programs": ("mr",),
        "frames": 10**9,
        "settings": settings,
        "chunk": chunk_of(settings),
        "evaluate_every": 0,
    }
    loops: list[CompiledLoop] = [
        MiniGridLoop(
            Job(
                Curriculum.load(name),
                seeds=given.seeds,
                seed=given.first_seed,
                grid={"learning_rate": rates},
                **usual,
            )
        )
        for name in CURRICULA
    ]
    single = MiniGridLoop(Job(Curriculum.load(CURRICULA[0]), seed=given.first_seed, **usual))
    compiler, chunk = EarlyCompiler(threads=8), compile_chunk(loops)
    CompiledLoop.prepare_chunk(compiler, chunk, loops)
    single.prepare(new=True)
    for loop in loops:
        loop.prepare_rest(compiler, new=True)
    compiler._pool.shutdown(wait=True)
    assert single._compiler is not None
    single._compiler._pool.shutdown(wait=True)
    with alone(Path(given.lock)):
        a_second = speed(single)
        found = frames_to_learn(loops, chunk, 1e6 * given.most)
    for rate in rates:
        cells = []
        for loop, frames in zip(loops, found, strict=True):
            runs = [
                i for i, run in enumerate(loop.job.runs) if run.changes["learning_rate"] == rate
            ]
            own = np.sort(frames[runs])
            middle = own[(len(own) - 1) // 2 : len(own) // 2 + 1].mean()
            cells.append(
                f"{np.isfinite(own).sum()} of {len(own)} | {middle / 1e6:.1f} "
                f"| {middle / a_second:.2f}"
            )
        print(f"| {text} | {rate:g} | {a_second / 1e6:.1f} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("settings", nargs="*", default=USUAL, metavar="SETTINGS")
    parser.add_argument("--rates", default="1e-3,2e-3,3e-3", help="learning rates")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=500)
    parser.add_argument("--most", type=float, default=12, help="million frames per run")
    parser.add_argument("--lock", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.lock:
        one(given.settings[0], given)
        return
    print("| settings | rate | M frames/s |" + " learned | M frames | s |" * len(CURRICULA))
    print("|---|---:|---:|" + "---:|" * 3 * len(CURRICULA), flush=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(3) as pool:
        options = ["--rates", given.rates, "--seeds", str(given.seeds), "--most", str(given.most)]
        options += ["--first-seed", str(given.first_seed), "--lock", f"{folder}/lock"]
        commands = [[sys.executable, __file__, text, *options] for text in given.settings]
        list(pool.map(lambda command: subprocess.run(command, check=True), commands))


if __name__ == "__main__":
    main()
