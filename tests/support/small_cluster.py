"""A Ray cluster of a few nodes of one core on this machine, which can be killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("ray_nodes.py")


class SmallCluster:
    """A head and other nodes.

    Attributes:
        address: HOST:PORT.
        nodes: The main process of each node but the head.
    """

    def __init__(self, nodes, prefix=()):
        self._process = subprocess.Popen(
            [*prefix, sys.executable, SCRIPT],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.head = self.add()
        self.nodes = [self.add() for _ in range(nodes - 1)]

    def add(self, **environment):
        """Add a node; its main process."""
        print(json.dumps(environment), file=self._process.stdin, flush=True)
        self.address, raylet = json.loads(self._process.stdout.readline())
        return raylet

    def close(self):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def kill(raylet):
    """Kill all processes of a node at once, as when its machine loses power."""
    for pid in [raylet, *children(raylet)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def trainer(raylet):
    """The process of a node that trains a part; None if there is none."""
    found = [pid for pid in children(raylet) if "train_part" in title(pid) or "part " in title(pid)]
    return found[0] if found else None


def children(pid):
    """The processes that a process has started, and theirs."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *children(child)]
    return found


def title(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def mastery(*arguments, environment=None, **options):
    """Start the command line; it can be interrupted, also from a shell's background."""
    return subprocess.Popen(
        [
            sys.executable, "-c", "import signal; signal.signal(signal.SIGINT, "
            "signal.default_int_handler); import sys; from mastery.__main__ import main; "
            "sys.argv[0] = 'mastery'; main()", *map(str, arguments),
        ],
        env={**os.environ, "COLUMNS": "200", **(environment or {})},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip
