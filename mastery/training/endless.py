"""A warning about Gymnasium tasks whose episodes never end."""

from __future__ import annotations

import warnings

import numpy as np

from mastery.errors import MasteryWarning
from mastery.rundir.metrics import Metrics
from mastery.training.job import Job

STEPS = 10_000  # of each environment, without one ended episode


class EndlessTasks:
    """Warns once of tasks that were played for long without one ended episode.

    The teacher learns nothing about such a task, so its probability means nothing. Our own MiniGrid
    limits every episode, and addition has none.

    Args:
        job: The job that is trained.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        tasks = len(job.curriculum)
        self._frames = np.zeros((len(job.runs), tasks), np.int64)
        self._episodes = np.zeros(tasks, np.int64)
        self._warned = job.environments != "gymnasium"

    def count(self, metrics: Metrics) -> None:
        """Count the frames and episodes of a chunk."""
        if self._warned:
            return
        self._frames += metrics.frames.sum(0)
        self._episodes += metrics.episodes.sum((0, 1))
        settings = self._job.settings
        long = self._frames.max(0) >= STEPS * settings.envs
        endless = np.flatnonzero(long & (self._episodes == 0))
        if len(endless):
            self._warned = True
            names = ", ".join(repr(self._job.curriculum.names[i]) for i in endless[:5])
            warnings.warn(
                f"no episode of task {names} has ended in {STEPS:,} steps of each environment, so "
                "the teacher learns nothing about it; set max_episode_steps in the task's settings "
                f"to at most {self._job.chunk * settings.frames}, or give a larger --chunk, "
                "because every chunk begins with new episodes",
                MasteryWarning,
                stacklevel=4,  # the caller of train or resume
            )
