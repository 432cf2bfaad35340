"""x → h: the LSTM over the frames of a segment in one kernel, and its gradient in another.

A block of threads takes some columns through all frames, with the hidden state and the cell in
registers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from mastery.learners.kernels.calls import (
    BACK,
    KEPT,
    call,
    columns,
    dot,
    new,
    sigmoid,
    tanh,
    width_of_blocks,
)

Array = Any  # a JAX array
WIDTH = 64
GATES = [slice(k * WIDTH, (k + 1) * WIDTH) for k in range(4)]  # input, forget, cell, output
COLUMNS, COLUMNS_BACK = 16, 32  # of a block of threads, at most


class MemoryWeights(NamedTuple):
    """The weights as the forward kernel takes them."""

    seen: Array  # (4 · WIDTH, WIDTH): gates from x
    remembered: Array  # (4 · WIDTH, WIDTH): gates from h
    gates: Array  # (4 · WIDTH,): their bias


class Steps(NamedTuple):
    """What the gradient needs, for each of the frames."""

    before: Array  # (WIDTH, frames, n): hidden state before the frame
    kept: Array  # (5 · WIDTH, frames, n): the gates, and the cell before the frame


def prepare(seen: Array, remembered: Array, gates: Array) -> MemoryWeights:
    return MemoryWeights(seen.astype(KEPT), remembered.astype(KEPT), gates)


def remember(
    w: MemoryWeights, memory: Array, going: Array, x: Array, keep: bool, interpret: bool
) -> tuple[Array, Array, Steps | None]:
    """Run the LSTM.

    Args:
        w: The weights.
        memory: (2 · WIDTH, n), hidden state and cell.
        going: (frames, n), 0 where an episode begins, with an empty memory, else 1.
        x: (WIDTH, frames · n).
        keep: Return what the gradient needs.
        interpret: Run without a GPU.

    Returns:
        The new memory, the hidden states (WIDTH, frames · n), and what the gradient needs.
    """
    frames, n = going.shape
    size = width_of_blocks(n, COLUMNS)

    def kernel(
        seen: Any, remembered: Any, bias: Any, memory: Any, going: Any, x: Any,
        after: Any, hidden: Any, *more: Any,
    ) -> None:  # fmt: skip
        of_x, of_h = ([weight[gate, :] for gate in GATES] for weight in (seen, remembered))
        added = [bias[gate][:, None] for gate in GATES]

        def one(t: Any, state: Any) -> Any:
            go = going[t, :][None, :]
            h, c, now = state
            h, c, before = h * go, c * go, (h * go).astype(KEPT)
            following = x[:, jnp.minimum(t + 1, frames - 1), :] if frames > 1 else now  # prefetch

            def gate(k: int) -> Array:
                return dot(of_x[k], now, KEPT) + dot(of_h[k], before, KEPT) + added[k]

            i, f, g, o = sigmoid(gate(0)), sigmoid(gate(1)), tanh(gate(2)), sigmoid(gate(3))
            if keep:
                inputs, kept = more
                inputs[:, t, :] = before.astype(BACK)
                for place, value in enumerate((i, f, g, o, c)):
                    kept[place * WIDTH : (place + 1) * WIDTH, t, :] = value.astype(KEPT)
            c = f * c + i * g
            h = o * tanh(c)
            hidden[:, t, :] = h.astype(KEPT)
            return h, c, following

        state = memory[:WIDTH, :], memory[WIDTH:, :], x[:, 0, :]
        state = one(0, state) if frames == 1 else lax.fori_loop(0, frames, one, state)
        after[:WIDTH, :], after[WIDTH:, :] = state[:2]

    results = [new(memory.shape, jnp.float32), new((WIDTH, frames, n), KEPT)]
    if keep:
        results += [new((WIDTH, frames, n), BACK), new((5 * WIDTH, frames, n), KEPT)]
    operands = [
        *w,
        columns(memory, size),
        columns(going, size),
        columns(x.reshape(WIDTH, frames, n), size),
    ]
    after, hidden, *more = call(
        kernel,
        operands,
        [columns(result, size) for result in results],
        (n // size,),
        interpret,
    )
    return after, hidden.reshape(WIDTH, -1), Steps(*more) if keep else None


def remember_back(
    remembered: Array, steps: Steps, going: Array, d_hidden: Array, interpret: bool
) -> Array:
    """Gradients of the gates before activation, (4 · WIDTH, frames · n).

    Args:
        remembered: (4 · WIDTH, WIDTH).
        steps: From `remember`.
        going: As for `remember`.
        d_hidden: Gradient of the hidden states, (WIDTH, frames · n).
        interpret: Run without a GPU.
    """
    frames, n = going.shape
    size = width_of_blocks(n, COLUMNS_BACK)

    def kernel(to_h: Any, kept: Any, going: Any, given: Any, d_gates: Any) -> None:
        into_h = [to_h[:, gate] for gate in GATES]

        def load(t: Any) -> tuple[Array, ...]:
            gates = (kept[k * WIDTH : (k + 1) * WIDTH, t, :] for k in range(5))
            return *gates, given[:, t, :], going[t, :]

        def one(done: Any, after: Any) -> Any:
            t = frames - 1 - done
            d_h, d_cell, now = after
            earlier = load(jnp.maximum(t - 1, 0)) if frames > 1 else now  # prefetch
            i, f, g, o, c, more = (part.astype(jnp.float32) for part in now[:6])
            go = now[6][None, :]
            squashed = tanh(f * c + i * g)
            d_h = d_h + more
            d_cell = d_cell + d_h * o * (1 - squashed * squashed)
            slopes = (
                d_cell * g * i * (1 - i),
                d_cell * c * f * (1 - f),
                d_cell * i * (1 - g * g),
                d_h * squashed * o * (1 - o),
            )
            before = jnp.zeros_like(d_h)
            for k, slope in enumerate(slopes):
                rounded = slope.astype(BACK)
                d_gates[GATES[k], t, :] = rounded
                before += dot(into_h[k], rounded, BACK)
            return before * go, d_cell * f * go, earlier

        nothing = jnp.zeros((WIDTH, size), jnp.float32)
        end = nothing, nothing, load(frames - 1)
        if frames == 1:
            one(0, end)
        else:
            lax.fori_loop(0, frames, one, end)

    (d_gates,) = call(
        kernel,
        [
            remembered.T.astype(BACK),
            columns(steps.kept, size),
            columns(going, size),
            columns(d_hidden.reshape(WIDTH, frames, n), size),
        ],
        [columns(new((4 * WIDTH, frames, n), BACK), size)],
        (n // size,),
        interpret,
    )
    return d_gates.reshape(4 * WIDTH, -1)
