"""Do work in another thread while training goes on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Behind:
    """Makes calls in another thread, one at a time and in order.

    The next call, or `wait`, raises what a call has raised.

    Example:
        >>> with Behind() as behind:
        ...     behind(store.record, step, seconds, metrics)
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "behind")
        self._pending: Future[Any] | None = None

    def __call__(self, work: Callable[..., Any], *given: Any) -> None:
        """Wait for the previous call, then begin this one."""
        self.wait()
        self._pending = self._pool.submit(work, *given)

    def wait(self) -> None:
        """Wait until the last call is done."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def __enter__(self) -> Behind:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()  # finishes what has begun
