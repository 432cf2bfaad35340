"""Curricula: tasks, their order, and bounds on their returns.

task           Task
curriculum     Curriculum: tasks in topological order
formats        reading and writing TOML; reading the JSON of the paper's authors
environments   the Gymnasium environment named in a task's settings
shipped/       the curricula that come with mastery
"""

from mastery.curriculum.curriculum import Curriculum, shipped
from mastery.curriculum.task import Task

__all__ = ["Curriculum", "Task", "shipped"]
