"""The random numbers of `jax.random`, bit for bit, drawn as one flat array and reshaped.

XLA's CPU compiler unrolls short loops: drawing an array of 32 × 16 × 16 becomes thousands of
instructions and takes seconds to compile. For a flat array it keeps the loop.
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
    """Random uint32; each bit is 0 or 1 with equal probability."""
    return _in_a_row(jax.random.bits, key, shape, jnp.uint32)


def uniform(key: Array, shape: tuple[int, ...]) -> Array:
    """Uniform float32 in [0, 1)."""
    return _in_a_row(jax.random.uniform, key, shape, jnp.float32)


def normal(key: Array, shape: tuple[int, ...]) -> Array:
    """Normal float32 with mean 0 and standard deviation 1."""
    return _in_a_row(jax.random.normal, key, shape, jnp.float32)


class Normals:
    """Normal numbers for all weights of a network, drawn in large batches.

    Each draw must be compiled, and some networks need fewer numbers than one batch.
    """

    def __init__(self, key: Array) -> None:
        self._key, self._left = key, jnp.zeros(0)

    def take(self, shape: tuple[int, ...]) -> Array:
        """The next normal numbers, in this shape."""
        count = math.prod(shape)
        if count > len(self._left):
            self._key, now = jax.random.split(self._key)
            each = -(-max(count, _AT_ONCE) // 2)
            # a loop, so that the compiled code of each layer does not hold a copy of all this
            self._left = lax.map(lambda k: normal(k, (each,)), jax.random.split(now)).ravel()
        taken, self._left = self._left[:count], self._left[count:]
        return taken.reshape(shape)

    def take_uniform(self, shape: tuple[int, ...]) -> Array:
        """The next numbers, uniform in [0, 1]."""
        return ndtr(self.take(shape))


def _in_a_row(draw: Callable[..., Array], key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    return draw(key, (math.prod(shape),), dtype).reshape(shape)
