"""The hardware and the package versions that a job was trained with."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import mastery

PACKAGES = ("numpy", "jax", "jaxlib", "equinox", "gymnasium", "minigrid")  # they can change results


def versions() -> dict[str, str]:
    """Versions of Python, mastery and the packages that can change results."""
    found = {"python": platform.python_version(), "mastery": mastery.__version__}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def processor() -> str:
    """A short hash of the processor's features, on which compiled code may depend."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else [platform.processor()]
    features = next((line for line in lines if line.startswith(("flags", "Features"))), lines[0])
    return hashlib.sha256(features.encode()).hexdigest()[:12]


def machine() -> dict[str, Any]:
    """The machine, without its accelerators."""
    return {
        "machine": platform.machine(),
        "processor": processor(),
        "system": sys.platform,
        "cores": os.cpu_count(),
    }


def hardware() -> dict[str, Any]:
    """The devices that JAX sees, and the machine; starts JAX."""
    import jax

    devices = jax.devices()
    return {"device": devices[0].device_kind, "devices": len(devices), **machine()}
