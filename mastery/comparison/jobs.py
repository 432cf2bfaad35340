"""What the comparison trains: programs, what each is told, seeds and budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from mastery.comparison.orders import text
from mastery.curriculum import Curriculum
from mastery.errors import MasteryError
from mastery.learners.grpo import REASONING
from mastery.programs.own import read_program
from mastery.training.job import Job

SEED = 5000  # the first; no setting was tuned on these seeds
SMALL = 0.1  # at this scale and below, the model is that of the preset `small`
EVALUATIONS = 25


class Entry(NamedTuple):
    """A program of the comparison."""

    program: str  # its text
    name: str  # in tables and figures
    knows: str  # what it is told: none, true or wrong order


ORDER = {"none": "no order", "true": "true order", "wrong": "wrong order"}
# `mr` that does not look at the order
UNORDERED = "mr:power=0,successors=0,gamma_pred=0,gamma_succ=0"
ENTRIES = (
    Entry("uniform", "uniform", "none"),
    Entry("auto:hint=0", "auto", "none"),
    Entry(UNORDERED, "mr", "none"),
    Entry("learnability", "learnability", "none"),
    Entry("sec", "SEC", "none"),
    Entry("dump", "DUMP", "none"),
    Entry("mopps", "MoPPS", "none"),
    Entry("greso", "GRESO", "none"),
    Entry("uniform:gate=zero-variance", "zero variance", "none"),
    Entry("mr", "mr", "true"),
    Entry("auto", "auto", "true"),
    Entry("adarft", "AdaRFT", "true"),
    Entry(text("mr", "shuffled:1"), "mr", "wrong"),
    Entry(text("auto", "shuffled:1"), "auto", "wrong"),
)


def label(entry: Entry) -> str:
    """The program as a run directory writes it."""
    return str(read_program(entry.program))


@dataclass(frozen=True)
class ComparisonJob:
    """A job of the comparison; `mastery.paper.run` trains it."""

    name: str = "reasoning"
    curriculum: str = "reasoning"
    seeds: int = 10
    completions: int = 800_000

    def job(self, scale: float = 1.0) -> Job:
        """The job at full size or scaled down.

        Args:
            scale: Share of the completions and seeds, in (0, 1]. At 0.1 and below, the model is
                small enough for a CPU.

        Raises:
            MasteryError: If the scale is not in (0, 1].
        """
        if not 0 < scale <= 1:
            raise MasteryError(f"the scale is {scale:g}; it must be more than 0, and at most 1")
        settings = REASONING.presets["small" if scale <= SMALL else "default"]
        if scale <= SMALL:
            settings = replace(settings, pretrain_steps=math.ceil(10_000 * scale))
        frames = math.ceil(self.completions * scale)
        each = frames / EVALUATIONS
        return Job(
            Curriculum.load(self.curriculum),
            programs=tuple(entry.program for entry in ENTRIES),
            seeds=max(round(self.seeds * scale), 1),
            seed=SEED,
            frames=frames,
            settings=settings,
            chunk=max(min(20, round(each / settings.per_update)), 1),
            evaluate_every=math.ceil(each),
            episodes=max(round(64 * scale), 8),
        )


JOBS = {"reasoning": ComparisonJob()}
