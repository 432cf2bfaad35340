"""An LSTM over many steps, with its own way back.

JAX would keep more of a step than its way back needs, and squash a gate once for everyone who asks.
Here a step squashes its gates once, as one matrix, and keeps what the gradients that come back are
multiplied by. What a step sees is small (a symbol), or the same in all steps: its part of the gates
is made within the step, where it stays in the cache. Some GPUs have kernels: `lstm_kernels`.
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
    width = weight.shape[1] // 4
    # σ(x) = tanh(x / 2) / 2 + 1 / 2, so one tanh serves all gates
    scale, shift = _rows(width, 0.5, 0.5, 1, 0.5), _rows(width, 0.5, 0.5, 0, 0.5)
    scaled = weight.T * scale
    added = _rows(width, 0, 0.5, 0, 0)
    if always is not None:
        added = added + always * scale

    def one(state: Any, x: Array) -> Any:
        h, c = state
        gates = scale * jnp.tanh(scaled @ jnp.concatenate([h, x]) + added) + shift
        i, f, g, o = jnp.split(gates, 4)
        new = f * c + i * g
        squashed = jnp.tanh(new)
        after = o * squashed
        if not keep:
            return (after, new), after
        slopes = jnp.concatenate(  # of the new cell by the gates, and of the hidden state by o
            [g * i * (1 - i), c * f * (1 - f), i * (1 - g * g), squashed * o * (1 - o)]
        )
        return (after, new), (after, (h, slopes, o * (1 - squashed * squashed), f))

    nothing = jnp.zeros((width, seen.shape[2]))
    return lax.scan(one, (nothing, nothing), seen)[1]


def _rows(width: int, *values: float) -> Array:
    """A column with one value for each gate."""
    return jnp.repeat(jnp.array(values, jnp.float32), width)[:, None]


def _with_residuals(
    weight: Array, seen: Array, always: Array | None, last: bool
) -> tuple[Array, Any]:
    hidden, kept = _forward(weight, seen, always, True)
    return _chosen(hidden, last), (weight, seen, None if always is None else (), kept)


def _back(last: bool, residuals: Any, d_hidden: Array) -> tuple[Array, Array, Array | None]:
    weight, seen, added, kept = residuals
    width, n = weight.shape[1] // 4, seen.shape[2]

    def one(after: Any, step: Any) -> Any:
        (d_gates, d_cell, d_h), d_weight, d_always = after  # the first three: of the step after
        given, x, (h, slopes, through, f) = step
        d_h = weight[:width] @ d_gates + (d_h if last else given)
        d_cell = d_cell + d_h * through
        d_gates = slopes * jnp.concatenate([d_cell, d_cell, d_cell, d_h])
        d_weight = d_weight + jnp.concatenate([h, x]) @ d_gates.T
        d_always = None if added is None else d_always + d_gates
        return ((d_gates, d_cell * f, nothing), d_weight, d_always), None

    nothing = jnp.zeros((width, n))
    no_gates = jnp.zeros((4 * width, n))
    end = no_gates, nothing, d_hidden[:, -1] if last else nothing
    none = end, jnp.zeros_like(weight), None if added is None else no_gates
    given = None if last else jnp.swapaxes(d_hidden, 0, 1)
    (_, d_weight, d_always), _ = lax.scan(one, none, (given, seen, kept), reverse=True)
    return d_weight, jnp.zeros_like(seen), d_always


by_steps.defvjp(_with_residuals, _back)
