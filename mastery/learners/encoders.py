"""Encode an observation as a column of numbers, with one encoder per kind of observation.

    Cells     MiniGrid's view, 7 × 7 cells of one byte
    Pixels    images
    Vectors   flat vectors

Networks here work on columns: an array is (features, n), and a layer is `weight.T @ x + bias`. With
the n frames of a minibatch side by side, every matrix is wide and elementwise operations run along
contiguous memory. On a CPU this is much faster than (n, features).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from mastery.errors import MasteryError
from mastery.minigrid.cells import CLOSED, EMPTY, LOCKED, OPEN, UNLOCKED, UNSEEN
from mastery.minigrid.editions import TODAY, Edition, find_edition
from mastery.random_numbers import Normals

Array = Any  # a JAX array


@lru_cache
def _bits(edition: Edition) -> Any:
    """The 17 bits of `one_hot` for each cell, packed into a number; uint32 (256,)."""
    type_, colour, state = edition.decoded.T.astype(np.uint32)
    kind = np.arange(256) >> 3
    is_thing = ~np.isin(kind, (UNSEEN, EMPTY))
    is_door = np.isin(kind, (LOCKED, CLOSED, OPEN, UNLOCKED))
    bits = 1 << type_ | np.where(is_thing, 256 << colour, 0)
    return (bits | np.where(is_door, 2**14 << state, 0)).astype(np.uint32)


class Space(NamedTuple):
    """An agent's observations and actions."""

    kind: str  # cells, pixels or vector
    shape: tuple[int, ...]  # shape of an observation
    actions: int


class Linear(eqx.Module):
    weight: Array  # (inputs, outputs): in this layout its gradient is faster on a CPU
    bias: Array  # (outputs,)

    def __init__(
        self,
        normals: Normals,
        inputs: int,
        outputs: int,
        gain: float = 1.0,
        uniform: bool = False,
    ) -> None:
        """Draw the initial weights.

        Args:
            normals: The source of random numbers.
            inputs: Number of inputs.
            outputs: Number of outputs.
            gain: Norm of the weight vector of each output, as in the authors' code.
            uniform: Draw weights and biases uniformly within ± 1 / √inputs instead, PyTorch's
                default.
        """
        if uniform:
            bound = inputs**-0.5
            self.weight = bound * (2 * normals.take_uniform((inputs, outputs)) - 1)
            self.bias = bound * (2 * normals.take_uniform((outputs,)) - 1)
        else:
            weight = normals.take((inputs, outputs))
            self.weight = gain * weight / jnp.linalg.norm(weight, axis=0)
            self.bias = jnp.zeros(outputs)

    def __call__(self, x: Array) -> Array:
        return self.weight.T @ x + self.bias[:, None]


class Initial(NamedTuple):
    """How to initialise an agent's layers. Each function takes (normals, inputs, outputs)."""

    convolution: Callable[[Normals, int, int], Linear]
    gates: Callable[[Normals, int, int], Linear]  # of the LSTM
    policy: Callable[[Normals, int, int], Linear]  # its last layer
    forget: float  # added to the LSTM's forget gate, so that it remembers at first


_uniform = partial(Linear, uniform=True)
INITIAL = {
    # the policy is nearly uniform at first
    "scaled": Initial(
        partial(Linear, gain=2**0.5),
        partial(Linear, gain=0.5**0.5),
        partial(Linear, gain=0.01),
        1.0,
    ),
    # PyTorch's defaults, and the linear layers of the authors' code
    "pytorch": Initial(_uniform, _uniform, Linear, 0.0),
}


class Cells(eqx.Module):
    """Encode MiniGrid's view by three 2 × 2 convolutions, as in the authors' code."""

    layers: tuple[Linear, Linear, Linear]
    encoding: str = eqx.field(static=True)
    edition: Edition = eqx.field(static=True)

    def __init__(
        self, normals: Normals, width: int, encoding: str, edition: Edition, initial: Initial
    ) -> None:
        channels = 17 if encoding == "onehot" else 3
        sizes = ((channels, 16), (16, 32), (32, width))
        first, second, third = (
            initial.convolution(normals, 4 * inputs, outputs) for inputs, outputs in sizes
        )
        self.layers, self.encoding, self.edition = (first, second, third), encoding, edition

    def __call__(self, cells: Array) -> Array:
        """Encode uint8 (n, 7, 7) as (width, n)."""
        cells = jnp.moveaxis(cells, 0, -1)
        seen = one_hot if self.encoding == "onehot" else _decode
        x = seen(cells, self.edition)
        first, second, third = self.layers
        x = _convolve(first, x.astype(jnp.float32))  # (16, 6, 6, n)
        x = x.reshape(16, 3, 2, 3, 2, -1)
        x = jax.nn.relu(x.max((2, 4)))
        x = jax.nn.relu(_convolve(second, x))
        return jax.nn.relu(_convolve(third, x))[:, 0, 0]


def features_of(encoding: str, edition: Edition) -> NDArray[Any]:
    """The channels of each of the 256 kinds of cells under an encoding, (256, channels)."""
    if encoding == "onehot":
        return _bits(edition)[:, None] >> np.arange(17, dtype=np.uint32) & 1  # type: ignore[no-any-return]
    return edition.decoded


def _convolve(layer: Linear, x: Array) -> Array:
    """A 2 × 2 convolution of (channels, height, width, n), as one matrix product.

    XLA's own convolution is slow when the weights differ from run to run.
    """
    height, width = x.shape[1] - 1, x.shape[2] - 1
    corners = [x[:, i : height + i, j : width + j] for i in range(2) for j in range(2)]
    patches = jnp.concatenate(corners).reshape(4 * x.shape[0], -1)
    return layer(patches).reshape(-1, height, width, x.shape[-1])


def one_hot(cells: Array, edition: Edition = TODAY) -> Array:
    """Encode each cell as 17 bits: eight types, six colours, three door states; bool (17, …)."""
    which = np.arange(17, dtype=np.uint32).reshape(-1, *[1] * cells.ndim)
    found = jnp.asarray(_bits(edition)).at[cells].get(mode="promise_in_bounds")
    return (found >> which) & 1 != 0


def _decode(cells: Array, edition: Edition) -> Array:
    """Type, colour and state of each cell in MiniGrid's numbers, (3, …)."""
    numbers = (jnp.asarray(edition.decoded[:, i]) for i in range(3))
    return jnp.stack([n.at[cells].get(mode="promise_in_bounds") for n in numbers])


class Pixels(eqx.Module):
    """Encode images by three convolutions: those of Mnih et al. 2015 for large images, and 3 × 3
    with stride 2 for small ones (less than 36 pixels a side)."""

    kernels: tuple[Array, Array, Array]
    last: Linear
    strides: tuple[int, int, int] = eqx.field(static=True)

    def __init__(self, normals: Normals, width: int, shape: tuple[int, ...]) -> None:
        large = min(shape[:2]) >= 36
        sizes, channels = ((8, 4, 3), (32, 64, 64)) if large else ((3, 3, 3), (16, 32, 64))
        self.strides = (4, 2, 1) if large else (2, 2, 2)
        kernels, inputs = [], shape[2]
        for size, outputs in zip(sizes, channels, strict=True):
            scale = (2 / (size * size * inputs)) ** 0.5
            kernels.append(scale * normals.take((size, size, inputs, outputs)))
            inputs = outputs
        self.kernels = (kernels[0], kernels[1], kernels[2])
        features = jax.eval_shape(lambda: self._features(jnp.zeros((1, *shape))))
        self.last = Linear(normals, features.shape[1], width, gain=2**0.5)

    def _features(self, x: Array) -> Array:
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            x = jax.nn.relu(_strided(x, kernel, stride))
        return x.reshape(x.shape[0], -1)

    def __call__(self, image: Array) -> Array:
        """Encode (n, height, width, channels), bytes or floats, as (width, n)."""
        scale = 255.0 if image.dtype == jnp.uint8 else 1.0
        return jax.nn.relu(self.last(self._features(image.astype(jnp.float32) / scale).T))


def _strided(x: Array, kernel: Array, stride: int) -> Array:
    """A convolution of (n, height, width, channels), padded so that stride 1 keeps the size.

    As a matrix product, too: several times faster on a CPU, gradients included.
    """
    size = kernel.shape[0]
    height, width = (-(-n // stride) for n in x.shape[1:3])
    missing = [
        max((steps - 1) * stride + size - n, 0)
        for steps, n in zip((height, width), x.shape[1:3], strict=True)
    ]
    x = jnp.pad(x, [(0, 0), *((m // 2, m - m // 2) for m in missing), (0, 0)])
    patches = [
        x[:, i : i + (height - 1) * stride + 1 : stride, j : j + (width - 1) * stride + 1 : stride]
        for i in range(size)
        for j in range(size)
    ]
    return jnp.concatenate(patches, -1) @ kernel.reshape(-1, kernel.shape[-1])


class Vectors(eqx.Module):
    """Encode flat vectors by two layers."""

    layers: tuple[Linear, Linear]

    def __init__(self, normals: Normals, width: int, inputs: int) -> None:
        self.layers = Linear(normals, inputs, width), Linear(normals, width, width)

    def __call__(self, x: Array) -> Array:
        """Encode (n, inputs) as (width, n)."""
        first, second = self.layers
        return jnp.tanh(second(jnp.tanh(first(x.T.astype(jnp.float32)))))


def make_encoder(
    normals: Normals,
    space: Space,
    width: int,
    encoding: str,
    edition: str = TODAY.name,
    initial: str = "scaled",
) -> Cells | Pixels | Vectors:
    """Make the encoder for a kind of observation.

    Args:
        normals: The source of random numbers.
        space: The agent's observations and actions.
        width: Number of features.
        encoding: For MiniGrid's cells, "onehot" or "raw" (three numbers per cell).
        edition: For MiniGrid's cells, the name of an edition.
        initial: For MiniGrid's cells, a key of INITIAL.

    Returns:
        The encoder, a function from n observations to (width, n).

    Raises:
        MasteryError: If there is no encoder for `space.kind`.
    """
    if space.kind == "cells":
        return Cells(normals, width, encoding, find_edition(edition), INITIAL[initial])
    if space.kind == "pixels":
        return Pixels(normals, width, space.shape)
    if space.kind == "vector":
        return Vectors(normals, width, int(np.prod(space.shape)))
    raise MasteryError(f"there is no encoder for {space.kind!r}: give cells, pixels or vector")
