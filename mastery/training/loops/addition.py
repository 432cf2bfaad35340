"""Train a network on the addition curriculum.

Algorithm 3 of the paper, the batch form: the teacher's probabilities set the mix of tasks in the
minibatches of an epoch. After the epoch the teacher sees the accuracy on new examples of every
task. Other examples, for validation, decide when the network has learned to add: when it gets 99 %
of them right in every task, three epochs running.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mastery.learners import addition
from mastery.learners.addition import (
    DEVICE_AXIS,
    FOR_TEACHER,
    FOR_VALIDATION,
    AdditionLearner,
    AdditionSettings,
)
from mastery.rundir.metrics import Evaluation
from mastery.training.job import Job, digits_of
from mastery.training.loops.compiled import (
    CompiledLoop,
    Learned,
    Student,
    each_run,
    in_any_run,
    in_turn,
)

Array = Any  # a JAX array
ENOUGH, RUNNING = 0.99, 3  # share of correct validation examples in every task; epochs in a row


class Studies(NamedTuple):
    """What changes in a run, without its teacher."""

    network: addition.Network
    optimiser: Any
    key: Array  # of the training examples
    for_tests: Array  # key of the tests
    epochs: Array  # () int32: epochs so far
    running: Array  # () int32: epochs in a row with enough right
    solved: Array  # () int32: epochs until it had learned to add, 0 if it has not


def begin(key: Array, settings: AdditionSettings) -> Studies:
    # tests share the teacher's key and use the parts of each split that the teacher does not
    for_tests, _, for_learner = jax.random.split(key, 3)
    learner, none = addition.begin(for_learner, settings), jnp.int32(0)
    return Studies(*learner, for_tests, none, none, none)


def epoch(
    studies: Studies,
    probability: Array,
    hyper: addition.AdditionHyper,
    digits: Any,
    settings: AdditionSettings,
    parts: int = 1,
) -> tuple[Studies, Learned]:
    """Train one epoch, then test the network."""
    learner, (key, epochs, running, solved) = AdditionLearner(*studies[:3]), studies[3:]
    learner, examples = addition.learn(learner, probability, digits, settings, hyper, parts)
    key, _, for_teacher, for_validation = jax.random.split(key, 4)
    given, target = addition.tests(for_teacher, digits, settings.tests, FOR_TEACHER)
    right = addition.right(learner.network, given, target, parts)
    epochs = epochs + 1
    enough = validate(learner.network, for_validation, digits, settings.validation, parts)
    running = jnp.where(enough, running + 1, 0)
    solved = jnp.where((solved == 0) & (running == RUNNING), epochs, solved)
    tested = jnp.full(len(digits), settings.tests)
    right = right.astype(jnp.float32)  # an example is right or wrong, so its square is the same
    # a test costs the same in every task; how often a task was trained on says nothing of it
    learned = Learned(tested, right, right, examples, solved, cost=tested)
    return Studies(*learner, key, epochs, running, solved), learned


def validate(
    network: addition.Network, key: Array, digits: Any, each: int, parts: int = 1
) -> Array:
    """Whether every task has enough validation examples right. Test the longest numbers first, and
    the other tasks only if a run passes these."""
    given, target = addition.tests(key, digits, each, FOR_VALIDATION)
    few = int(round((1 - ENOUGH) * each, 6))  # most errors allowed per task

    def enough(which: Any) -> Array:
        right = addition.right(network, given[:, which], target[:, which], parts)
        return (each - right <= few).all()

    longest = enough(np.flatnonzero(digits == max(digits)))
    return lax.cond(
        in_any_run(longest), lambda: enough(np.arange(len(digits))), lambda: jnp.zeros((), bool)
    )


def evaluate(studies: Studies, key: Array, digits: Any, each: int) -> Evaluation:
    """Test validation examples of every task, the same for all runs. Runs are the first axis."""

    def one(network: addition.Network) -> Array:
        return addition.accuracy(network, key, digits, each, FOR_VALIDATION)

    right = each_run(one, studies.network)[:, None]  # one policy: the likeliest digits
    return Evaluation(right, right, jnp.full_like(right, max(digits) + 1))


class AdditionLoop(CompiledLoop):
    """The loop of a job on the addition curriculum. If there are more cores than runs, several
    cores share a run."""

    def __init__(self, job: Job, devices: list[Any] | None = None) -> None:
        settings = job.settings
        digits = np.array(digits_of(job.curriculum), np.int32)
        devices = list(jax.devices() if devices is None else devices)
        parts = job.parts(len(devices)) if in_turn(devices) else 1
        student = Student(
            begin=lambda key: begin(key, settings),
            learn=lambda studies, p, hyper: epoch(studies, p, hyper, digits, settings, parts),
            evaluate=lambda studies, key: evaluate(studies, key, digits, job.episodes),
            tasks=np.arange(len(digits), dtype=np.int32),
            known=len(digits),
            parts=parts,
            axis=DEVICE_AXIS,
        )
        super().__init__(job, student, devices)
