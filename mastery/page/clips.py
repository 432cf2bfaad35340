"""Make a GIF of the trained agent on a task, by running `mastery play` in a separate process.

So the page itself needs no JAX and never blocks, and an agent that fails to play gives a line of
text. It plays on the CPU, because an accelerator may be busy with training.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS = 120.0  # for one clip, including the start of JAX
Clips = dict[str, dict[str, dict[str, str]]]  # by job and task: what `make_clip` returns


def make_clip(directory: Path, task: str, run: int | None = None) -> dict[str, str]:
    """Play one episode with a run's agent, or the best one: {"text", "gif"}, or {"error"}."""
    with tempfile.TemporaryDirectory() as folder:
        gif = Path(folder) / "clip.gif"
        command = [sys.executable, "-m", "mastery", "play", str(directory.resolve())]
        command += [f"--task={task}", f"--gif={gif}", "--tile=16", "--steps=240", "--fps=12"]
        command += [] if run is None else [f"--run={run}"]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                timeout=SECONDS,
                env={**os.environ, "JAX_PLATFORMS": "cpu", "COLUMNS": "400"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"it took longer than {SECONDS:.0f} seconds"}
        if done.returncode or not gif.is_file():
            lines = done.stderr.strip().splitlines() or ["it could not be played"]
            return {"error": lines[-1].removeprefix("mastery: ")}
        said = [line for line in done.stdout.splitlines() if not line.startswith("The GIF:")]
        return {
            "text": " ".join(said),
            "gif": base64.b64encode(gif.read_bytes()).decode(),
        }
