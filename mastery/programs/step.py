"""One time-step of teaching: returns in, the next probabilities out."""

from __future__ import annotations

from typing import Any

Array = Any  # a NumPy or a JAX array


def mean_returns(total: Array, count: Array) -> Array:
    """The mean return of each task, from the sum and number of its returns; 0 if it has none.

    Args:
        total: (N,) The sum of each task's returns.
        count: (N,) The number of each task's returns.
    """
    xp = total.__array_namespace__()
    return total / xp.maximum(count, 1)


def teaching_step(
    program: Any, state: Any, returns: Array, count: Array, noise: Array
) -> tuple[Any, Array]:
    """One time-step t of algorithm 2: the program observes and gives the next distribution.

    Args:
        program: A `Program`, several side by side (`Switch`), or your own (`ProgramLike`).
        state: The program's state before the time-step.
        returns: (N,) The mean return of each task; ignored where `count` is 0.
        count: (N,) The number of returns of each task.
        noise: (3, N) Fresh uniforms in [0, 1).

    Returns:
        The state after the time-step, and the probabilities (N,) for the next time-step.
    """
    state = program.observe(state, returns, count > 0, noise)
    return state, program.distribution(state)
