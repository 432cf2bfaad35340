"""A decoder-only transformer that continues prompts, in groups.

    Transformer           the weights
    read                  prompts -> what their layers hold for the completions (keys and values)
    score                 the logits of given completions, all symbols at once
    sample                new completions, symbol by symbol, with a cache of keys and values

GRPO takes several completions of the same prompt. The prompt is read once, and its keys and values
serve all its completions, in training as in sampling. Shapes: n prompts, g completions of each, p
symbols of a prompt, a of a completion, h heads of k features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from mastery.random_numbers import Normals
from mastery.reasoning.alphabet import END, PAD, SYMBOLS

Array = Any  # a JAX array
_HIDDEN = -1e9  # added to the logits of what may not be attended to
_ROPE = 10_000.0


class Cache(NamedTuple):
    """What a layer keeps of some symbols."""

    keys: Array  # (…, symbols, h, k)
    values: Array


class Block(eqx.Module):
    """A layer: attention, then a network of one hidden layer, each after a normalisation."""

    attention: Array  # (width, 3 · width): queries, keys and values
    joined: Array  # (width, width)
    up: Array  # (width, 4 · width)
    down: Array  # (4 · width, width)
    scales: Array  # (2, width): of the normalisations

    def __init__(self, normals: Normals, width: int, layers: int) -> None:
        small = (2 * layers) ** -0.5  # the sum over layers begins with the size of one
        self.attention = normals.take((width, 3 * width)) * width**-0.5
        self.joined = normals.take((width, width)) * width**-0.5 * small
        self.up = normals.take((width, 4 * width)) * width**-0.5
        self.down = normals.take((4 * width, width)) * (4 * width) ** -0.5 * small
        self.scales = jnp.ones((2, width))

    def project(self, x: Array, at: Array, heads: int) -> tuple[Array, Cache]:
        """Queries, keys and values (…, h, k) of symbols at the given positions."""
        together = _normalised(x, self.scales[0]) @ self.attention
        q, k, v = jnp.split(together.reshape(*x.shape[:-1], 3 * heads, -1), 3, -2)
        return _turned(q, at), Cache(_turned(k, at), v)

    def finish(self, x: Array, attended: Array) -> Array:
        """The layer's output, given what each symbol's heads have attended to."""
        x = x + attended.reshape(x.shape) @ self.joined
        return x + jax.nn.gelu(_normalised(x, self.scales[1]) @ self.up) @ self.down


class Transformer(eqx.Module):
    """The weights, and the number of heads."""

    symbols: Array  # (SYMBOLS, width): the embedding
    blocks: tuple[Block, ...]
    scale: Array  # (width,): of the last normalisation
    out: Array  # (width, SYMBOLS)
    heads: int = eqx.field(static=True)

    def __init__(self, key: Array, width: int, layers: int, heads: int) -> None:
        normals = Normals(key)
        self.symbols = normals.take((SYMBOLS, width))
        self.blocks = tuple(Block(normals, width, layers) for _ in range(layers))
        self.scale = jnp.ones(width)
        self.out = normals.take((width, SYMBOLS)) * width**-0.5
        self.heads = heads

    def embed(self, symbols: Array) -> Array:
        """Features of symbols. A product, since the gradient of an index adds in any order on a
        GPU, and would not be the same twice."""
        return jax.nn.one_hot(symbols, SYMBOLS) @ self.symbols

    def logits(self, x: Array) -> Array:
        return _normalised(x, self.scale) @ self.out


def read(model: Transformer, prompt: Array) -> tuple[list[Cache], Array]:
    """Read prompts.

    Args:
        model: The transformer.
        prompt: int32 (n, p), padded on the left.

    Returns:
        The memory of each layer, and the logits (n, SYMBOLS) of the first symbol of a completion.
    """
    p = prompt.shape[1]
    at, known = jnp.arange(p), prompt != PAD
    may = (at[:, None] >= at) & known[:, None]  # (n, p, p)
    hidden = jnp.where(may, 0.0, _HIDDEN)[..., None]
    x, memories = model.embed(prompt), []
    for block in model.blocks:
        q, memory = block.project(x, at, model.heads)
        weights = _softmax(_products(q, memory.keys) + hidden, q.shape[-1])
        x = block.finish(x, _mixed(weights, memory.values))
        memories.append(memory)
    return memories, model.logits(x[:, -1])


def score(model: Transformer, prompt: Array, completion: Array) -> Array:
    """The logits of every symbol of completions.

    Args:
        model: The transformer.
        prompt: int32 (n, p).
        completion: int32 (n, g, a).

    Returns:
        (n, g, a, SYMBOLS): those of symbol i are given the prompt and the symbols before i.
    """
    memories, first = read(model, prompt)
    a = completion.shape[2]
    at = prompt.shape[1] + jnp.arange(a - 1)
    place = jnp.arange(a - 1)
    causal = jnp.where(place[:, None] >= place, 0.0, _HIDDEN)[..., None]
    hidden = _hidden(prompt)
    x = model.embed(completion[:, :, :-1])
    for block, memory in zip(model.blocks, memories, strict=True):
        q, own = block.project(x, at, model.heads)
        x = block.finish(x, _attend(q, memory, own, hidden, causal))
    logits = model.logits(x)
    every = jnp.broadcast_to(first[:, None, None], (*completion.shape[:2], 1, SYMBOLS))
    return jnp.concatenate([every, logits], 2)


def sample(
    model: Transformer, prompt: Array, uniforms: Array, greedy: bool = False
) -> tuple[Array, Array]:
    """Complete prompts, each several times.

    Args:
        model: The transformer.
        prompt: int32 (n, p).
        uniforms: (a, n, g) in [0, 1): one for each symbol.
        greedy: Take the likeliest symbol instead of drawing one.

    Returns:
        Completions, int32 (n, g, a), with padding after END; and the log-probability (n, g, a) of
        each symbol when it was drawn.
    """
    a, n, g = uniforms.shape
    p, heads = prompt.shape[1], model.heads
    memories, first = read(model, prompt)
    features = model.scale.shape[0] // heads
    empty = Cache(*[jnp.zeros((n, g, a - 1, heads, features))] * 2)
    hidden, place = _hidden(prompt), jnp.arange(a - 1)

    def choose(logits: Array, u: Array, done: Array) -> tuple[Array, Array]:
        if greedy:
            drawn = logits.argmax(-1)
        else:
            sums = jnp.cumsum(jax.nn.softmax(logits), -1)
            drawn = (sums <= u[..., None] * sums[..., -1:]).sum(-1)
            drawn = jnp.minimum(drawn, SYMBOLS - 1)
        own = log_probability(logits, drawn)
        return jnp.where(done, PAD, drawn).astype(jnp.int32), jnp.where(done, 0.0, own)

    def step(carry: Any, now: Any) -> Any:
        caches, drawn, done = carry
        i, u = now
        x, written = model.embed(drawn[:, :, None]), []
        mask = jnp.where(place <= i, 0.0, _HIDDEN)[:, None]
        for block, memory, cache in zip(model.blocks, memories, caches, strict=True):
            q, own = block.project(x, p + i[None], heads)
            cache = jax.tree.map(
                lambda c, o: lax.dynamic_update_slice_in_dim(c, o, i, 2), cache, own
            )
            x = block.finish(x, _attend(q, memory, cache, hidden, mask))
            written.append(cache)
        drawn, log_p = choose(model.logits(x)[:, :, 0], u, done)
        return (written, drawn, done | (drawn == END)), (drawn, log_p)

    none = jnp.zeros((n, g), bool)
    drawn, log_p = choose(jnp.broadcast_to(first[:, None], (n, g, SYMBOLS)), uniforms[0], none)
    start = [empty] * len(model.blocks), drawn, drawn == END
    _, (later, log_ps) = lax.scan(step, start, (place, uniforms[1:]))
    completion = jnp.concatenate([drawn[None], later])
    return jnp.moveaxis(completion, 0, 2), jnp.moveaxis(
        jnp.concatenate([log_p[None], log_ps]), 0, 2
    )


def log_probability(logits: Array, symbols: Array) -> Array:
    """The log-probability of each symbol, by the logits (…, SYMBOLS)."""
    return (jax.nn.log_softmax(logits) * jax.nn.one_hot(symbols, SYMBOLS)).sum(-1)


def _attend(q: Array, prompt: Cache, own: Cache, hidden: Array, mask: Array) -> Array:
    """Attend to the prompt and to the completion's own symbols; q is (n, g, a, h, k)."""
    before = Cache(*(x[:, None] for x in prompt))  # the same for all completions
    scores = [_products(q, before.keys) + hidden, _products(q, own.keys) + mask]
    weights = _softmax(jnp.concatenate(scores, -2), q.shape[-1])
    p = prompt.keys.shape[1]
    found = _mixed(weights[..., :p, :], before.values)
    return found + _mixed(weights[..., p:, :], own.values)


def _products(q: Array, keys: Array) -> Array:
    """Queries (…, q, h, k) times keys (…, s, h, k): (…, q, s, h)."""
    return jnp.einsum("...qhk,...shk->...qsh", q, keys)


def _mixed(weights: Array, values: Array) -> Array:
    """Values (…, s, h, k), weighted by (…, q, s, h): (…, q, h, k)."""
    return jnp.einsum("...qsh,...shk->...qhk", weights, values)


def _hidden(prompt: Array) -> Array:
    """What to add to the scores of a prompt's symbols: its padding is hidden."""
    return jnp.where(prompt != PAD, 0.0, _HIDDEN)[:, None, None, :, None]


def _softmax(scores: Array, features: int) -> Array:
    """Over the symbols that are attended to, the last axis but one."""
    return jax.nn.softmax(scores * features**-0.5, axis=-2)


def _normalised(x: Array, scale: Array) -> Array:
    return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6) * scale


def _turned(x: Array, at: Array) -> Array:
    """Turn pairs of features by angles that grow with the position (Su et al. 2021, RoPE).

    Args:
        x: (…, symbols, h, k).
        at: (symbols,) The position of each.
    """
    half = x.shape[-1] // 2
    angles = at[:, None, None] * _ROPE ** (-jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
