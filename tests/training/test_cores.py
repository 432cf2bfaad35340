"""Cores are shown to JAX as devices, unless somebody knows better. In processes of their own."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
from mastery.training.devices import use_cores
use_cores({devices})
import os, jax
print(len(jax.devices()), os.environ.get("NPROC"))
"""


def found(devices, **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("NPROC", "XLA_FLAGS")}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(devices=devices)],
        env={**clean, "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return result.stdout.split()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="counts cores otherwise")
def test_each_run_has_a_core_of_its_own_as_far_as_they_go():
    cores = len(os.sched_getaffinity(0))
    assert found(1) == ["1", "1"]
    assert found(1000) == [str(cores), "1"]


def test_what_the_user_has_set_stays():
    assert found(2, NPROC="2") == ["1", "2"]
    assert found(2, XLA_FLAGS="--xla_force_host_platform_device_count=3") == ["3", "None"]
