"""Compile functions in other threads, several at once, before they are called.

Tracing is Python, so only one thread does it at a time. Compiling is not, and neither is training:
what is first called later is compiled meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import jax


class Early:
    """A compiled function, from `jax.jit`, whose compilation may start before its first call."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self._early: Future[Any] | None = None

    def __call__(self, *given: Any) -> Any:
        early = self._early
        if early is None or early.cancelled():
            return self.compiled(*given)
        return early.result()(*given)

    def shapes(self, *given: Any) -> Any:
        """What a call returns, as shapes that `start` takes: each with the given's sharding."""
        new: Any = partial(jax.ShapeDtypeStruct, sharding=jax.tree.leaves(given)[0].sharding)
        found = self.compiled.eval_shape(*given)
        return jax.tree.map(lambda x: new(x.shape, x.dtype), found)

    def lower(self, given: Iterable[Any]) -> tuple[Any, Callable[[Any], Callable[..., Any]]]:
        """Trace the function for these arguments, or their shapes.

        Returns:
            The lowered function, and what turns it, once compiled, into a function like this one.
        """
        return self.compiled.lower(*given), lambda compiled: compiled


class EarlyCompiler:
    """Compiles `Early` functions, in the order in which they are asked for."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "compile")
        self._tracing = threading.Lock()

    def start(self, function: Early, given: Callable[[], Iterable[Any]]) -> None:
        """Start compiling a function, unless that was started before.

        Args:
            function: The function. From now on a call waits until it is compiled.
            given: Returns the arguments, or their shapes, of every call. Runs in another thread.
        """

        def work() -> Any:
            with self._tracing:
                lowered, call = function.lower(given())
            return call(lowered.compile())

        if function._early is None:
            function._early = self._pool.submit(work)

    def close(self) -> None:
        """Compile nothing that has not been started; a later call compiles it."""
        self._pool.shutdown(wait=False, cancel_futures=True)
