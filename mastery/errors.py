"""The package's errors. Each message names the thing, what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message: `; did you mean 'x'?` if a known name is close, else a few."""
    known = list(known)
    if len(known) > 1000:  # difflib is slow: look only at names of similar length
        known = [k for k in known if abs(len(k) - len(name)) <= 1][:5000]
    if close := get_close_matches(name, known, n=1):
        return f"; did you mean {close[0]!r}?"
    few = ", ".join(repr(k) for k in known[:12])
    return f"; choose from {few}{', …' if len(known) > 12 else ''}" if known else ""
