"""Run directories with numbers that look like training, written by the real store."""

import numpy as np

from mastery import Curriculum, Task
from mastery.learners.ppo import PPOSettings
from mastery.rundir.metrics import Evaluation, Metrics
from mastery.rundir.store import Store
from mastery.training.job import Job

ENV = {"env": "MiniGrid-Unlock-v0"}


def diamond(names=("first", "left", "right", "last"), name="diamond"):
    """Two ways from the first task to the last."""
    first, left, right, last = names
    return Curriculum(
        [
            Task(first, settings=ENV),
            Task(left, after=(first,), settings=ENV),
            Task(right, after=(first,), settings=ENV),
            Task(last, after=(left, right), settings=ENV),
        ],
        name=name,
    )


def chain(n):
    names = [f"t{i}" for i in range(n)]
    return Curriculum(
        [
            Task(name, after=(names[i - 1],) if i else (), settings=ENV)
            for i, name in enumerate(names)
        ],
        name=f"chain of {n}",
    )


def make_job(curriculum=None, programs=("mr", "uniform"), seeds=3, points=24, **given):
    settings = PPOSettings(envs=2, frames=8, batch=16, ahead=4)  # 16 frames in a chunk
    return Job(
        curriculum or diamond(), programs, seeds=seeds, frames=16 * points, settings=settings,
        **{"chunk": 1, "environments": "gymnasium", **given},
    )  # fmt: skip


def add_point(store, point, points, random, progress=True, ended=None):
    """One more chunk: every task rises in its turn; in some points a task is not played."""
    job = Job.from_dict(store.description)
    shape = (len(job.runs), len(job.curriculum))
    late = np.arange(shape[1]) / shape[1]
    skill = np.clip(1.6 * point / points - 0.8 * late + random.normal(0, 0.05, shape), 0, 1)
    skill[4:, -1] = np.minimum(skill[4:, -1], 0.8)  # these never master the last task
    attention = random.uniform(0.01, 1, shape) * np.exp(-8 * (point / points - late) ** 2)
    probability = attention / attention.sum(1, keepdims=True)
    episodes = random.poisson(4 * probability)
    metrics = Metrics(
        *(x[None] for x in (probability, skill, episodes, skill * episodes)),
        np.round(1600 * probability).astype(int)[None],
        progress=random.normal(0, 1e-3, (1, *shape)) if progress else None,
    )
    evaluation = None
    if point % 6 == 0:
        both = np.stack([skill, skill / 2], axis=1)
        evaluation = Evaluation(both, both, 100 - 50 * both)
    arrays = {"x": np.zeros((shape[0], 1))} if ended else None
    store.record(point * job.chunk, 0.5 * point, metrics, evaluation, arrays, ended)


def write_job(directory, job=None, points=24, progress=True, ended="all frames are done"):
    """A whole job; gives its directory."""
    random = np.random.default_rng(0)
    with Store(directory, job or make_job(points=points)) as store:
        store.begin_session("mastery train <diamond> & more", 0)
        for point in range(1, points + 1):
            last = ended if point == points else None
            add_point(store, point, points, random, progress, last)
    return directory
