"""Examples per second of learning to add: this project and plain PyTorch, in one run.

    python benchmarks/addition.py                one run of each (two cores)
    python benchmarks/addition.py --runs 60      sixty runs at once (one GPU)

Ours is the whole job as `mastery train addition-9` does it: teacher, examples made on the device,
tests for the teacher and for validation after each epoch, curves and checkpoints written; only
compiling is not counted, and told apart. The peer is benchmarks/peers/torch_addition.py: the same
network and the same tests without a teacher, one run. On a GPU there is another beside, which needs
no PyTorch: benchmarks/peers/cudnn_addition.py, PyTorch's kernels called by JAX.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import jax
from training import ours  # type: ignore[import-not-found]

from mastery import Curriculum
from mastery.learners.addition import AdditionSettings
from mastery.training.devices import use_cores
from mastery.training.job import Job

PEERS = Path(__file__).parent / "peers"


def peer(name: str, seconds: float, digits: int, batch: int, environment: dict[str, str]) -> float:
    options = {"--seconds": seconds, "--digits": digits, "--batch": batch}
    command = [sys.executable, str(PEERS / name), *(str(x) for o in options.items() for x in o)]
    environment = dict(os.environ) | environment
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(result.stdout)


def found_peers() -> dict[str, tuple[str, dict[str, str]]]:
    """Script and environment of those that can run here; ours is compared with the first."""
    peers: dict[str, tuple[str, dict[str, str]]] = {}
    if find_spec("torch") is not None:
        peers["PyTorch"] = "torch_addition.py", {}
        peers["PyTorch, one thread"] = "torch_addition.py", {"OMP_NUM_THREADS": "1"}
    if jax.devices()[0].platform == "gpu":  # our own process holds most of its memory
        peers["cuDNN"] = "cudnn_addition.py", {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    return peers


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1, help="runs at once")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--digits", type=int, choices=(3, 5, 9), default=9)
    parser.add_argument("--batch", default="128,1024", help="examples in a minibatch")
    given = parser.parse_args()
    use_cores(os.cpu_count() or 1)
    device, peers = jax.devices()[0], found_peers()
    base = next(iter(peers), "")
    print(f"{device.device_kind}, {os.cpu_count()} cores, {given.digits} digits, {given.runs} runs")
    print(f"{'':30}{'examples/s':>14}{'least … most':>24}{'× ' + base:>11}{'first chunk':>13}")
    for batch in map(int, given.batch.split(",")):
        job = Job(
            Curriculum.load(f"addition-{given.digits}"),
            seeds=given.runs,
            frames=10**12,
            settings=AdditionSettings(batch=batch),
            evaluate_every=0,
        )
        speeds: dict[str, list[float]] = {}
        first = 0.0
        for repeat in range(given.repeats):
            speed, compiled = ours(job, given.seconds)
            first = first if repeat else compiled
            speeds.setdefault(f"mastery, batch {batch}", []).append(speed)
            for name, (script, environment) in peers.items():
                speed = peer(script, given.seconds, given.digits, batch, environment)
                speeds.setdefault(f"{name}, batch {batch}", []).append(speed)
        for name, found in speeds.items():
            middle = statistics.median(found)
            theirs = speeds.get(f"{base}, batch {batch}")
            ratio = f"{middle / statistics.median(theirs):.1f}" if theirs else ""
            spread = f"{min(found):,.0f} … {max(found):,.0f}"
            when = f"{first:.0f} s" if name.startswith("mastery") else ""
            print(f"{name:30}{middle:>14,.0f}{spread:>24}{ratio:>11}{when:>13}")


if __name__ == "__main__":
    main()
