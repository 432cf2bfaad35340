"""Convert a loop's carry to named arrays for a checkpoint, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mastery.errors import CheckpointError
from mastery.programs.states import with_support

AGENT = "learner.agent."  # how the names of the arrays of an agent's network begin
_UNFIT = (
    "the checkpoint does not fit this job; another version of mastery may have written it: resume "
    "with that version, or start a new job"
)
_OWN = re.compile(r"teacher\.(state\.)?\d+\.own\b")  # see programs.metered


def is_key(leaf: Any) -> bool:
    """Whether a leaf is a JAX random key; keys are saved as plain numbers."""
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def named(tree: Any, only: str = "") -> list[tuple[str, Any]]:
    """The arrays (or their shapes and dtypes) of a tree, each named by its path; of those whose
    names begin with `only`."""

    def plain(leaf: Any) -> Any:
        if not is_key(leaf):
            return leaf
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.eval_shape(jax.random.key_data, leaf)
        return jax.random.key_data(leaf)

    found = [
        (jax.tree_util.keystr(path, simple=True, separator="."), x)
        for path, x in jax.tree_util.tree_flatten_with_path(tree)[0]
    ]
    return [(name, plain(x)) for name, x in found if name.startswith(only)]


def restore(arrays: Mapping[str, NDArray[Any]], like: Any, runs: int, padding: int = 0) -> Any:
    """Build a tree from named arrays whose first axis is the run.

    Args:
        arrays: Arrays by name, from a checkpoint.
        like: A tree with the structure, shapes and dtypes of a single run.
        runs: The number of runs.
        padding: Repeat the last run this many times.

    Raises:
        CheckpointError: If an array is missing, has another shape or dtype, or is not wanted.
    """
    leaves, structure = jax.tree.flatten(like)
    wanted = named(like)
    remaining, found = with_support(arrays, [name for name, _ in wanted]), []
    for leaf, (name, plain) in zip(leaves, wanted, strict=True):
        array = remaining.pop(name, None)
        if array is None or array.shape != (runs, *plain.shape) or array.dtype != plain.dtype:
            raise _unfit(name, "is missing")
        array = np.concatenate([array, *[array[-1:]] * padding])
        found.append(jax.random.wrap_key_data(jnp.asarray(array)) if is_key(leaf) else array)
    if remaining:
        raise _unfit(min(remaining), "is new")
    return jax.tree.unflatten(structure, found)


def _unfit(name: str, what: str) -> CheckpointError:
    if _OWN.match(name):
        return CheckpointError(
            "the checkpoint does not fit your own program: its state has other names, shapes or "
            f"types than when the job was saved ({name} {what}); use the program as it was, or "
            "start a new job"
        )
    return CheckpointError(f"{_UNFIT}: {name} {what}")
