"""What can be trained on: tasks, the order between them, and their bounds.

task           Task
curriculum     Curriculum: tasks in topological order, read, checked and held
formats        TOML, and the JSON of the paper's authors
environments   the Gymnasium environment that a task's settings name
shipped/       the curricula that come with mastery
"""

from mastery.curriculum.curriculum import Curriculum, shipped
from mastery.curriculum.task import Task

__all__ = ["Curriculum", "Task", "shipped"]
