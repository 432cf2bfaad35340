"""Cells → x: the encoder `Cells` in two kernels, and its gradient in two more.

    look      cells → pooled: the first convolution, its maximum over windows and ReLU
    condense  pooled → x: the second and third convolutions

A convolution over one kind of cell per place is a sum of rows of a table that has one row per kind,
so the first one needs no products. For its gradient, a kind of cell is a word of bits, one a
channel.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from mastery.learners.kernels.calls import (
    BACK,
    KEPT,
    Each,
    call,
    columns,
    dot,
    first_and_columns,
    new,
    outer,
    width_of_blocks,
)

Array = Any  # a JAX array
CELLS, CODES = 49, 256  # cells of a view, and kinds of cells
CHANNELS = 32  # of a cell: the bits of a word
ONE = CHANNELS - 1  # this bit is 1 everywhere; its weights stand for the bias
FIRST, SECOND, THIRD = 16, 32, 64  # outputs of the convolutions
WINDOWS, PLACES = 9, 4  # of the maximum, and of the second convolution
CORNERS = [(0, 0), (0, 1), (1, 0), (1, 1)]  # of a 2 × 2 kernel, in the order of its weights

_corners = list(enumerate(CORNERS))
# columns, at most, and warps of a block of threads
LOOK, CONDENSE, CONDENSE_BACK, LOOK_BACK = (128, 4), (64, 4), (32, 2), (256, 2)
LOOK_BACK_STEP = 64  # columns at a time


class VisionWeights(NamedTuple):
    """The weights as the forward kernels take them."""

    table: Array  # (4 · CODES, FIRST): by corner and kind of cell; the bias is in the first corner
    conv2: Array  # (4, SECOND, FIRST): by corner
    bias2: Array
    conv3: Array  # (4, THIRD, SECOND): by corner
    bias3: Array


class Seen(NamedTuple):
    """What the gradient needs; n columns."""

    pooled: Array  # (WINDOWS, FIRST, n)
    most: Array  # uint8 (WINDOWS, FIRST, n): a bit for each of a window's values that is the most
    second: Array  # (PLACES, SECOND, n)
    x: Array  # (THIRD, n)


def prepare(
    conv1: Array, conv2: Array, bias2: Array, conv3: Array, bias3: Array, words: Array
) -> VisionWeights:
    """Prepare the weights.

    Args:
        conv1: (4, CHANNELS, FIRST), the bias at the first corner's channel ONE.
        conv2: (4, SECOND, FIRST).
        bias2: (SECOND,).
        conv3: (4, THIRD, SECOND).
        bias3: (THIRD,).
        words: int32 (CODES,), the channels of each kind of cell.
    """
    channels = (words[:, None] >> np.arange(CHANNELS)) & 1
    table = (channels.astype(jnp.float32) @ conv1).reshape(4 * CODES, FIRST)
    return VisionWeights(table, conv2.astype(KEPT), bias2, conv3.astype(KEPT), bias3)


def encode(
    w: VisionWeights, cells: Array, keep: bool, interpret: bool
) -> tuple[Array, Seen | None]:
    """Encode cells, uint8 (CELLS, n), as x, (THIRD, n); with `keep`, what the gradient needs."""
    n = cells.shape[1]
    size = width_of_blocks(n, LOOK[0])
    results = [first_and_columns(new((WINDOWS, FIRST, n), KEPT), size)]
    if keep:
        results.append(first_and_columns(new((WINDOWS, FIRST, n), jnp.uint8), size))
    operands = [w.table, columns(cells, size)]
    pooled, *most = call(_look, operands, results, (WINDOWS, n // size), interpret, LOOK[1])
    size = width_of_blocks(n, CONDENSE[0])
    results = [columns(new((THIRD, n), KEPT), size)]
    if keep:
        results.append(columns(new((PLACES, SECOND, n), BACK), size))
    operands = [*w[1:], columns(pooled, size)]
    x, *second = call(_condense, operands, results, (n // size,), interpret, CONDENSE[1])
    return x, Seen(pooled, most[0], second[0], x) if keep else None


def _look(table: Any, cells: Any, pooled: Any, most: Any = None) -> None:
    """One window: the most of its four values."""
    channel = _iota((FIRST, 1), 0)
    codes = _codes(cells)

    def value(i: int, j: int) -> Array:
        rows = (table[k * CODES + codes[i + a][j + b][None, :], channel] for k, (a, b) in _corners)
        one, two, three, four = rows
        return (one + two) + (three + four)

    values = [value(i, j) for i, j in CORNERS]
    best = jnp.maximum(jnp.maximum(values[0], values[1]), jnp.maximum(values[2], values[3]))
    pooled[0, :, :] = jnp.maximum(best, 0.0).astype(KEPT)
    if most is not None:
        bits = sum((x == best).astype(jnp.int32) << p for p, x in enumerate(values))
        most[0, :, :] = jnp.where(best > 0, bits, 0).astype(jnp.uint8)


def _codes(cells: Any) -> list[list[Array]]:
    """The nine cells of this block's window."""
    from jax.experimental import pallas as pl

    window = pl.program_id(0)
    first = 14 * (window // 3) + 2 * (window % 3)  # its first cell, in rows of 7
    return [[cells[first + 7 * i + j, :].astype(jnp.int32) for j in range(3)] for i in range(3)]


def _condense(
    conv2: Any, bias2: Any, conv3: Any, bias3: Any, pooled: Any, x: Any, *second: Any
) -> None:
    """The second convolution at its four places, and the third."""
    seen = [pooled[window, :, :] for window in range(WINDOWS)]
    total = jnp.zeros(x.shape, jnp.float32) + bias3[:][:, None]
    for place, (i, j) in _corners:
        found = jnp.zeros((SECOND, x.shape[1]), jnp.float32) + bias2[:][:, None]
        for k, (a, b) in _corners:
            found += dot(conv2[k], seen[3 * (i + a) + j + b], KEPT)
        found = jnp.maximum(found, 0.0).astype(KEPT)
        if second:
            second[0][place, :, :] = found.astype(BACK)
        total += dot(conv3[place], found, KEPT)
    x[:, :] = jnp.maximum(total, 0.0).astype(KEPT)


class VisionGradient(NamedTuple):
    """Gradients of what `prepare` takes, without the words."""

    conv1: Array
    conv2: Array
    bias2: Array
    conv3: Array
    bias3: Array


def encode_back(
    conv2: Array, conv3: Array, words: Array, seen: Seen, cells: Array, d_x: Array, interpret: bool
) -> VisionGradient:
    """Gradients of the weights, from that of x, (THIRD, n)."""
    n = cells.shape[1]
    d3 = jnp.where(seen.x > 0, d_x, 0).astype(BACK)
    d_conv3 = outer(d3, seen.second.reshape(PLACES * SECOND, n))
    to_second = jnp.swapaxes(conv3, 1, 2).reshape(PLACES * SECOND, THIRD).astype(BACK)
    d_second = (to_second @ d3).reshape(PLACES, SECOND, n)
    size = width_of_blocks(n, CONDENSE_BACK[0])
    d_corners, d_conv2, d_bias2 = call(
        _condense_back,
        [
            jnp.swapaxes(conv2, 1, 2).astype(BACK),
            columns(seen.pooled, size),
            columns(seen.second, size),
            columns(d_second, size),
        ],
        [
            columns(new((4, FIRST, PLACES, n), BACK), size),
            _sums((n // size,), conv2.shape),
            _sums((n // size,), (SECOND,)),
        ],
        (n // size,),
        interpret,
        CONDENSE_BACK[1],
    )
    size = width_of_blocks(n, LOOK_BACK[0])
    grid = WINDOWS, n // size
    (d_conv1,) = call(
        _look_back,
        [
            columns(words.at[cells].get(mode="promise_in_bounds"), size),
            first_and_columns(seen.most, size),
            columns(d_corners, size),
        ],
        [_sums(grid, (4, CHANNELS, FIRST))],
        grid,
        interpret,
        LOOK_BACK[1],
    )
    return VisionGradient(
        conv1=d_conv1.sum((0, 1)),
        conv2=d_conv2.sum(0),
        bias2=d_bias2.sum(0),
        conv3=jnp.swapaxes(d_conv3.reshape(THIRD, PLACES, SECOND), 0, 1),
        bias3=d3.sum(1, dtype=jnp.float32),
    )


def _sums(grid: tuple[int, ...], shape: tuple[int, ...]) -> Each:
    """A sum for each block of threads."""
    return Each(
        new((*grid, *shape), jnp.float32),
        (*(1,) * len(grid), *shape),
        lambda *at: (*at, *(0,) * len(shape)),
    )


def _condense_back(
    back2: Any, pooled: Any, second: Any, d_second: Any, d_corners: Any, d_conv2: Any, d_bias2: Any
) -> None:
    """Gradients of the second convolution's weights, and of its inputs at every place. The four
    places are side by side, so that products are few and large."""
    n = d_second.shape[-1]
    place, column = _iota((1, PLACES, 1), 1), _iota((1, 1, n), 2)
    of_second = place, _iota((SECOND, 1, 1), 0), column
    d2 = jnp.where(second[of_second] > 0, d_second[of_second], 0).reshape(SECOND, PLACES * n)
    d_bias2[0, :] = d2.astype(jnp.float32).sum(1)
    for k, (a, b) in _corners:
        window = 3 * (place // 2 + a) + place % 2 + b
        seen = pooled[window, _iota((FIRST, 1, 1), 0), column].reshape(FIRST, PLACES * n)
        d_conv2[0, k, :, :] = dot(d2, seen.astype(BACK).T, BACK)
        d = dot(back2[k], d2, BACK).astype(BACK)
        d_corners[k, :, :, :] = d.reshape(FIRST, PLACES, n)


def _look_back(words: Any, most: Any, d_corners: Any, d_conv1: Any) -> None:
    """Gradient of the first convolution's weights from one window."""
    from jax.experimental import pallas as pl

    window, n = pl.program_id(0), most.shape[-1]
    first = 14 * (window // 3) + 2 * (window % 3)  # the window's first cell, in rows of 7
    size = width_of_blocks(n, LOOK_BACK_STEP)

    def some(done: Any, total: Any) -> Any:
        at = pl.ds(done * size, size)
        # all loads come first: waiting for each in turn would take most of the time
        nine = [[words[first + 7 * u + v, at][None, :] for v in range(3)] for u in range(3)]
        d = jnp.zeros((FIRST, size), jnp.float32)
        for k, (a, b) in _corners:  # the places that saw this window at this corner
            row, column = window // 3 - a, window % 3 - b
            there = (row >= 0) & (row < 2) & (column >= 0) & (column < 2)
            place = jnp.where(there, 2 * row + column, 0)
            d += jnp.where(there, d_corners[k, :, place, at].astype(jnp.float32), 0.0)
        bits = most[0, :, at].astype(jnp.int32)
        count = (bits & 1) + (bits >> 1 & 1) + (bits >> 2 & 1) + (bits >> 3)
        d = d / jnp.maximum(count, 1).astype(jnp.float32)  # equal values share it, as in JAX
        each = [jnp.where(bits >> p & 1 != 0, d, 0.0).astype(BACK).T for p in range(4)]
        after = list(total)
        for u, v in itertools.product(range(3), range(3)):
            seen = (nine[u][v] >> _iota((CHANNELS, 1), 0) & 1).astype(BACK)
            for p, (i, j) in _corners:  # the values of the window that this cell is a corner of
                for k, (a, b) in _corners:
                    if (i + a, j + b) == (u, v):
                        after[k] += dot(seen, each[p], BACK)
        return tuple(after)

    total = (jnp.zeros((CHANNELS, FIRST), jnp.float32),) * 4
    total = some(0, total) if n == size else lax.fori_loop(0, n // size, some, total)
    for k in range(len(CORNERS)):
        d_conv1[0, 0, k, :, :] = total[k]


def _iota(shape: tuple[int, ...], axis: int) -> Array:
    return lax.broadcasted_iota(jnp.int32, shape, axis)
