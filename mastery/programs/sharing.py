"""The last step of a program: a gate, sharing by cost, and a share for what was left out.

        d ← d · keep, normalised           (keep alone if that leaves nothing; d if all is closed)
        d ← d / (mean cost)^by_cost, normalised
        d ← (1 − reprobe) d + reprobe / N

A program without any of these has none of this, and its state no memory of it. With `reprobe` > 0 a
task stays unseen for more than n draws with a probability of at most (1 − reprobe / N)^n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.attention import TimeStep
from mastery.programs.evidence import COSTS_KEPT, relative_cost

Array = Any  # a NumPy or a JAX array
_NOTHING = 1e-12  # less probability than this counts as none


class Memory(NamedTuple):
    """What sharing remembers."""

    gate: Any  # the gate's memory
    spent: Array  # (N,): the cost of recent time-steps
    made: Array  # (N,): the number of their returns


class Sharing(NamedTuple):
    """How a program's distribution is finished."""

    gate: Any  # one of `rules.gates`, or () for none
    by_cost: Array  # 0: share episodes; 1: share frames, tokens or seconds
    reprobe: Array  # the share of training spread evenly over all tasks at the end

    @property
    def gated(self) -> bool:
        """Whether there is a gate; one without settings is an empty tuple too."""
        return hasattr(self.gate, "keep")

    def init(self, like: Array) -> Memory:
        return Memory(self.gate.init(like) if self.gated else (), like, like + 0.0)

    def advance(self, memory: Memory, learned: TimeStep) -> Memory:
        gate = self.gate.advance(memory.gate, learned) if self.gated else ()
        return Memory(
            gate,
            COSTS_KEPT * memory.spent + learned.evidence.cost,
            COSTS_KEPT * memory.made + learned.evidence.count,
        )

    def share(self, memory: Memory, d: Array) -> Array:
        xp = d.__array_namespace__()
        if self.gated:
            keep = self.gate.keep(memory.gate)
            kept = d * keep
            # what is open may have no probability; then it is shared among what is open
            kept = xp.where(kept.sum() > _NOTHING, kept, keep)
            total = kept.sum()
            d = xp.where(total > 0, kept / xp.where(total > 0, total, 1.0), d)
        d = d / relative_cost(memory.spent, memory.made) ** self.by_cost
        return (1 - self.reprobe) * d / d.sum() + self.reprobe / d.shape[0]
