"""The devices for training: a GPU, or the CPU cores of a machine without one.

The matrices of these networks are small: on two cores XLA's threads gain nothing in one run, and
lose up to half when a core is busy with something else. So each run gets one thread, and each core
is exposed to JAX as one device; runs, or the parts of one run, are spread over devices anyway.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from importlib.metadata import entry_points
from pathlib import Path

from mastery.errors import MasteryError
from mastery.rundir.machine import processor

_COUNT = "--xla_force_host_platform_device_count"

traced_folder: Path | None = None  # where what was traced is kept, once JAX is prepared


def use_cores(devices: int) -> None:
    """Expose up to `devices` cores to JAX, each as one device. Call this before JAX is first used.

    Environment variables that the user has set stay unchanged.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if accelerated() or "NPROC" in os.environ or _COUNT in flags:
        return  # there is a GPU, or the user has chosen
    os.environ["NPROC"] = "1"
    os.environ["XLA_FLAGS"] = f"{flags} {_COUNT}={min(devices, cores())}".strip()


def start_early() -> None:
    """Start JAX on a GPU in another thread, while this one imports what else training needs."""
    if not accelerated():
        return
    _take_memory_as_needed()
    import jax  # here: two threads that import the same modules can find them half made

    def start() -> None:
        with contextlib.suppress(Exception):  # what fails here fails again in `prepare`
            jax.devices()

    threading.Thread(target=start, name="start JAX").start()


def prepare(devices: int) -> None:
    """Start JAX with up to `devices` cores and a compilation cache on disk."""
    global traced_folder
    import jax

    use_cores(devices)
    _take_memory_as_needed()
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:
        reason = (
            str(error).partition("\n")[0] or "JAX_PLATFORMS names a platform that JAX cannot find"
        )
        raise MasteryError(f"JAX finds no device: {reason}") from None
    if jax.config.values["jax_compilation_cache_dir"] is None:
        with contextlib.suppress(RuntimeError):  # no home directory: no cache
            # code compiled for another processor must not be used
            folder = cache_folder() / f"jax-{jax.__version__}-{processor()}"
            jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
            traced_folder = cache_folder() / "traced"
            if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
                # many small functions take longer to compile than to read, too
                jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)  # type: ignore[no-untyped-call]
    gc.freeze()  # what is imported stays: looking through it again would slow tracing by a fifth


def _take_memory_as_needed() -> None:
    """Let JAX take a GPU's memory as it is needed."""
    # taking three quarters of it at the start takes a second, and others may need it
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def cache_folder() -> Path:
    """Where mastery keeps what can be made again; RuntimeError if there is no home directory."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "mastery"


def accelerated() -> bool:
    """Whether a GPU or TPU plugin of JAX is installed, and JAX may use it."""
    may = os.environ.get("JAX_PLATFORMS", "").strip() != "cpu"
    return may and bool(entry_points(group="jax_plugins"))


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
