"""mastery decides what your learner trains on next.

curriculum = mastery.Curriculum.load("key-corridor")
teacher = mastery.Teacher(curriculum, program="mr", seed=0)
task = teacher.sample()
teacher.update({task: 0.4})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mastery.curriculum import Curriculum
from mastery.curriculum.task import Task
from mastery.errors import (
    CheckpointError,
    CurriculumError,
    MasteryError,
    ProgramError,
    ReturnsError,
)
from mastery.explanation import Explanation
from mastery.programs.catalogue import Recipe
from mastery.programs.check import check_program
from mastery.programs.program import Program, ProgramLike
from mastery.teacher import Teacher

if TYPE_CHECKING:
    from mastery.training.agent import load_agent

__version__ = "0.1.0"
__all__ = [
    "CheckpointError",
    "Curriculum",
    "CurriculumError",
    "Explanation",
    "MasteryError",
    "Program",
    "ProgramError",
    "ProgramLike",
    "Recipe",
    "ReturnsError",
    "Task",
    "Teacher",
    "check_program",
    "load_agent",
]


def __getattr__(name: str) -> Any:
    """What needs JAX is imported when it is asked for."""
    if name != "load_agent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from mastery.training.agent import load_agent
    except ModuleNotFoundError as error:
        if error.name not in ("jax", "equinox", "optax"):
            raise
        raise MasteryError("load_agent needs JAX: pip install 'mastery[train]'") from None
    return load_agent
