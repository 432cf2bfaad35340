"""The text that names a program in a saved teacher or a recording."""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any

import numpy as np

from mastery.errors import MasteryError
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
