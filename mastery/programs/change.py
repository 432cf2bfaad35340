"""A program whose tasks change while it runs: what stays is kept exactly, what is new starts fresh.

In the state of every program of the catalogue, tasks are the last axis of each array that has axes,
and an array without axes is of the program as a whole. So a state is moved axis by axis. A kind of
attention whose memory means more than that, such as the number of a task, has a function

    changed(memory, change, view) -> memory    # once its arrays were moved
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.errors import CurriculumError, MasteryError, ProgramError
from mastery.programs.distribution import cumulative, draw
from mastery.programs.program import Program, ProgramState
from mastery.programs.progress import Naive
from mastery.programs.recipe import Recipe
from mastery.programs.states import tree_map

Array = Any  # a NumPy array


class TaskChange(NamedTuple):
    """Where tasks were, and where they are."""

    source: NDArray[np.int64]  # (new tasks,): each task's position before; -1 if it is new
    place: NDArray[np.int64]  # (old tasks,): each task's position now; -1 if it is gone

    @property
    def new(self) -> NDArray[np.bool_]:
        """(new tasks,): whether a task was not there before."""
        return self.source < 0


def changed_program(recipe: Any, curriculum: Any) -> Program:
    """The program for other tasks.

    Raises:
        MasteryError: If this is not a curriculum, or the program is not of the catalogue.
    """
    if not isinstance(curriculum, Curriculum):
        raise MasteryError(f"change needs a Curriculum, not {curriculum!r:.80}")
    if not isinstance(recipe, Recipe):
        raise ProgramError(
            "the tasks of a custom program cannot change while it runs: only it knows what its "
            "state means; make a new Teacher"
        )
    return in_numpy(recipe.build(curriculum))


def in_numpy(program: Program) -> Program:
    """The program with NumPy arrays: they may be JAX's."""
    found: Program = tree_map(lambda x: x if np.isscalar(x) else np.asarray(x), program)
    return found


def compare(old: Curriculum, new: Curriculum) -> TaskChange:
    """How one curriculum becomes another; tasks are the same if their names are.

    Raises:
        CurriculumError: If a task that stays has other bounds: its memory is relative to them.
    """
    source = np.array([old.positions.get(name, -1) for name in new.names], np.int64)
    place = np.array([new.positions.get(name, -1) for name in old.names], np.int64)
    for name, i, j in zip(new.names, source.tolist(), range(len(new)), strict=True):
        before = (old.minimum[i], old.maximum[i])
        if i >= 0 and before != (new.minimum[j], new.maximum[j]):
            raise CurriculumError(
                f"task {name!r} has the bounds {before[0]:g} and {before[1]:g}, and would get "
                f"{new.minimum[j]:g} and {new.maximum[j]:g}; keep them, or rename the task so that "
                "it starts fresh"
            )
    return TaskChange(source, place)


def change_tasks(
    program: Program, state: ProgramState, change: TaskChange, noise: Array
) -> ProgramState:
    """The state for other tasks. NumPy only.

    Args:
        program: The program of the new curriculum.
        state: The state of the same program of the old curriculum.
        change: How the tasks have changed.
        noise: (3, new tasks) Uniforms in [0, 1); those of new tasks are used.
    """
    fresh = program.init(noise, slots=state.tasks.history.returns.shape[0])
    kept, source = ~change.new, change.source[~change.new]

    def move(old: Array, new: Array) -> Array:
        if not np.ndim(new):
            return np.array(old)
        moved = np.array(new)
        moved[..., kept] = old[..., source]
        return moved

    moved: ProgramState = tree_map(move, state, fresh)
    if hasattr(program.attention, "changed"):
        memory = program.attention.changed(moved.attention, change, program.view(moved))
        moved = moved._replace(attention=memory)
    if isinstance(program.progress, Naive):
        held = int(change.place[int(state.held)])
        if held < 0:  # the task is gone: another is drawn for the rest of its time-steps
            drawn = draw(cumulative(program._converted(moved)), moved.noise[2, :1])
            held = int(drawn[0])
        moved = moved._replace(held=np.array(held, state.held.dtype))
    return moved
