"""A teacher in a reinforcement-learning loop of one's own: three lines of it are the teacher's.

    python examples/corridor.py

Tabular Q-learning in a corridor of doors: in each cell one of four doors leads on, the others lead
back to where the episode began. Task k begins k doors from the goal; the reward is 1 at the goal,
and an episode ends after twice as many doors as are needed. From far away the goal is hardly ever
found by luck, so that it pays to begin near it.
"""

import numpy as np

import mastery

LENGTH = 12
NAMES = [f"{k}-doors" for k in range(1, LENGTH + 1)]
CURRICULUM = mastery.Curriculum(
    mastery.Task(name, minimum=0.0, maximum=1.0, after=(NAMES[i - 1],) if i else ())
    for i, name in enumerate(NAMES)
)


def episode(q, right_door, start, random, explore=0.1, rate=0.5):
    """Q-learning from `start` doors before the goal; returns the reward, and learns in place."""
    cell = start
    for _ in range(2 * start):
        best = np.flatnonzero(q[cell] == q[cell].max())
        door = random.integers(4) if random.random() < explore else random.choice(best)
        after = cell - 1 if door == right_door[cell] else start
        reward = 1.0 if after == 0 else 0.0
        q[cell, door] += rate * (reward + 0.95 * q[after].max() * (after > 0) - q[cell, door])
        cell = after
        if cell == 0:
            return 1.0
    return 0.0


def train(program, seed, most=2_000):
    """Episodes until every start reaches the goal when no door is opened at random."""
    random = np.random.default_rng(seed)
    right_door = random.integers(4, size=LENGTH + 1)
    q = np.zeros((LENGTH + 1, 4))
    teacher = mastery.Teacher(CURRICULUM, program, seed=seed)
    for number in range(1, most + 1):
        task = teacher.sample()
        score = episode(q, right_door, NAMES.index(task) + 1, random)
        teacher.update({task: score})
        if (q[1:].argmax(axis=1) == right_door[1:]).all() and (q[1:].max(axis=1) > 0).all():
            return number
    return np.inf


if __name__ == "__main__":
    print(f"episodes to learn all {LENGTH} starts: median of 10 learners (least … most)")
    for program in ("mr", "gprop-linreg", "uniform", "sequential", "target"):
        numbers = [train(program, seed) for seed in range(10)]
        print(
            f"  {program:<13} {np.median(numbers):>7.0f}  ({min(numbers):.0f} … {max(numbers):.0f})"
        )
