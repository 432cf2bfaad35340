"""Seconds from the command to the end of a `mastery train`, cold and warm, and by phase.

    python benchmarks/start.py [--warm 3] [--cold 1] [--tree DIR] [ARGUMENTS of mastery train ...]
    python benchmarks/start.py --warm 10 --cold 10 --first-seed 9100 key-corridor \\
        --stop-when-return 0.8

Each start is a process of its own. A cold one has empty caches; the warm ones have those that a
cold one left. With `--first-seed` each cold start has a seed of its own, and so has each warm one.
Times are wall time, and processor time of all threads: the median (least … most) of the starts, and
the phases of the start in the middle. `--tree` measures another checkout.
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
from statistics import median
from typing import Any

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
    from mastery.training import devices

    prepare = devices.prepare

    def prepared(count: int) -> None:
        mark("import, job")
        prepare(count)
        mark("start JAX")
        from mastery.training import train

        make_loop = train.make_loop

        def made(*given: Any) -> Any:
            loop = make_loop(*given)
            mark("make the loop")
            times = {"begin": 0, "advance": 0, "evaluate": 0}
            for name in times:
                setattr(loop, name, timed(loop, name, times))
            return loop

        train.make_loop = made

    def timed(loop: Any, name: str, times: dict[str, int]) -> Any:
        call = getattr(loop, name)

        def called(*given: Any) -> Any:
            mark("between")
            result = call(*given)
            times[name] += 1
            first = "first " if times[name] == 1 and name != "begin" else ""
            mark(f"{first}{name}")
            return result

        return called

    devices.prepare = prepared
    app(standalone_mode=False)
    mark("end")
    return found


class Start:
    """A start as a process."""

    def __init__(self, tree: Path, cache: Path, arguments: list[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "phases.json"
            environment = os.environ | {"PYTHONPATH": str(tree), "XDG_CACHE_HOME": str(cache)}
            command = [sys.executable, __file__, "--phases", str(out), *arguments]
            before, start = os.times(), time.perf_counter()
            subprocess.run(
                [*command, "--out", f"{folder}/run"],
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            self.wall, after = time.perf_counter() - start, os.times()
            self.processor = sum(after[2:4]) - sum(before[2:4])
            self.phases = json.loads(out.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warm", type=int, default=3, help="warm starts")
    parser.add_argument("--cold", type=int, default=1, help="cold starts")
    parser.add_argument("--first-seed", type=int, help="of the first start, cold or warm")
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--phases", type=Path, help=argparse.SUPPRESS)
    options, arguments = parser.parse_known_args()
    if options.phases:
        options.phases.write_text(json.dumps(phases(arguments)))
        return
    if options.cold < 1:
        parser.error("--cold: at least one, since the warm starts have its caches")

    def start(i: int, cache: str) -> Start:
        seed = [] if options.first_seed is None else ["--seed", str(options.first_seed + i)]
        return Start(options.tree.resolve(), Path(cache), [*(arguments or JOB), *seed])

    cold = []
    for i in range(options.cold):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(start(i, cache))
            if i == options.cold - 1:
                warm = [start(k, cache) for k in range(options.warm)]
    kinds = [sorted(starts, key=lambda one: one.wall) for starts in (cold, warm)]
    print("| phase | cold: wall | processor | warm: wall | processor |\n|---|---:|---:|---:|---:|")
    middle = [starts[(len(starts) - 1) // 2].phases for starts in kinds]
    for name in middle[0]:
        row = [x for found in middle for x in found.get(name, (0, 0))]
        print(f"| {name} | " + " | ".join(f"{x:.2f}" for x in row) + " |")
    cells = []
    for starts in kinds:
        for seconds in ([s.wall for s in starts], [s.processor for s in starts]):
            spread = f" ({min(seconds):.1f} … {max(seconds):.1f})" if len(seconds) > 1 else ""
            cells.append(f"{median(seconds):.2f}{spread}")
    print(f"| the whole process | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
