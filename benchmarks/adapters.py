"""What a curriculum costs: environment steps per second with and without one.

    python benchmarks/adapters.py [--envs 16] [--seconds 20]

The same environments, in Gymnasium's vector environments: without a curriculum; with
`CurriculumVectorEnv`; and with Syllabus 0.7, if it is installed (`pip install syllabus-rl==0.7
matplotlib`), as its documentation says: with a TaskWrapper and a GymnasiumSyncWrapper around each
environment. There are three tasks, all of them the same environment, so that the work is the same;
actions are random, and episodes as long as that makes them: about 22 steps of CartPole, the worst
case for a curriculum; about 500 of Acrobot; and about 280 of MiniGrid-Unlock.

Each is measured against the environments without a curriculum, in turns of 128 steps (a time-step
of the teacher each). What is told is the median over the turns, and in per cent how much less is
done in the same time: of the CPU, where one process does all the work, as then it does not matter
what else the machine does, and else by the clock.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from mastery import Curriculum, Task, Teacher
from mastery.adapters.gymnasium import CurriculumVectorEnv

NAMES = ("one", "two", "three")
TASKS = Curriculum([Task(name, 0, 100, NAMES[:i]) for i, name in enumerate(NAMES)])
TURN = 128  # steps of each environment
MODES = {"sync": SyncVectorEnv, "async": AsyncVectorEnv}


def cartpole() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1", disable_env_checker=True)


def acrobot() -> gym.Env[Any, Any]:
    return gym.make("Acrobot-v1", disable_env_checker=True)


def minigrid() -> gym.Env[Any, Any]:
    from minigrid.wrappers import ImgObsWrapper

    return ImgObsWrapper(gym.make("MiniGrid-Unlock-v0", disable_env_checker=True))


ENVIRONMENTS = {"CartPole": cartpole, "Acrobot": acrobot, "MiniGrid": minigrid}
Make = Callable[[], gym.Env[Any, Any]]


def without(make: Make, envs: int, mode: str) -> tuple[Any, Callable[[], None]]:
    made = MODES[mode]([make] * envs)
    return made, made.close


def ours(make: Make, envs: int, mode: str, program: str) -> tuple[Any, Callable[[], None]]:
    teacher = Teacher(TASKS, program, seed=0)
    made = CurriculumVectorEnv(lambda task: make(), teacher, envs, vectorization_mode=mode)
    return made, made.close


def syllabus(make: Make, envs: int, mode: str) -> tuple[Any, Callable[[], None]]:
    """With its lightest curriculum, which draws tasks uniformly and does not look at returns."""
    from syllabus.core import GymnasiumSyncWrapper, make_multiprocessing_curriculum
    from syllabus.core.task_interface import TaskWrapper
    from syllabus.curricula import DomainRandomization
    from syllabus.task_space import DiscreteTaskSpace

    space = DiscreteTaskSpace(len(NAMES), list(NAMES))
    curriculum = make_multiprocessing_curriculum(DomainRandomization(space))

    def one() -> gym.Env[Any, Any]:
        return GymnasiumSyncWrapper(TaskWrapper(make()), space, curriculum.components)

    made = MODES[mode]([one] * envs)

    def close() -> None:
        made.close()
        curriculum.stop()

    return made, close


COLUMNS: dict[str, Callable[[Make, int, str], tuple[Any, Callable[[], None]]]] = {
    "uniform": lambda *given: ours(*given, "uniform"),
    "mr": lambda *given: ours(*given, "mr"),
    "Syllabus": syllabus,
}


def compare(base: Any, other: Any, cpu: bool, seconds: float) -> tuple[float, float, float]:
    """Steps per second of both, and how much less the other does, as a share."""
    clock = time.process_time if cpu else time.perf_counter
    random = np.random.default_rng(0)
    for envs in (base, other):
        envs.reset(seed=0)
    actions = random.integers(base.single_action_space.n, size=(TURN, base.num_envs))
    turns: list[list[float]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(turns) < 3:
        turns.append([])
        for envs in (base, other):
            began, counted = time.perf_counter(), clock()
            for action in actions:
                envs.step(action)
            turns[-1] += [time.perf_counter() - began, clock() - counted]
    ratio = statistics.median(turn[1] / turn[3] for turn in turns[1:])
    speeds = [actions.size / statistics.median(turn[i] for turn in turns[1:]) for i in (0, 2)]
    return speeds[0], speeds[1], 1 - ratio


def one(name: str, mode: str, column: str, envs: int, seconds: float) -> str:
    """A line of the table."""
    make = ENVIRONMENTS[name]
    base, close_base = without(make, envs, mode)
    other, close = COLUMNS[column](make, envs, mode)
    speed, with_it, less = compare(base, other, mode == "sync", seconds)
    close()
    close_base()
    return f"{speed:>9,.0f}{with_it:>9,.0f}{100 * less:>11.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only:
        print(one(*args.only, args.envs, args.seconds))
        return
    print(f"environment steps per second, {args.envs} environments, Gymnasium {gym.__version__}")
    print(f"{'':<26}{'none':>9}{'with':>9}{'slower by':>13}")
    for name, mode, column in itertools.product(ENVIRONMENTS, MODES, COLUMNS):
        if column == "Syllabus" and not find_spec("syllabus"):
            continue
        command = [sys.executable, __file__, "--only", name, mode, column]
        command += ["--envs", str(args.envs), "--seconds", str(args.seconds)]
        try:  # in a process of its own, as Syllabus's queues can lock up
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=3 * args.seconds + 30, check=True
            )
            line = done.stdout.splitlines()[-1]
        except subprocess.TimeoutExpired:
            line = "         it has locked up"
        print(f"{name} {mode} {column}".ljust(26) + line, flush=True)


if __name__ == "__main__":
    main()
