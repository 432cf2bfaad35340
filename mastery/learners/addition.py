"""Adding two numbers with an encoder and a decoder, both LSTMs: one run, from top to bottom.

    Settings      how it is built and trained
    examples      fresh sums of given lengths, some of them kept apart for validation
    Network       the sum as digits, from the string of the two numbers
    loss          cross-entropy of the digits
    learn         an epoch of minibatches, composed by the teacher's probabilities
    accuracy      the share of new sums that are right, of each task

As in Zaremba and Sutskever 2014, Matiisen et al. 2017 and the paper: both numbers are padded with
zeros to the same length and written from left to right with a plus between them, 11 symbols in all;
the last output of the encoder is given to the decoder at every step, and it writes the sum with one
digit more. A sum is right if all its digits are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax

from mastery.errors import MasteryError
from mastery.learners.encoders import Linear
from mastery.learners.lstm import lstm
from mastery.random_numbers import Normals, uniform

Array = Any  # a JAX array
SYMBOLS = 11  # ten digits and a plus
PLUS = 10
PARTS = "parts"  # the axis of the devices that share a run's work


@dataclass(frozen=True)
class Settings:
    """How a network is built and trained. Those that are `float` may differ from run to run."""

    batch: int = 128  # examples in a minibatch
    batches: int = 10  # minibatches in an epoch, which is a time-step of the teacher
    tests: int = (
        100  # new examples of each task after an epoch: the teacher sees how many are right
    )
    validation: int = 100  # of each task after an epoch, of those that the teacher never sees
    width: int = 128  # of the encoder and of the decoder
    learning_rate: float = 1e-3  # Adam's

    unit: ClassVar[str] = "examples"

    def __post_init__(self) -> None:
        for name in (f.name for f in fields(self) if f.type == "int"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value <= 1_000_000:
                raise MasteryError(f"{name} is {value!r}; it must be a whole number from 1")
        if not isinstance(self.learning_rate, (int, float)) or not 0 < self.learning_rate <= 1e9:
            raise MasteryError(f"learning_rate is {self.learning_rate!r}; it must be more than 0")

    @property
    def per_update(self) -> int:
        """Examples in an epoch."""
        return self.batch * self.batches

    def parts(self, most: int) -> int:
        """In how many parts the work of a run can be done at the same time, each large enough to be
        worth it."""
        split = (self.batch, self.tests, self.validation)
        most = min(most, self.batch // 32)
        return max([p for p in range(1, most + 1) if all(n % p == 0 for n in split)], default=1)


class Hyper(NamedTuple):
    """The settings that may differ from run to run, as arrays."""

    learning_rate: Array

    @classmethod
    def of(cls, settings: Settings) -> Hyper:
        return cls(*(jnp.float32(getattr(settings, name)) for name in cls._fields))


PRESETS = {"default": Settings(), "paper": Settings()}  # the paper's settings are good ones

# Pairs of numbers are of two kinds: a fifth of them, in which s(a) + 2 s(b) is a multiple of 5 (s:
# the sum of the digits), is for validation, the others are for the teacher's tests. The last digit
# of the second number decides, and for each residue there are two such digits: so the pairs of a
# kind are all equally likely. Training takes any.
ANY, FOR_TEACHER, FOR_VALIDATION = "any", "teacher", "validation"


def examples(key: Array, digits: Array, length: int, kind: str = ANY) -> tuple[Array, Array]:
    """Sums of two numbers of so many digits each, drawn evenly.

    digits: int (n,), from 1 to length. Input int8 (2 · length + 1, n): symbols from left to right;
    target int8 (length + 1, n): the digits of the sum.
    """
    n = len(digits)
    place = jnp.arange(length)[:, None]  # 0 is the last digit
    uniforms = uniform(key, (2, length, n))
    leading = (place == digits - 1) & (digits > 1)  # a number does not begin with 0, unless it is 0
    numbers = jnp.where(leading, 1 + jnp.floor(9 * uniforms), jnp.floor(10 * uniforms))
    a, b = jnp.where(place < digits, numbers.astype(jnp.int32), 0)
    if kind != ANY:
        u = uniforms[1, 0]
        residue = (
            (a.sum(0) + 2 * b[1:].sum(0)) * 2 % 5
        )  # of the last digit, so that it is a multiple
        if kind == FOR_VALIDATION:
            chosen = residue + 5 * jnp.floor(2 * u).astype(jnp.int32)
        else:
            other = jnp.floor(8 * u).astype(jnp.int32)  # one of the eight digits that are left
            chosen = (residue + 1 + other % 4) % 5 + 5 * (other // 4)
        # a number of one digit may be 0; a longer one ends in any digit as well
        b = b.at[0].set(chosen)

    def carry(over: Array, column: Array) -> tuple[Array, Array]:
        total = column + over
        return total // 10, total % 10

    over, total = lax.scan(carry, jnp.zeros(n, jnp.int32), a + b, unroll=True)
    plus = jnp.full((1, n), PLUS)
    given = jnp.concatenate([a[::-1], plus, b[::-1]]).astype(jnp.int8)
    return given, jnp.concatenate([over[None], total[::-1]]).astype(jnp.int8)


class Network(eqx.Module):
    """Columns all the way: (features, n)."""

    encoder: Array  # (width + 12, gates): of what is remembered, of the symbol, and the bias
    code: Linear  # what the decoder is given in every step
    decoder: Array  # (width, gates)
    out: Linear

    def __init__(self, key: Array, width: int) -> None:
        normals, gates = Normals(key), 4 * width
        symbol = Linear(normals, SYMBOLS, gates)
        remembered = Linear(normals, width, gates)
        self.encoder = jnp.concatenate([remembered.weight, symbol.weight, symbol.bias[None]])
        self.code = Linear(normals, width, gates)
        self.decoder = Linear(normals, width, gates).weight
        self.out = Linear(normals, width, 10)

    def __call__(self, given: Array) -> Array:
        """Logits of the digits, (length + 1, 10, n), for strings of (2 · length + 1, n) symbols."""
        steps, n = given.shape
        symbols = given[:, None] == jnp.arange(SYMBOLS, dtype=given.dtype)[:, None]
        seen = jnp.concatenate([symbols, jnp.ones((steps, 1, n), bool)], axis=1)
        code = lstm(self.encoder, seen.astype(jnp.float32), last=True)[:, 0]
        long = (steps + 1) // 2
        written = lstm(self.decoder, jnp.zeros((long, 0, n)), self.code(code))
        digits = self.out(written.reshape(len(code), -1))
        return jnp.swapaxes(digits.reshape(10, long, n), 0, 1)


def loss(network: Network, given: Array, target: Array) -> Array:
    """The mean cross-entropy of the digits."""
    log_p = jax.nn.log_softmax(network(given), axis=1)
    digit = target[:, None] == jnp.arange(10, dtype=target.dtype)[:, None]
    return -jnp.where(digit, log_p, 0.0).sum(1).mean()


_adam = optax.scale_by_adam()


class Learner(NamedTuple):
    """A run: the network, its optimiser's memory, its random numbers."""

    network: Network
    optimiser: Any
    key: Array


def begin(key: Array, settings: Settings) -> Learner:
    for_network, key = jax.random.split(key)
    network = Network(for_network, settings.width)
    return Learner(network, _adam.init(eqx.filter(network, eqx.is_array)), key)


def learn(
    learner: Learner,
    probabilities: Array,
    digits: Array,
    settings: Settings,
    h: Hyper,
    parts: int = 1,
) -> tuple[Learner, Array]:
    """An epoch, and how many examples of each task were in it.

    probabilities (tasks,): of an example's task. digits (tasks,): of its numbers. parts: devices
    that share the work, on the axis PARTS.
    """
    length = int(max(digits))
    sums = jnp.cumsum(probabilities)
    sizes = jnp.asarray(digits)

    def one(carry: Any, key: Array) -> Any:
        network, optimiser = carry
        for_tasks, for_numbers = jax.random.split(key)
        uniforms = uniform(for_tasks, (settings.batch,))
        beyond = (sums[:, None] <= uniforms * sums[-1]).sum(0)
        task = jnp.minimum(beyond, len(sums) - 1)
        own = _own(examples(for_numbers, sizes[task], length), parts)
        gradient = _sum(eqx.filter_grad(loss)(network, *own), parts)  # of `parts` means
        gradient = jax.tree.map(lambda g: g / parts, gradient)
        change, optimiser = _adam.update(gradient, optimiser)
        change = jax.tree.map(lambda c: -h.learning_rate * c, change)
        counts = (task[:, None] == jnp.arange(len(sums))).sum(0)
        return (eqx.apply_updates(network, change), optimiser), counts

    key, now = jax.random.split(learner.key)
    carry = learner.network, learner.optimiser
    carry, counts = lax.scan(one, carry, jax.random.split(now, settings.batches))
    return Learner(*carry, key), counts.sum(0)


def accuracy(
    network: Network, key: Array, digits: Any, each: int, kind: str, parts: int = 1
) -> Array:
    """The share of new sums that are right, of each task; (tasks,)."""
    return right(network, *tests(key, digits, each, kind), parts) / each


def tests(key: Array, digits: Any, each: int, kind: str) -> tuple[Array, Array]:
    """So many new examples of each task; (steps, tasks, each)."""
    sizes = jnp.repeat(jnp.asarray(digits), each)
    found = examples(key, sizes, int(max(digits)), kind)
    given, target = (x.reshape(-1, len(digits), each) for x in found)
    return given, target


def right(network: Network, given: Array, target: Array, parts: int = 1) -> Array:
    """How many sums are right, int (tasks,)."""
    given, target = _own((given, target), parts)
    _, tasks, each = given.shape
    count = tasks * each
    # products of 50 columns take a CPU longer than those of 64
    padded = jnp.pad(given.reshape(-1, count), ((0, 0), (0, -count % 16)))
    digits = network(padded).argmax(1)[:, :count]
    found = (digits == target.reshape(-1, count)).all(0)
    return _sum(found.reshape(tasks, each).sum(1), parts)


def _own(examples: tuple[Array, Array], parts: int) -> Any:
    """This device's share of them."""
    if parts == 1:
        return examples
    size = examples[0].shape[-1] // parts
    first = lax.axis_index(PARTS) * size
    return [lax.dynamic_slice_in_dim(x, first, size, -1) for x in examples]


def _sum(numbers: Any, parts: int) -> Any:
    return numbers if parts == 1 else lax.psum(numbers, PARTS)  # type: ignore[no-untyped-call]
