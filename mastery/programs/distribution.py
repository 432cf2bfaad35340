"""Attention -> probabilities: the A2D converters (sections 2.2 and 3), and drawing tasks.

A converter is a NamedTuple of hyper-parameters that maps attention (N,) to a distribution (N,).
`uniforms` (N,) in [0, 1) break ties of argmax.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any  # a NumPy or a JAX array


class Prop(NamedTuple):
    """Δ^gProp(a) = (1 − ε) Δ^Prop(a) + ε u, with Δ^Prop(a)_c = a_c / Σ a_c'. Prop is ε = 0.

    If all attention is 0, the result is the uniform distribution u.
    """

    epsilon: Array

    def convert(self, a: Array, uniforms: Array) -> Array:
        n, total = a.shape[0], a.sum()
        none = total == 0
        prop = a / (total + none)  # all 0 if all attention is 0
        return (1 - self.epsilon) * prop + (self.epsilon + (1 - self.epsilon) * none) / n


class Amax(NamedTuple):
    """Δ^gAmax(a) = (1 − ε) Δ^Amax(a) + ε u, with Δ^Amax(a)_c = 1 for the largest a_c, else 0.

    Amax is ε = 0. Ties are broken at random.
    """

    epsilon: Array

    def convert(self, a: Array, uniforms: Array) -> Array:
        xp = a.__array_namespace__()
        chosen = xp.argmax(xp.where(a == a.max(), uniforms, -1.0))
        one = (xp.arange(a.shape[0]) == chosen).astype(a.dtype)
        return (1 - self.epsilon) * one + self.epsilon / a.shape[0]


class Boltzmann(NamedTuple):
    """Δ^Boltz(a)_c = exp(a_c / τ) / Σ exp(a_c' / τ)."""

    temperature: Array

    def convert(self, a: Array, uniforms: Array) -> Array:
        xp = a.__array_namespace__()
        e = xp.exp((a - a.max()) / self.temperature)  # same ratios, no overflow
        return e / e.sum()


class TopK(NamedTuple):
    """Δ(a)_c = (1 − ε) / k for the k tasks with the largest a_c, and ε spread evenly over all.

    k is `top`, or that share of the tasks if it is less than 1. Ties are broken at random.
    """

    top: Array
    epsilon: Array

    def convert(self, a: Array, uniforms: Array) -> Array:
        xp = a.__array_namespace__()
        n = a.shape[0]
        k = xp.where(xp.asarray(self.top) < 1, xp.round(xp.asarray(self.top * n)), self.top)
        k = xp.minimum(xp.maximum(k, 1), n).astype(a.dtype)
        chosen = (ranks(a, uniforms) < k).astype(a.dtype)
        return (1 - self.epsilon) * chosen / k + self.epsilon / n


Converter = Prop | Amax | Boltzmann | TopK


def ranks(values: Array, uniforms: Array | None = None) -> Array:
    """(N,): 0 for the largest value, 1 for the next, …; equal values by uniforms, or in order."""
    xp = values.__array_namespace__()
    if uniforms is None:
        order = xp.argsort(-values, stable=True)
    else:
        order = xp.argsort(uniforms)
        order = order[xp.argsort(-values[order], stable=True)]
    return xp.argsort(order)


def cumulative(probabilities: Array) -> Array:
    """(N,): cumulative sums that end in exactly 1 and grow only where the probability is not 0."""
    xp = probabilities.__array_namespace__()
    sums = xp.cumulative_sum(probabilities)
    if hasattr(sums, "at"):  # JAX sums in parts, so rounding may make the sums decrease slightly
        from jax.lax import cummax

        sums = cummax(xp.where(probabilities > 0, sums, 0.0))
    return sums / sums[-1]


def draw(cumulative: Array, uniforms: Array) -> Array:
    """Draw one task per uniform in [0, 1); tasks with probability 0 are never drawn."""
    xp = cumulative.__array_namespace__()
    if hasattr(cumulative, "at"):  # JAX: up to 64 comparisons are faster than a search
        method = "compare_all" if cumulative.shape[0] <= 64 else "scan"
        return xp.searchsorted(cumulative, uniforms, side="right", method=method)
    return xp.searchsorted(cumulative, uniforms, side="right")


def allocate(cumulative: Array, n: int, uniform: Array) -> Array:
    """(N,) integers with sum n, each with mean n·p_c (systematic sampling).

    One uniform shifts n equally spaced points together. Each task counts the points in its interval
    of the cumulative distribution, so its number is n·p_c rounded down or up.
    """
    xp = cumulative.__array_namespace__()
    points = xp.where(cumulative >= 1, float(n), xp.ceil(n * cumulative - uniform))
    return xp.diff(points, prepend=xp.zeros_like(points[:1])).astype(int)
