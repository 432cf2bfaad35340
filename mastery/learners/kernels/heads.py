"""h, x → logits and value, side by side in one kernel, and their gradient in another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from mastery.learners.kernels.calls import (
    BACK,
    KEPT,
    call,
    columns,
    dot,
    new,
    tanh,
    width_of_blocks,
)

Array = Any  # a JAX array
WIDTH = 64
OUT = 16  # outputs, padded: the logits, then the value


class HeadsWeights(NamedTuple):
    """The weights as the forward kernel takes them."""

    firsts: Sequence[Array]  # (2 · WIDTH, WIDTH) each: first layers of policy and value, by input
    first_bias: Array
    last: Array  # (OUT, 2 · WIDTH)
    last_bias: Array


def prepare(
    firsts: Sequence[Array], first_bias: Array, last: Array, last_bias: Array
) -> HeadsWeights:
    return HeadsWeights(
        [first.astype(KEPT) for first in firsts], first_bias, last.astype(KEPT), last_bias
    )


def judge(
    w: HeadsWeights, inputs: Sequence[Array], keep: bool, interpret: bool
) -> tuple[Array, Array | None]:
    """Logits and value (OUT, n) from the inputs, (WIDTH, n) each; with `keep`, also the outputs of
    the first layers, (2 · WIDTH, n)."""
    n, count = inputs[0].shape[1], len(inputs)
    size = width_of_blocks(n, 64)

    def kernel(bias: Any, last: Any, last_bias: Any, *refs: Any) -> None:
        firsts, given, (out, *hidden) = refs[:count], refs[count : 2 * count], refs[2 * count :]
        total = jnp.zeros((2 * WIDTH, size), jnp.float32) + bias[:][:, None]
        for first, x in zip(firsts, given, strict=True):
            total += dot(first[:, :], x[:, :], KEPT)
        squashed = tanh(total).astype(KEPT)
        out[:, :] = dot(last[:, :], squashed, KEPT) + last_bias[:][:, None]
        if keep:
            hidden[0][:, :] = squashed

    results = [columns(new((OUT, n), jnp.float32), size)]
    if keep:
        results.append(columns(new((2 * WIDTH, n), KEPT), size))
    operands = [w.first_bias, w.last, w.last_bias, *w.firsts, *(columns(x, size) for x in inputs)]
    out, *hidden = call(kernel, operands, results, (n // size,), interpret)
    return out, hidden[0] if keep else None


def judge_back(
    firsts: Sequence[Array], last: Array, d_out: Array, hidden: Array, interpret: bool
) -> tuple[Array, list[Array]]:
    """Gradients of the first layers before their tanh, (2 · WIDTH, n), and of the inputs, (WIDTH,
    n) each."""
    n = d_out.shape[1]
    size = width_of_blocks(n, 64)

    def kernel(last: Any, *refs: Any) -> None:
        back, (d_out, hidden, d_pre, *results) = refs[: len(firsts)], refs[len(firsts) :]
        squashed = hidden[:, :].astype(jnp.float32)
        d = dot(last[:, :], d_out[:, :], BACK) * (1 - squashed * squashed)
        d = d.astype(BACK)
        d_pre[:, :] = d
        for weight, result in zip(back, results, strict=True):
            result[:, :] = dot(weight[:, :], d, BACK).astype(BACK)

    d_pre, *d_inputs = call(
        kernel,
        [
            last.T.astype(BACK),
            *(first.T.astype(BACK) for first in firsts),
            columns(d_out, size),
            columns(hidden, size),
        ],
        [
            columns(new((2 * WIDTH, n), BACK), size),
            *(columns(new((WIDTH, n), BACK), size) for _ in firsts),
        ],
        (n // size,),
        interpret,
    )
    return d_pre, d_inputs
