"""How likely a prompt is to pass: its own few returns, and those of its task.

A prompt is seen once or twice, its task often. So a prompt's estimate starts at its task's rate and
leaves it as far as the prompt's own returns say. All returns are shares of their task's bounds,
u = (r − m̂) / (M̂ − m̂), within [0, 1]. With κ the strength of the prior, in returns:

    rate of task k          P = (S + 1) / (N + 2)          S: sum of its recent u, N: their number
    of prompt i             n_i returns with the sum s_i
    its task at the time    q_i = the mean of P over these returns, when they came in
    estimate                p_i = (s_i + κ q_i) / (n_i + κ)                          while P = q_i
                            odds p_i = odds P · odds((s_i + κ q_i) / (n_i + κ)) / odds q_i

The second line is the first, moved with the task: a prompt keeps its distance from its task, in
odds, while the task is being learned. The first is the mean of the Beta posterior with the prior
Beta(κ q_i, κ (1 − q_i)). A prompt without returns has p_i = P.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]  # float32 or float64


def task_rate(total: Any, returns: Any) -> Any:
    """P of each task: S and N with one success and one failure added."""
    return (total + 1.0) / (returns + 2.0)


def estimate(rate: Any, returns: Floats, passed: Floats, expected: Floats, strength: float) -> Any:
    """(n,): p_i of prompts.

    Args:
        rate: P of each prompt's task now.
        returns: (n,) n_i.
        passed: (n,) s_i.
        expected: (n,) n_i q_i.
        strength: κ.
    """
    q = np.where(returns > 0, expected / np.where(returns > 0, returns, 1.0), rate)
    right = (passed + strength * q) * (1.0 - q) * rate
    wrong = (returns - passed + strength * (1.0 - q)) * q * (1.0 - rate)
    return right / (right + wrong)


def learnability(p: Any) -> Any:
    """p (1 − p): the variance of a success, and what a group of completions can teach."""
    return p * (1.0 - p)


def completions_wanted(p: Any, least: int, most: int) -> NDArray[np.int64]:
    """How many completions make it likely that they are not all alike.

    The least g with max(p, 1 − p)^g ≤ 0.1, within [least, most]: at p = 0.5 that is 4, at 0.1 or
    0.9 it is 22.
    """
    alike = np.minimum(np.maximum(p, 1.0 - p), 1.0 - 1e-9)
    wanted = np.ceil(math.log(0.1) / np.log(alike) - 1e-9)
    found: NDArray[np.int64] = np.clip(wanted, least, most).astype(np.int64)
    return found
