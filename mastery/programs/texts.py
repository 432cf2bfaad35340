"""The text that names a program in a saved teacher or a recording; whether a teacher fits it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from mastery.curriculum import Curriculum
from mastery.errors import CheckpointError, MasteryError
from mastery.programs.own import OwnRecipe, read_program, same_program
from mastery.programs.program import Program, ProgramLike
from mastery.programs.recipe import Recipe
from mastery.programs.states import leaves

OBJECT = "own "  # how the text of a program begins that was given as an object


def program_text(recipe: Recipe | OwnRecipe | None, program: ProgramLike) -> str:
    """The full text of a program; one given as an object has `own` and its class."""
    if recipe:
        return recipe.full
    kind = type(program).__qualname__
    which = f" {_digest(program)}" if isinstance(program, Program) else ""
    return f"{OBJECT}{kind}{which}"


def same(saved: Any, mine: Any) -> bool:
    """Whether a saved setting is this one; a program's text may say less than it does now."""
    if saved == mine:
        return True
    with contextlib.suppress(MasteryError, AttributeError):
        return same_program(saved, mine)
    return False


def short(value: Any) -> str:
    """A program's text without its default settings, in quotes."""
    with contextlib.suppress(MasteryError, AttributeError):
        return repr(str(read_program(value)))
    return repr(value)


def _digest(program: Program) -> str:
    """A short hash of a program's parts and numbers."""
    digest = hashlib.sha256()
    for path, leaf in leaves(program):
        digest.update(path.encode() + np.asarray(leaf).tobytes())
    parts = (program.progress, program.attention, program.converter)
    return "-".join(type(part).__name__ for part in parts) + f"-{digest.hexdigest()[:16]}"


def check_saved(state: Any, curriculum: Curriculum, mine: Mapping[str, Any]) -> None:
    """CheckpointError if the state is not one of a teacher like this.

    Args:
        state: What `Teacher.load_state_dict` was given.
        curriculum: The teacher's own.
        mine: Its program and `per_episode`.
    """
    if not isinstance(state, Mapping):
        raise CheckpointError(f"the state must be a dictionary from state_dict(), not {state!r}")
    parts = {"curriculum", "program", "per_episode", "time_step", "random", "state"}
    if missing := parts - set(state):
        raise CheckpointError(f"the state has no {sorted(missing)[0]!r}; it is not from a teacher")
    if state["curriculum"] != curriculum.fingerprint:
        raise CheckpointError(
            "the state belongs to another curriculum: tasks, bounds or edges differ from "
            f"{curriculum.name!r}"
        )
    for what, own in mine.items():
        if not same(state[what], own):
            raise CheckpointError(
                f"the state has {what} {short(state[what])}, but this teacher has "
                f"{short(own)}; make the teacher with the same {what}"
            )
