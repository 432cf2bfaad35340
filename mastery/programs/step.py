"""One time-step of teaching: evidence in, the next probabilities out."""

from __future__ import annotations

from typing import Any

from mastery.programs.evidence import Evidence

Array = Any  # a NumPy or a JAX array


def teaching_step(program: Any, state: Any, evidence: Evidence, noise: Array) -> tuple[Any, Array]:
    """One time-step t of algorithm 2: the program observes and gives the next distribution.

    Args:
        program: A `Program`, several side by side (`Switch`), or your own (`ProgramLike`).
        state: The program's state before the time-step.
        evidence: The returns of the time-step.
        noise: (3, N) Fresh uniforms in [0, 1).

    Returns:
        The state after the time-step, and the probabilities (N,) for the next time-step.
    """
    state = program.observe(state, evidence, noise)
    return state, program.distribution(state)
