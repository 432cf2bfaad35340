"""GRPO learns: one level at a small size, and three with the command's small model."""

import os
import subprocess
import sys
from functools import partial

import jax
import numpy as np
import pytest

from mastery import Curriculum, Task
from mastery.learners import grpo
from mastery.learners.grpo import ReasoningSettings
from mastery.reasoning.problems import FamilyLevels
from mastery.rundir.results import load_results
from mastery.training.agent import load_agent
from mastery.training.job import Job, read_job, reasoning_tasks
from mastery.training.loops.reasoning import FLAT
from mastery.training.pretraining import load_model
from mastery.training.train import train

UPDATES, EACH = 75, 200
JOB = Job(
    Curriculum([Task("reverse-1", 0, 1, settings={"family": "reverse", "level": 1})]),
    ("uniform",),
    settings=ReasoningSettings(
        prompts=32, group=8, width=32, layers=2, heads=2, learning_rate=3e-3,
        pretrain_steps=100, pretrain_batch=64, pretrain_rate=5e-3, pretrain_rare=8,
    ),
    frames=UPDATES * 256, chunk=25, evaluate_every=UPDATES * 256, episodes=EACH,
)  # fmt: skip


def pass_rates(job):
    """Of the model that a job begins with, on held-out problems; (policies, tasks)."""
    tasks = FamilyLevels(*map(np.array, reasoning_tasks(job.curriculum)))
    evaluate = jax.jit(partial(grpo.evaluate, tasks=tasks, each=EACH))
    return np.asarray(evaluate(load_model(job), jax.random.key(0))[0])


@pytest.mark.slow  # what it is made of has quick tests: the updates, the loop, a trained model
def test_grpo_raises_the_pass_rate_of_a_level(tmp_path, monkeypatch):
    """On problems that it never trained on; groups without signal become more with it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = pass_rates(JOB)[1, 0]
    train(JOB, tmp_path / "job")
    results = load_results(tmp_path / "job")
    after = results.evaluations["sampled"].returns[-1, 0, 0]
    assert 0.2 < before < 0.7
    assert after > before + 0.2
    assert after > 0.85
    assert (np.diff(results.returns[:, 0, 0]) > -0.02).all()
    assert np.isclose(results.returns[0, 0, 0], before, atol=0.25)
    flat = results.scalars[FLAT].values[:, 0]
    assert flat[-1] > flat[0] + 0.2
    agent = load_agent(tmp_path / "job")
    given = [f"{a}{b}" for a in range(10) for b in range(10)]
    right = sum(agent.answer(f"r{text}=") == text[::-1] for text in given)
    assert right > 85


@pytest.mark.slow
def test_the_small_model_masters_three_levels(tmp_path, monkeypatch):
    """The command as a user types it, compiled as for a user: less than three minutes."""
    ours = ("XLA_FLAGS", "JAX_COMPILATION_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    command = ["train", "reasoning-reverse", "--preset", "small", "--minutes", "4"]
    subprocess.run(
        [sys.executable, "-m", "mastery", *command, "--out", tmp_path / "job"],
        env={**environment, "XDG_CACHE_HOME": str(tmp_path)},
        check=True,
    )
    results = load_results(tmp_path / "job")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = pass_rates(read_job(tmp_path / "job"))[1]
    after = results.evaluations["sampled"].returns[-1, 0]
    print(
        f"reasoning-reverse, small, {results.labels[0]}: {results.frames[-1]:,} completions in "
        f"{results.seconds[-1]:.0f} s; held-out pass rates {before.round(2).tolist()}, then "
        f"{after.round(2).tolist()}"
    )
    assert (results.mastery[-1, 0, :3] > 0.9).all()
    assert (after[:3] > 0.9).all()
    assert after[2] > before[2]
    assert after[3] > before[3] + 0.4  # easy levels are pre-trained, so most is gained here
