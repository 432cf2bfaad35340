"""Ctrl-C and a polite kill, while there is something to save."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def interrupts(act: Callable[[int], None]) -> Iterator[list[int]]:
    """Ctrl-C and a polite kill are noted, in the list that is given, instead of ending the process.

    act: called for each, with how many there were. Only the main thread can take them; in another
    one all stays as it is.
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
    """They wait in a process that is begun meanwhile, until it calls `release`; and in this one, if
    it has no other thread that takes them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    try:
        yield
    finally:
        release()


def release() -> None:
    """They come, and what has waited comes now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)
