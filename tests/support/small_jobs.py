"""Run directories with numbers that are known, written by the real store without any training."""

import jax
import numpy as np

from mastery import Curriculum, Task
from mastery.learners.ppo import PPOSettings
from mastery.minigrid import NAMES
from mastery.rundir.metrics import Evaluation, Metrics
from mastery.rundir.store import Store
from mastery.training.job import Job


def curriculum(names):
    """One task after the other."""
    tasks = []
    for i, name in enumerate(names):
        env = {"env": f"MiniGrid-{NAMES[i]}-v0"}
        tasks.append(Task(name, after=(names[i - 1],) if i else (), settings=env))
    return Curriculum(tasks, name="two & more")


def trained(loop, chunks):
    """What a loop carries after so many chunks, and its metrics, all updates in a row."""
    carry, found = loop.begin(), []
    for _ in range(chunks):
        carry, metrics = loop.advance(carry)
        found.append(metrics)
    return carry, jax.tree.map(lambda *x: np.concatenate(x), *found)


def job(names=("easy", "hard"), programs=("mr", "uniform"), **changes):
    """A job with 16 frames in a chunk."""
    settings = PPOSettings(envs=2, frames=8, batch=16, ahead=4)
    given = {"seeds": 2, "frames": 48, "chunk": 1, "evaluate_every": 16, **changes}
    return Job(curriculum(names), programs, settings=settings, **given)


def add(store, probability, mastery, episodes, returns, frames, evaluation=None, ended=None):
    """One more chunk, of one update; each argument is (runs, tasks), `returns` are sums."""
    step = store.step + 1
    metrics = Metrics(*(np.array([x]) for x in (probability, mastery, episodes, returns, frames)))
    store.record(step, 2.5 * step, metrics, evaluation, None, ended)


def two_points(directory, evaluated=True):
    """Two tasks, mr and uniform with two seeds each, two chunks of three, the numbers by hand."""
    with Store(directory, job()) as store:
        store.begin_session("mastery train & see", 0)
        add(
            store,
            probability=[[0.75, 0.25], [1, 0], [0.5, 0.5], [0.5, 0.5]],
            mastery=[[0.25, 0], [0.5, 0], [0, 0], [0, 0]],
            episodes=[[2, 0], [4, 0], [1, 1], [1, 1]],
            returns=[[1.0, 0], [3.0, 0], [0.25, 0], [0.75, 0]],
            frames=[[12, 4], [16, 0], [8, 8], [8, 8]],
        )
        evaluation = Evaluation(  # (runs, policies, tasks)
            np.array([[[0.5, 0.25], [0.5, 0]], [[0.75, 0.5], [1, 0]],
                      [[0.25, 0], [0, 0]], [[0.125, 0], [0, 0]]]),
            np.array([[[1, 0.5], [1, 0]]] * 4),
            np.array([[[10, 20], [30, 40]]] * 4),
        )  # fmt: skip
        add(
            store,
            probability=[[0.5, 0.5], [0.25, 0.75], [0.5, 0.5], [0.5, 0.5]],
            mastery=[[0.75, 0.125], [1, 0.25], [0.25, 0], [0.5, 0]],
            episodes=[[2, 2], [0, 1], [1, 1], [1, 0]],
            returns=[[1.5, 0.25], [0, 0.5], [0.75, 0.25], [0.25, 0]],
            frames=[[8, 8], [4, 12], [8, 8], [8, 8]],
            evaluation=evaluation if evaluated else None,
        )


def many_points(directory, the_job, points, evaluated=True):
    """A job with curves that rise, one task later than the other, and one that never begins."""
    runs, tasks = len(the_job.runs), len(the_job.curriculum)
    random = np.random.default_rng(0)
    with Store(directory, the_job) as store:
        store.begin_session("mastery train", 0)
        for point in range(points):
            late = np.arange(tasks) / tasks
            skill = np.clip(2 * (point + 1) / points - late, 0, 1) * random.uniform(
                0.8, 1, (runs, 1)
            )
            probability = np.exp(-(((point + 1) / points - late) ** 2) / 0.02) + 0.01
            probability = np.tile(probability / probability.sum(), (runs, 1))
            episodes = random.poisson(3 * probability)
            episodes[:, -1] = 0
            both = np.stack([skill, skill / 2], axis=1)
            evaluation = Evaluation(both, both, 100 - 50 * both)
            add(
                store, probability, skill, episodes, skill * episodes,
                np.round(16 * probability).astype(int),
                evaluation if evaluated and point % 3 == 2 else None,
                "all frames are done" if point == points - 1 else None,
            )  # fmt: skip
