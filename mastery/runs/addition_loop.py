"""Teacher and network on the addition curriculum, as one compiled program for all runs of a job.

Algorithm 3 of the paper, the batch form: the teacher's probabilities compose the minibatches of an
epoch, and after it the teacher sees the accuracy on new examples of every task. How far a network
is, is judged by examples that the teacher never sees: it has learned to add when it gets 99 % of
these right in every task, three epochs running.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mastery.draws import uniform
from mastery.learners import addition
from mastery.learners.addition import FOR_TEACHER, FOR_VALIDATION, Learner, Settings
from mastery.runs.compiled_loop import CompiledLoop, Plan, each_run, in_any_run, slots
from mastery.runs.job import Job, digits_of
from mastery.runs.loop import Evaluation, Metrics

Array = Any  # a JAX array
ENOUGH, RUNNING = 0.99, 3  # of every task's validation examples, in so many epochs


class Carry(NamedTuple):
    """What changes in a run."""

    teacher: Any  # the program's state
    learner: Learner
    key: Array  # of the teacher, and of what is tested
    epochs: Array  # () int32: how many there have been
    running: Array  # () int32: how many of the last ones were good enough
    solved: Array  # () int32: after how many epochs it had learned, 0 if it has not


def begin(key: Array, plan: Plan, tasks: int, settings: Settings, window: int) -> Carry:
    key, first, for_learner = jax.random.split(key, 3)
    teacher = plan.program.init(uniform(first, (3, tasks)), window)
    learner, none = addition.begin(for_learner, settings), jnp.int32(0)
    return Carry(teacher, learner, key, none, none, none)


def epoch(
    carry: Carry, plan: Plan, digits: Any, settings: Settings, parts: int = 1
) -> tuple[Carry, Metrics]:
    """One epoch of the network, and what the teacher learns from it."""
    teacher, learner, key, epochs, running, solved = carry
    program, hyper = plan
    probability = program.distribution(teacher)
    learner, examples = addition.learn(learner, probability, digits, settings, hyper, parts)
    key, for_noise, for_teacher, for_validation = jax.random.split(key, 4)
    right = addition.accuracy(
        learner.network, for_teacher, digits, settings.tests, FOR_TEACHER, parts
    )
    noise = uniform(for_noise, (3, len(digits)))
    teacher = program.observe(teacher, right, jnp.ones(len(digits), bool), noise)
    epochs = epochs + 1
    enough = validate(learner.network, for_validation, digits, settings.validation, parts)
    running = jnp.where(enough, running + 1, 0)
    solved = jnp.where((solved == 0) & (running == RUNNING), epochs, solved)
    metrics = Metrics(
        probability,
        program.mastery(teacher),
        jnp.full(len(digits), settings.tests),
        right * settings.tests,
        examples,
        solved,
        program.progress(teacher),
    )
    return Carry(teacher, learner, key, epochs, running, solved), metrics


def validate(
    network: addition.Network, key: Array, digits: Any, each: int, parts: int = 1
) -> Array:
    """Whether every task has enough validation examples right. The longest numbers are tried first,
    and the others only where a run has learned these: until then the answer is known."""
    given, target = addition.tests(key, digits, each, FOR_VALIDATION)
    few = int(round((1 - ENOUGH) * each, 6))  # errors that a task may have

    def enough(which: Any) -> Array:
        right = addition.right(network, given[:, which], target[:, which], parts)
        return (each - right <= few).all()

    longest = enough(np.flatnonzero(digits == max(digits)))
    return lax.cond(
        in_any_run(longest), lambda: enough(np.arange(len(digits))), lambda: jnp.zeros((), bool)
    )


def evaluate(learners: Learner, key: Array, digits: Any, each: int) -> Evaluation:
    """Validation examples of every task, the same for every run, which are the first axis."""

    def one(network: addition.Network) -> Array:
        return addition.accuracy(network, key, digits, each, FOR_VALIDATION)

    right = each_run(one, learners.network)[:, None]  # there is one policy: the likeliest digits
    return Evaluation(right, right, jnp.full_like(right, max(digits) + 1))


class AdditionLoop(CompiledLoop):
    """The loop of a job on the addition curriculum. Where there are more cores than runs, several
    share one."""

    def __init__(self, job: Job, devices: list[Any] | None = None) -> None:
        settings, window = job.settings, slots(job)
        digits = np.array(digits_of(job.curriculum), np.int32)
        devices = list(jax.devices() if devices is None else devices)
        several = devices[0].platform == "cpu"
        parts = settings.parts(len(devices) // len(job.runs)) if several else 1
        super().__init__(
            job,
            lambda key, plan: begin(key, plan, len(digits), settings, window),
            lambda carry, plan: epoch(carry, plan, digits, settings, parts),
            lambda learner, key: evaluate(learner, key, digits, job.episodes),
            devices,
            parts,
        )
