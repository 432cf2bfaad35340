"""What runs on a node: one part of a job, in a process of its own.

The process starts JAX itself, with its share of the cores or its GPU. If Ray runs it again because
a node died, it resumes from the part's last checkpoint.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mastery.cluster.place import check_versions
from mastery.errors import MasteryError
from mastery.rundir.database import is_training
from mastery.rundir.machine import versions

LOCK_SECONDS = 150.0  # after which storage has released the locks of a dead node
SHOW_SECONDS = 0.5  # between two reports of progress


@dataclass(frozen=True)
class Order:
    """What a node is to do.

    Attributes:
        part: The part's number in messages.
        directory: Its run directory.
        whole: The folder of the job.
        frames: Frames per run.
        cores: Cores to train on.
        gpus: GPUs to train on.
        options: The plain ones of `TrainOptions`.
        versions: Those of the driver.
        here: The working directory of the driver, where own programs and environments are found.
    """

    part: int
    directory: str
    whole: str
    frames: int
    cores: int
    gpus: int
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    here: str


def train_part(order: Order, messages: Any) -> dict[str, Any]:
    """Train a part until it is finished or interrupted.

    Args:
        order: What to train, and how.
        messages: Ray's handle to `Messages`.

    Returns:
        `update`, how far it is; or `error`, why it cannot be trained.
    """

    def tell(kind: str, text: str) -> None:
        messages.tell.remote(order.part, kind, text)

    try:
        check_versions("this node", versions(), order.versions)
        with contextlib.suppress(OSError):  # without it, an own program that is missing says so
            os.chdir(order.here)
        _wait_for_lock(order, tell)
        tell("begun", _here())
        return _train(order, tell, messages)
    except MasteryError as error:
        part, whole = (f"--resume {shlex.quote(x)}" for x in (order.directory, order.whole))
        return {"error": str(error).replace(part, whole)}


def _here() -> str:
    """The name of this node."""
    import ray

    address = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    name = socket.gethostname()
    return str(address) if name == address else f"{name} ({address})"


def _wait_for_lock(order: Order, tell: Any) -> None:
    """Shared storage keeps the lock of a dead node for a while."""
    end, said = time.monotonic() + LOCK_SECONDS, False
    while is_training(Path(order.directory)) and time.monotonic() < end:
        if not said:
            tell("note", f"waiting up to {LOCK_SECONDS:.0f} seconds for the lock of a dead process")
            said = True
        time.sleep(1.0)


def _train(order: Order, tell: Any, messages: Any) -> dict[str, Any]:
    import ray

    if order.gpus:
        # XLA chooses GPU kernels by measuring them, so a part that resumes on another node must
        # find what was compiled before
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(order.whole) / "compiled"))
    from mastery.training.devices import prepare
    from mastery.training.train import STOPPING, Progress, TrainOptions, resume

    shown = 0.0

    def report(progress: Progress) -> None:
        nonlocal shown
        if time.monotonic() - shown > SHOW_SECONDS or progress.update == progress.updates:
            shown = time.monotonic()
            programs = {label: tuple(means) for label, means in progress.programs.items()}
            plain = {**progress._asdict(), "programs": programs}
            messages.show.remote(order.part, tuple(plain.values()))

    def note(text: str) -> None:
        if text != STOPPING:  # the driver says so, once
            tell("note", text)

    prepare(order.cores)
    options = TrainOptions(**order.options, report=report, note=note)
    outcome = resume(order.directory, options, frames=order.frames)
    if outcome.interrupted and not ray.get(messages.stopping.remote()):
        os._exit(1)  # the node is being stopped: Ray runs the part again on another one
    return {"update": outcome.update}
