"""check_program() tests whether a custom program satisfies the contract of `ProgramLike`."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.errors import ProgramError
from mastery.programs.evidence import Evidence
from mastery.programs.program import Program, ProgramLike
from mastery.programs.recipe import Recipe
from mastery.programs.states import leaves, rebuild, tree_map

Tape = list[tuple[Evidence, Any]]  # evidence and noise of each time-step; [0] is for init


def check_program(
    program: ProgramLike | Recipe | str, curriculum: Curriculum, *, steps: int = 60, seed: int = 0
) -> list[str]:
    """Test a program on random returns.

    Some time-steps have no returns, and some have mid-range returns for all tasks. The distribution
    must be valid, the functions must not change their arguments, the state must survive saving,
    and a run resumed from a saved state must be identical. If JAX is installed, the program must
    also work under `jit` and `scan`, and agree with NumPy.

    Args:
        program: Your program, a `Recipe` or a text: `"file.py:Class"`, `"mr:delta=0.8"`.
        curriculum: The curriculum to test it on.
        steps: The number of time-steps, at least 2.
        seed: The seed of the returns and of the noise.

    Returns:
        The checks that passed, one sentence each.

    Raises:
        ProgramError: If a check fails; the message says what is wrong.

    Example:
        >>> check_program(MyProgram(), Curriculum.load("key-corridor"))
    """
    from mastery.programs.own import OwnRecipe, read_program  # it uses check_fits

    if not isinstance(curriculum, Curriculum):
        raise ProgramError(f"check_program needs a Curriculum, not {curriculum!r}")
    made: Any = read_program(program) if isinstance(program, str) else program
    made = made.build(curriculum) if isinstance(made, Recipe | OwnRecipe) else made
    check_fits(made, curriculum)
    if steps < 2:
        raise ProgramError(f"steps is {steps}; check_program needs at least 2")
    tape = _tape(curriculum, steps, np.random.default_rng(seed))
    distributions, done = _check_numpy(made, len(curriculum), tape)
    if find_spec("jax"):
        for t, d in enumerate(_check_jax(made, tape)):
            off = float(np.abs(d - distributions[t]).max())
            if not off <= 1e-4:
                raise ProgramError(
                    f"at time-step {t}, JAX gives probabilities that differ by {off:.2g} from "
                    "NumPy's; take the namespace from the input (x.__array_namespace__())"
                )
        done.append("JAX, under jit and scan, agrees with NumPy")
    return done


def check_trainable(program: ProgramLike, curriculum: Curriculum, *, compiled: bool) -> None:
    """Test a program before a training; raise `ProgramError` if it breaks the contract.

    Like `check_program`, but JAX need not agree with NumPy: a program may tell equal tasks apart
    by their last digits.

    Args:
        program: Your program.
        curriculum: The curriculum to train on.
        compiled: Whether JAX will compile the program.
    """
    tape = _tape(curriculum, 60, np.random.default_rng(0))
    _check_numpy(program, len(curriculum), tape)
    if compiled:
        for t, d in enumerate(_check_jax(program, tape)):
            if not (np.isfinite(d).all() and (d >= 0).all() and abs(d.sum() - 1) < 1e-3):
                raise ProgramError(f"at time-step {t}, the distribution under JAX is invalid: {d}")


def _check_numpy(program: ProgramLike, n: int, tape: Tape) -> tuple[list[Any], list[str]]:
    """The distribution at each time-step, and the checks that passed."""
    steps = len(tape) - 1
    states, distributions = _run(program, n, tape)
    done = [
        f"probabilities are finite, non-negative and sum to 1, over {steps} time-steps",
        "init, observe and distribution do not change their arguments",
    ]

    middle = steps // 2
    saved = {path: np.array(leaf) for path, leaf in leaves(states[middle])}
    try:
        state = rebuild(states[0], saved)
    except KeyError as error:
        raise ProgramError(
            f"the structure of the state changes over time: {error.args[0]}"
        ) from None
    done.append("the state keeps its structure and can be saved as arrays")

    for t in range(middle, steps):
        state = program.observe(state, *tape[t + 1])
        if not np.array_equal(np.asarray(program.distribution(state)), distributions[t + 1]):
            raise ProgramError(
                f"a run resumed from the state of time-step {middle} differs at time-step {t + 1}; "
                "keep all memory in the state, and take all randomness from noise"
            )
    done.append("a run resumed from a saved state is identical")
    return distributions, done


def _tape(curriculum: Curriculum, steps: int, random: np.random.Generator) -> Tape:
    n, low, span = len(curriculum), curriculum.minimum, curriculum.maximum - curriculum.minimum
    tape = []
    for t in range(steps + 1):
        # multiples of 1/64 of the span, so that float32 and float64 see the same returns
        returns = low + span * random.integers(-8, 80, n) / 64
        seen = random.random(n) < 0.5
        if t % 7 == 3:
            seen[:] = False
        if t % 7 == 5:
            seen[:], returns = True, low + span / 2
        count = np.where(seen, random.integers(1, 9, n), 0).astype(float)
        variance = np.where(count > 1, span * span * random.integers(0, 17, n) / 64, 0.0)
        evidence = Evidence(returns, count, variance, count * random.integers(1, 65, n))
        tape.append((evidence, random.random((3, n), np.float32).astype(float)))
    return tape


def _run(program: ProgramLike, n: int, tape: Tape) -> tuple[list[Any], list[Any]]:
    noise = tape[0][1]
    given = noise.copy()
    states, distributions = [program.init(given)], []
    if not np.array_equal(given, noise):
        raise ProgramError("init changed its argument in place")
    check_state(states[0])
    for t, step in enumerate(tape):
        if t:
            before = tree_map(np.array, (states[-1], *step))
            states.append(program.observe(states[-1], *step))
            _same(before, (states[-2], *step), "observe changed its argument")
            check_state(states[-1])
        before = tree_map(np.array, states[-1])
        d = program.distribution(states[-1])
        _same(before, states[-1], "distribution changed the state")
        try:
            distributions.append(check_distribution(d, n))
        except ProgramError as error:
            raise ProgramError(f"at time-step {t}: {error}") from None
    return states, distributions


def _same(before: Any, after: Any, what: str) -> None:
    for (path, old), (_, new) in zip(leaves(before), leaves(after), strict=True):
        if not np.array_equal(old, new, equal_nan=True):
            raise ProgramError(f"{what} in place (leaf {path})")


def _check_jax(program: ProgramLike, tape: Tape) -> list[NDArray[Any]]:
    """The distribution at each time-step under JAX."""
    import jax
    import jax.numpy as jnp

    init: Any = jax.jit(program.init)
    observe: Any = jax.jit(program.observe)
    distribution: Any = jax.jit(program.distribution)
    found = []
    try:
        start = state = init(jnp.asarray(tape[0][1]))
        for t, step in enumerate(tape):
            if t:
                state = observe(state, *tree_map(jnp.asarray, step))
            found.append(np.asarray(distribution(state)))
        steps = tree_map(lambda *x: jnp.stack([jnp.asarray(y) for y in x]), *tape)
        jax.lax.scan(lambda s, step: (program.observe(s, *step), None), start, steps)
    except Exception as error:  # tracing a user's program may raise anything
        first = str(error).strip().splitlines()[0]
        raise ProgramError(f"the program does not run under jax.jit and scan: {first}") from error
    return found


def check_fits(program: Any, curriculum: Curriculum) -> None:
    """Raise `ProgramError` if the object cannot be a program for the curriculum."""
    if isinstance(program, type):
        raise ProgramError(
            f"{program.__name__} is a class; give an instance, e.g. {program.__name__}()"
        )
    lacking = [f for f in ("init", "observe", "distribution") if not hasattr(program, f)]
    if lacking:
        raise ProgramError(
            f"a program is a name, a Recipe, or an object with init, observe and distribution; "
            f"{program!r} has no {lacking[0]}"
        )
    if not isinstance(program, Program) and _takes(program.observe) not in (None, 3):
        raise ProgramError(
            f"{type(program).__name__}.observe takes {_takes(program.observe)} arguments; it must "
            "take three: state, evidence and noise (evidence.mean and evidence.seen were returns "
            "and seen in earlier versions)"
        )
    if isinstance(program, Program) and len(program.minimum) != len(curriculum):
        raise ProgramError(
            f"the program is for {len(program.minimum)} tasks, and the curriculum has "
            f"{len(curriculum)}; build the program for this curriculum"
        )


def _takes(function: Any) -> int | None:
    """The number of arguments that a function needs; None if that cannot be told."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    return sum(p.default is p.empty for p in parameters)


def check_state(state: Any) -> None:
    """Raise `ProgramError` if the object cannot be a program's state."""
    for path, leaf in leaves(state):
        if np.asarray(leaf).dtype.kind not in "biuf":
            raise ProgramError(
                f"the program's state has {leaf!r} at {path!r}; it must consist of named tuples, "
                "tuples, lists and dicts of arrays of numbers"
            )


def check_distribution(d: Any, n: int) -> NDArray[Any]:
    """Return a copy of the probabilities, or raise `ProgramError` if they are invalid."""
    array = np.array(d)
    for wrong, what in (
        (array.dtype.kind not in "biuf", f"is {d!r:.60}, not an array of numbers"),
        (array.shape != (n,), f"has shape {array.shape}, not ({n},)"),
    ):
        if wrong:
            raise ProgramError(f"the distribution {what}")
    for wrong, what in (
        (not bool(np.isfinite(array).all()), f"is not finite: {array}"),
        (bool((array < 0).any()), f"is negative: {array}"),
        (bool(abs(array.sum() - 1) > 1e-6), f"sums to {array.sum()}, not to 1"),
    ):
        if wrong:
            raise ProgramError(f"the distribution {what}; test it with mastery.check_program")
    return array
