"""Random numbers, those of `jax.random` to the bit, drawn in one long row.

XLA's compiler for CPUs unrolls short loops: an array of 32 × 16 × 16 becomes thousands of lines of
machine code, and seconds of compiling. A long row stays a loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import ndtr

Array = Any  # a JAX array
_AT_ONCE = 2**16


def bits(key: Array, shape: tuple[int, ...]) -> Array:
    """uint32, each bit 0 or 1 alike."""
    return _in_a_row(jax.random.bits, key, shape, jnp.uint32)


def uniform(key: Array, shape: tuple[int, ...]) -> Array:
    """float32 in [0, 1)."""
    return _in_a_row(jax.random.uniform, key, shape, jnp.float32)


def normal(key: Array, shape: tuple[int, ...]) -> Array:
    """float32 of mean 0 and deviation 1."""
    return _in_a_row(jax.random.normal, key, shape, jnp.float32)


class Normals:
    """Normal numbers for all weights of a network. They are drawn many at a time: each draw has to
    be compiled, and some networks are smaller than one."""

    def __init__(self, key: Array) -> None:
        self._key, self._left = key, jnp.zeros(0)

    def take(self, shape: tuple[int, ...]) -> Array:
        """New ones, of this shape."""
        count = math.prod(shape)
        if count > len(self._left):
            self._key, now = jax.random.split(self._key)
            each = -(-max(count, _AT_ONCE) // 2)
            # a loop, or each layer's part of what is compiled would have a copy of all this
            self._left = lax.map(lambda k: normal(k, (each,)), jax.random.split(now)).ravel()
        taken, self._left = self._left[:count], self._left[count:]
        return taken.reshape(shape)

    def take_uniform(self, shape: tuple[int, ...]) -> Array:
        """New ones that are uniform in [0, 1] instead."""
        return ndtr(self.take(shape))


def _in_a_row(draw: Callable[..., Array], key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    return draw(key, (math.prod(shape),), dtype).reshape(shape)
