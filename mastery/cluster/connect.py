"""Connect to a Ray cluster. Ray itself waits two minutes for a wrong address, and then exits."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from typing import Any

from mastery.errors import MasteryError, needs

SECONDS = 5.0  # to answer
# the start of an HTTP/2 connection, which gRPC servers such as Ray's answer with settings
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_SETTINGS = 4  # the type of that answer
_REMEDY = (
    "start a cluster with ray start --head, and give the address that it prints, such as "
    "10.0.0.1:6379, or auto on a machine of the cluster"
)


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a cluster and yield the module `ray`; disconnect at the end.

    A connection that this process has already is used, and kept.

    Args:
        address: `HOST:PORT` of the cluster, or `auto` for that of this machine.

    Raises:
        MasteryError: If Ray is not installed, or there is no cluster.
    """
    with needs("training on a cluster", "ray"):
        import ray
    if ray.is_initialized():
        yield ray
        return
    found = check_address(address)
    try:
        ray.init(address=found, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        # such as another version of Ray or Python than the cluster's
        reason = " ".join(str(error).split())
        raise MasteryError(
            f"cannot connect to the Ray cluster at {address}: {reason}; {_REMEDY}"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def check_address(address: str) -> str:
    """The address as HOST:PORT; MasteryError unless a Ray cluster seems to answer there."""
    found = _of_this_machine() if address == "auto" else address
    if "://" in found:
        raise MasteryError(
            f"the cluster's address is {found}; give HOST:PORT or auto, and run this command on "
            "a machine of the cluster, since it must see the job's folder"
        )
    host, colon, port = found.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise MasteryError(f"the cluster's address is {found!r}; give HOST:PORT or auto")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS) as talk:
            talk.sendall(_HELLO)
            answer = talk.recv(4)
    except UnicodeError:  # a part of the name is empty or too long
        raise MasteryError(f"the cluster's address is {found!r}; no host has this name") from None
    except OSError as error:
        reason = "it does not answer" if isinstance(error, TimeoutError) else error.strerror
        raise MasteryError(f"there is no Ray cluster at {found}: {reason}; {_REMEDY}") from None
    if len(answer) < 4 or answer[3] != _SETTINGS:
        raise MasteryError(
            f"there is no Ray cluster at {found}: something else listens there; {_REMEDY}"
        )
    return found


def _of_this_machine() -> str:
    """The address of the cluster that this machine belongs to."""
    given = os.environ.get("RAY_ADDRESS")
    if given and given != "auto":
        return given
    from ray._private.services import canonicalize_bootstrap_address_or_die

    try:
        found: str = canonicalize_bootstrap_address_or_die("auto")
    except ConnectionError as error:
        reason = str(error).partition(". ")[0]  # it may name addresses
        raise MasteryError(
            f"there is no Ray cluster on this machine: {reason}; {_REMEDY}"
        ) from None
    return found


def reason_of(error: Exception) -> str:
    """The last line of an error of Ray, or its kind if it has no text."""
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
