"""mastery decides what your learner trains on next.

curriculum = mastery.Curriculum.load("key-corridor")
teacher = mastery.Teacher(curriculum, program="mr", seed=0)
task = teacher.sample()
teacher.update({task: 0.4})
"""

from mastery.check import check_program
from mastery.curriculum import Curriculum
from mastery.errors import (
    CheckpointError,
    CurriculumError,
    MasteryError,
    ProgramError,
    ReturnsError,
)
from mastery.explanation import Explanation
from mastery.program import Program, ProgramLike
from mastery.recipe import Recipe
from mastery.task import Task
from mastery.teacher import Teacher

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
]
