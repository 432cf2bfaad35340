"""The addition curriculum with cuDNN's LSTM, which is the one PyTorch has on a GPU, called by JAX.

The same network and the same work as torch_addition.py, for a machine with a GPU and no PyTorch:
one run, one compiled call for a minibatch. PyTorch calls the same kernels of cuDNN, and those of
the loss, of Adam and of the examples one by one: it can hardly be faster than this.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.experimental import rnn

from mastery.learners.addition import examples

WIDTH, SYMBOLS = 128, 11
adam = optax.adam(1e-3)


def begin(key: Any) -> dict[str, Any]:
    keys = jax.random.split(key, 3)
    return {
        "encoder": rnn.init_lstm_weight(keys[0], SYMBOLS, WIDTH, 1, False),
        "decoder": rnn.init_lstm_weight(keys[1], WIDTH, WIDTH, 1, False),
        "out": jax.random.uniform(keys[2], (WIDTH, 10), minval=-0.09, maxval=0.09),
        "bias": jnp.zeros(10),
    }


def lstm(weights: Any, x: Any) -> tuple[Any, Any]:
    """All outputs, and the last one."""
    n, steps, inputs = x.shape
    nothing, long = jnp.zeros((1, n, WIDTH)), jnp.full(n, steps, jnp.int32)
    out, last, _ = rnn.lstm(x, nothing, nothing, weights, long, inputs, WIDTH, 1, 0.0, False)
    return out, last[0]


def network(weights: dict[str, Any], given: Any) -> Any:
    """Logits of the digits (n, length + 1, 10), for symbols (2 · length + 1, n)."""
    _, code = lstm(weights["encoder"], jax.nn.one_hot(given.T, SYMBOLS))
    repeated = jnp.repeat(code[:, None], (len(given) + 1) // 2, 1)
    return lstm(weights["decoder"], repeated)[0] @ weights["out"] + weights["bias"]


def loss(weights: dict[str, Any], given: Any, target: Any) -> Any:
    logits = network(weights, given)
    return optax.softmax_cross_entropy_with_integer_labels(logits, target.T).mean()


@partial(jax.jit, static_argnums=(2, 3), donate_argnums=0)
def minibatch(state: Any, key: Any, batch: int, digits: int) -> Any:
    weights, optimiser = state
    for_tasks, for_numbers = jax.random.split(key)
    sizes = jax.random.randint(for_tasks, (batch,), 1, digits + 1)
    gradient = jax.grad(loss)(weights, *examples(for_numbers, sizes, digits))
    change, optimiser = adam.update(gradient, optimiser)
    return optax.apply_updates(weights, change), optimiser


@partial(jax.jit, static_argnums=2)
def accuracy(weights: Any, key: Any, digits: int) -> Any:
    given, target = examples(key, jnp.repeat(jnp.arange(1, digits + 1), 100), digits)
    right = (network(weights, given).argmax(-1) == target.T).all(1)
    return right.reshape(digits, -1).mean(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--digits", type=int, default=9)
    parser.add_argument("--batch", type=int, default=128)
    given = parser.parse_args()
    weights = begin(jax.random.key(0))
    state = weights, adam.init(weights)
    keys = iter(jax.random.split(jax.random.key(1), 1_000_000))

    def epoch(state: Any) -> Any:
        for _ in range(10):
            state = minibatch(state, next(keys), given.batch, given.digits)
        for _ in range(2):
            accuracy(state[0], next(keys), given.digits).tolist()
        return state

    state = epoch(state)
    began, epochs = time.perf_counter(), 0
    while time.perf_counter() - began < given.seconds:
        state = epoch(state)
        epochs += 1
    print(10 * given.batch * epochs / (time.perf_counter() - began))


if __name__ == "__main__":
    main()
