"""A time-step of teaching: what was learned goes in, the next probabilities come out."""

from __future__ import annotations

from typing import Any

Array = Any  # a NumPy or a JAX array


def mean_returns(total: Array, count: Array) -> Array:
    """The mean return of each task from the sum of its returns; 0 where there was none."""
    xp = total.__array_namespace__()
    return total / xp.maximum(count, 1)


def teaching_step(
    program: Any, state: Any, returns: Array, count: Array, noise: Array
) -> tuple[Any, Array]:
    """One time-step t of algorithm 2: the program observes, and gives the next distribution.

    Args:
        program: A `Program`, several side by side, or one of your own (`ProgramLike`).
        state: Its state before the time-step.
        returns: (N,) The mean return of each task; ignored where there was none.
        count: (N,) The number of returns of each task.
        noise: (3, N) Uniforms in [0, 1), fresh.

    Returns:
        The state after the time-step, and the probabilities (N,) of the tasks at the next one.
    """
    state = program.observe(state, returns, count > 0, noise)
    return state, program.distribution(state)
