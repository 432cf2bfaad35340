"""Adam (Kingma and Ba, 2015), the optimiser of every learner.

m_t = β₁ m_{t−1} + (1 − β₁) g_t
v_t = β₂ v_{t−1} + (1 − β₂) g_t²
w_t = w_{t−1} − rate · m̂_t / (√v̂_t + ε), with m̂_t = m_t / (1 − β₁ᵗ) and v̂_t = v_t / (1 − β₂ᵗ)
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

Array = Any  # a JAX array
Weights = TypeVar("Weights")  # a tree of arrays
BETA_1, BETA_2 = 0.9, 0.999


class AdamState(NamedTuple):
    """What Adam remembers; its names are those in checkpoints."""

    count: Array  # int32 (): t, the steps taken
    mu: Any  # m_t, shaped as the weights
    nu: Any  # v_t, shaped as the weights


def new_adam(weights: Any) -> AdamState:
    zeros = [jax.tree.map(jnp.zeros_like, weights) for _ in range(2)]
    return AdamState(jnp.zeros((), jnp.int32), *zeros)


def adam(
    weights: Weights, gradient: Any, state: AdamState, rate: Any, epsilon: Any = 1e-8
) -> tuple[Weights, AdamState]:
    """The weights and the state after one step."""
    t = state.count + 1
    mu = jax.tree.map(lambda g, m: (1 - BETA_1) * g + BETA_1 * m, gradient, state.mu)
    nu = jax.tree.map(lambda g, v: (1 - BETA_2) * g**2 + BETA_2 * v, gradient, state.nu)
    bias_1, bias_2 = 1 - BETA_1**t, 1 - BETA_2**t

    def step(w: Array, m: Array, v: Array) -> Array:
        return w + -rate * (m / bias_1 / (jnp.sqrt(v / bias_2) + epsilon))

    return jax.tree.map(step, weights, mu, nu), AdamState(t, mu, nu)
