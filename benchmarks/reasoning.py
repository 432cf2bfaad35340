"""Speed of GRPO on problems with verifiable rewards: tokens per second, and where the time goes.

    python benchmarks/reasoning.py                       # 1 and 50 runs of the default model
    python benchmarks/reasoning.py --preset small --runs 1,2
    python benchmarks/reasoning.py --pieces              # also time drawing, sampling, learning

Each row is one compiled program of that many runs: seconds to compile it, then updates with the
teacher inside. Generated tokens are those of all completions up to their end; trained tokens are
those of groups with signal.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mastery.curriculum import Curriculum
from mastery.learners import grpo
from mastery.learners.grpo import REASONING, Sampled
from mastery.learners.transformer import sample
from mastery.random_numbers import uniform
from mastery.reasoning import problems
from mastery.reasoning.alphabet import ANSWER
from mastery.reasoning.problems import FamilyLevels
from mastery.training.devices import prepare
from mastery.training.job import Job, reasoning_tasks
from mastery.training.loops.reasoning import GENERATED, TRAINED, ReasoningLoop

CHUNK = 5


def timed(f: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = jax.block_until_ready(f())
    return time.perf_counter() - began, found


def speed(preset: str, runs: int, seconds: float) -> str:
    settings = REASONING.presets[preset]
    job = Job(Curriculum.load("reasoning"), seeds=runs, settings=settings, chunk=CHUNK)
    loop = ReasoningLoop(job, grpo.new_model(jax.random.key(0), settings))
    carry = loop.begin()
    compiling, (carry, _) = timed(lambda: loop.advance(carry))
    took, updates, generated, trained = [], 0, 0.0, 0.0
    while sum(took) < seconds:
        spent, (carry, metrics) = timed(lambda now=carry: loop.advance(now))
        took.append(spent)
        updates += CHUNK
        generated += float(metrics.scalars[GENERATED].sum())
        trained += float(metrics.scalars[TRAINED].sum())
    total, completions = sum(took), updates * settings.per_update * runs
    return (
        f"| {runs} | {compiling:.0f} s | {1e3 * total / updates:.1f} ms | "
        f"{completions / total:,.0f} | {generated / total:,.0f} | {trained / total:,.0f} |"
    )


def pieces(preset: str, runs: int) -> None:
    """Time the parts of an update, each compiled alone."""
    settings = REASONING.presets[preset]
    n, g = settings.prompts, settings.group
    curriculum = Curriculum.load("reasoning")
    tasks = FamilyLevels(*(jnp.asarray(np.resize(x, n)) for x in reasoning_tasks(curriculum)))
    keys = jax.random.split(jax.random.key(0), runs)
    models = jax.vmap(lambda key: grpo.new_model(key, settings))(keys)
    hyper = grpo.ReasoningHyper.of(settings)
    draw = jax.jit(jax.vmap(lambda key: problems.draw(key, tasks, held_out=False)))
    prompt, _ = draw(keys)
    uniforms = jax.vmap(lambda key: uniform(key, (ANSWER, n, g)))(keys)
    complete = jax.jit(jax.vmap(sample))
    completion, log_p = complete(models, prompt, uniforms)
    seen = Sampled(prompt, completion, log_p, log_p[:, :, :, 0])
    learn = jax.jit(
        jax.vmap(lambda model, x: eqx.filter_grad(grpo.loss)(model, x, hyper), in_axes=(0, 0))
    )
    print(f"\n| part of an update, {runs} runs | ms |\n| --- | --- |")
    for name, f in (
        ("draw problems", lambda: draw(keys)),
        ("generate completions", lambda: complete(models, prompt, uniforms)),
        ("gradient", lambda: learn(models, seen)),
    ):
        timed(f)
        print(f"| {name} | {1e3 * min(timed(f)[0] for _ in range(5)):.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="default", choices=list(REASONING.presets))
    parser.add_argument("--runs", default="1,50")
    parser.add_argument("--seconds", type=float, default=5.0, help="of measuring, per row")
    parser.add_argument("--pieces", action="store_true")
    given = parser.parse_args()
    prepare(50)
    print(f"{jax.devices()[0].device_kind}, preset {given.preset}")
    print("| runs | compile | an update | completions/s | generated tokens/s | trained tokens/s |")
    print("| --- | --- | --- | --- | --- | --- |")
    runs = [int(n) for n in given.runs.split(",")]
    for n in runs:
        print(speed(given.preset, n, given.seconds), flush=True)
    if given.pieces:
        pieces(given.preset, max(runs))


if __name__ == "__main__":
    main()
