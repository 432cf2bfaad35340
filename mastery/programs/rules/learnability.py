"""Learnability, or sampling for learnability (SFL): Rutherford et al. 2024, arXiv:2408.15099; for
language models LILO: Foster et al. 2025, arXiv:2502.12272."""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.programs.attention import View

Array = Any  # a NumPy or a JAX array


class Learnability(NamedTuple):
    """a_c = M_c (1 − M_c): the variance of a success with probability M_c.

    The sources measure p with fresh episodes of all tasks. Here it is the mastering rate, from the
    last K time-steps in which the task was trained on, so tasks at 0 or 1 need `reprobe`.
    """

    def init(self, like: Array, slots: int) -> tuple[()]:
        return ()

    def attend(self, memory: tuple[()], view: View) -> Array:
        return view.mastery * (1 - view.mastery)
