"""What users give to `Prompts`, checked: ids, rewards, tokens and settings."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from mastery.curriculum.task import LARGEST
from mastery.errors import MasteryError, ReturnsError, check_whole
from mastery.programs.returns import numbers
from mastery.prompts.pool import PromptPool

Group = tuple[Sequence[float], float]  # the rewards of a prompt's completions, and their tokens


def read_ids(ids: Any, prompts: int) -> list[int]:
    """Ids of prompts as a list; MasteryError if there is no such prompt."""
    given = np.asarray(ids)
    if given.size == 0:
        return []
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise MasteryError(f"ids is {ids!r:.80}; it must be a list of prompts' ids")
    wrong = given[(given < 0) | (given >= prompts)]
    if len(wrong):
        raise MasteryError(f"there is no prompt {wrong[0]}; ids are from 0 to {prompts - 1}")
    return given.tolist()  # type: ignore[no-any-return]


def read_tickets(tickets: Any) -> list[int]:
    """Tickets as a list."""
    given = np.asarray(tickets)
    if given.size == 0:
        return []
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise MasteryError(f"tickets is {tickets!r:.80}; it must be a list of whole numbers")
    return given.tolist()  # type: ignore[no-any-return]


def read_groups(pool: PromptPool, rows: list[int], rewards: Any, tokens: Any) -> list[Group]:
    """The rewards and the tokens of each prompt.

    Raises:
        MasteryError: If their number is not that of the prompts.
        ReturnsError: If one of them is not a usable number.
    """
    for what, given in (("rewards", rewards), ("tokens", tokens)):
        if given is not None:
            check_length(what, given, len(rows))
    found = []
    for i, row in enumerate(rows):
        name = pool.names[pool.task[row]]
        group = numbers(name, rewards[i], "reward")
        for value in group:
            if not -LARGEST <= value <= LARGEST:
                raise ReturnsError(
                    f"prompt {row}: a reward is {value}; it must be within ±{LARGEST:g}"
                )
        spent = 0.0
        if tokens is not None:
            several = numbers(name, tokens[i], "number of tokens")
            spent = sum(several)
            if several and not (min(several) >= 0 and spent <= LARGEST):
                raise ReturnsError(
                    f"prompt {row}: its tokens are {tokens[i]!r:.60}; give numbers from 0 to "
                    f"{LARGEST:g}"
                )
        found.append((group, spent))
    return found


def check_length(what: str, given: Any, n: int) -> None:
    """MasteryError unless there is one for each prompt."""
    if not hasattr(given, "__len__") or isinstance(given, str):
        raise MasteryError(f"{what} is {given!r:.80}; it must be a list, with one entry per prompt")
    if len(given) != n:
        raise MasteryError(f"there are {len(given)} {what} for {n} prompts; give one each")


def read_number(name: str, value: Any, low: float, high: float) -> float:
    """A setting that is a number."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not low <= float(value) <= high:
        raise MasteryError(f"{name} is {value!r:.80}; it must be a number from {low:g} to {high:g}")
    return float(value)


def read_completions(completions: Any) -> tuple[int, int]:
    """The least and the greatest number of completions."""
    pair = completions if isinstance(completions, tuple | list) else (completions,) * 2
    if len(pair) != 2:
        raise MasteryError(f"completions is {completions!r:.80}; give a number, or (least, most)")
    least = check_whole("completions", pair[0], 1, 2**31)
    return least, check_whole("completions", pair[1], least, 2**31)
