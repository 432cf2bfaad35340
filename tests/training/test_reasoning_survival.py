"""A job that learns to reason, killed: it ends as if nothing had happened, to the bit."""

import os
import signal
import subprocess
import time

import pytest
from survival import command, duration, everything, killed, run

CHUNKS = 12
REASONING = (
    "train", "reasoning-reverse", "--program", "mr,uniform", "--completions", str(CHUNKS * 160),
    "--chunk", "5", "--evaluate-every", "320", "--episodes", "8", "--save-every", "0",
    *(
        word
        for change in (
            "prompts=8", "group=4", "minibatches=2", "width=16", "layers=1", "heads=2",
            "pretrain_steps=60", "pretrain_batch=32", "pretrain_rate=0.01",
        )
        for word in ("--set", change)
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The model is made once, and what is compiled once is not compiled again. It is compiled
    without care, since that takes longer than the training."""
    cache = str(tmp_path_factory.mktemp("cache"))
    few = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "COLUMNS": "200"}
    plain = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    return {**os.environ, "XDG_CACHE_HOME": cache, **few, **plain}


@pytest.fixture(scope="module")
def expected(environment, tmp_path_factory):
    directory = tmp_path_factory.mktemp("jobs") / "whole"
    run(environment, *REASONING, "--out", directory)
    steps, found, checkpoint = everything(directory)
    assert len(steps) == CHUNKS
    training, measures, evaluation, _, agents = found
    assert len(training) == CHUNKS * 2 * 4
    assert len(measures) == CHUNKS * 2 * 3
    assert len(evaluation) == CHUNKS // 2 * 2 * 2 * 4
    assert not agents  # there is nothing to play
    return steps, found, checkpoint


def test_a_job_killed_on_the_way_ends_the_same(environment, expected, tmp_path):
    directory = tmp_path / "job"
    process = subprocess.Popen(
        command(*REASONING, "--out", directory), env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 240
    while len(list(directory.glob("checkpoints/*.ckpt"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert len(everything(directory)[0]) < CHUNKS
    run(environment, "train", "--resume", directory)
    assert everything(directory) == expected


@pytest.mark.slow
def test_a_job_killed_at_random_instants_ends_the_same(environment, expected, tmp_path):
    """Also while its model is made, whose cache is new."""
    new = {**environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    seconds = duration(environment, tmp_path / "timed", REASONING)
    assert everything(tmp_path / "timed") == expected
    ends = killed(new, tmp_path / "job", 20, seconds, expected, 0, REASONING)
    print(f"20 kills, {ends} jobs came to their end, each the same to the bit")
