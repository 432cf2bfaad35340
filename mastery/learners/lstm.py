"""An LSTM over many steps, with its own way back.

Going back, JAX would add to the weights' gradient at every step. Here the steps only pass on what
comes from the step after them, and the gradient of the weights is one large product at the end. And
what a step sees is small (a symbol), or the same in all steps: its part of the gates is made within
the step, where it stays in the cache. For some GPUs there are kernels: `lstm_kernels`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from mastery.learners import lstm_kernels

Array = Any  # a JAX array


def lstm(weight: Array, seen: Array, always: Array | None = None, last: bool = False) -> Array:
    """Hidden states after every step (width, steps, n), or after the last one (width, 1, n), from
    an empty memory.

    weight (width + inputs, 4 · width): of what is remembered and of what is seen, for the input,
    forget, cell and output gates; 1 is added to the forget gate. seen (steps, inputs, n): data, it
    gets no gradient. always (4 · width, n): what is added to the gates in every step.
    """
    way = lstm_kernels.lstm if lstm_kernels.fit(weight, seen) else by_steps
    return way(weight, seen, always, last)


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def by_steps(weight: Array, seen: Array, always: Array | None, last: bool) -> Array:
    """`lstm` for every machine."""
    return _chosen(_forward(weight, seen, always, False), last)


def _chosen(hidden: Array, last: bool) -> Array:
    return jnp.swapaxes(hidden[-1:] if last else hidden, 0, 1)


def _forward(weight: Array, seen: Array, always: Array | None, keep: bool) -> Any:
    nothing = jnp.zeros((weight.shape[1] // 4, seen.shape[2]))

    def one(state: Any, x: Array) -> Any:
        h, c = state
        gates = weight.T @ jnp.concatenate([h, x])
        i, f, g, o = jnp.split(gates if always is None else gates + always, 4)
        i, f, g, o = _sigmoid(i), _sigmoid(f + 1), jnp.tanh(g), _sigmoid(o)
        new = f * c + i * g
        squashed = jnp.tanh(new)
        after = o * squashed
        return (after, new), (after, (h, c, squashed, i, f, g, o)) if keep else after

    return lax.scan(one, (nothing, nothing), seen)[1]


def _sigmoid(x: Array) -> Array:
    return 0.5 * jnp.tanh(0.5 * x) + 0.5  # faster on a CPU than by the exponential


def _with_residuals(
    weight: Array, seen: Array, always: Array | None, last: bool
) -> tuple[Array, Any]:
    hidden, kept = _forward(weight, seen, always, True)
    return _chosen(hidden, last), (weight, seen, None if always is None else (), kept)


def _back(last: bool, residuals: Any, d_hidden: Array) -> tuple[Array, Array, Array | None]:
    weight, seen, added, (before, c, squashed, i, f, g, o) = residuals
    width, nothing = before.shape[1], jnp.zeros(before.shape[1:])

    def one(after: Any, step: Any) -> Any:
        d_gates, d_cell, d_h = after  # of the step after this one
        given, c, squashed, i, f, g, o = step
        d_h = weight[:width] @ d_gates + (d_h if last else given)
        d_cell = d_cell + d_h * o * (1 - squashed * squashed)
        d_gates = jnp.concatenate(
            [
                d_cell * g * i * (1 - i),
                d_cell * c * f * (1 - f),
                d_cell * i * (1 - g * g),
                d_h * squashed * o * (1 - o),
            ]
        )
        return (d_gates, d_cell * f, nothing), d_gates

    end = jnp.zeros((4 * width, before.shape[2])), nothing, d_hidden[:, -1]
    given = None if last else jnp.swapaxes(d_hidden, 0, 1)
    _, d_gates = lax.scan(one, end, (given, c, squashed, i, f, g, o), reverse=True)
    inputs = _columns(jnp.concatenate([before, seen], axis=1))
    d_always = None if added is None else d_gates.sum(0)
    return inputs @ _columns(d_gates).T, jnp.zeros_like(seen), d_always


def _columns(x: Array) -> Array:
    """(steps, features, n) to (features, steps · n)."""
    return jnp.swapaxes(x, 0, 1).reshape(x.shape[1], -1)


by_steps.defvjp(_with_residuals, _back)
