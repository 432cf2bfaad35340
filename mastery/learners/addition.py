"""Learn to add two numbers with an LSTM encoder and decoder: one run, from top to bottom.

    AdditionSettings  how the network is built and trained
    examples          new sums of given lengths, with some pairs reserved for validation
    Network           from the string of two numbers to the digits of their sum
    loss              cross-entropy of the digits
    learn             an epoch of minibatches, drawn with the teacher's probabilities
    accuracy          the share of new sums that are right, per task

As in Zaremba and Sutskever 2014, Matiisen et al. 2017 and the paper: both numbers are padded with
zeros to the same length and written from left to right with a plus between them, in an alphabet of
11 symbols. The decoder gets the encoder's last output at every step, and writes the sum with one
digit more. A sum is right if all its digits are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from mastery.learners.adam import adam, new_adam
from mastery.learners.encoders import Linear
from mastery.learners.lstm import lstm
from mastery.learners.settings import LearnerKind, check_numbers, setting
from mastery.programs.distribution import cumulative, draw
from mastery.random_numbers import Normals, uniform

Array = Any  # a JAX array
SYMBOLS = 11  # ten digits and a plus
PLUS = 10
DEVICE_AXIS = "parts"  # name of the axis of devices that share a run


@dataclass(frozen=True)
class AdditionSettings:
    """How a network is built and trained. `float` settings may differ from run to run."""

    batch: int = setting(128, "examples per minibatch")
    batches: int = setting(10, "minibatches per epoch, which is one time-step of the teacher")
    tests: int = setting(100, "new examples per task and epoch; the teacher sees their accuracy")
    validation: int = setting(100, "held-out examples per task and epoch, unseen by the teacher")
    width: int = setting(128, "units in the encoder and in the decoder")
    learning_rate: float = setting(1e-3, "of Adam")

    unit: ClassVar[str] = "examples"

    def __post_init__(self) -> None:
        check_numbers(self, positive=("learning_rate",))

    @property
    def per_update(self) -> int:
        """Examples per epoch."""
        return self.batch * self.batches

    def parts(self, most: int) -> int:
        """Number of devices that can share one run, at most `most`, with at least 32 examples of a
        minibatch on each."""
        split = (self.batch, self.tests, self.validation)
        most = min(most, self.batch // 32)
        return max([p for p in range(1, most + 1) if all(n % p == 0 for n in split)], default=1)


class AdditionHyper(NamedTuple):
    """The settings that may differ from run to run, as arrays."""

    learning_rate: Array

    @classmethod
    def of(cls, settings: AdditionSettings) -> AdditionHyper:
        return cls(*(jnp.float32(getattr(settings, name)) for name in cls._fields))


# the paper's settings work well
ADDITION = LearnerKind(
    AdditionSettings,
    AdditionHyper,
    presets={"default": AdditionSettings(), "paper": AdditionSettings()},
)

# There are two kinds of pairs (a, b). One fifth is for validation: those where s(a) + 2 s(b) is a
# multiple of 5, with s the sum of the digits. The others are for the teacher's tests. The last
# digit of b decides the kind, and each residue has two such digits, so all pairs of a kind are
# equally likely. Training uses any pair.
ANY, FOR_TEACHER, FOR_VALIDATION = "any", "teacher", "validation"


def examples(key: Array, digits: Array, length: int, kind: str = ANY) -> tuple[Array, Array]:
    """Draw n sums of two numbers, uniformly among numbers with the given number of digits.

    Args:
        key: A JAX random key.
        digits: int (n,), the digits of both numbers, from 1 to `length`.
        length: The length that numbers are padded to.
        kind: The pairs to draw from: ANY, FOR_TEACHER or FOR_VALIDATION.

    Returns:
        Inputs, int8 (2 · length + 1, n): symbols from left to right. Targets, int8 (length + 1, n):
        the digits of the sum.
    """
    n = len(digits)
    place = jnp.arange(length)[:, None]  # 0 is the last digit
    uniforms = uniform(key, (2, length, n))
    leading = (place == digits - 1) & (digits > 1)  # only a one-digit number may begin with 0
    numbers = jnp.where(leading, 1 + jnp.floor(9 * uniforms), jnp.floor(10 * uniforms))
    a, b = jnp.where(place < digits, numbers.astype(jnp.int32), 0)
    if kind != ANY:
        u = uniforms[1, 0]
        # of the last digit of b that makes s(a) + 2 s(b) a multiple of 5
        residue = (a.sum(0) + 2 * b[1:].sum(0)) * 2 % 5
        if kind == FOR_VALIDATION:
            chosen = residue + 5 * jnp.floor(2 * u).astype(jnp.int32)
        else:
            other = jnp.floor(8 * u).astype(jnp.int32)  # one of the other eight digits
            chosen = (residue + 1 + other % 4) % 5 + 5 * (other // 4)
        # the last digit may be anything: a one-digit number may be 0
        b = b.at[0].set(chosen)

    def carry(over: Array, column: Array) -> tuple[Array, Array]:
        total = column + over
        return total // 10, total % 10

    over, total = lax.scan(carry, jnp.zeros(n, jnp.int32), a + b, unroll=True)
    plus = jnp.full((1, n), PLUS)
    given = jnp.concatenate([a[::-1], plus, b[::-1]]).astype(jnp.int8)
    return given, jnp.concatenate([over[None], total[::-1]]).astype(jnp.int8)


class Network(eqx.Module):
    """LSTM encoder and decoder. All arrays are columns: (features, n)."""

    encoder: Array  # (width + 12, gates): weights of the hidden state and the symbol, and bias
    code: Linear  # the decoder's input at every step
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
        """Digit logits (length + 1, 10, n), from strings of symbols (2 · length + 1, n)."""
        steps, n = given.shape
        symbols = given[:, None] == jnp.arange(SYMBOLS, dtype=given.dtype)[:, None]
        seen = jnp.concatenate([symbols, jnp.ones((steps, 1, n), bool)], axis=1)
        code = lstm(self.encoder, seen.astype(jnp.float32), last=True)[:, 0]
        long = (steps + 1) // 2
        written = lstm(self.decoder, jnp.zeros((long, 0, n)), self.code(code))
        digits = self.out(written.reshape(len(code), -1))
        return jnp.swapaxes(digits.reshape(10, long, n), 0, 1)


def loss(network: Network, given: Array, target: Array) -> Array:
    """Mean cross-entropy of the digits."""
    log_p = jax.nn.log_softmax(network(given), axis=1)
    digit = target[:, None] == jnp.arange(10, dtype=target.dtype)[:, None]
    return -jnp.where(digit, log_p, 0.0).sum(1).mean()


class AdditionLearner(NamedTuple):
    """A run: the network, the optimiser's state and the random key."""

    network: Network
    optimiser: Any
    key: Array


def begin(key: Array, settings: AdditionSettings) -> AdditionLearner:
    for_network, key = jax.random.split(key)
    network = Network(for_network, settings.width)
    return AdditionLearner(network, new_adam(network), key)


def learn(
    learner: AdditionLearner,
    probabilities: Array,
    digits: Array,
    settings: AdditionSettings,
    h: AdditionHyper,
    parts: int = 1,
) -> tuple[AdditionLearner, Array]:
    """Train for one epoch.

    Args:
        learner: The run.
        probabilities: (tasks,), the probability of each task.
        digits: (tasks,), the number of digits in each task.
        settings: How to train; static under `jit`.
        h: The settings that may differ from run to run.
        parts: Number of devices that share the work, along the axis DEVICE_AXIS.

    Returns:
        The run after the epoch, and the number of examples of each task (tasks,).
    """
    length = int(max(digits))
    sums = cumulative(jnp.asarray(probabilities))
    sizes = jnp.asarray(digits)

    def one(carry: Any, key: Array) -> Any:
        network, optimiser = carry
        for_tasks, for_numbers = jax.random.split(key)
        task = draw(sums, uniform(for_tasks, (settings.batch,)))
        own = _own(examples(for_numbers, sizes[task], length), parts)
        gradient = _sum(eqx.filter_grad(loss)(network, *own), parts)  # the sum of `parts` means
        gradient = jax.tree.map(lambda g: g / parts, gradient)
        counts = (task[:, None] == jnp.arange(len(sums))).sum(0)
        return adam(network, gradient, optimiser, h.learning_rate), counts

    key, now = jax.random.split(learner.key)
    carry = learner.network, learner.optimiser
    carry, counts = lax.scan(one, carry, jax.random.split(now, settings.batches))
    return AdditionLearner(*carry, key), counts.sum(0)


def accuracy(
    network: Network, key: Array, digits: Any, each: int, kind: str, parts: int = 1
) -> Array:
    """The share of new sums that are right, per task; (tasks,)."""
    return right(network, *tests(key, digits, each, kind), parts) / each


def tests(key: Array, digits: Any, each: int, kind: str) -> tuple[Array, Array]:
    """Draw `each` new examples per task: inputs and targets, (steps, tasks, each)."""
    sizes = jnp.repeat(jnp.asarray(digits), each)
    found = examples(key, sizes, int(max(digits)), kind)
    given, target = (x.reshape(-1, len(digits), each) for x in found)
    return given, target


def right(network: Network, given: Array, target: Array, parts: int = 1) -> Array:
    """Number of sums that are right, int (tasks,)."""
    given, target = _own((given, target), parts)
    _, tasks, each = given.shape
    count = tasks * each
    # on a CPU, matrix products with 50 columns are slower than with 64
    padded = jnp.pad(given.reshape(-1, count), ((0, 0), (0, -count % 16)))
    digits = network(padded).argmax(1)[:, :count]
    found = (digits == target.reshape(-1, count)).all(0)
    return _sum(found.reshape(tasks, each).sum(1), parts)


def _own(examples: tuple[Array, Array], parts: int) -> Any:
    """This device's share of the examples."""
    if parts == 1:
        return examples
    size = examples[0].shape[-1] // parts
    first = lax.axis_index(DEVICE_AXIS) * size
    return [lax.dynamic_slice_in_dim(x, first, size, -1) for x in examples]


def _sum(numbers: Any, parts: int) -> Any:
    return numbers if parts == 1 else lax.psum(numbers, DEVICE_AXIS)  # type: ignore[no-untyped-call]
