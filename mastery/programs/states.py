"""States as trees: named tuples, tuples, lists and dicts, with arrays and numbers as leaves.

This does what `jax.tree` does, but needs only NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply f to each leaf, and to the matching leaves of further trees; keep the structure."""
    if isinstance(tree, dict):
        return {key: tree_map(f, value, *(r[key] for r in rest)) for key, value in tree.items()}
    if isinstance(tree, tuple | list):
        values = [tree_map(f, *together) for together in zip(tree, *rest, strict=True)]
        return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)
    return f(tree, *rest)


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each leaf with its path, such as `tasks.history.returns`."""
    named: Iterable[tuple[Any, Any]]
    if isinstance(tree, dict):
        named = tree.items()
    elif hasattr(tree, "_fields"):
        named = zip(tree._fields, tree, strict=True)
    elif isinstance(tree, tuple | list):
        named = enumerate(tree)
    else:
        yield path, tree
        return
    for name, value in named:
        yield from leaves(value, f"{path}.{name}" if path else str(name))


def complete(values: dict[str, Any], like: Any) -> dict[str, Any]:
    """The leaves of a state that an earlier version saved, with what was added since.

    Args:
        values: The saved leaves by path.
        like: A state of this version, as new.
    """
    new = dict(leaves(like))
    values = dict(values)
    if "meter.t" in new and "meter.t" not in values:  # your own program was saved without a meter
        values = {f"own.{path}": leaf for path, leaf in values.items()}
        values |= {path: leaf for path, leaf in new.items() if path.startswith("meter.")}
    return with_support(values, new)


def with_support(values: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Saved leaves by path, with `support`, which was added later, where it is wanted.

    A time-step counts as one return. Before the axes of the arrays may come an axis of runs.
    """
    found = dict(values)
    for path in paths:
        parent, _, name = path.rpartition(".")
        if name == "support" and path not in found and f"{parent}.history.count" in found:
            ring = np.asarray(found[f"{parent}.history.returns"])
            count = np.minimum(found[f"{parent}.history.count"], ring.shape[-2])
            found[path] = count.astype(ring.dtype)
    return found


def rebuild(like: Any, values: dict[str, Any]) -> Any:
    """Build a tree with the structure of `like` from the given leaves.

    Args:
        like: A tree whose leaves have the expected shapes and dtypes.
        values: The new leaves by path.

    Raises:
        KeyError: If a leaf is missing, unknown, or of another shape or dtype.
    """
    remaining = dict(values)

    def take(path: str, leaf: Any) -> Any:
        if path not in remaining:
            raise KeyError(f"{path} is missing")
        found, expected = np.asarray(remaining.pop(path)), np.asarray(leaf)
        if found.shape != expected.shape or found.dtype != expected.dtype:
            raise KeyError(
                f"{path} is {found.dtype}{list(found.shape)}, "
                f"not {expected.dtype}{list(expected.shape)}"
            )
        return found.copy()

    paths = iter([path for path, _ in leaves(like)])
    tree = tree_map(lambda leaf: take(next(paths), leaf), like)
    if remaining:
        raise KeyError(f"{next(iter(remaining))} is not known")
    return tree
