"""A teacher in supervised training: how many examples of each task go into a minibatch.

    python examples/minibatches.py

Logistic regression learns to tell which of two numbers is larger; from task to task they differ by
less. After each minibatch every task is tested on fresh examples.
"""

import numpy as np

import mastery

GAPS = {"far": 0.8, "near": 0.2, "close": 0.05}
CURRICULUM = mastery.Curriculum(
    [
        mastery.Task("far", minimum=0.5, maximum=0.9),
        mastery.Task("near", minimum=0.5, maximum=0.9, after=("far",)),
        mastery.Task("close", minimum=0.5, maximum=0.9, after=("near",)),
    ]
)


def examples(gap, n, random):
    a = random.random(n)
    larger = random.random(n) < 0.5
    b = np.where(larger, a - gap, a + gap)
    return np.stack([a, b, np.ones(n)], axis=1), larger.astype(float)


def train(program, seed=0, steps=3000):
    """Minibatches until every task is right 95 times in a hundred."""
    random = np.random.default_rng(seed)
    weights = random.normal(size=3)
    teacher = mastery.Teacher(CURRICULUM, program, seed=seed)
    for step in range(1, steps + 1):
        batch = teacher.allocate(64)  # a Counter: {"far": 40, "near": 20, …}
        parts = [examples(GAPS[task], n, random) for task, n in batch.items()]
        x, y = (np.concatenate(z) for z in zip(*parts, strict=True))
        weights -= 0.5 * x.T @ (1 / (1 + np.exp(-x @ weights)) - y) / len(y)
        scores = {}
        for task, gap in GAPS.items():
            x, y = examples(gap, 200, random)
            scores[task] = float(((x @ weights > 0) == y).mean())
        teacher.update(scores)
        if min(scores.values()) >= 0.95:
            return step
    return np.inf


if __name__ == "__main__":
    print("minibatches until every task is right 95 times in a hundred, median of 10 learners")
    for program in ("mr", "gprop-linreg", "uniform", "target"):
        print(f"  {program:<13} {np.median([train(program, seed) for seed in range(10)]):>6.0f}")
