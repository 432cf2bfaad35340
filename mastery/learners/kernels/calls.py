"""How kernels are called, their number formats and activations.

Sums are in 32 bits. Inputs of products are float16, which has the precision of the TF32 that JAX
uses on these GPUs, except for gradients: these may be very small and are bfloat16.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

Array = Any  # a JAX array
MEASURED = ("9.0",)  # compute capabilities where the kernels were measured and are faster
KEPT, BACK = jnp.float16, jnp.bfloat16  # inputs of products: values, and gradients
TRITON = "jax.experimental.pallas.triton"  # what compiles them; JAX has announced to remove it
SMALLEST = 16  # columns of a block: the smallest size of a product


def measured() -> bool:
    """Whether the kernels are known to be faster on this machine, and this JAX can compile them."""
    device = jax.devices()[0]
    known = device.platform == "gpu" and getattr(device, "compute_capability", "") in MEASURED
    return known and importlib.util.find_spec(TRITON) is not None


class Each(NamedTuple):
    """An array of which every block of threads takes its own part."""

    array: Any  # or its shape and dtype
    block: tuple[int, ...]  # the shape of a part
    place: Callable[..., tuple[Any, ...]]  # of a part, from the block's place in the grid


def columns(array: Any, size: int) -> Each:
    """Each block takes a part of the last axis; the last axis of the grid counts them."""
    leading = (0,) * (len(array.shape) - 1)
    return Each(array, (*array.shape[:-1], size), lambda *at: (*leading, at[-1]))


def first_and_columns(array: Any, size: int) -> Each:
    """Each block takes a row of the first axis and a part of the last; the grid has both."""
    between = array.shape[1:-1]
    return Each(array, (1, *between, size), lambda *at: (at[0], *(0,) * len(between), at[-1]))


def new(shape: Sequence[int], dtype: Any) -> Any:
    """The shape and dtype of a result."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype)  # type: ignore[no-untyped-call]


def call(
    kernel: Any,
    operands: Sequence[Any],
    results: Sequence[Each],
    grid: Sequence[int],
    interpret: bool,
    warps: int = 4,
) -> list[Array]:
    """Run a kernel.

    Args:
        kernel: Gets a reference to each operand, then to each result.
        operands: `Each`, or arrays that every block of threads sees whole.
        results: Shapes and dtypes of the results.
        grid: The number of blocks of threads along each axis.
        interpret: Run without a GPU.
        warps: Per block of threads.
    """
    from jax.experimental import pallas as pl

    def spec(x: Any) -> Any:
        if isinstance(x, Each):
            return pl.BlockSpec(x.block, x.place)
        rank = len(x.shape)
        return pl.BlockSpec(x.shape, lambda *at: (0,) * rank)

    found: list[Array] = pl.pallas_call(
        kernel,
        out_shape=[result.array for result in results],
        grid=tuple(grid),
        in_specs=[spec(x) for x in operands],
        out_specs=[spec(x) for x in results],
        compiler_params=_triton().CompilerParams(num_warps=warps, num_stages=1),
        interpret=interpret,
    )(*(x.array if isinstance(x, Each) else x for x in operands))
    return found


@lru_cache
def _triton() -> Any:
    """Pallas's compiler for these kernels."""
    from jax.experimental.pallas import triton

    # for every operation of a kernel, MLIR looks for Triton's dialect under this name. It does not
    # find it there, and all these searches take a third of the time of lowering
    with contextlib.suppress(ImportError):
        from jaxlib.triton import dialect

        sys.modules.setdefault("jaxlib.mlir.dialects.tt", dialect)
    return triton


def width_of_blocks(n: int, most: int) -> int:
    """The largest power of two up to `most` that divides n."""
    while n % most:
        most //= 2
    return most


def dot(a: Array, b: Array, kind: Any) -> Array:
    """a @ b with inputs of this dtype, summed in 32 bits."""
    return jnp.dot(a.astype(kind), b.astype(kind), preferred_element_type=jnp.float32)


def outer(a: Array, b: Array) -> Array:
    """a @ bᵀ of gradients and values, summed in 32 bits; not in a kernel."""
    sides = (((1,), (1,)), ((), ()))
    return lax.dot_general(
        a.astype(BACK), b.astype(BACK), sides, preferred_element_type=jnp.float32
    )


def sigmoid(x: Array) -> Array:
    return 1 / (1 + jnp.exp(-x))


def tanh(x: Array) -> Array:
    return 1 - 2 / (1 + jnp.exp(2 * x))
