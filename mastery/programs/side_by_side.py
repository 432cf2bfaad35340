"""Run several programs in one `jax.vmap`; each run selects its program by number.

A `vmap` needs the same functions in every run. Programs with the same parts differ only in numbers
and are stacked. If there are several kinds, every run carries a state for each kind, and uses the
distribution of its own program. The states are small, so little is wasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mastery.programs.evidence import Evidence
from mastery.programs.program import Program, ProgramState
from mastery.programs.states import leaves, tree_map

Array = Any  # a NumPy or a JAX array


class Switch(NamedTuple):
    """Several programs that observe the same returns; one is selected.

    It has the interface of a program.
    """

    which: Array  # () int: the selected program
    programs: tuple[Program, ...]

    def init(self, noise: Array, slots: int | None = None) -> tuple[ProgramState, ...]:
        return tuple(program.init(noise, slots) for program in self.programs)

    def observe(
        self, state: tuple[ProgramState, ...], evidence: Evidence, noise: Array
    ) -> tuple[ProgramState, ...]:
        pairs = zip(self.programs, state, strict=True)
        return tuple(program.observe(s, evidence, noise) for program, s in pairs)

    def distribution(self, state: tuple[ProgramState, ...]) -> Array:
        return self._own([p.distribution(s) for p, s in zip(self.programs, state, strict=True)])

    def mastery(self, state: tuple[ProgramState, ...]) -> Array:
        """M_c of each task, with the window of the selected program."""
        return self._own([p.mastery(s) for p, s in zip(self.programs, state, strict=True)])

    def progress(self, state: tuple[ProgramState, ...]) -> Array:
        """β_c of each task, as estimated by the selected program."""
        pairs = zip(self.programs, state, strict=True)
        return self._own([program.view(s).progress for program, s in pairs])

    def _own(self, each: list[Array]) -> Array:
        if len(each) == 1:
            return each[0]
        return each[0].__array_namespace__().stack(each)[self.which]


def stack(programs: Sequence[Program]) -> Switch:
    """Stack programs for a `vmap`: one switch per program, along the first axis of every array."""
    kinds: dict[Any, Program] = {}
    for program in programs:
        kinds.setdefault(_kind(program), program)
    numbers = {kind: i for i, kind in enumerate(kinds)}
    which = np.array([numbers[_kind(program)] for program in programs], np.int32)
    columns = []
    for kind, example in kinds.items():
        column = [program if _kind(program) == kind else example for program in programs]
        columns.append(tree_map(lambda *x: np.stack([np.asarray(y) for y in x]), *column))
    return Switch(which, tuple(columns))


def _kind(program: Program) -> Any:
    """What two programs must have in common to be stacked: part types and array shapes."""
    shapes = tuple((path, np.shape(leaf)) for path, leaf in leaves(program))
    return _types(program), shapes


def _types(part: Any) -> Any:
    """The types of a program's parts, and of their parts."""
    return (type(part), *map(_types, part)) if isinstance(part, tuple) else None
