"""Prompts: choose prompts for a trainer, by task and within the task.

prompts = Prompts(dataset, teacher, seed=0)
batch = prompts.next(64)                 # batch.ids are indexes of the dataset
rewards = ...                            # a list of rewards per prompt
prompts.report(batch, rewards)           # late, out of order, in parts or twice
"""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery import forks
from mastery.errors import (
    MasteryError,
    MasteryWarning,
    ReturnsError,
    check_whole,
    did_you_mean,
)
from mastery.programs.distribution import allocate, cumulative
from mastery.prompts.batch import PromptBatch
from mastery.prompts.choice import RULES, Choice
from mastery.prompts.estimates import completions_wanted
from mastery.prompts.explanation import PromptExplanation, explained
from mastery.prompts.labels import read_labels, task_positions
from mastery.prompts.pool import PromptPool
from mastery.prompts.reading import (
    check_length,
    read_completions,
    read_groups,
    read_ids,
    read_number,
    read_tickets,
)
from mastery.prompts.saving import (
    from_state,
    make_teacher,
    read_state,
    saved_as,
    to_state,
    write_state,
)
from mastery.prompts.tickets import Tickets
from mastery.teacher import Teacher


class Prompts:
    """A curriculum of two levels: the teacher chooses tasks, and `Prompts` the prompts in them.

    A prompt's pass rate is estimated from its own few returns and from its task's
    (`mastery.prompts.estimates` has the equations), and within a task it prefers prompts that are
    neither always right nor always wrong. Safe to share between threads.

    Args:
        dataset: Anything with a length. A prompt's id is its index.
        teacher: The teacher of the tasks.
        labels: The task of each prompt, as a list; or the name of a column, attribute or key of
            the dataset that holds them.
        within: How prompts of a task are chosen: `"learnability"`, or `"even"`: every prompt once,
            in random order, before any comes again.
        even: With `"learnability"`, the share of draws that stay even.
        strength: How many returns a prompt's prior, the rate of its task, counts for.
        completions: How many completions a prompt gets; or `(least, most)`: more where it is
            likely that all are right or all are wrong.
        update_every: A time-step of the teacher ends when at least this many groups were
            reported since the last. None: only when you call `update`.
        seed: Seed of the random numbers, for repeatable runs.

    Raises:
        MasteryError: If an argument is invalid, a label is not a task, or a task has no prompt.

    Example:
        >>> prompts = Prompts(dataset, Teacher(curriculum, seed=0), labels="task", seed=0)
        >>> batch = prompts.next(64)
        >>> prompts.report(batch, [[1, 0, 0, 1] for _ in batch])
    """

    def __init__(
        self,
        dataset: Any,
        teacher: Teacher,
        labels: Any = "task",
        *,
        within: str = "learnability",
        even: float = 0.25,
        strength: float = 4.0,
        completions: int | tuple[int, int] = 8,
        update_every: int | None = 64,
        seed: int | None = None,
    ) -> None:
        self._start(teacher, within, even, strength, completions, update_every, seed)
        rows = task_positions(read_labels(dataset, labels), len(dataset), teacher.curriculum)
        names = teacher.curriculum.names
        number = np.bincount(rows, minlength=len(names))
        if not number.all():
            raise MasteryError(
                f"the dataset has no prompt of task {names[int(number.argmin())]!r}; add some, or "
                "remove the task from the curriculum"
            )
        self._pool.add_tasks(names)
        self._pool.add(rows, self._random)

    def _start(
        self,
        teacher: Teacher,
        within: str,
        even: float,
        strength: float,
        completions: Any,
        update_every: int | None,
        seed: int | None = None,
    ) -> None:
        """Everything but the prompts."""
        if not isinstance(teacher, Teacher):
            raise MasteryError(f"Prompts needs a Teacher, not {teacher!r:.80}")
        if within not in RULES:
            raise MasteryError(f"within is {within!r:.80}{did_you_mean(str(within), RULES)}")
        if seed is not None:
            seed = check_whole("seed", seed, 0, 2**50)
        if update_every is not None:
            update_every = check_whole("update_every", update_every)
        self.teacher = teacher
        self.update_every = update_every
        self.completions = read_completions(completions)
        self._lock = threading.RLock()
        # not the teacher's own random numbers if both have the same seed
        sequence = np.random.SeedSequence(None if seed is None else [seed, 1])
        self._random = np.random.Generator(np.random.PCG64(sequence))
        self._choice = Choice(
            within,
            read_number("even", even, 0.01, 1.0),
            read_number("strength", strength, 0.01, 1e6),
        )
        self._pool = PromptPool()
        self._tickets = Tickets()
        self._groups = 0  # reported since the last time-step
        self._returns: dict[int, list[float]] = {}  # of these, by number of task
        self._tokens: dict[int, float] = {}
        self._counts_tokens: bool | None = None  # unknown before the first report
        self._ignored = 0
        forks.protect(self)

    def __len__(self) -> int:
        """The number of prompts, without those that are retired."""
        return sum(map(len, self._pool.members))

    def next(self, n: int) -> PromptBatch:
        """Choose the next prompts.

        Args:
            n: The number of prompts. Tasks get n times their probabilities, rounded at random so
                that the mean is exact; tasks without prompts get none.

        Returns:
            The prompts, in random order.

        Raises:
            MasteryError: If n is not a whole number from 1, or there is no prompt to choose.
        """
        n = check_whole("n", n, 1, 2**31)
        with self._lock:
            tasks, probabilities = self._open_tasks()
            random, pool = self._random, self._pool
            shares = allocate(cumulative(probabilities), n, random.random())
            rows: list[int] = []
            weights: list[int] = []
            for k, m in zip(tasks, shares.tolist(), strict=True):
                if m:
                    chosen, counted = self._choice.take(pool, k, m, random)
                    rows += chosen
                    weights += counted
            mixed = random.permutation(n).tolist()
            rows, weights = [rows[i] for i in mixed], [weights[i] for i in mixed]
            tickets, lost = self._tickets.open(rows, weights)
            np.subtract.at(pool.flying, lost, 1)
            ids = np.array(rows, np.int64)
            names = tuple(pool.names[k] for k in pool.task[ids].tolist())
            return PromptBatch(ids, names, np.array(tickets, np.int64), self._wanted(ids))

    def report(
        self,
        ids: PromptBatch | Sequence[int],
        rewards: Sequence[Any],
        *,
        tokens: Sequence[Any] | None = None,
        tickets: Sequence[int] | None = None,
        final: bool = True,
    ) -> int:
        """Report rewards of prompts from `next`: all or some of them, in any order.

        Each draw counts once. A second report, or one of a prompt that was never drawn, is ignored
        and counted in `ignored`; the first time with a warning.

        Args:
            ids: The batch of `next`, or ids of prompts.
            rewards: For each prompt the rewards of its completions. An empty list closes its draw
                and counts nothing.
            tokens: For each prompt the tokens of its completions: a number for all of them, or one
                for each. Give them in every report or in none.
            tickets: With ids, the draws' tickets. Without them a report counts for the oldest
                draw of the prompt that waits for one.
            final: False if more rewards of the same draws will be reported. They count together,
                with the last.

        Returns:
            How many of the reports counted.

        Raises:
            MasteryError: If there is no such prompt, or the lengths differ.
            ReturnsError: If a reward or a number of tokens cannot be used. Nothing has changed.

        Warns:
            MasteryWarning: Once, if a report is ignored.
        """
        drawn: Any = ids.tickets if isinstance(ids, PromptBatch) and tickets is None else tickets
        with self._lock:
            rows = self._read_ids(ids)
            given = None if drawn is None else read_tickets(drawn)
            if given is not None:
                check_length("tickets", given, len(rows))
            found = read_groups(self._pool, rows, rewards, tokens)
            if rows and self._counts_tokens not in (None, tokens is not None):
                raise ReturnsError(
                    "some reports have tokens and others do not; give them in every one or in none"
                )
            if rows:
                self._counts_tokens = tokens is not None
            taken: set[int] = set()
            unknown: list[int] = []
            for i, (group, spent) in enumerate(found):
                number = self._tickets.find(rows[i], None if given is None else given[i], taken)
                if number is None:
                    unknown.append(rows[i])
                    continue
                taken.add(number)
                waiting = self._tickets.waiting[number]
                waiting.rewards += group
                waiting.tokens += spent
                if final:
                    self._count(number)
            if self.update_every is not None and self._groups >= self.update_every:
                self.update()
            if unknown:
                self._ignore(unknown)
            return len(taken)

    def update(self) -> None:
        """End a time-step of the teacher with all reports since the last one, if there are any."""
        with self._lock:
            positions, names = self.teacher.curriculum.positions, self._pool.names
            known = [k for k in self._returns if names[k] in positions]
            if known:
                cost = {names[k]: self._tokens[k] for k in known} if self._counts_tokens else None
                self.teacher.update({names[k]: self._returns[k] for k in known}, cost=cost)
            self._groups, self._returns, self._tokens = 0, {}, {}

    def add(self, labels: Sequence[str]) -> NDArray[np.int64]:
        """Add prompts while training runs. Append them to your dataset in the same order.

        Args:
            labels: The task of each. Add new tasks with `teacher.change` first.

        Returns:
            Their ids, which follow those of all prompts so far.

        Raises:
            MasteryError: If a label is not a task. Nothing has changed.
        """
        with self._lock:
            curriculum = self.teacher.curriculum
            rows = task_positions(labels, None, curriculum)
            self._pool.add_tasks(curriculum.names)
            own = np.array([self._pool.numbers[name] for name in curriculum.names])
            return self._pool.add(own[rows], self._random)

    def retire(self, ids: PromptBatch | Sequence[int]) -> None:
        """Take prompts out while training runs. Reports of draws under way still count.

        Args:
            ids: Their ids; retired ones stay retired.

        Raises:
            MasteryError: If there is no such prompt. Nothing has changed.
        """
        with self._lock:
            self._pool.retire(np.array(self._read_ids(ids), np.int64))

    def explain(self, ids: PromptBatch | Sequence[int] | None = None) -> PromptExplanation:
        """Explain why prompts are as likely as they are; `.tasks` explains the tasks.

        Args:
            ids: The prompts; by default all.
        """
        with self._lock:
            rows = range(len(self._pool)) if ids is None else self._read_ids(ids)
            tasks, probabilities = self._open_tasks(none=True)
            return explained(
                self._pool,
                self._choice,
                np.array(rows, np.int64),
                dict(zip(tasks, probabilities.tolist(), strict=True)),
                self.teacher.explain(),
            )

    @property
    def ignored(self) -> int:
        """The number of ignored reports: of unknown draws, or repeated."""
        return self._ignored

    @property
    def waiting(self) -> int:
        """The number of draws that wait for their report."""
        return len(self._tickets.waiting)

    @property
    def mark(self) -> tuple[Any, ...]:
        """A value that is equal for objects that will draw the same prompts, as on ranks."""
        with self._lock:
            return self._tickets.next, self._groups, self._random.bit_generator.state

    def state_dict(self) -> dict[str, Any]:
        """Return the full state of both levels; `load_state_dict` continues exactly from it."""
        with self._lock:
            return to_state(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of another `Prompts`, with its teacher.

        If tasks or prompts were added since that object was made, they are added here too.

        Args:
            state: The result of `state_dict`.

        Raises:
            CheckpointError: If the prompts, the settings or the teacher's program differ, or the
                state is damaged. Nothing has changed.
        """
        with self._lock:
            from_state(self, state)

    def save(self, path: str | Path) -> None:
        """Write both levels to one file, atomically; `Prompts.load` continues exactly from it.

        Raises:
            CheckpointError: If the file cannot be written. An existing file is unchanged.
        """
        write_state(path, self.state_dict())

    @classmethod
    def load(cls, path: str | Path, program: Any = None) -> Prompts:
        """Read what `save` wrote, with its teacher.

        Args:
            path: The file to read.
            program: Your own program object; required if the teacher had one.

        Raises:
            CheckpointError: If the file cannot be read, is damaged, or does not hold prompts.
        """
        state = read_state(path)
        with saved_as(path):
            own = cls.__new__(cls)
            own._start(make_teacher(state, program), **state["settings"])
            from_state(own, state)
        return own

    def _open_tasks(self, none: bool = False) -> tuple[list[int], NDArray[np.float64]]:
        """The tasks that have prompts, and their probabilities; an error if there are none."""
        curriculum, pool = self.teacher.curriculum, self._pool
        pool.add_tasks(curriculum.names)
        own = [pool.numbers[name] for name in curriculum.names]
        full = [bool(len(pool.members[k])) for k in own]
        if not any(full) and not none:
            raise MasteryError("every prompt is retired, or of a task that is; add some")
        d = self.teacher.distribution
        if not all(full):
            own = [k for k, is_open in zip(own, full, strict=True) if is_open]
            d = d[full]
            d = d / d.sum() if d.sum() > 0 else np.full(len(own), 1 / max(len(own), 1))
        return own, d

    def _wanted(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        least, most = self.completions
        if least == most:
            return np.full(len(rows), least, np.int64)
        return completions_wanted(self._pool.estimates(rows, self._choice.strength), least, most)

    def _count(self, number: int) -> None:
        """Count the group of a draw whose rewards are all there."""
        found, pool, curriculum = self._tickets.close(number), self._pool, self.teacher.curriculum
        pool.flying[found.row] -= 1
        k = int(pool.task[found.row])
        position = curriculum.positions.get(pool.names[k])
        if not found.rewards or position is None:
            return
        low, high = float(curriculum.minimum[position]), float(curriculum.maximum[position])
        shares = [min(max((r - low) / (high - low), 0.0), 1.0) for r in found.rewards]
        pool.observe(found.row, shares, found.weight)
        self._groups += 1
        self._returns.setdefault(k, []).extend(found.rewards)
        self._tokens[k] = self._tokens.get(k, 0.0) + found.tokens

    def _ignore(self, rows: list[int]) -> None:
        first, self._ignored = not self._ignored, self._ignored + len(rows)
        if first:
            warnings.warn(
                f"a report of prompt {rows[0]} is ignored: no draw of it waits for one. It was "
                "reported before, or drawn by another run; further ones are counted in `ignored`",
                MasteryWarning,
                stacklevel=3,
            )

    def _read_ids(self, ids: Any) -> list[int]:
        return read_ids(ids.ids if isinstance(ids, PromptBatch) else ids, len(self._pool))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock, for copying and pickling."""
        with self._lock:
            state = copy.deepcopy({k: v for k, v in self.__dict__.items() if k != "_lock"})
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        forks.protect(self)
