"""Run several programs in one `jax.vmap`; each run selects its program by number.

A `vmap` needs the same functions in every run. Programs with the same parts differ only in numbers
and are stacked. If there are several kinds, every run carries a state for each kind, and uses the
distribution of its own program. The states are small, so little is wasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mastery.curriculum import Curriculum
from mastery.programs.evidence import Evidence
from mastery.programs.metered import Metered, metered
from mastery.programs.own import check_own, read_program
from mastery.programs.program import Program
from mastery.programs.states import leaves, tree_map

Array = Any  # a NumPy or a JAX array
States = tuple[Any, ...]  # a ProgramState or a MeteredState of each program


class Switch(NamedTuple):
    """Several programs that observe the same returns; one is selected.

    It has the interface of a program.
    """

    which: Array  # () int: the selected program
    programs: tuple[Program | Metered, ...]

    @property
    def slots(self) -> int:
        """The largest window K; not under JAX's tracing."""
        return max(int(np.max(program.window)) for program in self.programs)

    def init(self, noise: Array, slots: int | None = None) -> States:
        return tuple(program.init(noise, slots) for program in self.programs)

    def observe(self, state: States, evidence: Evidence, noise: Array) -> States:
        pairs = zip(self.programs, state, strict=True)
        return tuple(program.observe(s, evidence, noise) for program, s in pairs)

    def distribution(self, state: States) -> Array:
        return self._own([p.distribution(s) for p, s in zip(self.programs, state, strict=True)])

    def mastery(self, state: States) -> Array:
        """M_c of each task, with the window of the selected program."""
        return self._own([p.mastery(s) for p, s in zip(self.programs, state, strict=True)])

    def progress(self, state: States) -> Array:
        """β_c of each task, as estimated by the selected program."""
        pairs = zip(self.programs, state, strict=True)
        return self._own([program.view(s).progress for program, s in pairs])

    def _own(self, each: list[Array]) -> Array:
        if len(each) == 1:
            return each[0]
        return each[0].__array_namespace__().stack(each)[self.which]


def build_switch(texts: Sequence[str], curriculum: Curriculum, *, compiled: bool) -> Switch:
    """Build the program of each run from its text, and stack them; an own program is tested first.

    Args:
        texts: The text of each run's program.
        curriculum: The curriculum of all runs.
        compiled: Whether JAX will compile the programs.

    Raises:
        ProgramError: If an own program cannot be made, or breaks the contract.
    """
    built: dict[str, Program | Metered] = {}
    for text in dict.fromkeys(texts):
        program = read_program(text).build(curriculum)
        if not isinstance(program, Program):
            check_own(text, program, curriculum, compiled=compiled)
        built[text] = metered(program, curriculum)
    return stack([built[text] for text in texts])


def stack(programs: Sequence[Program | Metered]) -> Switch:
    """Stack programs for a `vmap`: one switch per program, along the first axis of every array."""
    kinds: dict[Any, Program | Metered] = {}
    for program in programs:
        kinds.setdefault(_kind(program), program)
    numbers = {kind: i for i, kind in enumerate(kinds)}
    which = np.array([numbers[_kind(program)] for program in programs], np.int32)
    columns = []
    for kind, example in kinds.items():
        column = [program if _kind(program) == kind else example for program in programs]
        columns.append(tree_map(lambda *x: np.stack([np.asarray(y) for y in x]), *column))
    return Switch(which, tuple(columns))


def _kind(program: Program | Metered) -> Any:
    """What two programs must have in common to be stacked: part types and array shapes."""
    shapes = tuple((path, np.shape(leaf)) for path, leaf in leaves(program))
    return _types(program), shapes


def _types(part: Any) -> Any:
    """The types of a program's parts, and of their parts."""
    return (type(part), *map(_types, part)) if isinstance(part, tuple) else None
