"""What the settings of every learner have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field, fields
from typing import Any, NamedTuple

from mastery.errors import MasteryError, check_whole

LARGEST = 1_000_000  # of a whole number


class LearnerKind(NamedTuple):
    """A kind of learner, as a job sees it."""

    settings: Any  # the dataclass of its settings
    hyper: Any  # the tuple of those that may differ from run to run
    presets: Mapping[str, Any]  # settings by name; "default" is one of them


def setting(default: Any, text: str) -> Any:
    """A field of a learner's settings, with its help text."""
    return field(default=default, metadata={"help": text})


def check_numbers(settings: Any, positive: tuple[str, ...], shares: tuple[str, ...] = ()) -> None:
    """Check the `int` and `float` fields.

    Args:
        settings: The dataclass.
        positive: The `float` fields that must be more than 0; the others may be 0.
        shares: The `float` fields that are at most 1.

    Raises:
        MasteryError: If a value is invalid.
    """
    for f in fields(settings):
        value = getattr(settings, f.name)
        if f.type == "int":
            check_whole(f.name, value, 1, LARGEST)
        elif f.type == "float":
            _check_number(f, value, f.name in positive, f.name in shares)


def _check_number(f: Field[Any], value: Any, positive: bool, share: bool) -> None:
    low, high = (1e-12 if positive else 0), (1 if share else 1e9)
    if not isinstance(value, (int, float)) or not low <= value <= high:
        least, most = "more than 0" if positive else "0 or more", ", and at most 1" * share
        raise MasteryError(f"{f.name} is {value!r}; it must be {least}{most}")
