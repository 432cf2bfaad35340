"""How a job uses the cores of a machine that has no GPU: a run each, rather than all for one.

The matrices of these networks are small: on two cores XLA's threads gain nothing in one run, and
lose up to half when a core is busy with something else. So each run gets one thread, and the cores
are shown to JAX as as many devices, over which runs are spread anyway.
"""

from __future__ import annotations

import os
from importlib.metadata import entry_points

_COUNT = "--xla_force_host_platform_device_count"


def use_cores(runs: int) -> None:
    """To be called before JAX is first used; what the user has set stays as it is."""
    flags = os.environ.get("XLA_FLAGS", "")
    if entry_points(group="jax_plugins") or "NPROC" in os.environ or _COUNT in flags:
        return  # there may be a GPU or a TPU, or somebody knows better
    os.environ["NPROC"] = "1"
    os.environ["XLA_FLAGS"] = f"{flags} {_COUNT}={min(runs, _cores())}".strip()


def _cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
