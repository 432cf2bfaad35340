"""The page: how large it is, how soon it is there, and what watching costs the training.

    python benchmarks/page.py [--turns 6] [--seconds 8]

First the full paper's jobs as one file (`mastery paper --redraw` writes it), in Chromium, each time
in a browser that was just started: until every part can be used.

Then a job of 100 runs of 6 tasks trains on this machine, with an agent so small that there are new
points all the time, while `mastery watch` serves it. In turns, nobody looks; somebody asks for what
is new once a second, as an open page does; and a page is open in Chromium on this same machine,
without a graphics card. What is told is the CPU time of each process as a share of all cores, and
the frames a second of the training beside the turns in which nobody looks. The frames a second of
a busy machine move by some per cent by themselves; the CPU time does not.

Last, points of such a job are written at a fixed rate, without training, so that what watching
costs can be told whatever else the machine does: of a job that has just begun, and of a long one.
`--rate-only` measures this alone.

What recording costs a loop (`mastery.record`) is measured on CartPole, with a network of 64
units and an update of the teacher each eight episodes: blocks with and without it, in turns, by CPU
time. `--record-only` measures this alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import gymnasium as gym
import numpy as np
from playwright.sync_api import sync_playwright

import mastery
from mastery import Curriculum
from mastery.learners.ppo import PPOSettings
from mastery.paper.interactive import write_interactive
from mastery.paper.page import DATA, read_shipped
from mastery.rundir.metrics import Metrics
from mastery.rundir.store import Store
from mastery.training.job import Job

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run"
)
RATE = 1.6  # points a second that are written without training
TRAIN = """
import sys
from mastery import Curriculum
from mastery.training.devices import prepare
from mastery.learners.ppo import PPOSettings
from mastery.training.job import Job
from mastery.training.train import train
prepare(100)
settings = PPOSettings(envs=2, frames=16, batch=16, ahead=2, width=8)
train(
    Job(Curriculum.load("key-corridor"), ("mr", "uniform"), seeds=50, frames=10**9, chunk=4,
        settings=settings, evaluate_every=0),
    sys.argv[1],
)
"""


def start_browser(driver: Any) -> Any:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    return driver.chromium.launch(executable_path=found, args=FLAGS.split())


def paper(folder: Path, times: int = 5) -> list[tuple[str, str]]:
    path = folder / "interactive.html"
    write_interactive(read_shipped(DATA), path)
    took, played = [], []
    for _ in range(times):
        with sync_playwright() as driver:
            browser = start_browser(driver)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(path.as_uri())
            page.wait_for_selector("main[aria-busy=false]")
            took.append(page.evaluate("performance.getEntriesByName('interactive')[0].startTime"))
            played.append(
                page.locator("#time").evaluate("""(slider) => {
                    const began = performance.now();
                    for (let i = 0; i < 50; i++) {
                        slider.value = i;
                        slider.dispatchEvent(new Event('input'));
                    }
                    return (performance.now() - began) / 50;
                }""")
            )
            browser.close()
    return [
        ("the full paper, size", f"{path.stat().st_size / 1e6:.1f} MB"),
        (
            "until it can be used",
            f"{statistics.median(took):.0f} ms ({min(took):.0f} … {max(took):.0f})",
        ),
        ("one step of the slider", f"{statistics.median(played):.1f} ms"),
    ]


def cpu(pids: list[int]) -> float:
    """Seconds of CPU that these processes have used."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """A process and all that came of it."""
    found = [pid]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += children(int(path.parent.name))
    return found


def trained(directory: Path) -> tuple[int, float]:
    """Frames of all runs together, and in how many seconds."""
    with sqlite3.connect(f"file:{directory}/run.db?mode=ro", uri=True, timeout=30) as db:
        row = db.execute("SELECT coalesce(max(frames), 0), coalesce(max(seconds), 0) FROM chunks")
        frames, seconds = row.fetchone()
    return 100 * int(frames), float(seconds)


def ask(url: str, had: dict[str, Any]) -> None:
    """What an open page asks for; it is not read here, as the page's own work is measured apart."""
    asked = Request(f"{url}index.json", headers={"If-None-Match": had.get("tag", "")})
    try:
        with urlopen(asked) as answer:
            had["tag"] = answer.headers["ETag"]
            (job,) = json.load(answer)["jobs"]
    except HTTPError:  # 304: there is nothing new
        return
    query = f"?bins={had['bins']}&from={had['full']}&sessions=1" if "bins" in had else ""
    with urlopen(f"{url}curves/{job['key']}{query}") as answer:
        start = answer.read().decode()[:100]
    had |= {name: int(x) for name, x in re.findall(r'"(bins|full)":(\d+)', start)}


def at_a_fixed_rate(folder: Path, points: int, seconds: int = 30) -> tuple[str, str]:
    """What watching a job costs that has so many points and gets RATE more each second."""
    settings = PPOSettings(envs=2, frames=16, batch=16, ahead=2, width=8)
    job = Job(
        Curriculum.load("key-corridor"), ("mr", "uniform"), seeds=50, frames=10**9, chunk=4,
        settings=settings, evaluate_every=0,
    )  # fmt: skip
    with Store(folder / "job", job) as store:
        store.begin_session("", 0)
        for point in range(1, points + 1):
            write_point(store, point)
        server = start_server(folder)
        try:
            url, had = address(server), {}
            ask(url, had)  # all there is so far
            time.sleep(1)
            before, began = cpu([server.pid]), time.monotonic()
            for second in range(1, seconds + 1):
                while point < points + int(second * RATE):
                    point += 1
                    write_point(store, point)
                ask(url, had)
                time.sleep(max(began + second - time.monotonic(), 0))
            used = (cpu([server.pid]) - before) / (time.monotonic() - began)
        finally:
            server.kill()
    cores = os.cpu_count() or 1
    return (
        f"CPU of mastery watch, {RATE} new points a second after {points:,}",
        f"{used / cores:.2%} of {cores} cores",
    )


def write_point(store: Store, point: int) -> None:
    random = np.random.default_rng(point)
    job = Job.from_dict(store.description)
    shape = (1, len(job.runs), len(job.curriculum))
    probability = random.dirichlet(np.ones(shape[2]), shape[:2])
    episodes = random.poisson(2, shape)
    metrics = Metrics(
        probability, random.uniform(size=shape), episodes, random.uniform(size=shape) * episodes,
        np.round(128 * probability).astype(int), progress=random.normal(0, 1e-3, shape),
    )  # fmt: skip
    store.record(point * job.chunk, point / RATE, metrics)


def start_server(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-m", "mastery", "watch", str(folder), "--port", "0"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def address(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    return re.search(r"http\S+", server.stdout.readline())[0]  # type: ignore[index]


def watching(folder: Path, turns: int, seconds: float) -> list[tuple[str, str]]:
    directory = folder / "job"
    trainer = subprocess.Popen([sys.executable, "-c", TRAIN, str(directory)])
    server = start_server(folder)
    try:
        url = address(server)
        while not (directory / "run.db").is_file() or trained(directory)[0] < 100_000:
            time.sleep(1)
            if trainer.poll() is not None:
                sys.exit("the training has ended")
        with sync_playwright() as driver:
            browser = start_browser(driver)
            return _turns(directory, url, server.pid, browser, turns, seconds)
    finally:
        trainer.kill()
        server.kill()


def _turns(
    directory: Path, url: str, server: int, browser: Any, turns: int, seconds: float
) -> list[tuple[str, str]]:
    had: dict[str, Any] = {}
    ask(url, had)  # all there is so far

    def nobody() -> None:
        time.sleep(seconds)

    def somebody() -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            ask(url, had)
            time.sleep(1)

    def open_page() -> None:
        page.wait_for_timeout(seconds * 1000)

    kinds: dict[str, Callable[[], None]] = {
        "nobody": nobody, "somebody": somebody, "a page": open_page,
    }  # fmt: skip
    speed: dict[str, list[float]] = {kind: [] for kind in kinds}
    used: dict[str, list[float]] = {kind: [] for kind in kinds}
    drawn: list[float] = []
    own = [pid for pid in children(os.getpid()) if pid != os.getpid()]
    cores = os.cpu_count() or 1
    for turn in range(turns):
        for kind, look in kinds.items():
            if kind == "a page":
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.goto(url)
                page.wait_for_selector("main[aria-busy=false]", timeout=60_000)
                own = children(os.getpid())
            chromium = [p for p in own if "chrom" in _command(p)]
            before, began = trained(directory), time.monotonic()
            server_before, page_before = cpu([server]), cpu(chromium)
            look()
            took = time.monotonic() - began
            after = trained(directory)
            speed[kind].append((after[0] - before[0]) / (after[1] - before[1]))
            used[kind].append((cpu([server]) - server_before) / took / cores)
            if kind == "a page":
                drawn.append((cpu(chromium) - page_before) / took / cores)
                page.close()
        print(f"turn {turn + 1} of {turns}", file=sys.stderr)
    rows = []
    base = statistics.median(speed["nobody"])
    for kind in kinds:
        ratio = [a / b - 1 for a, b in zip(speed[kind], speed["nobody"], strict=True)]
        less = (
            "" if kind == "nobody" else f", {statistics.median(ratio):+.1%} (median of the turns)"
        )
        rows.append(
            (f"training, {kind} looks" if kind != "a page" else "training, a page is open here",
             f"{statistics.median(speed[kind]):,.0f} frames/s{less}")
        )  # fmt: skip
    each = 100 * 2 * 16 * 4  # frames of all runs between two points
    points, middle = (
        trained(directory)[0] / each,
        {k: statistics.median(x) for k, x in used.items()},
    )
    return [
        ("a job of 100 runs, new points a second", f"{base / each:.1f}, {points:,.0f} at the end"),
        *rows,
        ("CPU of mastery watch, nobody looks", f"{middle['nobody']:.2%} of {cores} cores"),
        ("CPU of mastery watch, somebody looks", f"{middle['somebody']:.2%} of {cores} cores"),
        (
            "CPU of Chromium, a page is open here",
            f"{statistics.median(drawn):.1%} of {cores} cores",
        ),
    ]


def recording(folder: Path, blocks: int = 60, updates: int = 25) -> list[tuple[str, str]]:
    env = gym.make("CartPole-v1")
    tasks = [mastery.Task(f"pole {i}", 0, 1, after=[f"pole {i - 1}"] * (i > 0)) for i in range(6)]
    teachers = [mastery.Teacher(Curriculum(tasks), "mr", seed=0) for _ in range(2)]
    recorder = mastery.record(teachers[1], folder / "poles")
    random = np.random.default_rng(0)
    inner, outer = random.normal(size=(64, 4)), random.normal(size=64) / 8

    def block(teacher: mastery.Teacher, seed: int) -> tuple[float, int]:
        frames, began = 0, time.process_time()
        for _ in range(updates):
            scores: dict[str, list[float]] = {}
            cost: dict[str, int] = {}
            for task in teacher.sample(8):
                seed += 1
                seen, _ = env.reset(seed=seed)
                steps, done = 0, False
                while not done:
                    action = int(outer @ np.tanh(inner @ seen) > 0)
                    seen, _, ended, late, _ = env.step(action)
                    steps, done = steps + 1, ended or late
                scores.setdefault(task, []).append(steps / 500)
                cost[task] = cost.get(task, 0) + steps
                frames += steps
            teacher.update(scores, cost=cost)
        return time.process_time() - began, frames

    def bare(teacher: mastery.Teacher, n: int = 5000) -> float:
        began = time.process_time()
        for _ in range(n):
            teacher.update({"pole 0": 0.5}, cost={"pole 0": 100})
            teacher.sample(8)
        return (time.process_time() - began) / n * 1e6

    took, frames = np.zeros((blocks, 2)), 0
    for i in range(blocks):
        for which in (0, 1) if i % 2 else (1, 0):
            took[i, which], played = block(teachers[which], 1000 * i)
            frames += played * (which == 0)
    alone, recorded = (statistics.median(bare(teacher) for _ in range(5)) for teacher in teachers)
    recorder.close()
    means = random.choice(took, (2000, blocks)).sum(1)  # by resampling the blocks
    low, high = np.quantile(means[:, 1] / means[:, 0] - 1, (0.025, 0.975))
    cost = took[:, 1].sum() / took[:, 0].sum() - 1
    return [
        ("a CartPole loop, frames a second of one core", f"{frames / took[:, 0].sum():,.0f}"),
        ("… frames in an update of the teacher", f"{frames / blocks / updates:.0f}"),
        ("CPU that `mastery.record` adds to it", f"{cost:.2%} ({low:.2%} … {high:.2%})"),
        (
            "an update of the teacher and eight draws, and recorded",
            f"{alone:.0f} µs, {recorded:.0f} µs",
        ),
    ]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rate-only", action="store_true")
    parser.add_argument("--record-only", action="store_true")
    given = parser.parse_args()
    rows = []
    if not given.rate_only:
        with tempfile.TemporaryDirectory() as folder:
            rows += recording(Path(folder))
    if not (given.rate_only or given.record_only):
        with tempfile.TemporaryDirectory() as folder:
            rows += paper(Path(folder))
            rows += watching(Path(folder), given.turns, given.seconds)
    for points in () if given.record_only else (40, 1000):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(at_a_fixed_rate(Path(folder), points))
    print("| what | measured |\n|---|---:|")
    for what, measured in rows:
        print(f"| {what} | {measured} |")


if __name__ == "__main__":
    main()
