"""PyTorch: samplers that draw a dataset's examples by task and react within an epoch.

    sampler = CurriculumSampler(dataset, teacher, labels=tasks)
    for x, y, task in DataLoader(dataset, batch_size=32, sampler=sampler):
        ...
        sampler.update(by_task(task, correct))

Each index is drawn when the loader requests it, so an update takes effect from the next batch on.
(A loader with `num_workers` requests some batches ahead.) Every example of a task comes once, in
random order, before any of them is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.errors import CheckpointError, MasteryError, check_whole, needs
from mastery.prompts.labels import read_labels, task_positions
from mastery.recording.adapters import Recording
from mastery.recording.recorder import Recorder
from mastery.teacher import Teacher

with needs("mastery.adapters.torch", "torch"):
    import torch
    import torch.distributed as dist
    from torch.utils.data import Sampler


def by_task(tasks: Iterable[str], scores: Iterable[Any]) -> dict[str, list[float]]:
    """Group the scores of a batch by task.

    Args:
        tasks: The task of each example.
        scores: The score of each example; anything that `float` accepts.

    Returns:
        `{task: [score, …]}`, as a teacher's `update` takes it.

    Example:
        >>> by_task(["a", "b", "a"], [1, 0, 0.5])
        {'a': [1.0, 0.5], 'b': [0.0]}
    """
    found: dict[str, list[float]] = {}
    for task, score in zip(tasks, scores, strict=True):
        found.setdefault(task, []).append(float(score))
    return found


class Examples:
    """The examples of each task; each comes once, in random order, before any is repeated.

    `taken` (N,) int64 counts the examples taken from each task; it is the only state to save.
    """

    def __init__(self, dataset: Any, labels: Any, teacher: Teacher, seed: int) -> None:
        names = teacher.curriculum.names
        rows = task_positions(read_labels(dataset, labels), len(dataset), teacher.curriculum)
        self._by_task = np.argsort(rows, kind="stable")  # indexes of examples, grouped by task
        self._number = np.bincount(rows, minlength=len(names))
        if not self._number.all():
            raise MasteryError(
                f"the dataset has no example of task {names[int(self._number.argmin())]!r}; add "
                "some, or remove the task from the curriculum"
            )
        self._start = np.cumsum(self._number) - self._number
        self._seed = seed
        self._order: dict[int, tuple[int, NDArray[np.int64]]] = {}
        self.taken = np.zeros(len(names), np.int64)

    def take(self, row: int) -> int:
        """The index of the next example of the task at this position of the curriculum."""
        number, start = int(self._number[row]), int(self._start[row])
        turn, at = divmod(int(self.taken[row]), number)
        if row not in self._order or self._order[row][0] != turn:
            random = np.random.Generator(np.random.PCG64([self._seed, row, turn]))
            examples = self._by_task[start : start + number]
            self._order[row] = turn, random.permutation(examples)
        self.taken[row] += 1
        return int(self._order[row][1][at])


class _Curriculum(Sampler[Any]):
    """Base of both samplers: the examples, the position in the epoch, the ranks, the state."""

    def __init__(
        self,
        dataset: Any,
        teacher: Teacher,
        labels: Any,
        length: int | None,
        per_step: int,
        seed: int,
        num_replicas: int | None,
        rank: int | None,
        record: str | Path | Recorder | None,
    ) -> None:
        if not isinstance(teacher, Teacher):
            raise MasteryError(f"a sampler needs a Teacher, not {teacher!r}")
        ranks = dist.is_available() and dist.is_initialized()
        self._world = num_replicas or (dist.get_world_size() if ranks else 1)
        self._rank = rank if rank is not None else (dist.get_rank() if ranks else 0)
        if not 0 <= self._rank < self._world:
            raise MasteryError(f"rank is {self._rank}; it must be from 0 to {self._world - 1}")
        self.teacher = teacher
        self._recording = Recording(teacher, None if self._rank else record, "examples")
        self._examples = Examples(dataset, labels, teacher, seed)
        examples = len(dataset) if length is None else length
        self._steps = examples // (per_step * self._world)
        if self._steps < 1:
            raise MasteryError(
                f"an epoch of {examples} examples is too short for one step of "
                f"{per_step * self._world}; give a larger length"
            )
        self._at = 0
        self._resumed = False

    @property
    def recorder(self) -> Recorder | None:
        """The recorder, if `record` was given and this is rank 0."""
        return self._recording.recorder

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[Any]:
        if not self._resumed:
            self._at = 0
        self._resumed = False
        while self._at < self._steps:
            self._at += 1
            yield self._draw()
        self._at = 0  # a state saved between epochs is at the start of the next

    def _draw(self) -> Any:
        raise NotImplementedError

    def update(self, returns: Mapping[str, Any], *, cost: Mapping[str, Any] | None = None) -> None:
        """Update the teacher with the returns of one time-step.

        Under DistributedDataParallel, every rank calls this with its own returns at the same step.
        The teacher of each rank gets the returns of all ranks, so the teachers stay equal.

        Args:
            returns: `{task: return or returns}`; see `by_task`.
            cost: `{task: cost or costs}`, as in `Teacher.update`; several ranks need one cost for
                each return.

        Raises:
            ReturnsError: If a return or a task is invalid.
            MasteryError: If the ranks are not connected, or their teachers differ.
        """
        _ = self.recorder  # begins
        if self._world == 1:
            costs = None if cost is None else {task: _plain(c) for task, c in cost.items()}
            plain = {task: _plain(given) for task, given in returns.items()}
            self.teacher.update(plain, cost=costs)
            return
        if not (dist.is_available() and dist.is_initialized()):
            raise MasteryError(
                f"the sampler is one of {self._world}, but the ranks are not connected; call "
                "torch.distributed.init_process_group first, or update the teachers yourself"
            )
        parts: list[Any] = [None] * self._world
        mine = (mark(self.teacher), _lists(returns), None if cost is None else _lists(cost))
        dist.all_gather_object(parts, mine)
        check_equal([mark for mark, _, _ in parts])
        costs = None if cost is None else _joined([given or {} for _, _, given in parts])
        self.teacher.update(_joined([given for _, given, _ in parts]), cost=costs)

    def state_dict(self) -> dict[str, Any]:
        """The position in the epoch and the teacher, for `StatefulDataLoader` or a checkpoint."""
        state = self.teacher.state_dict()
        state["state"] = {path: torch.from_numpy(leaf) for path, leaf in state["state"].items()}
        taken = torch.from_numpy(self._examples.taken.copy())
        return {"at": self._at, "taken": taken, "teacher": state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume exactly from a state; the next iteration finishes its epoch.

        Args:
            state: The result of `state_dict`.

        Raises:
            CheckpointError: If the state is not from such a sampler, or its tasks differ.
        """
        if not isinstance(state, Mapping) or {"at", "taken", "teacher"} - set(state):
            raise CheckpointError(
                "the state is not from a curriculum sampler; give the result of state_dict()"
            )
        taken = torch.as_tensor(state["taken"]).numpy().astype(np.int64)
        if taken.shape != self._examples.taken.shape:
            raise CheckpointError("the state is from a sampler with different tasks")
        teacher = dict(state["teacher"])
        teacher["state"] = {k: torch.as_tensor(v).numpy() for k, v in teacher["state"].items()}
        self.teacher.load_state_dict(teacher)
        self._examples.taken, self._at, self._resumed = taken, int(state["at"]), True


class CurriculumSampler(_Curriculum):
    """Draws one index at a time: the teacher draws a task, the sampler takes its next example.

    With several ranks, make the same teacher with the same seed on each. All teachers then draw the
    same tasks, and each rank gets its own examples.

    Args:
        dataset: A map-style dataset with at least one example of each task.
        teacher: The teacher.
        labels: The task name of each example; or the name of a dataset column or attribute that
            holds them.
        length: Examples per epoch, over all ranks; by default the length of the dataset.
        seed: The seed of the order of each task's examples.
        num_replicas: The number of ranks; by default from `torch.distributed`.
        rank: The rank of this process; by default from `torch.distributed`.
        record: A folder to record into, as with `mastery.record`, or the Recorder that it returned.
            Rank 0 records. Each return counts as one example, unless `update` gets costs.

    Raises:
        MasteryError: If a label is not a task, a task has no example, or an argument is invalid.

    Example:
        >>> sampler = CurriculumSampler(dataset, Teacher(curriculum, "mr", seed=0), labels=tasks)
        >>> loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    """

    def __init__(
        self,
        dataset: Any,
        teacher: Teacher,
        labels: Any = "task",
        *,
        length: int | None = None,
        seed: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
        record: str | Path | Recorder | None = None,
    ) -> None:
        super().__init__(dataset, teacher, labels, length, 1, seed, num_replicas, rank, record)

    def _draw(self) -> int:
        tasks = self.teacher.sample(self._world)
        rows = self.teacher.curriculum.positions
        return [self._examples.take(rows[task]) for task in tasks][self._rank]


class CurriculumBatchSampler(_Curriculum):
    """Draws one minibatch of indexes at a time; the teacher allocates it to tasks (algorithm 3).

    Args:
        dataset: As in `CurriculumSampler`, like all arguments except `batch_size`.
        teacher: The teacher.
        batch_size: Examples per minibatch on each rank.
        labels: The task name of each example, or the name of the dataset column or attribute.
        length: Examples per epoch, over all ranks.
        seed: The seed of the order of each task's examples.
        num_replicas: The number of ranks.
        rank: The rank of this process.
        record: The folder to record into, or a Recorder.

    Raises:
        MasteryError: As in `CurriculumSampler`.

    Example:
        >>> sampler = CurriculumBatchSampler(dataset, teacher, 32, labels=tasks)
        >>> loader = DataLoader(dataset, batch_sampler=sampler)
    """

    def __init__(
        self,
        dataset: Any,
        teacher: Teacher,
        batch_size: int,
        labels: Any = "task",
        *,
        length: int | None = None,
        seed: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
        record: str | Path | Recorder | None = None,
    ) -> None:
        self.batch_size = check_whole("batch_size", batch_size)
        super().__init__(
            dataset, teacher, labels, length, batch_size, seed, num_replicas, rank, record
        )

    def _draw(self) -> list[int]:
        rows = self.teacher.curriculum.positions
        numbers = self.teacher.allocate(self.batch_size * self._world)
        drawn = [self._examples.take(rows[task]) for task in numbers.elements()]
        return drawn[self._rank :: self._world]  # each rank gets its share of every task


def check_equal(marks: Sequence[Any]) -> None:
    """Raise MasteryError if the teachers of the ranks differ: they must draw the same tasks."""
    for rank, mark in enumerate(marks):
        if mark != marks[0]:
            raise MasteryError(
                f"the teachers of ranks 0 and {rank} differ; make the same teacher with the same "
                "seed on every rank, and update all at the same steps"
            )


def mark(teacher: Teacher) -> tuple[Any, ...]:
    """A value that is equal for equal teachers and differs for different ones."""
    state = teacher.state_dict()
    return tuple(state[part] for part in ("curriculum", "program", "time_step", "random"))


def _lists(given: Mapping[str, Any]) -> dict[str, list[float]]:
    return {task: np.atleast_1d(_plain(values)).tolist() for task, values in given.items()}


def _joined(parts: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    """The values of all ranks by task."""
    together: dict[str, list[float]] = {}
    for part in parts:
        for task, values in part.items():
            together.setdefault(task, []).extend(values)
    return together


def _plain(given: Any) -> Any:
    return given.tolist() if isinstance(given, torch.Tensor) else given
