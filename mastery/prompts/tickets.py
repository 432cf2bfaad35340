"""Tickets: each draw of a prompt has a number, under which its report counts once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST = 2**16  # draws that wait for a report; of more, the oldest are given up


@dataclass
class Waiting:
    """A draw that waits for its report."""

    row: int  # the prompt
    weight: int  # how much its group counts for the rate of its task
    rewards: list[float] = field(default_factory=list)  # those that came in part
    tokens: float = 0.0


class Tickets:
    """The draws that wait for a report, by number, oldest first."""

    def __init__(self) -> None:
        self.next = 0
        self.waiting: dict[int, Waiting] = {}
        self._of_prompt: dict[int, list[int]] = {}

    def open(self, rows: Sequence[int], weights: Sequence[int]) -> tuple[list[int], list[int]]:
        """Give each draw a number. Returns the numbers, and the rows of draws that are given up."""
        numbers = list(range(self.next, self.next + len(rows)))
        self.next += len(rows)
        for number, row, weight in zip(numbers, rows, weights, strict=True):
            self._put(number, Waiting(row, weight))
        lost = []
        while len(self.waiting) > MOST:
            lost.append(self.close(next(iter(self.waiting))).row)
        return numbers, lost

    def close(self, number: int) -> Waiting:
        """Remove a draw whose report has come."""
        found = self.waiting.pop(number)
        numbers = self._of_prompt[found.row]
        numbers.remove(number)
        if not numbers:
            del self._of_prompt[found.row]
        return found

    def find(self, row: int, number: int | None, taken: set[int]) -> int | None:
        """The number of a draw of this prompt; None if there is none that waits.

        Args:
            row: The prompt.
            number: The draw's own number, or None for the prompt's oldest.
            taken: Numbers that are used already.
        """
        if number is not None:
            found = self.waiting.get(number)
            fits = found is not None and found.row == row and number not in taken
            return number if fits else None
        return next((n for n in self._of_prompt.get(row, ()) if n not in taken), None)

    def state(self) -> dict[str, NDArray[Any]]:
        """All draws that wait, as arrays."""
        held = [(i, x) for i, w in enumerate(self.waiting.values()) for x in w.rewards]
        return {
            "number": np.array(list(self.waiting), np.int64),
            "row": np.array([w.row for w in self.waiting.values()], np.int64),
            "weight": np.array([w.weight for w in self.waiting.values()], np.int64),
            "tokens": np.array([w.tokens for w in self.waiting.values()], np.float64),
            "part_of": np.array([i for i, _ in held], np.int64),
            "part": np.array([x for _, x in held], np.float64),
        }

    @classmethod
    def load(cls, following: int, arrays: dict[str, NDArray[Any]], prompts: int) -> Tickets:
        """The draws of a state; `ValueError` if it makes no sense."""
        found = cls()
        found.next = int(following)
        names = ("number", "row", "weight", "tokens")
        columns = [arrays[name].tolist() for name in names]
        for number, row, weight, tokens in zip(*columns, strict=True):
            if not (0 <= row < prompts and 0 <= number < found.next):
                raise ValueError(f"there is no draw {number} of prompt {row}")
            found._put(number, Waiting(row, weight, [], tokens))
        waiting = list(found.waiting.values())
        for i, reward in zip(arrays["part_of"].tolist(), arrays["part"].tolist(), strict=True):
            waiting[i].rewards.append(reward)
        return found

    def _put(self, number: int, waiting: Waiting) -> None:
        self.waiting[number] = waiting
        self._of_prompt.setdefault(waiting.row, []).append(number)
