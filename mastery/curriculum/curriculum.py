"""Curriculum: a min-max ordered curriculum (section 4.1).

A curriculum is a directed acyclic graph over tasks: an edge from A to B means that it is
preferable to learn A before B. Each task has an estimate of the lowest and highest mean return
that a learner can get on it. Tasks are stored in topological order, level by level, as columns
(names, minimum, maximum, edges), so that a curriculum of a million tasks stays small.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import formats
from mastery.curriculum.task import Task
from mastery.errors import CurriculumError, did_you_mean


class Curriculum:
    """Tasks and their order, a directed acyclic graph. Immutable.

    Args:
        tasks: The tasks, in any order.
        name: The curriculum's name.

    Attributes:
        names: The task names in topological order; all arrays in this package use this order.
        minimum: (N,) float64, the estimate m̂ of each task.
        maximum: (N,) float64, the estimate M̂ of each task.
        level: (N,) int32, the length of the longest path to a task from one without
            predecessors; it never decreases along `names`.
        edges: (E, 2) int32, one row [before, after] per edge, sorted by `after`, then `before`.
        settings: The settings of each task that has any.

    Raises:
        CurriculumError: If there are no tasks, two tasks have the same name, a name in `after` is
            unknown, or the order has a cycle.

    Example:
        >>> Curriculum([Task("easy"), Task("hard", after=("easy",))])
        <Curriculum 'curriculum': 2 tasks, 1 edges>
    """

    names: tuple[str, ...]
    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]
    level: NDArray[np.int32]
    edges: NDArray[np.int32]
    settings: dict[str, Mapping[str, Any]]
    name: str

    def __init__(self, tasks: Iterable[Task], name: str = "curriculum") -> None:
        if not isinstance(tasks, Iterable):
            raise CurriculumError(f"tasks is {tasks!r}; it must be a list of Task")
        given: dict[str, int] = {}
        minimum, maximum, after = [], [], []
        settings: dict[str, Mapping[str, Any]] = {}
        for task in tasks:
            if not isinstance(task, Task):
                raise CurriculumError(f"tasks contains {task!r}, which is not a Task")
            if task.name in given:
                raise CurriculumError(f"two tasks are named {task.name!r}; rename one of them")
            given[task.name] = len(given)
            minimum.append(task.minimum)
            maximum.append(task.maximum)
            after.append(task.after)
            if task.settings:
                settings[task.name] = dict(task.settings)
        if not given:
            raise CurriculumError("the curriculum has no tasks; add at least one")

        level, befores = _levels(given, after)
        order = np.argsort(level, kind="stable")  # by level, then in the given order
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        given_names = list(given)
        ends = np.repeat(np.arange(len(after)), [len(names) for names in after])
        edges = np.stack([position[befores], position[ends]], axis=1).astype(np.int32)

        self.name = name
        self.names = tuple(given_names[i] for i in order)
        self.minimum = _frozen(np.array(minimum)[order])
        self.maximum = _frozen(np.array(maximum)[order])
        self.level = _frozen(level[order])
        self.edges = _frozen(edges[np.lexsort((edges[:, 0], edges[:, 1]))])
        self.settings = settings

    @classmethod
    def load(cls, source: str | Path) -> Curriculum:
        """Load a curriculum by name or from a file.

        Args:
            source: A shipped curriculum (`"key-corridor"`, see `shipped`), the path of a `.toml`
                or `.json` file, or `"random-200"` for a random curriculum of 200 tasks.

        Returns:
            The curriculum.

        Raises:
            CurriculumError: If it does not exist, cannot be read or is invalid.
        """
        if not isinstance(source, str | Path):
            raise CurriculumError(f"a curriculum's source must be a name or a path, not {source!r}")
        path = Path(source)
        if str(source) in shipped():
            resource = files("mastery.curriculum") / "shipped" / f"{source}.toml"
            return cls.from_toml(resource.read_text("utf-8"), name=str(source))
        if number := re.fullmatch(r"random-(\d{1,7})", str(source)):
            return cls.random(int(number[1]))
        if path.suffix not in (".toml", ".json"):
            raise CurriculumError(
                f"there is no curriculum {str(source)!r}{did_you_mean(str(source), shipped())}"
                " (a file must end in .toml or .json)"
            )
        try:
            text = path.read_text("utf-8")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a UTF-8 text file"
            raise CurriculumError(f"cannot read {path}: {reason}") from None
        read = cls.from_toml if path.suffix == ".toml" else cls.from_json
        try:
            return read(text, name=path.stem)
        except CurriculumError as error:
            raise CurriculumError(f"{path}: {error}") from None

    @classmethod
    def random(cls, n: int, seed: int = 0, predecessors: int = 3) -> Curriculum:
        """Make a random layered curriculum, about n^⅓ levels deep, to try programs on.

        Args:
            n: The number of tasks.
            seed: The random seed; `load("random-200")` uses 0.
            predecessors: The mean number of predecessors of a task, all from the previous level.

        Returns:
            The curriculum, named `random-n`.

        Raises:
            CurriculumError: If `n` or `predecessors` is less than 1.
        """
        if n < 1 or predecessors < 1:
            raise CurriculumError(
                f"n is {n} and predecessors is {predecessors}; both must be at least 1"
            )
        generator = np.random.default_rng(seed)
        width = math.ceil(n / max(round(n ** (1 / 3)), 1))
        number = generator.integers(1, 2 * predecessors, n, endpoint=False)
        chosen = generator.random((n, 2 * predecessors - 1))

        def after(i: int) -> tuple[str, ...]:
            start = (i // width - 1) * width
            return tuple(f"task-{start + int(u * width) + 1}" for u in chosen[i, : number[i]])

        tasks = (Task(f"task-{i + 1}", after=after(i) if i >= width else ()) for i in range(n))
        return cls(tasks, name=f"random-{n}")

    @classmethod
    def from_toml(cls, text: str, name: str = "curriculum") -> Curriculum:
        """Parse TOML text: one table `[tasks.NAME]` per task, and `[defaults]` for all tasks.

        Args:
            text: The TOML text.
            name: The curriculum's name, if the text gives none.

        Returns:
            The curriculum.

        Raises:
            CurriculumError: If the text is not a valid curriculum.
        """
        given, tasks = formats.read_toml(text)
        return cls(tasks, name=given or name)

    @classmethod
    def from_json(cls, text: str, name: str = "curriculum") -> Curriculum:
        """Parse the JSON format of the paper's authors; nodes without edges are kept.

        Args:
            text: The JSON text: `{"nodes": {name: {"id", "min", "max"}}, "edges": [[before,
                after], …]}`. `id` becomes the setting `env`.
            name: The curriculum's name.

        Returns:
            The curriculum.

        Raises:
            CurriculumError: If the text is not a valid curriculum.
        """
        return cls(formats.read_json(text), name=name)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Task]:
        return (self[name] for name in self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.positions

    def __getitem__(self, name: str) -> Task:
        i = self.index(name)
        return Task(
            name,
            float(self.minimum[i]),
            float(self.maximum[i]),
            tuple(self.names[j] for j in self.predecessors(i)),
            self.settings.get(name, {}),
        )

    def index(self, name: str) -> int:
        """The position of a task in `names` and in every array.

        Raises:
            CurriculumError: If there is no such task.
        """
        try:
            return self.positions[name]
        except (KeyError, TypeError):
            hint = did_you_mean(str(name), self.names)
            raise CurriculumError(f"there is no task {name!r}{hint}") from None

    def predecessors(self, i: int) -> NDArray[np.int32]:
        """The positions of the direct predecessors of the task at position i."""
        start, stop = np.searchsorted(self.edges[:, 1], [i, i + 1])
        return self.edges[start:stop, 0]

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each task in `names` and in every array."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what affects teaching: names, bounds and edges."""
        digest = hashlib.sha256()
        for name in self.names:
            digest.update(name.encode() + b"\0")
        for column in (self.minimum, self.maximum, self.edges):
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The whole curriculum as plain data; `from_dict` reads it back."""
        return {
            "name": self.name,
            "names": list(self.names),
            "minimum": self.minimum.tolist(),
            "maximum": self.maximum.tolist(),
            "edges": self.edges.tolist(),
            "settings": {name: dict(value) for name, value in self.settings.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Curriculum:
        """Make a curriculum from plain data.

        Args:
            data: The result of `to_dict`.

        Returns:
            The curriculum.
        """
        names = data["names"]
        after: list[list[str]] = [[] for _ in names]
        for before, end in data["edges"]:
            after[end].append(names[before])
        columns = zip(names, data["minimum"], data["maximum"], after, strict=True)
        settings = data["settings"]
        tasks = (Task(n, low, high, tuple(a), settings.get(n, {})) for n, low, high, a in columns)
        return cls(tasks, name=data["name"])

    def to_toml(self) -> str:
        """The curriculum as TOML text; `from_toml` reads it back."""
        return formats.write_toml(self.name, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Curriculum):
            return NotImplemented
        return self.fingerprint == other.fingerprint and self.settings == other.settings

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __deepcopy__(self, memo: Any) -> Curriculum:
        return self  # immutable

    def __reduce__(self) -> tuple[Any, ...]:
        return Curriculum.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        return f"<Curriculum {self.name!r}: {len(self)} tasks, {len(self.edges)} edges>"


def shipped() -> list[str]:
    """The names of the curricula that ship with mastery."""
    folder = files("mastery.curriculum") / "shipped"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name[-5:] == ".toml")


def _levels(
    given: dict[str, int], after: list[tuple[str, ...]]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Each task's level, and the positions of all predecessors, in the order of `after`."""
    befores: list[int] = []
    successors: list[list[int]] = [[] for _ in after]
    waiting = [len(names) for names in after]
    for i, names in enumerate(after):
        for before in names:
            j = given.get(before)
            if j is None:
                name = next(n for n, k in given.items() if k == i)
                raise CurriculumError(
                    f"task {name!r} lists {before!r} in after, and there is no such task"
                    f"{did_you_mean(str(before), given)}"
                )
            befores.append(j)
            successors[j].append(i)
    level = [0] * len(after)
    ready = [i for i, n in enumerate(waiting) if n == 0]
    for i in ready:  # the list grows during the loop
        for j in successors[i]:
            level[j] = max(level[j], level[i] + 1)
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.append(j)
    if len(ready) < len(after):
        raise CurriculumError(_cycle(given, after, {i for i, n in enumerate(waiting) if n > 0}))
    return np.array(level, np.int32), np.array(befores, np.int64)


def _cycle(given: dict[str, int], after: list[tuple[str, ...]], stuck: set[int]) -> str:
    names = list(given)
    path: dict[int, None] = {}
    i = min(stuck)
    while i not in path:
        path[i] = None
        i = next(given[name] for name in after[i] if given[name] in stuck)
    walked = list(path)
    loop = [names[j] for j in reversed([*walked[walked.index(i) :], i])]
    if len(loop) > 12:
        loop = [*loop[:6], "…", *loop[-5:]]
    return f"the order of the tasks has a cycle: {' → '.join(loop)}; remove one of these edges"


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
