"""An LSTM over many steps, with its own way back.

Going back, JAX would add to the weights' gradient at every step. Here the steps only pass on what
comes from the step after them, and the gradient of the weights is one large product at the end.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Array = Any  # a JAX array


@jax.custom_vjp
def lstm(weight: Array, gates: Array) -> Array:
    """Hidden states (steps, width, n), from an empty memory.

    weight (width, 4 · width): of what is remembered. gates (steps, 4 · width, n): what comes from
    outside, for the input, forget, cell and output gates; 1 is added to the forget gate.
    """
    return _forward(weight, gates, False)


def _forward(weight: Array, gates: Array, keep: bool) -> Any:
    nothing = jnp.zeros((weight.shape[0], gates.shape[2]))

    def one(state: Any, x: Array) -> Any:
        h, c = state
        i, f, g, o = _activate(x + weight.T @ h)
        new = f * c + i * g
        squashed = jnp.tanh(new)
        h = o * squashed
        return (h, new), (h, c, squashed, i, f, g, o) if keep else h

    return lax.scan(one, (nothing, nothing), gates)[1]


def _activate(x: Array) -> tuple[Array, Array, Array, Array]:
    i, f, g, o = jnp.split(x, 4)
    return _sigmoid(i), _sigmoid(f + 1), jnp.tanh(g), _sigmoid(o)


def _sigmoid(x: Array) -> Array:
    return 0.5 * jnp.tanh(0.5 * x) + 0.5  # faster on a CPU than by the exponential


def _with_residuals(weight: Array, gates: Array) -> tuple[Array, Any]:
    kept = _forward(weight, gates, True)
    return kept[0], (weight, kept)


def _back(residuals: Any, d_hidden: Array) -> tuple[Array, Array]:
    weight, (h, c, squashed, i, f, g, o) = residuals

    def one(after: Any, step: Any) -> Any:
        d_gates, d_cell = after  # of the step after this one
        d_h, c, squashed, i, f, g, o = step
        d_h = d_h + weight @ d_gates
        d_cell = d_cell + d_h * o * (1 - squashed * squashed)
        d_gates = jnp.concatenate(
            [
                d_cell * g * i * (1 - i),
                d_cell * c * f * (1 - f),
                d_cell * i * (1 - g * g),
                d_h * squashed * o * (1 - o),
            ]
        )
        return (d_gates, d_cell * f), d_gates

    end = jnp.zeros((weight.shape[1], h.shape[2])), jnp.zeros(h.shape[1:])
    steps = (d_hidden, c, squashed, i, f, g, o)
    _, d_gates = lax.scan(one, end, steps, reverse=True)
    return _columns(h[:-1]) @ _columns(d_gates[1:]).T, d_gates


def _columns(x: Array) -> Array:
    """(steps, features, n) to (features, steps · n)."""
    return jnp.swapaxes(x, 0, 1).reshape(x.shape[1], -1)


lstm.defvjp(_with_residuals, _back)
