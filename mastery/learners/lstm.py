"""An LSTM over many steps, with its own backward pass.

JAX would store more per step than the backward pass needs, and compute activations more than once.
Here a step computes the activations of all gates once, as one matrix, and stores only the factors
that the backward pass multiplies gradients by. A step's input is small (a symbol) or the same in
all steps, so its part of the gates is computed within the step, where it stays in the cache. For
some GPUs there are kernels: see `lstm_kernels`.
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
    """Run an LSTM from an empty memory.

    Args:
        weight: (width + inputs, 4 · width), rows for the hidden state and the input, columns for
            the input, forget, cell and output gates. 1 is added to the forget gate.
        seen: (steps, inputs, n), the input. It gets no gradient.
        always: (4 · width, n), added to the gates at every step.
        last: Return only the last hidden state.

    Returns:
        Hidden states after every step (width, steps, n), or after the last one (width, 1, n).
    """
    way = lstm_kernels.lstm if lstm_kernels.fit(weight, seen) else by_steps
    return way(weight, seen, always, last)


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def by_steps(weight: Array, seen: Array, always: Array | None, last: bool) -> Array:
    """`lstm` without GPU kernels, for any machine."""
    return _with_residuals(weight, seen, always, last, keep=False)[0]


def _with_residuals(
    weight: Array, seen: Array, always: Array | None, last: bool, keep: bool = True
) -> tuple[Array, Any]:
    width = weight.shape[1] // 4
    # σ(x) = tanh(x / 2) / 2 + 1 / 2, so one tanh serves all gates
    scale, shift = _rows(width, 0.5, 0.5, 1, 0.5), _rows(width, 0.5, 0.5, 0, 0.5)
    scaled = weight.T * scale
    added = _rows(width, 0, 0.5, 0, 0)
    if always is not None:
        added = added + always * scale

    def one(product: Array, c: Array) -> Any:
        """The new state, and what the backward pass needs."""
        gates = scale * jnp.tanh(product + added) + shift
        i, f, g, o = jnp.split(gates, 4)
        new = f * c + i * g
        squashed = jnp.tanh(new)
        slopes = jnp.concatenate(  # d cell / d gates (i, f, g) and d hidden / d gate o
            [g * i * (1 - i), c * f * (1 - f), i * (1 - g * g), squashed * o * (1 - o)]
        )
        return (o * squashed, new), (slopes, o * (1 - squashed * squashed), f) if keep else None

    def next_one(state: Any, x: Array) -> Any:
        h, c = state
        after, kept = one(scaled @ jnp.concatenate([h, x]), c)
        return after, (after[0], kept)

    # the first step has no memory
    nothing = jnp.zeros((width, seen.shape[2]))
    first, kept_first = one(scaled[:, width:] @ seen[0], nothing)
    (end, _), (hidden, kept) = lax.scan(next_one, first, seen[1:])
    hidden = jnp.concatenate([first[0][None], hidden])
    out = end[:, None] if last else jnp.swapaxes(hidden, 0, 1)
    return out, (weight, seen, None if always is None else (), hidden[:-1], kept_first, kept)


def _rows(width: int, *values: float) -> Array:
    """A column with one value per gate, repeated `width` times."""
    return jnp.repeat(jnp.array(values, jnp.float32), width)[:, None]


def _back(last: bool, residuals: Any, d_out: Array) -> tuple[Array, Array, Array | None]:
    weight, seen, added, hidden, kept_first, kept = residuals
    width, n = weight.shape[1] // 4, seen.shape[2]
    is_out = (jnp.arange(4) == 3)[:, None, None]  # the output gate

    def one(d_h: Array, d_cell: Array, kept: Any) -> Any:
        """Gradients of the gates and of the previous cell."""
        slopes, through, f = kept
        d_cell = d_cell + d_h * through
        # selected, not concatenated: XLA does not vectorise a concatenation
        d_gates = slopes.reshape(4, width, n) * jnp.where(is_out, d_h, d_cell)
        return d_gates.reshape(-1, n), d_cell * f

    def one_before(after: Any, step: Any) -> Any:
        d_h, d_cell, d_weight, d_always = after
        given, h, x, kept = step
        d_gates, d_cell = one(d_h if last else d_h + given, d_cell, kept)
        d_weight = d_weight + jnp.concatenate([h, x]) @ d_gates.T
        d_always = None if added is None else d_always + d_gates
        return (remembered @ d_gates, d_cell, d_weight, d_always), None

    # otherwise XLA slices it in every step
    remembered = lax.optimization_barrier(weight[:width])  # type: ignore[no-untyped-call]
    nothing = jnp.zeros((width, n))
    given = jnp.swapaxes(d_out, 0, 1)
    end = (
        given[-1] if last else nothing,
        nothing,
        jnp.zeros_like(weight),
        None if added is None else jnp.zeros((4 * width, n)),
    )
    steps = None if last else given[1:], hidden, seen[1:], kept
    (d_h, d_cell, d_weight, d_always), _ = lax.scan(one_before, end, steps, reverse=True)
    d_gates, _ = one(d_h if last else d_h + given[0], d_cell, kept_first)
    d_weight = d_weight.at[width:].add(seen[0] @ d_gates.T)
    return d_weight, jnp.zeros_like(seen), None if added is None else d_always + d_gates


by_steps.defvjp(_with_residuals, _back)
