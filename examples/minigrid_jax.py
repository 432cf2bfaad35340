"""MiniGrid inside a compiled loop: levels, steps and observations in one call.

    python examples/minigrid_jax.py

1,024 environments play all eighteen tasks at random. Between two calls the pool of levels is
refilled, with the probabilities of the tasks at that time.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from mastery.minigrid import NAMES, observe, refill, reset, step

ENVS, STEPS = 1024, 128


@jax.jit
def begin(key, probabilities):
    return reset(key, probabilities, ENVS)


@jax.jit
def rollout(key, state, pool, probabilities):
    def one(carry, key):
        state, pool = carry
        image = observe(state)  # (1024, 7, 7, 3): what your network is shown
        action = jax.random.randint(key, (ENVS,), 0, 7)  # your network goes here
        state, pool, outcome = step(state, pool, action)
        return (state, pool), (outcome, image.sum())  # used, so that it is built

    key, fresh = jax.random.split(key)
    pool = refill(fresh, pool, probabilities)
    (state, pool), (outcome, images) = jax.lax.scan(
        one, (state, pool), jax.random.split(key, STEPS)
    )
    ended = outcome.terminated | outcome.truncated
    count = jnp.zeros(len(NAMES)).at[outcome.task].add(ended)
    total = jnp.zeros(len(NAMES)).at[outcome.task].add(outcome.reward)  # a reward is a whole return
    return state, pool, count, total, images


probabilities = jnp.ones(len(NAMES)) / len(NAMES)  # or a teacher's
pool, state = begin(jax.random.key(0), probabilities)
state, pool, *_ = rollout(jax.random.key(1), state, pool, probabilities)  # compiles
counts, totals = np.zeros(len(NAMES)), np.zeros(len(NAMES))
start = time.perf_counter()
for key in jax.random.split(jax.random.key(2), 30):
    state, pool, count, total, _ = rollout(key, state, pool, probabilities)
    counts, totals = counts + count, totals + total
seconds = time.perf_counter() - start
print(f"{30 * STEPS * ENVS / seconds / 1e6:.1f} million steps a second")
print(f"{int(counts.sum()):,} episodes, {int(pool.reuse())} levels played twice; mean returns:")
for name, count, total in zip(NAMES, counts, totals, strict=True):
    print(f"  {name:<22} {total / max(count, 1):.3f} of {int(count)}")
