"""Train a transformer on problems with verifiable rewards, by GRPO.

One update of GRPO is one time-step: the teacher's probabilities draw the task of each prompt, and
the teacher sees the rewards of all completions, with the tokens that they cost.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from mastery.learners import grpo
from mastery.learners.grpo import ReasoningHyper, ReasoningLearner, ReasoningSettings
from mastery.learners.transformer import Transformer
from mastery.reasoning.problems import FamilyLevels
from mastery.rundir.metrics import Evaluation
from mastery.training.job import Job, reasoning_tasks
from mastery.training.loops.compiled import Carry, CompiledLoop, Learned, Student

Array = Any  # a JAX array
GENERATED, TRAINED, FLAT = "generated tokens", "trained tokens", "groups without signal"


def update(
    learner: ReasoningLearner,
    probability: Array,
    hyper: ReasoningHyper,
    tasks: FamilyLevels,
    settings: ReasoningSettings,
) -> tuple[ReasoningLearner, Learned]:
    """One update, and what the teacher and the curves need of it."""
    learner, found = grpo.learn(learner, probability, tasks, settings, hyper)
    scalars = {
        GENERATED: found.tokens.sum(),
        TRAINED: found.trained.sum(),
        FLAT: found.flat.sum() / settings.prompts,
    }
    # a reward is 0 or 1, so its square is the same
    learned = Learned(
        found.completions, found.right, found.right, found.completions,
        cost=found.tokens, scalars=scalars,
    )  # fmt: skip
    return learner, learned


def evaluate_all(
    learner: ReasoningLearner, key: Array, tasks: FamilyLevels, each: int
) -> Evaluation:
    """Complete held-out problems, the same for all runs. Runs are the first axis."""

    def one(model: Transformer) -> tuple[Array, Array]:
        return grpo.evaluate(model, key, tasks, each)

    right, long = jax.lax.map(one, learner.model)  # one by one: they need much memory
    return Evaluation(right, right, long)


class ReasoningLoop(CompiledLoop):
    """The loop of a job on problems with verifiable rewards."""

    def __init__(self, job: Job, model: Transformer, devices: list[Any] | None = None) -> None:
        """Compile the job's pieces.

        Args:
            job: What to train.
            model: The transformer that every run begins with.
            devices: The devices to train on; by default all.
        """
        settings, tasks = (
            job.settings,
            FamilyLevels(*map(np.array, reasoning_tasks(job.curriculum))),
        )
        count = len(job.curriculum)
        student = Student(
            begin=lambda key: grpo.begin(jax.random.split(key, 3)[2], model),
            learn=lambda learner, p, hyper: update(learner, p, hyper, tasks, settings),
            evaluate=lambda learner, key: evaluate_all(learner, key, tasks, job.episodes),
            tasks=np.arange(count, dtype=np.int32),
            known=count,
        )
        super().__init__(job, student, devices)

    def evaluate(self, carry: list[Carry], update: int) -> Evaluation:
        """Complete held-out problems, the same at every update, so that curves are smooth."""
        return super().evaluate(carry, 0)
