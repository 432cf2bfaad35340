"""Steps per second of environments that are stepped from Python; for `environments.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

STEPS = 128  # of each environment in one call
REPEATS = 3  # calls timed at least
REAL_TASKS = (  # small to large, all of the paper's three curricula
    "MiniGrid-Unlock-v0",
    "MiniGrid-BlockedUnlockPickup-v0",
    "MiniGrid-KeyCorridorS3R3-v0",
    "MiniGrid-KeyCorridorS6R3-v0",
    "MiniGrid-ObstructedMaze-2Dlhb-v1",
)


class Speed(NamedTuple):
    """Steps per second, and what came with them."""

    median: float
    best: float
    repeats: int
    first: float  # seconds to the end of the first call: reset, trace, compile and run
    steps_per_episode: float  # to see that episodes end and resets are paid for
    reused: int = 0


def real(task: str):
    import gymnasium
    import minigrid  # noqa: F401

    return gymnasium.make(task, disable_env_checker=True).unwrapped


def ours(task: str):
    from mastery.minigrid import make

    return make(task)


def measure_alone(make: Callable[[str], Any], seconds: float) -> Speed:
    start = time.perf_counter()
    envs = [make(task) for task in REAL_TASKS]
    for i, env in enumerate(envs):
        env.reset(seed=i)
    first = time.perf_counter() - start
    random, times, total = np.random.default_rng(0), [], 0
    begin = time.perf_counter()
    while len(times) < REPEATS or time.perf_counter() - begin < seconds:
        actions = random.integers(envs[0].action_space.n, size=(len(envs), STEPS)).tolist()
        start = time.perf_counter()
        for env, chosen in zip(envs, actions, strict=True):
            for action in chosen:
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()
                    total += 1
        times.append(time.perf_counter() - start)
    return speed_of(times, STEPS * len(envs), total, first)


def measure_vector(num_envs: int, seconds: float) -> Speed:
    from mastery.minigrid import make_vec

    start = time.perf_counter()
    envs = make_vec(REAL_TASKS, num_envs, autoreset_mode="SameStep")
    envs.reset(seed=0)
    first = time.perf_counter() - start
    random, times, total = np.random.default_rng(0), [], 0
    begin = time.perf_counter()
    while len(times) < REPEATS or time.perf_counter() - begin < seconds:
        actions = random.integers(7, size=(STEPS, num_envs))
        start = time.perf_counter()
        for chosen in actions:
            _, _, terminated, truncated, _ = envs.step(chosen)
            total += int((terminated | truncated).sum())
        times.append(time.perf_counter() - start)
    return speed_of(times, STEPS * num_envs, total, first)


def speed_of(times: list[float], steps: int, ended: int, first: float) -> Speed:
    episode = steps * len(times) / ended if ended else float("inf")
    return Speed(steps / np.median(times), steps / min(times), len(times), first, episode)
