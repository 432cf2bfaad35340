"""A user's own program with a meter beside it, so that it has all that a `Program` has in a loop.

The meter is the program `uniform`: it observes the same returns, and measures mastery and progress.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

from mastery.curriculum import Curriculum
from mastery.programs.attention import View
from mastery.programs.evidence import Evidence
from mastery.programs.program import Program, ProgramLike, ProgramState
from mastery.programs.recipe import Recipe
from mastery.programs.states import tree_map

Array = Any  # a NumPy or a JAX array


class MeteredState(NamedTuple):
    """The states of an own program and of its meter."""

    own: Any
    meter: ProgramState


class Metered(NamedTuple):
    """An own program and its meter; it has the interface of a `Program`.

    The program's numbers are constants where JAX compiles it: `own` is a named tuple without
    fields, so that it has no leaves, and its class holds the program. So it can be an object of
    any kind, and two programs differ in the structure of the tree, not in its arrays.
    """

    own: Any
    meter: Program

    @property
    def window(self) -> Array:
        """K of the meter."""
        return self.meter.window

    def init(self, noise: Array, slots: int | None = None) -> MeteredState:
        return MeteredState(
            _arrays(self.own.program.init(noise), noise), self.meter.init(noise, slots)
        )

    def observe(self, state: MeteredState, evidence: Evidence, noise: Array) -> MeteredState:
        own = self.own.program.observe(state.own, evidence, noise)
        meter = self.meter.observe(state.meter, evidence, noise)
        return MeteredState(_arrays(own, meter.tasks.mean), meter)

    def distribution(self, state: MeteredState) -> Array:
        like = state.meter.tasks.mean
        d = self.own.program.distribution(state.own)
        return like.__array_namespace__().asarray(d).astype(like.dtype)

    def mastery(self, state: MeteredState) -> Array:
        return self.meter.mastery(state.meter)

    def view(self, state: MeteredState) -> View:
        return self.meter.view(state.meter)


def metered(program: ProgramLike, curriculum: Curriculum) -> Program | Metered:
    """The program with a meter beside it; one of the library's needs none."""
    if isinstance(program, Program):
        return program
    holder = type("Held", (namedtuple("Held", ()),), {"program": program})
    return Metered(holder(), make_meter(curriculum))


def make_meter(curriculum: Curriculum) -> Program:
    """A program that measures mastery and progress for a program that may not do so."""
    return Recipe.parse("uniform").build(curriculum)


def _arrays(state: Any, like: Array) -> Any:
    """The state with arrays only: a user's may have plain numbers, or those of another library."""
    return tree_map(like.__array_namespace__().asarray, state)
