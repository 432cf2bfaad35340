"""Task: one thing a learner can train on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from mastery.errors import CurriculumError

LARGEST = 1e30  # limit of bounds and returns, so that products stay finite


@dataclass(frozen=True, slots=True)
class Task:
    """One thing a learner can train on.

    Args:
        name: The task's name, unique in its curriculum.
        minimum: m̂, an estimate of the lowest mean return a learner can get. If in doubt, choose
            it too high: the program lowers it when it observes lower mean returns.
        maximum: M̂, an estimate of the highest mean return. If in doubt, choose it too low: the
            program raises it when it observes higher mean returns.
        after: The names of the tasks to learn before this one.
        settings: Your own data, such as an environment id: text, numbers, lists and tables.

    Raises:
        CurriculumError: If an argument is invalid.

    Example:
        >>> Task("hard", maximum=0.9, after=("easy",), settings={"env": "CartPole-v1"})
    """

    name: str
    minimum: float = 0.0
    maximum: float = 1.0
    after: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name.strip() and self.name.isprintable()):
            raise CurriculumError(
                f"a task's name is {self.name!r}; it must be one line of printable text"
            )
        for which in ("minimum", "maximum"):
            value = getattr(self, which)
            number = isinstance(value, Real) and not isinstance(value, bool)
            if not number or not abs(value) <= LARGEST:
                large = isinstance(value, int) and not isinstance(value, bool)
                shown = "too large" if large else repr(value)
                raise CurriculumError(
                    f"task {self.name!r}: {which} is {shown}; it must be a finite number"
                )
            object.__setattr__(self, which, float(value))
        if self.minimum >= self.maximum:
            raise CurriculumError(
                f"task {self.name!r}: minimum {self.minimum:g} is not below maximum "
                f"{self.maximum:g}; they are the lowest and highest mean return to expect"
            )
        names = isinstance(self.after, Collection) and all(isinstance(a, str) for a in self.after)
        if isinstance(self.after, str) or not names:
            example = repr(self.after) if isinstance(self.after, str) else "'easy'"
            raise CurriculumError(
                f"task {self.name!r}: after is {self.after!r}; "
                f"it must be a list of names, e.g. after=({example},)"
            )
        object.__setattr__(self, "after", tuple(dict.fromkeys(self.after)))
        if self.name in self.after:
            raise CurriculumError(f"task {self.name!r} lists itself in after; remove it")
        if not isinstance(self.settings, Mapping):
            raise CurriculumError(
                f"task {self.name!r}: settings is {self.settings!r}; it must be a table"
            )
        if wrong := _not_plain(self.settings, "settings"):
            raise CurriculumError(
                f"task {self.name!r}: {wrong}; settings are text, numbers, lists and tables, so "
                "that they can be saved"
            )


def _not_plain(value: Any, where: str) -> str:
    """Describe the first value in the settings that is not plain data; empty if there is none."""
    if isinstance(value, Mapping):
        for key, inside in value.items():
            if not isinstance(key, str):
                return f"{where} has the key {key!r}, which is not text"
            if wrong := _not_plain(inside, f"{where}.{key}"):
                return wrong
        return ""
    if isinstance(value, list | tuple):
        return next(filter(None, (_not_plain(v, f"{where}[{i}]") for i, v in enumerate(value))), "")
    plain = value is None or type(value) in (str, bool, int, float)
    return "" if plain else f"{where} is {value!r}"
