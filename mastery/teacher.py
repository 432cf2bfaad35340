"""Teacher: a program with its state, its random numbers and the names of the tasks.

task = teacher.sample()            # what to train on
teacher.update({task: 0.4})        # what came of it
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import math
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from mastery import checkpoint
from mastery.curriculum import Curriculum
from mastery.curriculum.task import LARGEST
from mastery.errors import CheckpointError, MasteryError, ProgramError, ReturnsError, did_you_mean
from mastery.explanation import Explanation
from mastery.programs.catalogue import Recipe
from mastery.programs.check import check_distribution, check_fits, check_state
from mastery.programs.distribution import allocate, cumulative, draw
from mastery.programs.program import Factors, Program, ProgramLike
from mastery.programs.states import leaves, rebuild, tree_map


class Teacher:
    """Decides what to train on next.

    curriculum: the tasks and their order.
    program: a name with settings (`"mr"`, `"mr:delta=0.8"`), a `Recipe`, or an object of your own
        with `init`, `observe` and `distribution` (see `check_program`).
    seed: makes everything the teacher does repeatable.
    per_episode: take each return as a time-step of its own, in the order given, instead of the
        mean of a task's returns in one update.

    A teacher can be shared by threads.
    """

    def __init__(
        self,
        curriculum: Curriculum,
        program: str | Recipe | ProgramLike = "mr",
        *,
        seed: int | None = None,
        per_episode: bool = False,
    ) -> None:
        if not isinstance(curriculum, Curriculum):
            hint = f"; use Curriculum.load({curriculum!r})" if isinstance(curriculum, str) else ""
            raise MasteryError(f"a teacher needs a Curriculum, not {curriculum!r}{hint}")
        if isinstance(program, str):
            program = Recipe.parse(program)
        if seed is not None:
            seed = _whole("seed", seed)
        self.curriculum = curriculum
        self.recipe = program if isinstance(program, Recipe) else None
        self.program: ProgramLike = (
            program.build(curriculum) if isinstance(program, Recipe) else program
        )
        check_fits(self.program, curriculum)
        if isinstance(self.program, Program):  # its arrays may be JAX's
            self.program = tree_map(lambda x: x if np.isscalar(x) else np.asarray(x), self.program)
        self.per_episode = bool(per_episode)
        self._process = os.getpid()  # where it was made: a copy elsewhere is another teacher
        self._lock = threading.RLock()
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._time_step = 0
        self._no_noise = np.broadcast_to(0.0, (3, len(curriculum)))
        self._state: Any = tree_map(np.array, self.program.init(self._noise()))
        check_state(self._state)
        self._distribution: NDArray[np.float64] | None = None
        self._cumulative: NDArray[np.float64] | None = None

    @overload
    def sample(self) -> str: ...
    @overload
    def sample(self, k: int) -> list[str]: ...

    def sample(self, k: int | None = None) -> str | list[str]:
        """Draw the task to train on next, or a list of k tasks (algorithms 1 and 2)."""
        if k is not None:
            k = _whole("sample", k)
        with self._lock:
            drawn = draw(self._sums(), self._random.random(1 if k is None else k))
        names = [self.curriculum.names[i] for i in drawn]
        return names[0] if k is None else names

    def allocate(self, n: int) -> Counter[str]:
        """How many of n examples to take from each task (algorithm 3).

        The numbers add up to n, and each is n times the task's probability rounded up or down at
        random, so that it is right on average. Tasks that get none are left out.
        """
        n = _whole("allocate", n)
        with self._lock:
            numbers = allocate(self._sums(), n, self._random.random())
        return Counter({self.curriculum.names[i]: int(numbers[i]) for i in np.flatnonzero(numbers)})

    def update(self, returns: Mapping[str, Any]) -> None:
        """One time-step has passed, with these returns: `{task: return}`, or several returns a
        task, of which the mean counts (see `per_episode`). Tasks without a return are left out.

        A wrong return raises `ReturnsError`, and nothing has changed.
        """
        rows, values = self._checked(returns)
        with self._lock:
            if self.per_episode:
                self._steps([([row], [value]) for row, value in zip(rows, values, strict=True)])
            else:
                self._steps([(rows, values)])

    @property
    def probabilities(self) -> dict[str, float]:
        """The probability of each task, now."""
        return dict(zip(self.curriculum.names, self.distribution.tolist(), strict=True))

    @property
    def distribution(self) -> NDArray[np.float64]:
        """The same as an array, in the order of `curriculum.names`. Not to be written to."""
        with self._lock:
            if self._distribution is None:
                d = self.program.distribution(self._state)
                if not isinstance(self.program, Program):
                    d = check_distribution(d, len(self.curriculum)).astype(np.float64)
                d.setflags(write=False)
                self._distribution = d
            return self._distribution

    @property
    def mastery(self) -> dict[str, float]:
        """The mastering rate of each task, from 0 to 1."""
        return dict(zip(self.curriculum.names, self._factors().mastery.tolist(), strict=True))

    @property
    def time_step(self) -> int:
        """How many time-steps have passed."""
        with self._lock:
            return self._time_step

    def explain(self) -> Explanation:
        """Why each task has its probability: print it, or read its columns."""
        with self._lock:
            factors = self._factors()
            return Explanation(self.curriculum.names, *(np.array(f) for f in factors))

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on exactly as this teacher would."""
        with self._lock:
            return {
                "curriculum": self.curriculum.fingerprint,
                "program": self._program_text(),
                "per_episode": self.per_episode,
                "time_step": self._time_step,
                "random": self._random.bit_generator.state,
                "state": {path: np.array(leaf) for path, leaf in leaves(self._state)},
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another teacher of the same curriculum and program was."""
        if not isinstance(state, Mapping):
            raise CheckpointError(f"a teacher's state is a dictionary, not {state!r}")
        parts = {"curriculum", "program", "per_episode", "time_step", "random", "state"}
        if missing := parts - set(state):
            raise CheckpointError(f"the state has no {sorted(missing)[0]!r}; it is no teacher's")
        if state["curriculum"] != self.curriculum.fingerprint:
            raise CheckpointError(
                "the state is of another curriculum: tasks, bounds or edges differ from "
                f"{self.curriculum.name!r}"
            )
        for what, mine in (("program", self._program_text()), ("per_episode", self.per_episode)):
            if state[what] != mine:
                raise CheckpointError(
                    f"the state has {what} {_short(state[what])}, and this teacher {_short(mine)}; "
                    "make the teacher with the same"
                )
        random = np.random.PCG64()
        with self._lock:
            try:
                restored = rebuild(self._state, state["state"])
                random.state = state["random"]
                time_step = int(state["time_step"])
            except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
                raise CheckpointError(f"the state does not fit: {error.args[0]}") from None
            self._state, self._time_step = restored, time_step
            self._random = np.random.Generator(random)
            self._distribution = self._cumulative = None

    def save(self, path: str | Path) -> None:
        """Write the teacher to one file, atomically; `Teacher.load` goes on from it exactly."""
        state = self.state_dict()
        arrays = state.pop("state")
        meta = {**state, "curriculum": self.curriculum.to_dict()}
        checkpoint.write(path, "teacher", meta, arrays)

    @classmethod
    def load(
        cls,
        path: str | Path,
        curriculum: Curriculum | None = None,
        program: ProgramLike | None = None,
    ) -> Teacher:
        """Read a teacher that was saved.

        curriculum: if given, the file must be of this one. program: needed for one of your own.
        """
        meta, arrays = checkpoint.read(path, "teacher")
        try:
            saved = Curriculum.from_dict(meta["curriculum"])
            if program is None and meta["program"].startswith("own "):
                raise CheckpointError(
                    f"it has a program of your own ({meta['program'][4:]}); "
                    "give it: Teacher.load(path, program=…)"
                )
            teacher = cls(
                curriculum if curriculum is not None else saved,
                meta["program"] if program is None else program,
                per_episode=meta["per_episode"],
            )
            teacher.load_state_dict({**meta, "curriculum": saved.fingerprint, "state": arrays})
        except MasteryError as error:
            raise CheckpointError(f"{path}: {error}") from None
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} does not hold a teacher: {error!r}") from None
        return teacher

    def __getstate__(self) -> dict[str, Any]:
        """For copies and other processes: everything but the lock."""
        with self._lock:
            state = {**self.__dict__, "_state": tree_map(np.array, self._state)}
            state["_random"] = copy.deepcopy(self._random)
            state["_distribution"] = state["_cumulative"] = None
            del state["_lock"], state["_no_noise"]
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._no_noise = np.broadcast_to(0.0, (3, len(self.curriculum)))

    def _checked(self, returns: Mapping[str, Any]) -> tuple[list[int], list[float]]:
        """Positions and returns, or an error; nothing is changed here."""
        if not isinstance(returns, Mapping):
            raise ReturnsError(f"update takes {{task: return}}, not {returns!r}")
        rows: list[int] = []
        values: list[float] = []
        for name, given in returns.items():
            row = self.curriculum.positions.get(name)
            if row is None:
                hint = did_you_mean(str(name), self.curriculum.positions)
                raise ReturnsError(f"there is no task {name!r}{hint}")
            several = [given] if type(given) is float else _numbers(name, given)
            for value in several:
                if not -LARGEST <= value <= LARGEST:
                    raise ReturnsError(f"task {name!r}: a return of {value} cannot be used")
            if self.per_episode:
                rows += [row] * len(several)
                values += several
            elif several:
                rows.append(row)
                values.append(math.fsum(several) / len(several))
        return rows, values

    def _steps(self, steps: list[tuple[list[int], list[float]]]) -> None:
        """Some time-steps, each with its tasks and returns."""
        if isinstance(self.program, Program):
            for rows, values in steps:
                self._step(rows, values)
            return
        before = self._state, self._time_step, self._random.bit_generator.state
        try:
            for rows, values in steps:
                self._step(rows, values)
                check_state(self._state)
        except BaseException:  # a program of one's own may fail; then nothing has changed
            self._state, self._time_step, self._random.bit_generator.state = before
            self._distribution = self._cumulative = None
            raise

    def _step(self, rows: list[int], values: list[float]) -> None:
        state, noise = self._state, self._noise()
        if not isinstance(self.program, Program):
            dense = np.zeros(len(self.curriculum))
            dense[rows] = values
            seen = np.zeros(len(self.curriculum), bool)
            seen[rows] = True
            self._state = self.program.observe(state, dense, seen, noise)
        elif len(rows) == 1:
            self._state = self.program.observe_in_place(state, rows[0], values[0], noise)
        else:
            self._state = self.program.observe_in_place(
                state, np.array(rows, np.int64), np.array(values), noise
            )
        self._time_step += 1
        self._distribution = self._cumulative = None

    def _noise(self) -> NDArray[np.float64]:
        if isinstance(self.program, Program) and not self.program.random:
            return self._no_noise
        return self._random.random((3, len(self.curriculum)))

    def _sums(self) -> NDArray[np.float64]:
        if self._cumulative is None:
            self._cumulative = cumulative(self.distribution)
            if self._cumulative[-1] != 1.0:
                raise ProgramError(f"the probabilities do not make sense: {self.distribution}")
        return self._cumulative

    def _factors(self) -> Factors:
        with self._lock:
            if isinstance(self.program, Program):
                return self.program.factors(self._state)
            unknown = np.full(len(self.curriculum), np.nan)
            return Factors(unknown, unknown, unknown, unknown, unknown, self.distribution)

    def _program_text(self) -> str:
        if self.recipe:
            return self.recipe.full
        kind = type(self.program).__qualname__
        which = f" {_digest(self.program)}" if isinstance(self.program, Program) else ""
        return f"own {kind}{which}"


def _whole(method: str, k: Any) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k <= 2**50:
        raise MasteryError(f"{method} takes a whole number from 0, not {k!r}")
    return int(k)


def _short(value: Any) -> str:
    """A program's text without what is as usual."""
    with contextlib.suppress(MasteryError, AttributeError):
        return repr(str(Recipe.parse(value)))
    return repr(value)


def _digest(program: Program) -> str:
    """Tells programs with other parts or numbers apart."""
    digest = hashlib.sha256()
    for path, leaf in leaves(program):
        digest.update(path.encode() + np.asarray(leaf).tobytes())
    parts = (program.progress, program.attention, program.converter)
    return "-".join(type(part).__name__ for part in parts) + f"-{digest.hexdigest()[:16]}"


def _numbers(name: str, given: Any) -> Sequence[float]:
    """One or many returns of a task as plain numbers."""
    try:
        array = np.asarray(given)
        if array.size == 0:
            array = array.astype(np.float64)
        if array.dtype.kind not in "biuf" or array.ndim > 1:
            raise TypeError
    except Exception:  # whatever an object of someone else's does when it is read
        raise ReturnsError(
            f"task {name!r}: a return must be a number or a list of numbers, not {given!r:.60}"
        ) from None
    return array.reshape(-1).astype(np.float64).tolist()
