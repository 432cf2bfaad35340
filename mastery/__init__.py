"""mastery decides what your learner trains on next.

curriculum = mastery.Curriculum.load("key-corridor")
teacher = mastery.Teacher(curriculum, mastery.programs.mr(), seed=0)
task = teacher.sample()
teacher.update({task: 0.4})
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mastery import programs
from mastery.curriculum import Curriculum, Task
from mastery.errors import (
    CheckpointError,
    CurriculumError,
    MasteryError,
    MasteryWarning,
    ProgramError,
    ReturnsError,
    needs,
)
from mastery.programs.check import check_program
from mastery.programs.evidence import Evidence
from mastery.programs.explanation import Explanation
from mastery.programs.program import Program, ProgramLike
from mastery.programs.recipe import Recipe
from mastery.prompts.prompts import Prompts
from mastery.teacher import Teacher

if TYPE_CHECKING:
    from mastery.recording.record import record
    from mastery.recording.recorder import Recorder
    from mastery.simulation.simulate import simulate
    from mastery.training.agent import load_agent
    from mastery.training.job import Job
    from mastery.training.train import TrainOptions, resume, train

__version__ = "0.2.0"
__all__ = [
    "CheckpointError",
    "Curriculum",
    "CurriculumError",
    "Evidence",
    "Explanation",
    "Job",
    "MasteryError",
    "MasteryWarning",
    "Program",
    "ProgramError",
    "ProgramLike",
    "Prompts",
    "Recipe",
    "Recorder",
    "ReturnsError",
    "Task",
    "Teacher",
    "TrainOptions",
    "check_program",
    "load_agent",
    "programs",
    "record",
    "resume",
    "simulate",
    "train",
]
# imported when they are asked for: all but the first three need JAX
_WHERE = {
    "Recorder": "recording.recorder",
    "record": "recording.record",
    "simulate": "simulation.simulate",
    "load_agent": "training.agent",
    "Job": "training.job",
    "TrainOptions": "training.train",
    "resume": "training.train",
    "train": "training.train",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs(f"{__name__}.{name}", "train"):
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
