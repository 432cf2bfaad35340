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


PLUGIN = """
import threading

def initialize():
    print(threading.current_thread().name)
    raise RuntimeError("no driver")
"""
EARLY = """
from mastery.training import devices
devices.start_early()
devices.prepare(1)
import jax
print(jax.devices()[0].platform)
"""


def test_a_gpu_is_started_in_a_thread_and_its_error_is_shown_once(tmp_path):
    """With a plugin as pip would install it, for a GPU that does not exist."""
    (tmp_path / "gpu.py").write_text(PLUGIN)
    about = tmp_path / "gpu-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gpu\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[jax_plugins]\ngpu = gpu\n")
    clean = {k: v for k, v in os.environ.items() if k != "JAX_PLATFORMS"}
    clean["CUDA_VISIBLE_DEVICES"] = ""  # on a machine with a GPU, too

    def started(**environment):
        return subprocess.run(
            [sys.executable, "-c", EARLY],
            env={**clean, "PYTHONPATH": str(tmp_path), **environment},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert started().stdout.split("\n") == ["start JAX", "cpu", ""]
    wrong = started(JAX_PLATFORMS="cuda")
    assert wrong.stderr.count("MasteryError: JAX finds no device") == 1
    assert wrong.stdout == "start JAX\n"
