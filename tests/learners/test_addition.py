"""The addition learner: its examples against whole numbers of Python, its network against torch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from mastery import MasteryError
from mastery.learners import addition
from mastery.learners.addition import (
    ANY,
    FOR_TEACHER,
    FOR_VALIDATION,
    PLUS,
    AdditionHyper,
    AdditionSettings,
    Network,
)

make = jax.jit(addition.examples, static_argnames=("length", "kind"))


def numbers(digits, length, kind=ANY, seed=0):
    """The two numbers of each example and the sum, as whole numbers of Python."""
    given, target = map(np.asarray, make(jax.random.key(seed), jnp.asarray(digits), length, kind))
    assert given.shape == (2 * length + 1, len(digits))
    assert target.shape == (length + 1, len(digits))
    assert (given[length] == PLUS).all()
    assert (np.delete(given, length, 0) < PLUS).all()

    def read(columns):
        return [int("".join(map(str, column))) for column in columns.T]

    return read(given[:length]), read(given[length + 1 :]), read(target)


def expected_numbers(digits):
    """All numbers of so many digits: 0 is one of one digit."""
    return range(0 if digits == 1 else 10 ** (digits - 1), 10**digits)


@pytest.mark.parametrize("kind", [ANY, FOR_TEACHER, FOR_VALIDATION])
def test_every_sum_is_right_and_every_number_has_its_length(kind):
    digits = np.tile(np.arange(1, 10), 3000)
    a, b, total = numbers(digits, 9, kind)
    for d, x, y, z in zip(digits, a, b, total, strict=True):
        assert x + y == z
        assert x in expected_numbers(d)
        assert y in expected_numbers(d)


def chi_squared(counts, cells):
    """How far counts of cells that should be equal are from that, in standard deviations."""
    expected = sum(counts.values()) / cells
    missing = (cells - len(counts)) * expected
    value = sum((n - expected) ** 2 / expected for n in counts.values()) + missing
    return (value - (cells - 1)) / (2 * (cells - 1)) ** 0.5


@pytest.mark.parametrize("kind", [ANY, FOR_TEACHER, FOR_VALIDATION])
def test_operands_are_uniform(kind):
    """χ² over all pairs of one digit, over all numbers of three, over the digits of nine."""
    n = 60_000
    share = {ANY: 1.0, FOR_TEACHER: 0.8, FOR_VALIDATION: 0.2}[kind]
    a, b, _ = numbers(np.full(n, 1), 3, kind)
    assert abs(chi_squared(Counter(zip(a, b, strict=True)), round(100 * share))) < 4
    a, b, _ = numbers(np.full(n, 3), 3, kind)
    for operand in (a, b):
        assert abs(chi_squared(Counter(operand), 900)) < 4
    a, b, _ = numbers(np.full(n, 9), 9, kind)
    for operand in (a, b):
        text = np.array([list(str(x)) for x in operand], dtype=int)
        assert abs(chi_squared(Counter(text[:, 0].tolist()), 9)) < 4
        for place in range(1, 9):
            assert abs(chi_squared(Counter(text[:, place].tolist()), 10)) < 4


def test_a_chi_squared_of_what_is_not_uniform_is_large():
    a, _, _ = numbers(np.full(200_000, 3), 3)
    assert chi_squared(Counter(x // 2 * 2 for x in a), 900) > 100
    assert chi_squared(Counter(a), 1000) > 100


def test_what_the_teacher_sees_is_never_in_the_validation():
    """All pairs of one digit, and of two: each is of one kind, and a fifth is for validation."""
    for digits, every, n in ((1, 100, 5000), (2, 8100, 100_000)):
        pairs = {
            kind: set(zip(*numbers(np.full(n, digits), 9, kind, seed=3)[:2], strict=True))
            for kind in (FOR_TEACHER, FOR_VALIDATION)
        }
        assert not pairs[FOR_TEACHER] & pairs[FOR_VALIDATION]
        assert len(pairs[FOR_TEACHER] | pairs[FOR_VALIDATION]) == every
        assert len(pairs[FOR_VALIDATION]) == every / 5


def tensor(x):
    return torch.tensor(np.asarray(x))


def torch_network(network, given):
    """Logits (n, length + 1, 10) by torch's own LSTM cells, and the cells."""
    width = network.out.weight.shape[0]
    remembered, symbol, bias = np.split(np.asarray(network.encoder), [width, width + 11])
    cells = []
    for seen, kept, added in (
        (symbol, remembered, bias[0]),
        (network.code.weight, network.decoder, network.code.bias),
    ):
        cell = torch.nn.LSTMCell(len(seen), width)
        with torch.no_grad():
            cell.weight_ih.copy_(tensor(seen).T)
            cell.weight_hh.copy_(tensor(kept).T)
            cell.bias_ih.copy_(tensor(added))
            cell.bias_ih[width : 2 * width] += 1
            cell.bias_hh.zero_()
        cells.append(cell)
    encoder, decoder = cells
    out = torch.nn.Linear(width, 10)
    with torch.no_grad():
        out.weight.copy_(tensor(network.out.weight).T)
        out.bias.copy_(tensor(network.out.bias))
    symbols = torch.nn.functional.one_hot(tensor(given).long(), 11).float()
    state = None
    for x in symbols:
        state = encoder(x, state)
    code, state, logits = state[0], None, []
    for _ in range((len(given) + 1) // 2):
        state = decoder(code, state)
        logits.append(out(state[0]))
    return torch.stack(logits, 1), encoder, decoder, out


def test_the_network_its_loss_and_its_gradient_are_torchs():
    rng = np.random.default_rng(0)
    network = Network(jax.random.key(0), 16)
    network = jax.tree.map(lambda x: x + 0.3 * rng.normal(size=x.shape).astype(np.float32), network)
    given, target = make(jax.random.key(1), np.repeat([1, 3, 4], 5), 4)
    logits, encoder, decoder, out = torch_network(network, given)
    ours = jax.jit(lambda network: network(given))(network)
    assert np.allclose(np.moveaxis(ours, -1, 0), logits.detach(), atol=1e-5)
    expected = torch.nn.functional.cross_entropy(
        logits.reshape(-1, 10), tensor(target).T.reshape(-1).long()
    )
    expected.backward()
    found, gradient = jax.jit(jax.value_and_grad(addition.loss))(network, given, target)
    assert np.isclose(found, expected.item(), atol=1e-5)
    remembered, symbol, bias = np.split(np.asarray(gradient.encoder), [16, 16 + 11])
    for mine, theirs in (
        (symbol.T, encoder.weight_ih.grad),
        (remembered.T, encoder.weight_hh.grad),
        (bias[0], encoder.bias_ih.grad),
        (gradient.code.weight.T, decoder.weight_ih.grad),
        (gradient.code.bias, decoder.bias_ih.grad),
        (gradient.decoder.T, decoder.weight_hh.grad),
        (gradient.out.weight.T, out.weight.grad),
        (gradient.out.bias, out.bias.grad),
    ):
        assert np.allclose(mine, theirs, atol=1e-5)


def test_an_epoch_is_composed_by_the_probabilities():
    settings = replace(AdditionSettings(), width=8, batch=500, batches=4)
    digits, p = np.array([1, 2, 4]), np.array([0.5, 0.0, 0.5], np.float32)
    learner = addition.begin(jax.random.key(0), settings)
    learn = jax.jit(
        partial(addition.learn, digits=digits, settings=settings, h=AdditionHyper.of(settings))
    )
    after, counts = learn(learner, p)
    assert int(counts.sum()) == settings.per_update == 2000
    assert counts[1] == 0
    assert abs(int(counts[0]) - 1000) < 100
    # Adam moves each weight that has a gradient by the learning rate at first
    change = np.abs(np.asarray(after.network.out.weight - learner.network.out.weight))
    assert 0 < change.max() < 4.1 * settings.learning_rate


def test_accuracy_counts_sums_that_are_right_in_every_digit():
    """A network that writes zeros is right where the sum is 0: once in a hundred pairs."""
    network = jax.tree.map(jnp.zeros_like, Network(jax.random.key(0), 4))
    found = addition.accuracy(network, jax.random.key(0), np.array([1, 2]), 20_000, FOR_VALIDATION)
    assert abs(float(found[0]) - 1 / 20) < 0.01  # 0 + 0 is one of the twenty pairs for validation
    assert found[1] == 0


@pytest.mark.parametrize(
    ("settings", "text"),
    [({"batch": 0}, "batch is 0"), ({"learning_rate": 0.0}, "it must be more than 0")],
)
def test_settings_that_make_no_sense_are_refused(settings, text):
    with pytest.raises(MasteryError, match=text):
        AdditionSettings(**settings)
