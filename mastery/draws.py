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

Array = Any  # a JAX array


def bits(key: Array, shape: tuple[int, ...]) -> Array:
    """uint32, each bit 0 or 1 alike."""
    return _in_a_row(jax.random.bits, key, shape, jnp.uint32)


def uniform(key: Array, shape: tuple[int, ...]) -> Array:
    """float32 in [0, 1)."""
    return _in_a_row(jax.random.uniform, key, shape, jnp.float32)


def normal(key: Array, shape: tuple[int, ...]) -> Array:
    """float32 of mean 0 and deviation 1."""
    return _in_a_row(jax.random.normal, key, shape, jnp.float32)


def _in_a_row(draw: Callable[..., Array], key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    return draw(key, (math.prod(shape),), dtype).reshape(shape)
