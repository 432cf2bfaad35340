"""Environment steps per second of MiniGrid engines, side by side.

    python benchmarks/environments.py [--engines minigrid,xminigrid,...] [--envs 16,512,4096]
                                      [--seconds 2] [--csv FILE]

The same work for every compiled engine: a `lax.scan` of 128 steps in one call, random actions drawn
at its start, every step's observation kept in the loop's carry, rewards and ends of episodes
summed, resets as the engine does them, the state handed from call to call. The real `minigrid` and
our `make` are measured in one process, one environment at a time; `make_vec` is a loop in Python.
An engine that is not installed is skipped.
"""

from __future__ import annotations

import argparse
import csv
import gc
import importlib.metadata
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from stepped_environments import REPEATS, STEPS, Speed, measure_alone, measure_vector, ours, real

from mastery.errors import DISTRIBUTION

# All environments at once: state, actions -> state with the observation in it, rewards, ends.
Step = Callable[[Any, jax.Array], tuple[Any, jax.Array, jax.Array]]


class Made(NamedTuple):
    """A number of environments, ready to step."""

    state: Any  # a pytree of arrays, the first observations among them
    step: Step
    actions: int  # how many there are
    before: Callable[[Any], Any] = lambda state: state  # once a call and timed: to refill, say
    reused: Callable[[Any], int] = lambda state: 0  # levels given out more than once


def xminigrid(envs: int, occlusion: bool) -> Made:
    import xminigrid
    from xminigrid.core.observation import minigrid_field_of_view
    from xminigrid.wrappers import GymAutoResetWrapper, Wrapper

    class Occlusion(Wrapper):
        """Its own port of MiniGrid's occlusion, which no environment of it uses. Around the reset
        and not within it, so once a step; what the environment had built itself is dead code."""

        def reset(self, params, key):
            return self.seen(params, self._env.reset(params, key))

        def step(self, params, timestep, action):
            return self.seen(params, self._env.step(params, timestep, action))

        def seen(self, params, timestep):
            state, size = timestep.state, params.view_size
            view = minigrid_field_of_view(state.grid, state.agent, size, size)
            return timestep.replace(observation=view)

    env, params = xminigrid.make("MiniGrid-UnlockPickUp")
    env = GymAutoResetWrapper(env)
    if occlusion:
        env = Occlusion(env)

    def step(timestep, actions):
        timestep = jax.vmap(partial(env.step, params))(timestep, actions)
        return timestep, timestep.reward, timestep.last()

    reset = jax.jit(jax.vmap(partial(env.reset, params)))
    return Made(reset(jax.random.split(jax.random.key(0), envs)), step, env.num_actions(params))


def navix(envs: int, view: str) -> Made:
    import navix

    env = navix.make("Navix-KeyCorridorS3R3-v0", observation_fn=getattr(navix.observations, view))

    def step(timestep, actions):
        timestep = jax.vmap(env.step)(timestep, actions)
        return timestep, timestep.reward, timestep.is_done()

    reset = jax.jit(jax.vmap(env.reset))
    return Made(reset(jax.random.split(jax.random.PRNGKey(0), envs)), step, len(env.action_set))


def mastery(envs: int) -> Made:
    from mastery.minigrid import NAMES, observe, refill
    from mastery.minigrid import reset as reset_all
    from mastery.minigrid import step as step_all

    uniform = np.ones(len(NAMES), np.float32)

    def step(carry, actions):
        state, pool, _, key = carry
        state, pool, outcome = step_all(state, pool, actions)
        ends = outcome.terminated | outcome.truncated
        return (state, pool, observe(state), key), outcome.reward, ends

    def before(carry):
        state, pool, image, key = carry
        key, draw = jax.random.split(key)
        return state, refill(draw, pool, uniform), image, key

    @jax.jit
    def reset(key):
        pool, state = reset_all(key, uniform, envs)
        return state, pool, observe(state), key

    return Made(
        reset(jax.random.key(0)), step, 7, before, reused=lambda carry: int(carry[1].reuse())
    )


class Engine(NamedTuple):
    package: str
    make: Callable[[int], Made] | Callable[[str], Any] | None  # None: make_vec
    note: str
    alone: bool = False  # whether `make` makes one environment, by its task's name


ENGINES = {
    "minigrid": Engine(
        "minigrid",
        real,
        "the real semantics; five tasks in turn, one process, one environment at a time, on the "
        "CPU; 7 actions; reset on the step that ends an episode",
        alone=True,
    ),
    "mastery-make": Engine(
        DISTRIBUTION, ours, "the same tasks and steps in `mastery.minigrid.make`", alone=True
    ),
    "mastery-make-vec": Engine(
        DISTRIBUTION,
        None,
        "the same tasks mixed in `mastery.minigrid.make_vec`, a loop in Python; reset on the step "
        "that ends an episode",
    ),
    "xminigrid": Engine(
        "xminigrid",
        partial(xminigrid, occlusion=False),
        "UnlockPickUp, 6 actions; sees through walls, 2 channels; a fresh level is built at every "
        "step and used where an episode ended, on that step",
    ),
    "xminigrid-occlusion": Engine(
        "xminigrid",
        partial(xminigrid, occlusion=True),
        "the same with its own port of MiniGrid's occlusion, once a step",
    ),
    "navix": Engine(
        "navix",
        partial(navix, view="symbolic"),
        "KeyCorridorS3R3, 7 actions, at most 100 steps; sees the whole 7 × 7 map from above; the "
        "goal is to walk onto a cell; a fresh level is built at every step and used on the step "
        "after an episode's last, which is counted",
    ),
    "navix-first-person": Engine(
        "navix",
        partial(navix, view="symbolic_first_person"),
        "the same with the 7 × 7 cells before the agent, as MiniGrid has it, through walls",
    ),
    "mastery": Engine(
        DISTRIBUTION,
        mastery,
        "all 18 tasks mixed, the real semantics bit for bit; fresh levels from a pool that is "
        "refilled once a call, which is timed; reset on the step that ends an episode",
    ),
}


def measure(make: Callable[[int], Made], envs: int, seconds: float) -> Speed:
    start = time.perf_counter()
    made = make(envs)

    def one(carry, actions):
        state, rewards, ends = carry
        state, reward, end = made.step(state, actions)
        return (state, rewards + reward.sum(), ends + end.sum(dtype=jnp.int32)), None

    @partial(jax.jit, donate_argnums=(0, 1))
    def call(state, key):
        key, draw = jax.random.split(key)
        actions = jax.random.randint(draw, (STEPS, envs), 0, made.actions)
        sums = (jnp.float32(0), jnp.int32(0))
        (state, rewards, ends), _ = jax.lax.scan(one, (made.before(state), *sums), actions)
        return state, key, rewards, ends

    state, key, _, ends = jax.block_until_ready(call(made.state, jax.random.key(1)))
    first = time.perf_counter() - start
    # one more before the clock starts, since its input is the first one's output
    state, key, _, ends = jax.block_until_ready(call(state, key))
    times, total = [], int(ends)
    begin = time.perf_counter()
    while len(times) < REPEATS or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        state, key, _, ends = jax.block_until_ready(call(state, key))
        times.append(time.perf_counter() - start)
        total += int(ends)
    steps = STEPS * envs
    episode = steps * (len(times) + 1) / total if total else float("inf")
    reused = made.reused(state)
    return Speed(steps / np.median(times), steps / min(times), len(times), first, episode, reused)


def measure_any(engine: Engine, envs: int, seconds: float) -> Speed:
    if engine.alone:
        return measure_alone(engine.make, seconds)
    if engine.make is None:
        return measure_vector(envs, seconds)
    return measure(engine.make, envs, seconds)


def human(rate: float) -> str:
    for unit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= unit:
            return f"{rate / unit:.3g}{suffix}"
    return f"{rate:.0f}"


def reason(error: Exception) -> str:
    """The first line of an error, cut to fit a line of the terminal."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:160]


def rows(names: list[str], sizes: list[int], seconds: float):
    """Each engine's name, version, and speed (or what went wrong) at each number."""
    for name in names:
        engine = ENGINES[name]
        speeds: dict[int, Speed | str] = {}
        try:
            version = importlib.metadata.version(engine.package)
        except importlib.metadata.PackageNotFoundError:
            version = ""  # not installed, or on PYTHONPATH only
        try:
            for envs in (1,) if engine.alone else sizes:
                try:
                    speeds[envs] = measure_any(engine, envs, seconds)
                except ImportError:
                    raise
                except Exception as error:  # out of memory, say: the other sizes may do
                    speeds[envs] = reason(error)
                    print(f"{name}, {envs:,} environments: {reason(error)}", file=sys.stderr)
                jax.clear_caches()
                gc.collect()
        except ImportError as error:
            print(f"{name}: skipped, {error}", file=sys.stderr)
            continue
        yield name, version, speeds


def numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",")]


def names(text: str) -> list[str]:
    chosen = text.split(",")
    if unknown := [name for name in chosen if name not in ENGINES]:
        raise argparse.ArgumentTypeError(
            f"no engine {unknown[0]!r}; there are {', '.join(ENGINES)}"
        )
    return chosen


def main() -> None:
    gpu = jax.default_backend() != "cpu"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engines", type=names, default=list(ENGINES), help=", ".join(ENGINES))
    parser.add_argument(
        "--envs",
        type=numbers,
        default=[1024, 16384, 131072] if gpu else [16, 512, 4096],
        help="numbers of environments, with commas",
    )
    parser.add_argument("--seconds", type=float, default=2, help="for each cell, at least")
    parser.add_argument("--csv", type=Path, help="a file to write the figures to as well")
    options = parser.parse_args()

    device = jax.devices()[0].device_kind
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(
        f"Environment steps per second, random actions, observation built, resets on: median "
        f"(best) of calls of {STEPS} steps.\njax {jax.__version__}, {device}, {cores} CPU cores. "
        "The first call (reset, trace, compile, run) is the slowest of the sizes'.\n"
    )
    head = ("engine", *(f"{n:,} envs" for n in options.envs), "first call", "semantics")
    rule = ["---", *["---:"] * (len(head) - 2), "---"]
    print("| " + " | ".join(head) + " |\n|" + "|".join(rule) + "|", flush=True)
    table = []
    for name, version, speeds in rows(options.engines, options.envs, options.seconds):
        cells = []
        for speed in speeds.values():
            good = isinstance(speed, Speed)
            cells.append(f"{human(speed.median)} ({human(speed.best)})" if good else "failed")
        if ENGINES[name].alone:
            cells = [f"{cells[0]} for any number", *["″"] * (len(options.envs) - 1)]
        first = [s.first for s in speeds.values() if isinstance(s, Speed) and s.first == s.first]
        cells.append(f"{max(first):.1f} s" if first else "–")
        line = (f"{name} {version}".strip(), *cells, ENGINES[name].note)
        print("| " + " | ".join(line) + " |", flush=True)
        for envs, speed in speeds.items():
            figures = speed if isinstance(speed, Speed) else [""] * len(Speed._fields)
            error = "" if isinstance(speed, Speed) else speed
            table.append([name, version, jax.__version__, device, cores, envs, *figures, error])
        reused = sum(speed.reused for speed in speeds.values() if isinstance(speed, Speed))
        if reused:
            print(f"{name}: {reused:,} levels were given out more than once", file=sys.stderr)
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                ["engine", "version", "jax", "device", "cores", "envs", *Speed._fields, "error"]
            )
            writer.writerows(table)


if __name__ == "__main__":
    main()
