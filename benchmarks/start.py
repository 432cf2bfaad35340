"""Seconds from the command to the end of a short `mastery train`, by phase, cold and warm.

    python benchmarks/start.py [--repeats 3] [--tree DIR] [ARGUMENTS of mastery train ...]

Each start is a process of its own. The cold one has an empty compilation cache, the warm ones the
cache that it left. Wall time and processor time (all threads): the fastest of the warm starts.
`--tree` measures another checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

JOB = ["blocked-unlock-pickup", "--frames", "100k", "--set", "envs=16"]  # one run, 50 updates


def phases(arguments: list[str]) -> dict[str, tuple[float, float]]:
    """Run `mastery train` here; wall and processor seconds of each phase."""
    found: dict[str, tuple[float, float]] = {}
    last = [0.0, 0.0]  # of this process; the start of Python is not in it

    def mark(name: str) -> None:
        now = [time.perf_counter() - began, time.process_time()]
        before = found.get(name, (0.0, 0.0))
        found[name] = tuple(b + n - x for b, n, x in zip(before, now, last, strict=True))
        last[:] = now

    began = time.perf_counter()
    sys.argv = ["mastery", "train", *arguments]
    from mastery.cli import app
    from mastery.training import devices, train

    mark("import")
    prepare, make_loop = devices.prepare, train.make_loop

    def prepared(count: int) -> None:
        mark("job")
        prepare(count)
        mark("start JAX")

    def made(*given):
        loop = make_loop(*given)
        mark("make the loop")
        times = {"begin": 0, "advance": 0, "evaluate": 0}
        for name in times:
            call = getattr(loop, name)

            def timed(*given, name=name, call=call):
                mark("between")
                result = call(*given)
                times[name] += 1
                first = "first " if times[name] == 1 and name != "begin" else ""
                mark(f"{first}{name}")
                return result

            setattr(loop, name, timed)
        return loop

    devices.prepare, train.make_loop = prepared, made
    app(standalone_mode=False)
    mark("end")
    return found


def measure(tree: Path, cache: Path, arguments: list[str]) -> tuple[float, float, dict]:
    """A start as a process: wall, processor seconds, and phases."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "phases.json"
        environment = os.environ | {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": str(cache)}
        command = [sys.executable, __file__, "--phases", str(out), *arguments]
        before, start = os.times(), time.perf_counter()
        subprocess.run(
            [*command, "--out", f"{folder}/run"], env=environment, check=True, capture_output=True
        )
        wall, after = time.perf_counter() - start, os.times()
        processor = sum(after[2:4]) - sum(before[2:4])
        return wall, processor, json.loads(out.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="warm starts")
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--phases", type=Path, help=argparse.SUPPRESS)
    options, arguments = parser.parse_known_args()
    if options.phases:
        options.phases.write_text(json.dumps(phases(arguments)))
        return
    with tempfile.TemporaryDirectory() as cache:
        starts = [
            measure(options.tree.resolve(), Path(cache), arguments or JOB)
            for _ in range(1 + options.repeats)
        ]
    cold, warm = starts[0], min(starts[1:], key=lambda start: start[0])
    print("| phase | cold: wall | processor | warm: wall | processor |\n|---|---:|---:|---:|---:|")
    for name in cold[2]:
        row = [*cold[2][name], *warm[2].get(name, (0, 0))]
        print(f"| {name} | " + " | ".join(f"{x:.2f}" for x in row) + " |")
    total = [f"{x:.2f}" for x in (*cold[:2], *warm[:2])]
    print(f"| the whole process | {' | '.join(total)} |")


if __name__ == "__main__":
    main()
