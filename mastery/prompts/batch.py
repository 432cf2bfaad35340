"""PromptBatch: the prompts that `Prompts.next` gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Draw(NamedTuple):
    """A prompt to train on."""

    id: int  # its index in the dataset
    task: str
    ticket: int  # the number of this draw
    completions: int  # how many to sample


@dataclass(frozen=True, eq=False)
class PromptBatch:
    """Prompts to train on; `for draw in batch` gives each as a `Draw`.

    Attributes:
        ids: (n,) int64, the prompts' indexes in the dataset.
        tasks: The task of each.
        tickets: (n,) int64, the number of each draw, under which its report counts once.
        completions: (n,) int64, how many completions to sample of each.
    """

    ids: NDArray[np.int64]
    tasks: tuple[str, ...]
    tickets: NDArray[np.int64]
    completions: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Draw]:
        columns = (self.ids.tolist(), self.tasks, self.tickets.tolist(), self.completions.tolist())
        return map(Draw._make, zip(*columns, strict=True))
