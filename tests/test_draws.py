"""The numbers are those of `jax.random`, to the bit."""

import jax
import numpy as np
import pytest

from mastery import draws


@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (32, 16, 16)])
@pytest.mark.parametrize("name", ["bits", "uniform", "normal"])
def test_they_are_jaxs(name, shape):
    key = jax.random.key(3)
    found, expected = getattr(draws, name)(key, shape), getattr(jax.random, name)(key, shape)
    assert found.shape == shape
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
