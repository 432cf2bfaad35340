"""The package's errors. Each message names the thing, what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral
from typing import Any

DISTRIBUTION = "mastery-curriculum"  # its name on PyPI, where `mastery` is another project


class MasteryError(ValueError):
    """The base class of all errors that mastery raises on purpose."""


class CurriculumError(MasteryError):
    """A curriculum or a task is invalid."""


class ProgramError(MasteryError):
    """A program does not exist, has an invalid setting, or breaks its contract."""


class ReturnsError(MasteryError):
    """A return cannot be used."""


class CheckpointError(MasteryError):
    """A checkpoint cannot be written, read or used."""


class MasteryWarning(UserWarning):
    """Something is probably wrong; each warning is given once."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message: `; did you mean 'x'?` if a known name is close, else a few."""
    known = list(known)
    if len(known) > 1000:  # difflib is slow: look only at names of similar length
        known = [k for k in known if abs(len(k) - len(name)) <= 1][:5000]
    if close := get_close_matches(name, known, n=1):
        return f"; did you mean {close[0]!r}?"
    few = ", ".join(repr(k) for k in known[:12])
    return f"; choose from {few}{', …' if len(known) > 12 else ''}" if known else ""


def check_whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """The value as an int; MasteryError unless it is a whole number in [least, most]."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        end = "" if most is None else f" to {most}"
        raise MasteryError(f"{name} is {value!r}; it must be a whole number from {least}{end}")
    return int(value)


def check_distinct(what: str, given: Sequence[str], full: Sequence[str]) -> None:
    """MasteryError if two of the given texts mean the same: their full texts are equal."""
    for i, text in enumerate(full):
        first = full.index(text)
        if first < i:
            same = (
                f"the {what} {given[i]!r} is given twice"
                if given[first] == given[i]
                else f"the {what}s {given[first]!r} and {given[i]!r} are the same"
            )
            raise MasteryError(f"{same}; give each {what} once")


def install(extra: str) -> str:
    """The command that installs this package with an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Import optional packages: one that is missing gives an error that names the extra.

    Args:
        what: What needs the packages, the beginning of the message.
        extra: The extra of this package that installs them.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "mastery").partition(".")[0]
        if package == "mastery":
            raise
        raise MasteryError(f"{what} needs {package}: {install(extra)}") from None
