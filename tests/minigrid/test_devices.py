"""The same bits on every device. Runs where there is a GPU; the other tests are for the CPU."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from mastery.minigrid import observe, refill, reset, step
from mastery.minigrid.rules import MINIGRID_REWARD, N_MAX

UNIFORM = np.ones(18, np.float32)


def rollout(key, envs=1024, steps=600):
    """New levels, steps, observations, rewards and refills: everything the engine works out."""
    pool, state = reset(key, UNIFORM, envs, 2)

    def one(carry, key):
        state, pool = carry
        action = jax.random.randint(key, (envs,), 0, 7)
        state, pool, outcome = step(state, pool, action, MINIGRID_REWARD)
        return (state, pool), (observe(state).sum(), state, outcome)

    (state, pool), first = jax.lax.scan(one, (state, pool), jax.random.split(key, steps))
    pool = refill(key, pool, UNIFORM)
    return first, observe(state), pool


@pytest.mark.skipif(jax.default_backend() == "cpu", reason="there is no GPU")
def test_a_gpu_gives_the_same_bits_as_a_cpu():
    results = []
    for device in (jax.devices("cpu")[0], jax.devices()[0]):
        with jax.default_device(device):
            results.append(jax.tree.map(np.asarray, jax.jit(rollout)(jax.random.key(0))))
    here, there = (jax.tree.leaves(result) for result in results)
    assert all(np.array_equal(a, b) for a, b in zip(here, there, strict=True))
    (_, _, outcome), *_ = results[0]
    assert outcome.terminated.any()


@pytest.mark.skipif(jax.default_backend() == "cpu", reason="there is no GPU")
@pytest.mark.parametrize("tenths", [9, 10])
def test_every_reward_is_the_same(tenths):
    """A GPU may divide less exactly: all rewards there can be, of all tasks."""
    n = np.arange(1, 3601, dtype=np.int32)

    @jax.jit
    def rewards(n_max):
        return (10 * n_max - tenths * n).astype(np.float32) / (10 * n_max).astype(np.float32)

    for n_max in np.unique(N_MAX):
        exact = (1 - tenths / 10 * (n / n_max)).astype(np.float32)
        assert np.array_equal(rewards(n_max)[:n_max], exact[:n_max])
