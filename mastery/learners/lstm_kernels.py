"""The LSTM of `mastery.learners.lstm` as two GPU kernels, forward and backward.

Without them, every gate of every step goes to GPU memory and back several times, which takes longer
than all matrix products. Here a block of threads takes some columns through all steps: the weights
stay in shared memory and the cell in registers, and the block writes only what the backward pass
needs. `kernels.calls` says which number formats they have.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from mastery.learners.kernels.calls import (
    BACK,
    KEPT,
    call,
    columns,
    measured,
    new,
    sigmoid,
    tanh,
)

Array = Any  # a JAX array
WIDTH = 128  # wider weights do not fit in shared memory
COLUMNS = 64  # columns per block of threads
INPUTS = 16  # the smallest inner size of a product
GATES = [slice(k * WIDTH, (k + 1) * WIDTH) for k in range(4)]
PLACES = [*GATES, slice(4 * WIDTH, 5 * WIDTH)]  # rows of the gates and the cell in `kept`


def fit(weight: Array, seen: Array) -> bool:
    """Whether the kernels support this LSTM on this machine."""
    return measured() and weight.shape[1] == 4 * WIDTH and seen.shape[1] <= INPUTS


@partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def lstm(
    weight: Array, seen: Array, always: Array | None, last: bool, interpret: bool = False
) -> Array:
    """Run the LSTM; see `mastery.learners.lstm.lstm`. `interpret` runs it without a GPU."""
    given = _padded(weight, seen, always)
    return _forward(*given, last, False, interpret)[0][:, :, : seen.shape[2]]


def _with_residuals(
    weight: Array, seen: Array, always: Array | None, last: bool, interpret: bool
) -> tuple[Array, Any]:
    given = _padded(weight, seen, always)
    hidden, inputs, kept = _forward(*given, last, True, interpret)
    added = None if always is None else ()
    return hidden[:, :, : seen.shape[2]], (weight, seen, added, inputs, kept)


def _back(
    last: bool, interpret: bool, residuals: Any, d_hidden: Array
) -> tuple[Array, Array, Array | None]:
    weight, seen, added, inputs, kept = residuals
    n = seen.shape[2]
    d_hidden = jnp.pad(d_hidden, ((0, 0), (0, 0), (0, inputs.shape[2] - n)))
    d_gates = _backward(weight[:WIDTH], kept, d_hidden, last, interpret)
    d_weight = lax.dot_general(
        inputs.reshape(len(inputs), -1),
        d_gates.reshape(4 * WIDTH, -1),
        (((1,), (1,)), ((), ())),
        preferred_element_type=jnp.float32,
    )
    d_always = None if added is None else d_gates.sum(1, dtype=jnp.float32)[:, :n]
    return d_weight[: len(weight)], jnp.zeros_like(seen), d_always


lstm.defvjp(_with_residuals, _back)


def _padded(weight: Array, seen: Array, always: Array | None) -> tuple[Array, Array, Array | None]:
    """Pad to whole blocks of columns, and to INPUTS inputs unless there are none."""
    _, inputs, n = seen.shape
    more = -n % COLUMNS
    lines = INPUTS - inputs if inputs else 0
    if always is not None:
        always = jnp.pad(always, ((0, 0), (0, more)))
    return (
        jnp.pad(weight, ((0, lines), (0, 0))),
        jnp.pad(seen, ((0, 0), (0, lines), (0, more))),
        always,
    )


def _forward(
    weight: Array, seen: Array, always: Array | None, last: bool, keep: bool, interpret: bool
) -> list[Array]:
    """Hidden states. If `keep`, also the hidden state before each step with the step's input,
    (WIDTH + inputs, steps + 1, n), and the gates and the cell after it, (steps, 5 · WIDTH, n)."""
    steps, inputs, n = seen.shape
    operands = {"w": weight.T.astype(KEPT)} | ({"seen": seen.astype(KEPT)} if inputs else {})
    if always is not None:
        operands["always"] = always
    results = {"hidden": ((WIDTH, 1 if last else steps, n), jnp.float32)}
    if keep:
        results["inputs"] = (WIDTH + inputs, steps + 1, n), BACK
        results["kept"] = (steps, 5 * WIDTH, n), KEPT

    def kernel(*refs: Any) -> None:
        ref = dict(zip([*operands, *results], refs, strict=True))
        of_hidden = [ref["w"][gate, :WIDTH] for gate in GATES]
        of_seen = [ref["w"][gate, WIDTH:] for gate in GATES] if inputs else []

        def symbols(t: Any) -> Array | None:
            return ref["seen"][t] if inputs else None

        def write_inputs(t: Any, h: Array, x: Array | None) -> None:
            if keep:
                ref["inputs"][:WIDTH, t, :] = h.astype(BACK)
                if x is not None:
                    ref["inputs"][WIDTH:, t, :] = x.astype(BACK)

        def one(t: Array, state: Any) -> Any:
            h, c, x = state
            following = symbols(jnp.minimum(t + 1, steps - 1))  # prefetch
            write_inputs(t, h, x)

            def gate(k: int) -> Array:
                total = jnp.dot(of_hidden[k], h.astype(KEPT), preferred_element_type=jnp.float32)
                if inputs:
                    total += jnp.dot(of_seen[k], x, preferred_element_type=jnp.float32)
                return total if always is None else total + ref["always"][GATES[k], :]

            def write(k: int, value: Array) -> Array:
                if keep:
                    ref["kept"][t, PLACES[k], :] = value.astype(KEPT)
                return value

            g = write(2, tanh(gate(2)))  # this order needs the fewest registers
            new = write(0, sigmoid(gate(0))) * g
            c = write(4, write(1, sigmoid(gate(1) + 1)) * c + new)
            h = write(3, sigmoid(gate(3))) * tanh(c)
            if not last:
                ref["hidden"][:, t, :] = h
            return h, c, following

        nothing = jnp.zeros((WIDTH, COLUMNS), jnp.float32)
        h, _, x = lax.fori_loop(0, steps, one, (nothing, nothing, symbols(0)))
        if last:
            ref["hidden"][:, 0, :] = h
        write_inputs(steps, h, None if x is None else jnp.zeros_like(x))

    found: list[Array] = _call(kernel, list(operands.values()), list(results.values()), interpret)
    return found


def _backward(weight: Array, kept: Array, d_hidden: Array, last: bool, interpret: bool) -> Array:
    """Gradients of the gates before activation, (4 · WIDTH, steps + 1, n). The extra last step is
    zero, to match the shape of `_forward`'s inputs."""
    steps, _, n = kept.shape

    def kernel(w: Any, kept: Any, d_hidden: Any, d_gates: Any) -> None:
        nothing = jnp.zeros((WIDTH, COLUMNS), jnp.float32)
        weights = [w[:, gate] for gate in GATES]

        def load(t: Any) -> tuple[Array, ...]:
            return tuple(kept[t, place, :] for place in PLACES)

        def one(done: Array, after: Any) -> Any:
            t = steps - 1 - done
            d_h, d_cell, now = after
            before = load(jnp.maximum(t - 1, 0))  # prefetch
            i, f, g, o, c = (x.astype(jnp.float32) for x in now)
            previous = jnp.where(t > 0, before[4].astype(jnp.float32), nothing)
            squashed = tanh(c)
            if not last:
                d_h = d_h + d_hidden[:, t, :]
            d_cell = d_cell + d_h * o * (1 - squashed * squashed)
            gates = (
                d_cell * g * i * (1 - i),
                d_cell * previous * f * (1 - f),
                d_cell * i * (1 - g * g),
                d_h * squashed * o * (1 - o),
            )
            d_before = nothing
            for k, gate in enumerate(gates):
                d_gates[GATES[k], t, :] = gate.astype(BACK)
                d_before += jnp.dot(
                    weights[k], gate.astype(BACK), preferred_element_type=jnp.float32
                )
            return d_before, d_cell * f, before

        for gate in GATES:
            d_gates[gate, steps, :] = nothing.astype(BACK)
        end = d_hidden[:, 0, :] if last else nothing
        lax.fori_loop(0, steps, one, (end, nothing, load(steps - 1)))

    result = (4 * WIDTH, steps + 1, n), BACK
    return _call(kernel, [weight.astype(BACK), kept, d_hidden], [result], interpret)[0]


def _call(kernel: Any, operands: list[Array], results: list[Any], interpret: bool) -> Any:
    """Call a kernel on the whole first operand (the weights) and a column block of the others."""
    weight, *others = operands
    shapes = [new(*result) for result in results]
    return call(
        kernel,
        [weight, *(columns(x, COLUMNS) for x in others)],
        [columns(shape, COLUMNS) for shape in shapes],
        (shapes[0].shape[-1] // COLUMNS,),
        interpret,
        warps=8,
    )
