"""Locks that survive a fork: the child gets a whole copy, and one that is not locked."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_owners: weakref.WeakSet[Any] = weakref.WeakSet()
_forking = threading.Lock()  # one fork at a time
_held: list[Any] = []
_PATIENCE = 5.0  # seconds to wait for a thread that is inside an owner


def protect(owner: Any) -> None:
    """Let forks wait for `owner._lock`, a reentrant lock; the child gets a new one."""
    _owners.add(owner)


def _before() -> None:
    _forking.acquire()
    for owner in list(_owners):
        if owner._lock.acquire(timeout=_PATIENCE):
            _held.append(owner)


def _after_in_parent() -> None:
    while _held:
        _held.pop()._lock.release()
    _forking.release()


def _after_in_child() -> None:
    for owner in list(_owners):
        owner._lock = threading.RLock()
    _held.clear()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
