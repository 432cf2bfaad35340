"""Which prompts of a task come next.

    even          every prompt once in a pass, in random order, before any comes again
    learnability  in proportion to (p_i (1 − p_i))³, but a share φ of the draws is even

A prompt whose last z groups were each all alike, all right or all wrong, takes only one of
2^min(z, 3) of its even turns, so it is never left out for good. When it takes one, that counts
2^min(z, 3) times for the rate of its task. Draws by learnability do not count for that rate: they
are not a fair sample of the task.

A prompt that waits for a report is not drawn again while others of its task are free.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mastery.programs.distribution import allocate, cumulative
from mastery.prompts.estimates import learnability
from mastery.prompts.pool import PromptPool

RULES = ("learnability", "even")
POWER = 3.0
_RAREST = 3  # at least one of 2³ even turns is taken


class Choice:
    """Chooses among the prompts of one task at a time.

    Args:
        rule: One of `RULES`.
        even: φ, the share of draws that are even under `learnability`.
        strength: κ, the strength of the prior of `estimates`.
    """

    def __init__(self, rule: str, even: float, strength: float) -> None:
        self.rule, self.even, self.strength = rule, even, strength

    def take(
        self, pool: PromptPool, k: int, m: int, random: np.random.Generator
    ) -> tuple[list[int], list[int]]:
        """Draw m prompts of task k, and mark them as waiting for a report.

        Returns:
            The rows, and how much each counts for the rate of its task.
        """
        free = int(np.count_nonzero(pool.flying[pool.members[k]] == 0))
        number = m if self.rule == "even" else int(np.floor(self.even * m + random.random()))
        rows, counts = self._evenly(pool, k, number, free, random)
        if number < m:
            chosen = self._weighted(pool, k, m - number, random)
            rows += chosen
            counts += [0] * len(chosen)
        return rows, counts

    def _evenly(
        self, pool: PromptPool, k: int, m: int, free: int, random: np.random.Generator
    ) -> tuple[list[int], list[int]]:
        """The next prompts of the pass."""
        rows: list[int] = []
        counts: list[int] = []
        while len(rows) < m:
            if pool.at[k] >= len(pool.order[k]):
                pool.order[k] = random.permutation(pool.members[k])
                pool.turn[k] += 1
                pool.at[k] = 0
            row = int(pool.order[k][pool.at[k]])
            pool.at[k] += 1
            if free > 0 and pool.flying[row]:
                continue
            share = 1
            if self.rule != "even":
                share = 1 << min(int(pool.flat[row]), _RAREST)
                if (int(pool.turn[k]) + row) % share:
                    continue
            free -= 1
            pool.flying[row] += 1
            rows.append(row)
            counts.append(share)
        return rows, counts

    def _weighted(self, pool: PromptPool, k: int, m: int, random: np.random.Generator) -> list[int]:
        members = pool.members[k]
        numbers = allocate(cumulative(self._weights(pool, k)), m, random.random())
        rows = members[np.repeat(np.arange(len(members)), numbers)]
        np.add.at(pool.flying, rows, 1)
        return rows.tolist()  # type: ignore[no-any-return]

    def _weights(self, pool: PromptPool, k: int) -> NDArray[np.float64]:
        """(members,): what a draw by learnability is in proportion to."""
        waits = pool.flying[pool.members[k]] > 0
        weights = learnability(pool.member_estimates(k, self.strength)) ** POWER
        return weights if waits.all() else np.where(waits, 0.0, weights)

    def probabilities(self, pool: PromptPool, k: int) -> NDArray[np.float64]:
        """(members,): how likely each prompt of a task is to be the next; even turns on average."""
        members = pool.members[k]
        waits = pool.flying[members] > 0
        turns = np.ones(len(members))
        if self.rule != "even":
            turns /= 1 << np.minimum(pool.flat[members], _RAREST).astype(np.int64)
        turns = turns if waits.all() else np.where(waits, 0.0, turns)
        share = 1.0 if self.rule == "even" else self.even
        found: NDArray[np.float64] = share * turns / turns.sum()
        if self.rule != "even":
            weights = self._weights(pool, k)
            found = found + (1 - share) * weights / weights.sum()
        return found
