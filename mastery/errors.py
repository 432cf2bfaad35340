"""What can go wrong, each with a message that names the thing, what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class MasteryError(ValueError):
    """The base of every error that this package raises on purpose."""


class CurriculumError(MasteryError):
    """A curriculum or a task that does not make sense."""


class ProgramError(MasteryError):
    """A program that does not exist, has a wrong setting, or breaks its contract."""


class ReturnsError(MasteryError):
    """A return that cannot be used."""


class CheckpointError(MasteryError):
    """A file that cannot be read back."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when a known name is close to this one, else a list of a few."""
    known = list(known)
    if len(known) > 1000:  # difflib is slow: look only at names of about that length
        known = [k for k in known if abs(len(k) - len(name)) <= 1][:5000]
    if close := get_close_matches(name, known, n=1):
        return f"; did you mean {close[0]!r}?"
    few = ", ".join(repr(k) for k in known[:12])
    return f"; there is {few}{', …' if len(known) > 12 else ''}" if known else ""
