"""Warnings while a job is trained: about what is probably wrong, each once."""

from __future__ import annotations

import warnings

import numpy as np

from mastery.errors import MasteryWarning
from mastery.programs.own import read_program
from mastery.programs.returns import far_outside
from mastery.rundir.metrics import Metrics
from mastery.training.job import Job

STEPS = 10_000  # of each environment, without one ended episode


class Doubts:
    """Warns once of a program that follows an order which the curriculum does not have, of returns
    far outside their bounds, and of Gymnasium tasks that were played for long without one ended
    episode, about which the teacher learns nothing.

    Args:
        job: The job that is trained.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        tasks = len(job.curriculum)
        self._frames = np.zeros((len(job.runs), tasks), np.int64)
        self._episodes = np.zeros(tasks, np.int64)
        # our own MiniGrid limits every episode, addition has none, and both keep to their bounds
        self._endless = self._outside = job.environments == "gymnasium"
        texts = [read_program(program).without_order(job.curriculum) for program in job.programs]
        for text in dict.fromkeys(filter(None, texts)):
            warnings.warn(text, MasteryWarning, stacklevel=4)  # the caller of train or resume

    def look(self, metrics: Metrics) -> None:
        """Look at what a chunk has brought."""
        if self._outside:
            self._look_at_returns(metrics)
        if self._endless:
            self._look_for_ends(metrics)

    def _look_at_returns(self, metrics: Metrics) -> None:
        episodes, curriculum = metrics.episodes.sum((0, 1)), self._job.curriculum
        mean = metrics.returns.sum((0, 1)) / np.maximum(episodes, 1)
        low, high = curriculum.minimum, curriculum.maximum
        far = (mean < low - (high - low)) | (mean > high + (high - low))
        for i in np.flatnonzero(far & (episodes > 0))[:1]:
            self._outside = False
            text = far_outside(curriculum.names[i], float(mean[i]), low[i], high[i])
            warnings.warn(text, MasteryWarning, stacklevel=5)

    def _look_for_ends(self, metrics: Metrics) -> None:
        self._frames += metrics.frames.sum(0)
        self._episodes += metrics.episodes.sum((0, 1))
        settings = self._job.settings
        long = self._frames.max(0) >= STEPS * settings.envs
        endless = np.flatnonzero(long & (self._episodes == 0))
        if len(endless):
            self._endless = False
            names = ", ".join(repr(self._job.curriculum.names[i]) for i in endless[:5])
            warnings.warn(
                f"no episode of task {names} has ended in {STEPS:,} steps of each environment, so "
                "the teacher learns nothing about it; set max_episode_steps in the task's settings "
                f"to at most {self._job.chunk * settings.frames}, or give a larger --chunk, "
                "because every chunk begins with new episodes",
                MasteryWarning,
                stacklevel=5,  # the caller of train or resume
            )
