"""Handle Ctrl-C and SIGTERM so that training can save before it exits."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interrupts(act: Callable[[int], None]) -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in the yielded list instead of ending the process.

    Only the main thread can handle signals; in any other thread this does nothing.

    Args:
        act: Called at each signal with the number of signals so far.
    """
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def take(number: int, frame: Any) -> None:
        noted.append(number)
        act(len(noted))

    old = [signal.signal(number, take) for number in NUMBERS]
    try:
        yield noted
    finally:
        for number, handler in zip(NUMBERS, old, strict=True):
            signal.signal(number, handler)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Block both signals in this thread; child processes keep them blocked until `release`.

    Another thread of this process may still receive them.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    try:
        yield
    finally:
        release()


def release() -> None:
    """Unblock both signals; pending ones arrive now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)
