"""Convert a loop's carry to named arrays for a checkpoint, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from numpy.typing import NDArray

from mastery.errors import CheckpointError

_UNFIT = (
    "the checkpoint does not fit this job; another version of mastery may have written it: go on "
    "with that one, or train anew"
)


def is_key(leaf: Any) -> bool:
    """Whether a leaf is a JAX random key; keys are saved as plain numbers."""
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def named(tree: Any) -> list[tuple[str, Any]]:
    """The arrays (or their shapes and dtypes) of a tree, each named by its path."""

    def plain(leaf: Any) -> Any:
        if not is_key(leaf):
            return leaf
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.eval_shape(jax.random.key_data, leaf)
        return jax.random.key_data(leaf)

    found = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [(jax.tree_util.keystr(path, simple=True, separator="."), plain(x)) for path, x in found]


def fitting(
    arrays: Mapping[str, NDArray[Any]], wanted: Iterable[tuple[str, tuple[int, ...], Any]]
) -> list[NDArray[Any]]:
    """The arrays in the wanted order.

    Args:
        arrays: Arrays by name, from a checkpoint.
        wanted: The name, shape and dtype of each.

    Raises:
        CheckpointError: If an array is missing, has another shape or dtype, or is not wanted.
    """
    remaining, found = dict(arrays), []
    for name, shape, dtype in wanted:
        array = remaining.pop(name, None)
        if array is None or array.shape != shape or array.dtype != dtype:
            raise CheckpointError(f"{_UNFIT}: {name} is missing")
        found.append(array)
    if remaining:
        raise CheckpointError(f"{_UNFIT}: {min(remaining)} is new")
    return found
