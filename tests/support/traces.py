"""Random curricula and what a learner might bring about on them, time-step by time-step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from rules_oracle import Step

from mastery import Curriculum, Task


class Trace(NamedTuple):
    """A curriculum and what happened on it."""

    curriculum: Curriculum
    noise: np.ndarray  # (3, N), for `init`
    steps: list[Step]
    exact: bool  # whether p and the means are exact in float32 too


def make_trace(seed, *, size=None, length=None, exact=None, inside=False):
    """Make a random trace.

    Args:
        seed: The seed of all that is random.
        size: The number of tasks; from 1 to 8 if not given.
        length: The number of time-steps; from 30 to 60 if not given.
        exact: Whether the numbers are few binary digits long: groups of 1, 2, 4 or 8 returns, which
            are 64ths of the task's span. Every second trace if not given.
        inside: Whether all returns are within the task's bounds.
    """
    random = np.random.default_rng([seed, 77])
    exact = seed % 2 == 0 if exact is None else exact
    size = size or int(random.integers(1, 9))
    curriculum = make_curriculum(random, size, exact)
    low = np.array([task.minimum for task in curriculum])
    span = np.array([task.maximum for task in curriculum]) - low
    successes = random.random() < 0.4
    beyond = 0.0 if inside or random.random() < 0.7 else 0.25
    share = random.choice([0.15, 0.4, 0.7, 1.0])
    cost = random.choice([0, 1, 2, 3, 5, 9], size) * random.integers(0, 2) + random.integers(0, 2)
    skill = random.random(size)
    steps = []
    for _ in range(length or int(random.integers(30, 61))):
        skill = np.clip(skill + random.normal(0.02, 0.1, size), -0.2, 1.2)
        seen = (random.random(size) < share) & (random.random() < 0.9)
        steps.append(make_step(random, low, span, skill, seen, cost, (exact, successes, beyond)))
    return Trace(curriculum, noise(random, size), steps, exact)


def noise(random, size):
    """Uniforms that are the same in float32; some of them are equal in the first row."""
    drawn = random.random((3, size)).astype(np.float32).astype(float)
    if random.random() < 0.3:
        drawn[0] = random.choice([0.25, 0.4375, 0.625], size)
    return drawn


def make_curriculum(random, size, exact):
    names = [f"t{i}" for i in range(size)]
    density = random.choice([0.0, 0.3, 0.8])
    difficulties = random.random() < 0.3
    tasks = []
    for i, name in enumerate(names):
        if exact:
            low, span = random.choice([-1.0, 0.0, 0.25]), random.choice([0.5, 1.0, 2.0, 4.0])
        else:
            low, span = random.normal(0, 2), random.uniform(0.1, 5)
        after = tuple(before for before in names[:i] if random.random() < density)
        settings = {"difficulty": float(random.integers(0, 41)) * 2.5} if difficulties else {}
        tasks.append(Task(name, float(low), float(low + span), after, settings))
    return Curriculum([tasks[i] for i in random.permutation(size)])


def make_step(random, low, span, skill, seen, cost, kind):
    """A time-step with a group of returns for each task that is seen."""
    exact, successes, beyond = kind
    size = len(low)
    # what is said of a task without returns must not matter
    mean, variance = low + span * random.integers(0, 65, size) / 64, np.ones(size)
    count = np.zeros(size)
    for c in np.flatnonzero(seen):
        n = int(random.choice([1, 2, 4, 8])) if exact else int(random.integers(1, 9))
        if successes:
            parts = (random.random(n) < skill[c]).astype(float)
        else:
            parts = np.clip(random.normal(skill[c], 0.15, n), -beyond, 1 + beyond)
            parts = np.round(64 * parts) / 64 if exact else parts
        returns = low[c] + span[c] * parts
        count[c], mean[c], variance[c] = n, returns.mean(), returns.var()
    if beyond == 0:
        mean = np.clip(mean, low, low + span)  # what rounding put outside
    waste = 1.0 * (random.random(size) < 0.2)  # on returns still to come
    return Step(mean, count, variance, cost * (count + waste), noise(random, size))
