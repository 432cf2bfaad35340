"""Encoders against torch and NumPy with the same weights."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest
import torch

from mastery import MasteryError
from mastery.learners.encoders import Cells, Linear, Pixels, Space, Vectors, make_encoder, one_hot
from mastery.minigrid.cells import (
    BALL,
    CLOSED,
    GREEN,
    GREY,
    LOCKED,
    OPEN,
    PURPLE,
    RED,
    UNLOCKED,
    WALL,
)
from mastery.minigrid.editions import find_edition
from mastery.random_numbers import Normals


def with_biases(module, rng):
    """With random numbers for the biases, which are 0 at first."""
    return jax.tree.map(lambda x: rng.normal(size=x.shape) if x.ndim == 1 else x, module)


def tensor(x):
    return torch.tensor(np.asarray(x, np.float32))


def test_the_weights_of_each_output_have_the_length_of_the_gain():
    layer = Linear(Normals(jax.random.key(0)), 7, 3, gain=0.5)
    assert layer.weight.shape == (7, 3)
    assert np.allclose(np.linalg.norm(layer.weight, axis=0), 0.5)
    assert np.array_equal(layer.bias, np.zeros(3))


def test_the_one_hot_encoding_by_hand():
    """Eight types, six colours, three states of a door."""
    for cell, ones in (
        (CLOSED << 3 | RED, [4, 8, 15]),  # a door, red, closed
        (OPEN << 3 | GREEN, [4, 9, 14]),
        (LOCKED << 3 | GREY, [4, 13, 16]),
        (WALL << 3 | GREY, [2, 13]),
        (BALL << 3 | PURPLE, [6, 11]),  # only a door has a state
        (40, [1]),  # empty: without a colour
        (0, [0]),  # unseen
    ):
        assert np.flatnonzero(one_hot(np.array(cell, np.uint8))).tolist() == ones
    view = np.array([[40, 0], [13, 40]], np.uint8)
    assert one_hot(view).shape == (17, 2, 2)
    assert np.array_equal(one_hot(view).argmax(0), [[1, 0], [2, 1]])


def test_the_one_hot_encoding_of_2018_by_hand():
    old = find_edition("2018")
    for cell, ones in (
        (CLOSED << 3 | RED, [3, 8, 14]),  # a door, red, state 0
        (OPEN << 3 | GREEN, [3, 9, 15]),
        (LOCKED << 3 | GREY, [4, 13, 14]),  # a locked door, grey, state 0
        (UNLOCKED << 3 | GREY, [4, 13, 15]),
        (WALL << 3 | GREY, [1, 13]),
        (BALL << 3 | PURPLE, [6, 11]),
        (40, [0]),  # empty looks as unseen
        (0, [0]),
    ):
        assert np.flatnonzero(one_hot(np.array(cell, np.uint8), old)).tolist() == ones


def same(x, size, stride):
    """Zeros around images (n, channels, height, width), more of them after than before."""
    padding = []
    for length in (x.shape[3], x.shape[2]):  # torch.nn.functional.pad begins with the last
        steps = -(-length // stride)
        total = max((steps - 1) * stride + size - length, 0)
        padding += [total // 2, total - total // 2]
    return torch.nn.functional.pad(x, padding)


@pytest.mark.parametrize(
    ("shape", "sizes", "strides"),
    [
        ((64, 64, 3), (8, 4, 3), (4, 2, 1)),
        ((84, 84, 4), (8, 4, 3), (4, 2, 1)),
        ((36, 45, 1), (8, 4, 3), (4, 2, 1)),
        ((35, 64, 3), (3, 3, 3), (2, 2, 2)),
        ((10, 10, 4), (3, 3, 3), (2, 2, 2)),
        ((7, 5, 2), (3, 3, 3), (2, 2, 2)),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_pixels_go_through_the_convolutions_of_torch(shape, sizes, strides, dtype):
    rng = np.random.default_rng(0)
    encoder = with_biases(Pixels(Normals(jax.random.key(0)), 24, shape), rng)
    images = rng.integers(0, 256, (3, *shape)).astype(dtype)
    if dtype == np.float32:
        images /= 255
    y = tensor(images).permute(0, 3, 1, 2) / (255 if dtype == np.uint8 else 1)
    for kernel, size, stride in zip(encoder.kernels, sizes, strides, strict=True):
        assert kernel.shape[:2] == (size, size)
        weights = tensor(kernel).permute(3, 2, 0, 1)
        y = torch.relu(torch.nn.functional.conv2d(same(y, size, stride), weights, stride=stride))
    y = y.permute(0, 2, 3, 1).reshape(3, -1)
    y = torch.relu(y @ tensor(encoder.last.weight) + tensor(encoder.last.bias))
    found = eqx.filter_jit(encoder)(images)
    assert found.shape == (24, 3)
    assert np.any(found)
    assert np.allclose(found, y.T, atol=1e-4)


def test_images_of_bytes_are_those_of_numbers_up_to_one():
    encoder = Pixels(Normals(jax.random.key(0)), 16, (10, 10, 3))
    images = np.random.default_rng(0).integers(0, 256, (2, 10, 10, 3)).astype(np.uint8)
    assert np.allclose(encoder(images), encoder(images.astype(np.float32) / 255), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_vectors_go_through_two_layers(dtype):
    rng = np.random.default_rng(0)
    encoder = with_biases(Vectors(Normals(jax.random.key(0)), 8, 5), rng)
    x = (3 * rng.normal(size=(4, 5))).astype(dtype)
    y = x.astype(np.float64)
    for layer in encoder.layers:
        y = np.tanh(y @ np.asarray(layer.weight) + np.asarray(layer.bias))
    found = encoder(x)
    assert found.shape == (8, 4)
    assert found.dtype == np.float32
    assert np.allclose(found, y.T, atol=1e-5)


def test_there_is_an_encoder_for_each_kind_of_observation():
    key = jax.random.key(0)
    rng = np.random.default_rng(0)
    for space, kind, some in (
        (Space("cells", (7, 7), 6), Cells, rng.integers(0, 100, (2, 7, 7)).astype(np.uint8)),
        (Space("pixels", (40, 40, 3), 4), Pixels, rng.random((2, 40, 40, 3))),
        (Space("vector", (5,), 2), Vectors, rng.random((2, 5))),
    ):
        encoder = make_encoder(Normals(key), space, 12, "onehot")
        assert isinstance(encoder, kind)
        assert encoder(some).shape == (12, 2)
    message = "there is no encoder for 'text': give cells, pixels or vector"
    with pytest.raises(MasteryError, match=message):
        make_encoder(Normals(key), Space("text", (3,), 2), 12, "onehot")
