"""The same bits on every device. Runs where there is a GPU; the other tests are for the CPU."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from mastery.minigrid import observe, refill, reset, step
from mastery.minigrid.rules import MINIGRID_REWARD, N_MAX, act

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
    same = jax.tree.map(np.array_equal, *results)
    assert all(jax.tree.leaves(same)), same
    (_, _, outcome), *_ = results[0]
    assert outcome.terminated.any()


@pytest.mark.skipif(jax.default_backend() == "cpu", reason="there is no GPU")
def test_every_reward_is_the_same():
    """All rewards there can be: a GPU may divide less exactly than a CPU."""
    _, state = jax.jit(reset, static_argnums=(2, 3))(jax.random.key(0), UNIFORM, 3600, 1)
    n = np.arange(3600, dtype=np.int32)
    ahead = np.asarray(state.agent) + np.array([1, 16, -1, -16])[np.asarray(state.direction)]
    words = np.asarray(state.grid).copy()
    words.view(np.uint8)[n, ahead] = np.asarray(state.target)  # the target, right ahead
    for task in range(18):
        played = state._replace(grid=words, steps=n, task=np.full(3600, task, np.int32))
        for kind, share in enumerate((1, 0.9)):
            _, outcome = jax.jit(act)(played, np.full(3600, 3, np.int32), kind)
            won = np.asarray(outcome.terminated) & (n < N_MAX[task])
            exact = (1 - share * ((n + 1) / N_MAX[task])).astype(np.float32)
            assert won.sum() > 0.8 * N_MAX[task]  # all but Unlock's, which are not picked up
            assert np.array_equal(np.asarray(outcome.reward)[won], exact[won])
