"""Both ways to make an LSTM's steps, against PyTorch's and against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from mastery.learners import lstm_kernels
from mastery.learners.lstm import by_steps, lstm

WIDTH = lstm_kernels.WIDTH
USED = [(3, 12, 70, True), (4, 0, 64, False)]  # by the encoder and by the decoder of addition
CASES = [*USED, (5, 12, 64, False), (4, 0, 3, True)]


def case(steps, inputs, n, runs=2, width=WIDTH):
    """Weights of several runs, what they see, what is added, and a gradient of what comes out."""
    rng = np.random.default_rng(0)
    shapes = (width + inputs, 4 * width), (steps, inputs, n), (4 * width, n), (width, steps, n)
    weight, seen, always, given = (rng.normal(size=(runs, *s)).astype(np.float32) for s in shapes)
    return 0.1 * weight, seen, always, given


def gradients(way, weight, seen, always, given, last):
    """The hidden states, and the gradients of the weights and of what is always added."""

    def total(weight, always):
        hidden = jax.vmap(lambda w, s, a: way(w, s, a, last))(weight, seen, always)
        return (hidden * (given[:, :, -1:] if last else given)).sum(), hidden

    both = jax.jit(jax.value_and_grad(total, (0, 1), has_aux=True))
    (_, hidden), found = both(weight, always)
    return [hidden, *found]


@pytest.mark.parametrize(("steps", "inputs", "n", "last"), CASES)
def test_by_steps_is_as_torch(steps, inputs, n, last):
    weight, seen, always, given = case(steps, inputs, n, width=16)
    found = gradients(by_steps, weight, seen, always, given, last)
    for run in range(len(weight)):
        w, a = (torch.tensor(x[run], requires_grad=True) for x in (weight, always))
        h = c = torch.zeros(16, n)
        states = []
        for x in torch.tensor(seen[run]):
            i, f, g, o = (w.T @ torch.cat([h, x]) + a).split(16)
            c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        hidden = torch.stack(states[-1:] if last else states, 1)
        (hidden * torch.tensor(given[run][:, -1:] if last else given[run])).sum().backward()
        for mine, theirs in zip(found, (hidden.detach(), w.grad, a.grad), strict=True):
            np.testing.assert_allclose(mine[run], theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("steps", "inputs", "n", "last"), CASES)
def test_kernels_do_what_the_steps_do(steps, inputs, n, last):
    numbers = case(steps, inputs, n)

    def kernels(w, s, a, last):
        return lstm_kernels.lstm(w, s, a, last, True)

    for mine, other in zip(
        gradients(kernels, *numbers, last), gradients(by_steps, *numbers, last), strict=True
    ):
        assert mine.shape == other.shape
        assert jnp.linalg.norm(mine - other) < 5e-3 * jnp.linalg.norm(other)  # 16 bits


def test_nothing_may_be_added():
    weight, seen, always, given = case(3, 12, 64, runs=1)
    for way in (by_steps, lambda w, s, a, last: lstm_kernels.lstm(w, s, a, last, True)):

        def total(weight, always, way=way):
            return (way(weight, seen[0], always, False) * given[0]).sum()

        both = jax.jit(jax.value_and_grad(total))
        with_zeros, d = both(weight[0], jnp.zeros_like(always[0]))
        without, d_without = both(weight[0], None)
        np.testing.assert_allclose(without, with_zeros, rtol=1e-5)
        np.testing.assert_allclose(d_without, d, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("steps", "inputs", "n", "last"), CASES)
def test_kernels_can_be_lowered_for_a_gpu(steps, inputs, n, last):
    """All but the last step of compiling them, which needs one."""
    weight, seen, always, given = case(steps, inputs, n)

    def found(weight, always):
        way = lstm_kernels.lstm
        return gradients(
            lambda w, s, a, last: way(w, s, a, last), weight, seen, always, given, last
        )

    lowered = jax.jit(found).trace(weight, always).lower(lowering_platforms=("cuda",))
    assert lowered.as_text().count("__gpu$xla.gpu.triton") == 2


def test_there_are_no_kernels_for_a_cpu():
    weight, seen, always, _ = case(3, 12, 4, runs=1)
    assert not lstm_kernels.fit(weight[0], seen[0])
    got = lstm(weight[0], seen[0], always[0])
    np.testing.assert_array_equal(got, by_steps(weight[0], seen[0], always[0], False))
