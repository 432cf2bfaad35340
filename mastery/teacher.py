"""Teacher: a program with its state, its random numbers and the task names.

task = teacher.sample()            # choose what to train on
teacher.update({task: 0.4})        # report the return
"""

from __future__ import annotations

import copy
import os
import threading
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from mastery import checkpoint, forks
from mastery.curriculum import Curriculum
from mastery.errors import (
    CheckpointError,
    MasteryError,
    MasteryWarning,
    ProgramError,
    check_whole,
)
from mastery.programs.change import change_tasks, changed_program, compare, in_numpy
from mastery.programs.check import check_distribution, check_fits, check_state
from mastery.programs.distribution import allocate, cumulative, draw
from mastery.programs.evidence import Evidence
from mastery.programs.explanation import Explanation, found_order
from mastery.programs.metered import MeteredState, make_meter
from mastery.programs.own import OwnRecipe, read_program
from mastery.programs.program import Factors, Program, ProgramLike, Snapshot
from mastery.programs.recipe import Recipe, default_program
from mastery.programs.returns import ReturnsReader, Step
from mastery.programs.states import complete, leaves, rebuild, tree_map
from mastery.programs.texts import check_saved, program_text


class Observer(Protocol):
    """Follows one teacher. Called inside the teacher's lock, after the change; must not raise."""

    def updated(self, steps: list[Step], costs: bool) -> None: ...  # costs: whether any were given
    def saved(self) -> None: ...  # the state is being read
    def changing(self) -> None: ...  # before the tasks are replaced by others
    def loaded(self) -> None: ...  # the state was replaced


class Teacher:
    """Decides what to train on next. Safe to share between threads.

    Args:
        curriculum: The tasks and their order.
        program: A name with optional settings (`"mr"`, `"mr:delta=0.8"`), a `Recipe`, or your own
            object with `init`, `observe` and `distribution` (see `check_program`), also by text:
            `"package.module:Class"`, `"file.py:Class:sharpness=2"`. By default `"mr"` if the
            curriculum has an order, else `"auto"`, which needs none.
        seed: Seed of the teacher's random numbers, for repeatable runs.
        per_episode: Treat each return as its own time-step, in the given order. By default an
            update is one time-step, and uses the mean of each task's returns.

    Raises:
        MasteryError: If an argument is of the wrong type.
        ProgramError: If the program does not exist or does not fit the curriculum.

    Warns:
        MasteryWarning: If the program follows an order and the curriculum has none.

    Example:
        >>> teacher = Teacher(Curriculum.load("key-corridor"), "mr", seed=0)
        >>> task = teacher.sample()
        >>> teacher.update({task: 0.4})
    """

    _observer: Observer | None = None  # of this object in this process; copies have none

    def __init__(
        self,
        curriculum: Curriculum,
        program: str | Recipe | OwnRecipe | ProgramLike | None = None,
        *,
        seed: int | None = None,
        per_episode: bool = False,
    ) -> None:
        if not isinstance(curriculum, Curriculum):
            hint = f"; use Curriculum.load({curriculum!r})" if isinstance(curriculum, str) else ""
            raise MasteryError(f"a teacher needs a Curriculum, not {curriculum!r}{hint}")
        if program is None:
            program = default_program(curriculum)
        if isinstance(program, str):
            program = read_program(program)
        if seed is not None:
            seed = check_whole("seed", seed, 0, 2**50)
        self.curriculum = curriculum
        self.recipe = program if isinstance(program, Recipe | OwnRecipe) else None
        self.program: ProgramLike = (
            program.build(curriculum) if isinstance(program, Recipe | OwnRecipe) else program
        )
        check_fits(self.program, curriculum)
        if self.recipe and (text := self.recipe.without_order(curriculum)):
            warnings.warn(text, MasteryWarning, stacklevel=2)
        if isinstance(self.program, Program):
            self.program = in_numpy(self.program)
        self.per_episode = bool(per_episode)
        self._process = os.getpid()  # a copy in another process is a different teacher
        self._lock = threading.RLock()
        self._uses_noise = not isinstance(self.program, Program) or self.program.uses_noise
        self._reader = ReturnsReader(curriculum)
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._time_step = 0
        self._no_noise = np.broadcast_to(0.0, (3, len(curriculum)))
        self._state: Any = tree_map(np.array, self.program.init(self._noise()))
        check_state(self._state)
        own = not isinstance(self.program, Program)  # it may not measure mastery itself
        self._meter = make_meter(curriculum) if own else None
        self._metered: Any = self._meter.init(np.array(self._no_noise)) if self._meter else ()
        forks.protect(self)
        self._distribution: NDArray[np.float64] | None = None
        self._cumulative: NDArray[np.float64] | None = None

    @overload
    def sample(self) -> str: ...
    @overload
    def sample(self, k: int) -> list[str]: ...

    def sample(self, k: int | None = None) -> str | list[str]:
        """Draw the task to train on next, or a list of k tasks (algorithms 1 and 2).

        Args:
            k: The number of tasks to draw, with replacement. If omitted, draw one.

        Returns:
            A task name, or a list of k names if k is given.

        Raises:
            MasteryError: If k is not a whole number from 0.
            ProgramError: If a custom program gives invalid probabilities.
        """
        if k is not None:
            k = check_whole("k", k, 0, 2**50)
        with self._lock:
            drawn = draw(self._sums(), self._random.random(1 if k is None else k))
        names = [self.curriculum.names[i] for i in drawn]
        return names[0] if k is None else names

    def allocate(self, n: int) -> Counter[str]:
        """Split n examples between the tasks (algorithm 3).

        Args:
            n: The total number of examples.

        Returns:
            The number of examples of each task: n times its probability, rounded up or down at
            random so that the mean is exact. The numbers sum to n; tasks with none are omitted.

        Raises:
            MasteryError: If n is not a whole number from 0.
            ProgramError: If a custom program gives invalid probabilities.
        """
        n = check_whole("n", n, 0, 2**50)
        with self._lock:
            numbers = allocate(self._sums(), n, self._random.random())
        return Counter({self.curriculum.names[i]: int(numbers[i]) for i in np.flatnonzero(numbers)})

    def update(self, returns: Mapping[str, Any], *, cost: Mapping[str, Any] | None = None) -> None:
        """Record the returns of one time-step, all of them or, if anything fails, none.

        Args:
            returns: `{task: return}` or `{task: [return, …]}`; a list counts as its mean, unless
                `per_episode` is set. Omit tasks without a return.
            cost: What the returns cost, in frames, tokens or seconds: `{task: cost}`, one number
                for all returns of the task, or `{task: [cost, …]}`, one for each. By default each
                costs 1. Programs with `by_cost=1` share it evenly.

        Raises:
            ReturnsError: If a task is unknown, or a return or a cost is not a usable number. The
                teacher is unchanged.

        Warns:
            MasteryWarning: Once, if a return is far outside its task's bounds.
        """
        with self._lock:
            steps = self._reader.read(returns, cost, self.per_episode)
            self._steps(steps)
            if self._observer is not None:
                self._observer.updated(steps, cost is not None)

    def change(self, curriculum: Curriculum) -> None:
        """Continue with other tasks: add some, retire some, or give them another order.

        Tasks are the same if their names are. The teacher keeps exactly what it knows of tasks
        that stay; new tasks start fresh. A recording ends, since its tasks cannot change.

        Args:
            curriculum: The tasks from now on. Those that stay must keep their bounds.

        Raises:
            MasteryError: If a task that stays has other bounds, or the program is one of your own.
                The teacher is unchanged.

        Example:
            >>> teacher.change(Curriculum([*teacher.curriculum, Task("new")]))
        """
        program = changed_program(self.recipe, curriculum)
        with self._lock:
            change = compare(self.curriculum, curriculum)
            noise = np.zeros((3, len(curriculum)))
            if change.new.any() and self._uses_noise:
                noise = self._random.random(noise.shape)
            state = change_tasks(program, self._state, change, noise)
            if self._observer is not None:
                self._observer.changing()
            self.curriculum, self.program, self._state = curriculum, program, state
            self._reader = ReturnsReader(curriculum)
            self._no_noise = np.broadcast_to(0.0, noise.shape)
            self._distribution = self._cumulative = None

    @property
    def probabilities(self) -> dict[str, float]:
        """The current probability of each task."""
        return dict(zip(self.curriculum.names, self.distribution.tolist(), strict=True))

    @property
    def distribution(self) -> NDArray[np.float64]:
        """The current probabilities as a read-only array, in the order of `curriculum.names`."""
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
        """The number of time-steps so far."""
        with self._lock:
            return self._time_step

    def explain(self) -> Explanation:
        """Explain why each task has its probability. Print the result, or read its columns."""
        with self._lock:
            factors = self._factors()
            columns = [np.array(f) for f in factors]
            explanation = Explanation(self.curriculum.names, *columns)  # type: ignore[arg-type]
            return replace(explanation, found=found_order(self._state, self.curriculum))

    def state_dict(self) -> dict[str, Any]:
        """Return the teacher's full state; `load_state_dict` continues exactly from it."""
        with self._lock:
            if self._observer is not None:
                self._observer.saved()
            return {
                "curriculum": self.curriculum.fingerprint,
                "program": self._program_text(),
                "per_episode": self.per_episode,
                "time_step": self._time_step,
                "random": self._random.bit_generator.state,
                "state": {path: np.array(leaf) for path, leaf in leaves(self._saved())},
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of another teacher.

        Args:
            state: The result of `state_dict`.

        Raises:
            CheckpointError: If the curriculum, the program or `per_episode` differ, or the state
                is not from a teacher. This teacher is unchanged.
        """
        mine = {"program": self._program_text(), "per_episode": self.per_episode}
        check_saved(state, self.curriculum, mine)
        random = np.random.PCG64()
        with self._lock:
            try:
                restored = rebuild(self._saved(), complete(state["state"], self._saved()))
                random.state = state["random"]
                time_step = int(state["time_step"])
            except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
                raise CheckpointError(
                    f"the state does not match this teacher: {error.args[0]}"
                ) from None
            if self._meter:
                restored, self._metered = restored
            self._state, self._time_step = restored, time_step
            self._random = np.random.Generator(random)
            self._distribution = self._cumulative = None
            if self._observer is not None:
                self._observer.loaded()

    def save(self, path: str | Path) -> None:
        """Write the teacher to one file, atomically; `Teacher.load` continues exactly from it.

        Args:
            path: The file to write; an existing file is replaced.

        Raises:
            CheckpointError: If the file cannot be written. An existing file is unchanged.
        """
        state = self.state_dict()
        arrays = state.pop("state")
        meta = {**state, "curriculum": self.curriculum.to_dict()}
        checkpoint.write(path, "teacher", meta, arrays)

    @classmethod
    def load(
        cls,
        path: str | Path,
        curriculum: Curriculum | None = None,
        program: str | ProgramLike | None = None,
    ) -> Teacher:
        """Read a teacher that `save` wrote.

        Args:
            path: The file to read.
            curriculum: If given, the saved curriculum must equal it.
            program: Your own program object; required if the saved teacher had one. A program
                that was given by text is found again, unless its file has moved: give the new text.

        Returns:
            A teacher that continues exactly where the saved one stopped.

        Raises:
            CheckpointError: If the file cannot be read, is damaged, or does not match the
                arguments.
        """
        meta, arrays = checkpoint.read(path, "teacher")
        try:
            saved = Curriculum.from_dict(meta["curriculum"])
            if program is None and meta["program"].startswith("own "):
                raise CheckpointError(
                    f"the teacher has a custom program ({meta['program'][4:]}); "
                    "pass it: Teacher.load(path, program=…)"
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
        """Everything but the lock, for copying and pickling."""
        with self._lock:
            state = {**self.__dict__, "_state": tree_map(np.array, self._state)}
            state["_metered"] = tree_map(np.array, self._metered)
            state["_random"] = copy.deepcopy(self._random)
            state["_distribution"] = state["_cumulative"] = None
            del state["_lock"], state["_no_noise"]
            state.pop("_observer", None)
            if isinstance(self.recipe, OwnRecipe):  # its file's module is unknown elsewhere
                del state["program"]
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.recipe and "program" not in state:
            self.program = self.recipe.build(self.curriculum)
        self._lock = threading.RLock()
        self._no_noise = np.broadcast_to(0.0, (3, len(self.curriculum)))
        forks.protect(self)

    def _saved(self) -> Any:
        """The state to save: with that of the meter, if there is one."""
        return MeteredState(self._state, self._metered) if self._meter else self._state

    def _steps(self, steps: list[Step]) -> None:
        """Observe several time-steps, all of them or, if anything fails, none."""
        before = self._state, self._time_step, self._metered
        random = self._random.bit_generator.state if self._uses_noise else None
        journal: list[Snapshot] = []
        try:
            for tasks, evidence in steps:
                self._step(tasks, evidence, journal)
        except BaseException:  # an interrupt, or an error in your own program
            if isinstance(self.program, Program):
                self.program.undo(before[0], journal)
            elif self._meter:
                self._meter.undo(before[2], journal)
            self._state, self._time_step, self._metered = before
            if random:
                self._random.bit_generator.state = random
            self._distribution = self._cumulative = None
            raise

    def _step(self, tasks: Any, evidence: Evidence, journal: list[Snapshot]) -> None:
        state, noise = self._state, self._noise()
        if isinstance(self.program, Program):
            state = self.program.observe_in_place(state, tasks, evidence, noise, journal)
        else:
            every = evidence.spread_out(tasks, np.zeros(len(self.curriculum)))
            state = self.program.observe(state, every, noise)
            check_state(state)
        if self._meter:
            self._metered = self._meter.observe_in_place(
                self._metered, tasks, evidence, self._no_noise, journal
            )
        self._state = state
        self._time_step += 1
        self._distribution = self._cumulative = None

    def _noise(self) -> NDArray[np.float64]:
        if not self._uses_noise:
            return self._no_noise
        return self._random.random((3, len(self.curriculum)))

    def _sums(self) -> NDArray[np.float64]:
        if self._cumulative is None:
            self._cumulative = cumulative(self.distribution)
            if self._cumulative[-1] != 1.0:
                raise ProgramError(
                    f"the probabilities are invalid: {self.distribution}; test the program with "
                    "mastery.check_program"
                )
        return self._cumulative

    def _factors(self) -> Factors:
        with self._lock:
            if isinstance(self.program, Program):
                return self.program.factors(self._state)
            assert self._meter
            unknown = np.full(len(self.curriculum), np.nan)
            return self._meter.factors(self._metered)._replace(
                attention=unknown, redistributed=unknown, probability=self.distribution
            )

    def _program_text(self) -> str:
        return program_text(self.recipe, self.program)
