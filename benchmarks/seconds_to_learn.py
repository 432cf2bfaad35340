"""Seconds and frames until one agent has learned a whole curriculum, with and without a teacher.

    python benchmarks/seconds_to_learn.py [--seeds 10] [--preset fast] [--goal 0.8] [CURRICULUM ...]
    python benchmarks/seconds_to_learn.py --preset default --set epochs=2 --first-seed 700

Learned: the mean training return of every task over the last five chunks is the goal or more.
Seconds are those of the whole job with one run, compiled before: teacher, levels, curves and
checkpoint, an evaluation at the end. On a CPU one core trains, and they are processor seconds,
which depend little on what else the machine does. Other programs than `mr` train all seeds in one
job, for their frames; the seconds beside them are these frames at the speed of one run. To choose
settings, change a preset with `--set`, and take other seeds than those of the results.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from mastery import Curriculum
from mastery.cli.arguments import read_setting, split_settings
from mastery.learners.ppo import PPO
from mastery.rundir.results import RECENT, Results, load_results
from mastery.training.devices import prepare
from mastery.training.job import Job
from mastery.training.loops.minigrid import MiniGridLoop
from mastery.training.train import TrainOptions, train

CHUNK_FRAMES = 131_072
FIRST_SEED = 9100  # no setting was tuned on these seeds


def frames_to_learn(results: Results, goal: float) -> np.ndarray:
    """Frames of each run until it has learned; infinite if it has not."""
    episodes = results.episodes
    sums = np.nan_to_num(results.returns) * episodes
    found = np.full(episodes.shape[1], np.inf)
    for point in range(RECENT, len(episodes) + 1):
        n, total = (x[point - RECENT : point].sum(0) for x in (episodes, sums))
        learned = ((n > 0) & (total >= goal * n)).all(1) & np.isinf(found)
        found[learned] = results.frames[point - 1]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "curricula",
        nargs="*",
        default=["blocked-unlock-pickup", "key-corridor", "obstructed-maze"],
        metavar="CURRICULUM",
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--preset", default="fast", choices=PPO.presets)
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--goal", type=float, default=0.8, help="mean training return of each task")
    parser.add_argument("--beside", default="uniform", help="another program; empty for none")
    parser.add_argument("--most", type=float, default=20, help="million frames per run")
    given = parser.parse_args()
    prepare(1)
    changes = {k: read_setting(PPO, k, ",".join(v)) for k, v in split_settings(given.set).items()}
    settings = replace(PPO.presets[given.preset], **changes)
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    what = " ".join([f"preset {given.preset}", *given.set])
    print(f"{jax.devices()[0].device_kind}, {what}, seeds {seeds[0]} to {seeds[-1]}", flush=True)
    print("| curriculum | program | learned | frames, millions: median (least … most) | seconds |")
    print("|---|---|---:|---:|---:|", flush=True)
    for name in given.curricula:
        chunk = min(max(round(CHUNK_FRAMES / settings.per_update), 1), 10)  # as mastery train
        most = round(given.most * 1e6)
        job = Job(
            Curriculum.load(name),
            programs=("mr",),
            seed=seeds[0],
            frames=most,
            settings=settings,
            chunk=chunk,
            evaluate_every=most,
            stop_return=given.goal,
        )
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            loop = MiniGridLoop(job)
            options = TrainOptions(loop=lambda job, note, loop=loop: loop)
            train(replace(job, frames=1), folder / "compile", options)
            seconds, frames, spent = [], [], 0
            for seed in seeds:
                loop.use_seeds([seed])
                began = clock()
                done = train(replace(job, seed=seed), folder / str(seed), options)
                seconds.append(clock() - began)
                spent += done.update * job.frames_of_update
                frames.append(frames_to_learn(load_results(folder / str(seed)), given.goal)[0])
            row(name, "mr", np.array(frames), np.array(seconds))
            if given.beside:
                every = replace(job, programs=(given.beside,), seeds=given.seeds, stop_return=None)
                train(every, folder / "beside", TrainOptions())
                found = frames_to_learn(load_results(folder / "beside"), given.goal)
                row(name, given.beside, found, found * sum(seconds) / spent)


def row(curriculum: str, program: str, frames: np.ndarray, seconds: np.ndarray) -> None:
    def spread(x: np.ndarray, digits: int) -> str:
        few, middle, many = (
            "never" if np.isinf(y) else f"{y:.{digits}f}"
            for y in (x.min(), np.sort(x)[(len(x) - 1) // 2 : len(x) // 2 + 1].mean(), x.max())
        )
        return f"{middle} ({few} … {many})"

    learned = f"{np.isfinite(frames).sum()} of {len(frames)}"
    print(
        f"| {curriculum} | {program} | {learned} | {spread(frames / 1e6, 2)} "
        f"| {spread(seconds, 2)} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
