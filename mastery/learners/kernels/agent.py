"""The PPO agent on MiniGrid's cells as GPU kernels, forward and backward.

XLA compiles the agent to some fifty kernels forward and a hundred backward, and most of their time
goes into writing activations to GPU memory and reading them again. Here a block of threads takes
some columns (frames side by side) through a whole part of the network.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mastery.learners.encoders import Cells, features_of
from mastery.learners.kernels import heads, memory, vision
from mastery.learners.kernels.calls import BACK, SMALLEST, measured, outer
from mastery.learners.kernels.heads import OUT
from mastery.learners.kernels.memory import GATES, WIDTH
from mastery.learners.kernels.vision import CELLS, CHANNELS, ONE
from mastery.minigrid.editions import Edition

Array = Any  # a JAX array


class Weights(NamedTuple):
    """An agent's weights, arranged for the kernels: all products are `weight @ columns`."""

    conv1: Array  # (4, CHANNELS, 16): by corner; the bias is at the first corner's channel ONE
    conv2: Array  # (4, 32, 16): by corner
    bias2: Array
    conv3: Array  # (4, WIDTH, 32): by corner
    bias3: Array
    first: Array  # (2 · WIDTH, inputs): first layers of policy and value, from h, x or both
    first_bias: Array
    last: Array  # (OUT, 2 · WIDTH)
    last_bias: Array
    # of the memory, if there is one
    seen: Array | None = None  # (4 · WIDTH, WIDTH): gates from x
    remembered: Array | None = None  # (4 · WIDTH, WIDTH): gates from h
    gates: Array | None = None  # (4 · WIDTH,): their bias, with what is added to the forget gate

    @property
    def firsts(self) -> list[Array]:
        """The first layers by input."""
        return [self.first[:, i : i + WIDTH] for i in range(0, self.first.shape[1], WIDTH)]


class ReadyWeights(NamedTuple):
    """The weights as the forward kernels take them."""

    vision: vision.VisionWeights
    memory: memory.MemoryWeights | None
    heads: heads.HeadsWeights


def fit(agent: Any, n: int) -> bool:
    """Whether the kernels support this agent with n columns on this machine."""
    return (
        isinstance(agent.encoder, Cells)
        and agent.policy[0].bias.shape == (WIDTH,)
        and n % SMALLEST == 0
        and measured()
    )


def player(agent: Any, interpret: bool = False) -> Any:
    """`agent.over`, without gradients. What depends on the weights alone is computed once."""
    ready = prepare(weights_of(agent), _words(agent))
    actions = agent.policy[1].bias.shape[0]

    def over(memory: Array, starts: Array, cells: Array) -> tuple[Array, Array, Array]:
        memory, out, _ = _forward(ready, memory, starts, _flat(cells), False, interpret)
        return memory, out[:actions].T, out[actions]

    return over


def over(
    agent: Any, memory: Array, starts: Array, cells: Array, interpret: bool = False
) -> tuple[Array, Array, Array]:
    """`agent.over` with kernels: new memory, logits and values."""
    actions = agent.policy[1].bias.shape[0]
    given = weights_of(agent), _words(agent), memory, starts, _flat(cells)
    memory, out = run(*given, interpret)
    return memory, out[:actions].T, out[actions]


def _words(agent: Any) -> Array:
    return jnp.asarray(words_of(agent.encoder.encoding, agent.encoder.edition)[0])


def _flat(cells: Array) -> Array:
    return cells.reshape(-1, CELLS).T


@lru_cache
def words_of(encoding: str, edition: Edition) -> tuple[Any, Any]:
    """Each kind of cell as a word of bits, int32 (CODES,), and what each bit adds to each of the
    encoder's channels, (CHANNELS, channels)."""
    features = features_of(encoding, edition).astype(np.int64)
    columns, adds = [], []
    for channel, values in enumerate(features.T):
        for bit in range(max(int(values.max()).bit_length(), 1)):
            columns.append(values >> bit & 1)
            adds.append(np.eye(features.shape[1])[channel] * 2**bit)
    words = sum(column << place for place, column in enumerate(columns)) | 1 << ONE
    spread = np.zeros((CHANNELS, features.shape[1]), np.float32)
    spread[: len(adds)] = adds
    return words.astype(np.uint32).view(np.int32), spread


def weights_of(agent: Any) -> Weights:
    """The weights of an agent on cells."""

    def by_corner(layer: Any) -> Array:
        return layer.weight.reshape(4, -1, layer.weight.shape[1])

    one, two, three = agent.encoder.layers
    conv1 = by_corner(one)
    spread = words_of(agent.encoder.encoding, agent.encoder.edition)[1]
    if (spread == np.eye(*spread.shape)).all():  # a bit is a channel
        conv1 = jnp.pad(conv1, ((0, 0), (0, CHANNELS - spread.shape[1]), (0, 0)))
    else:
        conv1 = jnp.matmul(spread, conv1, precision="highest")
    (p1, p2), (v1, v2) = agent.policy, agent.value
    actions = p2.bias.shape[0]
    last = jnp.zeros((OUT, 2 * WIDTH))
    last = last.at[:actions, :WIDTH].set(p2.weight.T).at[actions, WIDTH:].set(v2.weight[:, 0])
    found = Weights(
        conv1.at[0, ONE].set(one.bias),
        jnp.swapaxes(by_corner(two), 1, 2),
        two.bias,
        jnp.swapaxes(by_corner(three), 1, 2),
        three.bias,
        first=jnp.concatenate([p1.weight, v1.weight], 1).T,
        first_bias=jnp.concatenate([p1.bias, v1.bias]),
        last=last,
        last_bias=jnp.pad(jnp.concatenate([p2.bias, v2.bias]), (0, OUT - actions - 1)),
    )
    if agent.lstm is None:
        return found
    seen, remembered = agent.lstm
    return found._replace(
        seen=seen.weight.T,
        remembered=remembered.weight.T,
        gates=(seen.bias + remembered.bias).at[GATES[1]].add(agent.forget),
    )


def prepare(w: Weights, words: Array) -> ReadyWeights:
    return ReadyWeights(
        vision.prepare(*w[:5], words),
        None if w.seen is None else memory.prepare(w.seen, w.remembered, w.gates),
        heads.prepare(w.firsts, w.first_bias, w.last, w.last_bias),
    )


@partial(jax.custom_vjp, nondiff_argnums=(5,))
def run(
    weights: Weights,
    words: Array,
    state: Array,
    starts: Array,
    cells: Array,
    interpret: bool = False,
) -> tuple[Array, Array]:
    """Run the agent over several frames of n environments.

    Args:
        weights: Of the agent. Only they get gradients, and only from logits and value.
        words: int32 (CODES,), each kind of cell as a word of bits.
        state: The memory: (2 · WIDTH, n), or (0, n) without memory.
        starts: bool (frames, n), True where an episode begins, with an empty memory.
        cells: uint8 (CELLS, frames · n), the n columns of a frame side by side.
        interpret: Run without a GPU.

    Returns:
        The new memory, and logits and value (OUT, frames · n).
    """
    state, out, _ = _forward(prepare(weights, words), state, starts, cells, False, interpret)
    return state, out


@partial(jax.jit, static_argnames=("keep", "interpret"))  # so that equal calls are lowered once
def _forward(
    w: ReadyWeights, state: Array, starts: Array, cells: Array, keep: bool, interpret: bool
) -> tuple[Array, Array, Any]:
    x, seen = vision.encode(w.vision, cells, keep, interpret)
    inputs, steps = [x], None
    if w.memory is not None:
        going = (~starts).astype(jnp.float32)
        state, h, steps = memory.remember(w.memory, state, going, x, keep, interpret)
        inputs = [h, x][: len(w.heads.firsts)]
    out, hidden = heads.judge(w.heads, inputs, keep, interpret)
    return state, out, (seen, inputs, steps, hidden)


def _with_residuals(
    w: Weights, words: Array, state: Array, starts: Array, cells: Array, interpret: bool
) -> tuple[tuple[Array, Array], Any]:
    after, out, kept = _forward(prepare(w, words), state, starts, cells, True, interpret)
    return (after, out), (w, words, state, starts, cells, kept)


def _back(interpret: bool, residuals: Any, given: tuple[Array, Array]) -> tuple[Any, ...]:
    w, words, state, starts, cells, (seen, inputs, steps, hidden) = residuals
    d_out = given[1]
    d_pre, d_inputs = heads.judge_back(w.firsts, w.last, d_out, hidden, interpret)
    found = {
        "first": jnp.concatenate([outer(d_pre, x) for x in inputs], 1),
        "first_bias": d_pre.sum(1, dtype=jnp.float32),
        "last": outer(d_out, hidden),
        "last_bias": d_out.sum(1),
    }
    d_x = d_inputs[-1]
    if steps is not None:
        going = (~starts).astype(jnp.float32)
        d_gates = memory.remember_back(w.remembered, steps, going, d_inputs[0], interpret)
        through_gates = w.seen.T.astype(BACK) @ d_gates
        d_x = through_gates + d_x if len(inputs) == 2 else through_gates  # heads may not see x
        found["seen"] = outer(d_gates, seen.x)
        found["remembered"] = outer(d_gates, steps.before.reshape(WIDTH, -1))
        found["gates"] = d_gates.sum(1, dtype=jnp.float32)
    gradient = vision.encode_back(w.conv2, w.conv3, words, seen, cells, d_x, interpret)
    nothing = [np.zeros(x.shape, jax.dtypes.float0) for x in (words, starts, cells)]
    through = Weights(**gradient._asdict(), **found)
    return through, nothing[0], jnp.zeros_like(state), *nothing[1:]


run.defvjp(_with_residuals, _back)
