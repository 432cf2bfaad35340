"""The numbers are those of `jax.random`, to the bit."""

import jax
import numpy as np
import pytest
import scipy.stats

from mastery import random_numbers as draws


@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (32, 16, 16)])
@pytest.mark.parametrize("name", ["bits", "uniform", "normal"])
def test_they_are_jaxs(name, shape):
    key = jax.random.key(3)
    found, expected = getattr(draws, name)(key, shape), getattr(jax.random, name)(key, shape)
    assert found.shape == shape
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_normals_are_normal_and_none_is_given_twice():
    normals = draws.Normals(jax.random.key(3))
    shapes = [(100, 3), (50_000,), (200, 100), (90_000,)]  # within a draw, beyond it, above it
    found = [np.asarray(normals.take(shape)) for shape in shapes]
    assert [x.shape for x in found] == shapes
    taken = np.concatenate([x.ravel() for x in found])
    for i, x in enumerate(found):  # by chance a few are the same in 32 bits
        others = np.concatenate([other.ravel() for other in found[:i] + found[i + 1 :]])
        assert np.isin(x, others).mean() < 0.05
    assert scipy.stats.kstest(taken, "norm").pvalue > 0.01


def test_uniform_numbers_for_weights_are_uniform():
    normals = draws.Normals(jax.random.key(4))
    found = np.asarray(normals.take_uniform((200, 300)))
    assert found.shape == (200, 300)
    assert found.dtype == np.float32
    assert found.min() >= 0
    assert found.max() <= 1
    assert scipy.stats.kstest(found.ravel(), "uniform").pvalue > 0.01
    assert not np.array_equal(found[:, 0], np.asarray(normals.take_uniform((200,))))
