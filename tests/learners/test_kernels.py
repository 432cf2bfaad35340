"""The GPU kernels of the PPO agent, run without a GPU, against the plain network."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from abstract_gpu import lowered_for_h200

from mastery.learners import lstm_kernels
from mastery.learners.encoders import Space, features_of
from mastery.learners.kernels import agent as kernels
from mastery.learners.kernels import calls, heads, memory, vision
from mastery.learners.ppo import PPO, Agent, PPOSettings
from mastery.minigrid.editions import EDITIONS, find_edition

SETTINGS = {
    "default": PPOSettings(),
    "no memory": replace(PPOSettings(), memory="none"),
    "paper": PPO.presets["paper"],
    "paper-2019": PPO.presets["paper-2019"],
}


def both(settings, frames, n, runs=2):
    """What the plain network and the kernels return: the new memory, logits and values, and the
    gradients of all weights, for several runs side by side."""
    space = Space("cells", (7, 7), settings.actions)
    agents = jax.vmap(lambda key: Agent(key, settings, space))(
        jax.random.split(jax.random.key(0), runs)
    )
    rng = np.random.default_rng(0)
    size = (runs, frames, n)
    given = (
        rng.normal(size=(runs, agents.memory_size, n)).astype(np.float32),
        rng.random(size) < 0.2,
        rng.integers(0, 256, (runs, frames * n, 7, 7)).astype(np.uint8),
    )
    d_logits = rng.normal(size=(runs, frames * n, settings.actions)).astype(np.float32)
    d_value = rng.normal(size=(runs, frames * n)).astype(np.float32)

    def of(over):
        def total(agent, memory, starts, cells, d_logits, d_value):
            after, logits, value = over(agent, memory, starts, cells)
            return (logits * d_logits).sum() + (value * d_value).sum(), (after, logits, value)

        def found(*each):
            (_, out), gradient = eqx.filter_value_and_grad(total, has_aux=True)(*each)
            return out, gradient

        return jax.tree.leaves(jax.jit(jax.vmap(found))(agents, *given, d_logits, d_value))

    def with_kernels(agent, memory, starts, cells):
        return kernels.over(agent, memory, starts, cells, interpret=True)

    return of(Agent.over), of(with_kernels)


def distance(mine, other):
    """‖mine − other‖ / ‖other‖, over all runs."""
    return jnp.linalg.norm(mine - other) / jnp.maximum(jnp.linalg.norm(other), 1e-9)


@pytest.mark.parametrize(
    ("name", "frames", "n"),
    [
        ("default", 2, 16),
        pytest.param("default", 8, 32, marks=pytest.mark.slow),
        pytest.param("no memory", 2, 64, marks=pytest.mark.slow),
        pytest.param("paper", 1, 512, marks=pytest.mark.slow),
        pytest.param("paper-2019", 3, 16, marks=pytest.mark.slow),
    ],
)
def test_in_32_bits_the_kernels_are_the_network(name, frames, n, monkeypatch):
    """Their formulas are right: all of what differs are the numbers' formats."""
    for module in (calls, heads, memory, vision, kernels):
        for kind in ("KEPT", "BACK"):
            if hasattr(module, kind):
                monkeypatch.setattr(module, kind, jnp.float32)
    kernels._forward.clear_cache()
    plain, ours = both(SETTINGS[name], frames, n)
    kernels._forward.clear_cache()
    assert len(plain) == len(ours) > 14
    for other, mine in zip(plain, ours, strict=True):
        assert mine.shape == other.shape
        assert distance(mine, other) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_in_16_bits_they_are_nearly_the_network(name):
    """As near as JAX's own TF32 on a GPU, whose gradients are off by up to 6 % here: a rounded
    value may be on the other side of a ReLU, or no longer the most of its window."""
    plain, ours = both(SETTINGS[name], 1 if SETTINGS[name].bptt == 1 else 8, 32)
    for i, (other, mine) in enumerate(zip(plain, ours, strict=True)):
        assert distance(mine, other) < (5e-3 if i < 3 else 0.08)


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("encoding", ["onehot", "raw"])
def test_the_bits_of_a_cell_make_its_channels(encoding, edition):
    edition = find_edition(edition)
    words, spread = kernels.words_of(encoding, edition)
    bits = words.view(np.uint32)[:, None] >> np.arange(32, dtype=np.uint32) & 1
    assert (bits[:, vision.ONE] == 1).all()
    np.testing.assert_array_equal(bits @ spread, features_of(encoding, edition))


# JAX 0.11 warns that it will remove Triton
for_triton = pytest.mark.filterwarnings("ignore:.*Triton:DeprecationWarning")


@for_triton
@pytest.mark.parametrize(
    ("name", "calls_forward", "calls_back"),
    [("default", 4, 4), ("no memory", 3, 3), ("paper", 4, 4), ("paper-2019", 4, 4)],
)
def test_they_can_be_lowered_for_a_gpu(name, calls_forward, calls_back):
    """Kernels: two of the encoder, one each of the memory and the heads; as many for gradients."""
    settings, frames, n = SETTINGS[name], 1 if SETTINGS[name].bptt == 1 else 8, 64
    agent = Agent(jax.random.key(0), settings, Space("cells", (7, 7), settings.actions))
    memory = jnp.zeros((agent.memory_size, n))
    starts, cells = jnp.zeros((frames, n), bool), jnp.zeros((frames * n, 7, 7), jnp.uint8)

    def gradient(agent):
        return eqx.filter_grad(lambda a: kernels.over(a, memory, starts, cells)[1].sum())(agent)

    play = lowered_for_h200(kernels.player(agent), memory, starts, cells)
    assert play.count("@__gpu$xla.gpu.triton") == calls_forward
    learn = lowered_for_h200(gradient, agent)
    assert learn.count("@__gpu$xla.gpu.triton") == calls_forward + calls_back


@for_triton
def test_those_of_the_lstm_can_be_lowered_for_a_gpu():
    weight = jnp.zeros((lstm_kernels.WIDTH + 12, 4 * lstm_kernels.WIDTH))
    seen = jnp.zeros((5, 12, 64))
    gradient = jax.grad(lambda w: lstm_kernels.lstm(w, seen, None, True).sum())
    assert lowered_for_h200(gradient, weight).count("@__gpu$xla.gpu.triton") == 2


def test_mlir_finds_tritons_dialect_at_once():
    """Otherwise it looks for it, in vain, at every operation of a kernel."""
    calls._triton()
    assert sys.modules["jaxlib.mlir.dialects.tt"].__name__ == "jaxlib.triton.dialect"


def test_where_they_are_not_measured_they_are_not_used():
    agent = Agent(jax.random.key(0), PPOSettings(), Space("cells", (7, 7), 6))
    assert not kernels.fit(agent, 16)  # there is no GPU


@pytest.mark.parametrize(
    ("capability", "triton", "expected"),
    [("9.0", calls.TRITON, True), ("8.0", calls.TRITON, False), ("9.0", "json.gone", False)],
)
def test_they_need_a_gpu_they_were_measured_on_and_triton(
    capability, triton, expected, monkeypatch
):
    device = SimpleNamespace(platform="gpu", compute_capability=capability)
    monkeypatch.setattr(jax, "devices", lambda: [device])
    monkeypatch.setattr(calls, "TRITON", triton)
    assert calls.measured() == expected


@pytest.mark.parametrize(
    ("settings", "space", "n", "fit"),
    [
        (PPOSettings(), Space("cells", (7, 7), 6), 16, True),
        (PPOSettings(), Space("cells", (7, 7), 6), 24, False),
        (PPOSettings(width=32), Space("cells", (7, 7), 6), 16, False),
        (PPOSettings(), Space("vector", (4,), 2), 16, False),
    ],
)
def test_what_they_support(settings, space, n, fit, monkeypatch):
    monkeypatch.setattr(kernels, "measured", lambda: True)
    assert kernels.fit(Agent(jax.random.key(0), settings, space), n) == fit
