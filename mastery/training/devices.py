"""The devices a job is trained on: a GPU, or the cores of a machine that has none.

The matrices of these networks are small: on two cores XLA's threads gain nothing in one run, and
lose up to half when a core is busy with something else. So each run gets one thread, and the cores
are shown to JAX as as many devices, over which runs, or the parts of one, are spread anyway.
"""

from __future__ import annotations

import contextlib
import os
from importlib.metadata import entry_points
from pathlib import Path

from mastery.errors import MasteryError
from mastery.rundir.machine import processor

_COUNT = "--xla_force_host_platform_device_count"


def use_cores(devices: int) -> None:
    """Show the cores to JAX as devices, so many at most. To be called before JAX is first used;
    what the user has set stays as it is."""
    flags = os.environ.get("XLA_FLAGS", "")
    if accelerated() or "NPROC" in os.environ or _COUNT in flags:
        return  # or somebody knows better
    os.environ["NPROC"] = "1"
    os.environ["XLA_FLAGS"] = f"{flags} {_COUNT}={min(devices, cores())}".strip()


def prepare(devices: int) -> None:
    """Let JAX begin: with the cores as so many devices, and keeping what it compiles."""
    import jax

    use_cores(devices)
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0] or "JAX_PLATFORMS asks for what is not there"
        raise MasteryError(f"JAX finds no device: {reason}") from None
    if jax.config.values["jax_compilation_cache_dir"] is None:
        with contextlib.suppress(RuntimeError):  # there is no home: then nothing is kept
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
            # what was compiled for another processor must not be taken
            folder = cache / "mastery" / f"jax-{jax.__version__}-{processor()}"
            jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]


def accelerated() -> bool:
    """Whether there may be a GPU or a TPU."""
    return bool(entry_points(group="jax_plugins"))


def cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
