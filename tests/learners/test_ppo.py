"""PPO against independent versions of its parts, and as a whole."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import lru_cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy.stats import kstest

from mastery import MasteryError
from mastery.learners import ppo, ppo_minigrid
from mastery.learners.adam import new_adam
from mastery.learners.encoders import Space
from mastery.learners.ppo import PAPER, PAPER_2019, Agent, Frames, PPOHyper, PPOSettings, Trajectory
from mastery.minigrid import NAMES
from mastery.minigrid.cells import DECODED
from mastery.minigrid.editions import find_edition
from mastery.minigrid.vision import seen_cells

SMALL = PPOSettings(envs=8, frames=32, batch=64, ahead=4)
NO_MEMORY = replace(SMALL, memory="none")
SMALL_PAPER = replace(PAPER, envs=8, frames=32, batch=64, ahead=4)
CELLS = Space("cells", (7, 7), 6)
UNLOCK = np.eye(18, dtype=np.float32)[0]


def space_of(settings):
    return CELLS._replace(actions=settings.actions)


@partial(jax.jit, static_argnames="settings")
def collect(key, probabilities, h, settings):
    learner = ppo_minigrid.begin(key, settings)
    edition = find_edition(settings.edition)
    envs = ppo_minigrid.with_levels(learner.envs, key, probabilities, edition)
    return learner.agent, *ppo_minigrid.collect(learner.agent, envs, key, settings, h)


@lru_cache
def collected(settings, tasks=(0,), **changes):
    """An agent, its environments, the frames it would learn from, and what it played. `changes` are
    of numbers that nothing is compiled anew for."""
    probabilities = np.isin(np.arange(18), tasks).astype(np.float32)
    h = PPOHyper.of(replace(settings, **changes))
    return collect(jax.random.key(0), probabilities, h, settings)


def test_advantages_are_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    reward, value = rng.normal(size=(2, 40, 5))
    ended = rng.random((40, 5)) < 0.2
    last = rng.normal(size=5)
    gamma, lam = 0.97, 0.9
    expected = np.zeros((40, 5))
    for e in range(5):
        following, ahead = 0.0, last[e]
        for t in reversed(range(40)):
            if ended[t, e]:
                following, ahead = 0.0, 0.0
            delta = reward[t, e] + gamma * ahead - value[t, e]
            following = delta + gamma * lam * following
            ahead = value[t, e]
            expected[t, e] = following
    found = ppo.advantages(reward, value, ended, last, gamma, lam)
    assert np.allclose(found, expected, atol=1e-5)


def test_advantages_worked_out_by_hand():
    # one environment, three frames, the episode ends with the second; γ = ½, λ = ½
    reward, value = np.array([[1.0], [2.0], [4.0]]), np.array([[3.0], [1.0], [2.0]])
    ended = np.array([[False], [True], [False]])
    found = ppo.advantages(reward, value, ended, np.array([8.0]), 0.5, 0.5)
    # 4 + ½·8 − 2 = 6;  2 + 0 − 1 = 1;  1 + ½·1 − 3 + ¼·1 = −1.25
    assert found.ravel().tolist() == [-1.25, 1.0, 6.0]


def test_segments_worked_out_by_hand():
    """Two environments, four frames, segments of two; what is in a frame tells which it is."""
    settings = PPOSettings(envs=2, frames=4, batch=4, bptt=2)
    h = PPOHyper.of(replace(settings, discount=0.5, gae=0.5, reward_scale=3.0, novelty=0.5))
    which = np.array([[10, 20], [11, 21], [12, 22], [13, 23]])
    first, memory = which == 10, np.arange(12.0).reshape(2, 3, 2)  # (segments in time, 3, envs)
    zeros, ended, new = np.zeros((4, 2)), which == 21, (which == 20) | (which == 21)
    reward = np.array([[0.0, 0.0], [0.0, 0.0], [4.0, 0.0], [0.0, 0.0]])
    played = Trajectory(which[..., None], first, which, which, zeros, reward, ended, new, memory)
    frames = ppo.segments(played, np.zeros(2), settings, h)
    order = [[10, 11], [20, 21], [12, 13], [22, 23]]
    assert np.array_equal(frames.action, order)
    assert np.array_equal(frames.log_probability, order)
    assert np.array_equal(frames.observation[..., 0], order)
    assert np.array_equal(frames.starts, [[True, False]] + 3 * [[False, False]])
    assert np.array_equal(frames.memory, [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]])
    # the reward of 4 counts 3 · 4 = 12, and γ λ = ¼ of that a frame before; frame 20 led to
    # something new, 3 · ½ = 1.5; so did 21, but that is the next episode's
    assert np.array_equal(frames.advantage, [[0.75, 3.0], [1.5, 0.0], [12.0, 0.0], [0.0, 0.0]])


def torch_loss(logits, value, frames, settings):
    """The clipped objective of PPO in torch, to be made small."""
    action, old, v_old, a = (
        tensor(x) for x in (frames.action, frames.log_probability, frames.value, frames.advantage)
    )
    target = a + v_old
    if settings.normalise:
        a = (a - a.mean()) / a.std(unbiased=False)
    policy = torch.distributions.Categorical(logits=logits)
    ratio = (policy.log_prob(action) - old).exp()
    clip = settings.clip
    surrogate = torch.min(ratio * a, ratio.clamp(1 - clip, 1 + clip) * a).mean()
    error = (value - target) ** 2
    if settings.clip_value:
        near = v_old + (value - v_old).clamp(-clip, clip)
        error = torch.max(error, (near - target) ** 2)
    entropy = policy.entropy().mean()
    return -surrogate + settings.value * error.mean() - settings.entropy * entropy


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("clip_value", [True, False])
def test_the_loss_and_its_gradient_are_torchs(normalise, clip_value):
    rng = np.random.default_rng(1)
    n, actions = 96, 6
    settings = PPOSettings(normalise=normalise, clip_value=clip_value)
    changed = replace(settings, clip=0.2, value=0.7, entropy=0.03)
    h = PPOHyper.of(changed)
    logits, old_logits = rng.normal(size=(2, n, actions)).astype(np.float32)
    value, old_value, advantage = rng.normal(size=(3, n)).astype(np.float32)
    action = rng.integers(0, actions, n)
    old = torch.log_softmax(torch.tensor(old_logits), -1)[torch.arange(n), torch.tensor(action)]
    frames = Frames(None, None, jnp.asarray(action), old.numpy(), old_value, advantage, None)

    t_logits, t_value = (torch.tensor(x, requires_grad=True) for x in (logits, value))
    expected = torch_loss(t_logits, t_value, frames, changed)
    expected.backward()

    def ours(logits, value):
        return ppo.ppo_loss(logits, value, frames, settings, h)

    found, (d_logits, d_value) = jax.value_and_grad(ours, (0, 1))(logits, value)
    assert np.allclose(found, expected.item(), atol=1e-5)
    assert np.allclose(d_logits, t_logits.grad.numpy(), atol=1e-6)
    assert np.allclose(d_value, t_value.grad.numpy(), atol=1e-6)


def test_advantages_that_are_all_the_same_are_normalised_to_nothing():
    settings, n = PPOSettings(value=0.0, entropy=0.0, normalise=True), 32
    zeros = np.zeros(n, np.float32)
    frames = Frames(None, None, np.zeros(n, int), zeros, zeros, np.full(n, 0.7, np.float32), None)

    def ours(logits):
        return ppo.ppo_loss(logits, zeros, frames, settings, PPOHyper.of(settings))

    found, slope = jax.value_and_grad(ours)(np.zeros((n, 6), np.float32))
    assert found == 0
    assert not np.any(slope)


def tensor(x):
    return torch.tensor(np.asarray(x))


# cells for the network to look at, and their numbers in MiniGrid of 2018 by hand
NUMBERS_2018 = {
    0: (0, 0, 0),  # unseen
    40: (0, 0, 0),  # empty
    13: (1, 5, 0),  # a wall
    26: (3, 2, 0),  # a blue door, closed
    35: (3, 3, 1),  # a purple door, open
    18: (4, 2, 0),  # a blue door, locked
    124: (4, 4, 1),  # a yellow door, unlocked
    48: (5, 0, 0),  # a red key
    61: (6, 5, 0),  # a grey ball
    66: (7, 2, 0),  # a blue box
    90: (7, 2, 0),  # and with a key in it
}
SOME_CELLS = list(NUMBERS_2018)


class Network(torch.nn.Module):
    """The same agent in torch, with the same weights. `forget`: added to the forget gate."""

    def __init__(self, agent, settings, forget):
        super().__init__()
        self.settings = settings
        channels = (3 if settings.encoding == "raw" else 17, 16, 32, 64)
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv2d(channels[n], channels[n + 1], 2) for n in range(3)
        )
        self.lstm = torch_lstm(agent.lstm, forget) if settings.memory == "lstm" else None
        seen = 128 if settings.memory == "lstm" and settings.skip else 64
        outputs = (64, settings.actions), (64, 1)
        self.heads = torch.nn.ModuleList(
            torch.nn.Linear(*size) for head in outputs for size in ((seen, 64), head)
        )
        with torch.no_grad():
            for conv, layer in zip(self.convolutions, agent.encoder.layers, strict=True):
                kernel = tensor(layer.weight).reshape(2, 2, conv.in_channels, -1)
                conv.weight.copy_(kernel.permute(3, 2, 0, 1))
                conv.bias.copy_(tensor(layer.bias))
            for linear, layer in zip(self.heads, (*agent.policy, *agent.value), strict=True):
                linear.weight.copy_(tensor(layer.weight).T)
                linear.bias.copy_(tensor(layer.bias))

    def see(self, cells):
        """Planes (n, channels, 7, 7) of cells (n, 7, 7)."""
        if self.settings.edition == "2018":
            numbers = np.zeros((256, 3), np.uint8)
            numbers[SOME_CELLS] = list(NUMBERS_2018.values())
        else:
            numbers = DECODED
        numbers = tensor(numbers[cells])
        if self.settings.encoding == "onehot":
            kind, colour, state = numbers.long().unbind(-1)
            one_hot = torch.nn.functional.one_hot
            coloured, door = (kind > 1)[..., None], (kind == 4)[..., None]
            parts = one_hot(kind, 8), one_hot(colour, 6) * coloured, one_hot(state, 3) * door
            numbers = torch.cat(parts, -1)
        return numbers.permute(0, 3, 1, 2).float()

    def forward(self, memory, starts, cells):
        """Memory after one frame, logits and values of n views. `cells` (n, 7, 7), `memory` two of
        (n, 64): hidden and cell, `starts` (n,)."""
        first, second, third = self.convolutions
        y = torch.nn.functional.max_pool2d(torch.relu(first(self.see(cells))), 2)
        y = torch.relu(third(torch.relu(second(y)))).flatten(1)
        if self.lstm is not None:
            memory = self.lstm(y, [m * ~tensor(starts)[:, None] for m in memory])
            y = torch.cat([memory[0], y], 1) if self.settings.skip else memory[0]
        policy, logits, value, last = self.heads
        return memory, logits(torch.tanh(policy(y))), last(torch.tanh(value(y)))[:, 0]

    def leaves(self, read):
        """Weights and biases in the order and layout of our agent. `read`: what of each."""
        for conv in self.convolutions:
            yield read(conv.weight).permute(2, 3, 1, 0).flatten(0, 2)
            yield read(conv.bias)
        if self.lstm is not None:
            yield from (read(self.lstm.weight_ih).T, read(self.lstm.bias_ih))
            yield from (read(self.lstm.weight_hh).T, read(self.lstm.bias_hh))
        for linear in self.heads:
            yield from (read(linear.weight).T, read(linear.bias))


def torch_lstm(lstm, forget):
    """The same LSTM in torch, with this bonus for the forget gate."""
    seen, remembered = lstm
    cell = torch.nn.LSTMCell(64, 64)
    with torch.no_grad():
        cell.weight_ih.copy_(tensor(seen.weight).T)
        cell.weight_hh.copy_(tensor(remembered.weight).T)
        cell.bias_ih.copy_(tensor(seen.bias))
        cell.bias_hh.copy_(tensor(remembered.bias))
        cell.bias_ih[64:128] += forget
    return cell


def test_the_paper_s_agent_by_hand():
    """As of September 2018; `ahead` is a matter of our engine."""
    found = asdict(PAPER)
    found.pop("ahead")
    assert found == {
        "edition": "2018", "reward": "minigrid", "actions": 7, "envs": 16, "frames": 128,
        "epochs": 4, "batch": 256, "bptt": 1, "learning_rate": 7e-4, "epsilon": 1e-5,
        "discount": 0.99, "gae": 0.95, "entropy": 0.01, "value": 0.5, "clip": 0.2,
        "clip_value": True, "gradient_norm": 0.5, "normalise": False, "reward_scale": 20.0,
        "novelty": 0.0, "encoding": "raw", "initial": "pytorch", "memory": "lstm", "skip": False,
        "width": 64,
    }  # fmt: skip


def test_initial_values_of_2018():
    agent = Agent(jax.random.key(0), PAPER, space_of(PAPER))
    # a 2 × 2 convolution of c channels has 4 c inputs; each of the LSTM's gates has 64
    bounds = [(4 * c) ** -0.5 for c in (3, 16, 32)] + [0.125, 0.125]
    shares = []
    for layer, bound in zip([*agent.encoder.layers, *agent.lstm], bounds, strict=True):
        for values in (np.asarray(layer.weight).ravel(), np.asarray(layer.bias)):
            assert np.abs(values).max() <= bound
            assert len(np.unique(values)) > 0.99 * len(values)
            shares.append(values / bound)
            assert kstest(values / bound, "uniform", (-1, 2)).pvalue > 1e-3
    sizes = [192, 16, 2048, 32, 8192, 64, *2 * [64 * 256, 256]]
    assert [len(values) for values in shares] == sizes
    everything = np.concatenate(shares)
    assert kstest(everything, "uniform", (-1, 2)).pvalue > 1e-3
    assert np.abs(everything).max() > 0.999
    assert agent.forget == 0
    for layer, shape in zip(
        (*agent.policy, *agent.value), ((64, 64), (64, 7), (64, 64), (64, 1)), strict=True
    ):
        assert layer.weight.shape == shape
        assert np.allclose(np.linalg.norm(layer.weight, axis=0), 1, atol=1e-6)
        assert not np.any(layer.bias)
    assert kstest(8 * np.ravel(agent.policy[0].weight), "norm").pvalue > 1e-3


def test_initial_values_by_default():
    """Each output's weights have a length, the policy is nearly uniform, biases are 0."""
    agent = Agent(jax.random.key(0), SMALL, CELLS)
    layers = [*agent.encoder.layers, *agent.lstm, *agent.policy, *agent.value]
    lengths = [2**0.5] * 3 + [0.5**0.5] * 2 + [1, 0.01, 1, 1]
    for layer, length in zip(layers, lengths, strict=True):
        assert np.allclose(np.linalg.norm(layer.weight, axis=0), length)
        assert not np.any(layer.bias)
    assert agent.forget == 1


def with_biases(agent, rng):
    """With random numbers for the biases, which are 0 in a new agent."""

    def some(x):
        return rng.normal(size=x.shape).astype(np.float32) if x.ndim == 1 else x

    return jax.tree.map(some, agent)


@pytest.mark.parametrize(
    ("settings", "forget"), [(PAPER, 0), (PAPER_2019, 1), (SMALL, 1), (NO_MEMORY, 1)]
)
def test_the_network_is_torchs_too(settings, forget):
    """Convolutions, pooling, LSTM and heads with the same weights in torch."""
    rng = np.random.default_rng(0)
    agent = with_biases(Agent(jax.random.key(0), settings, space_of(settings)), rng)
    cells = rng.choice(SOME_CELLS, size=(5, 7, 7)).astype(np.uint8)
    memory = rng.normal(size=(2, 5, 64)).astype(np.float32)
    starts = np.array([False, True, False, False, True])
    ours = np.concatenate([memory[0].T, memory[1].T])[: agent.memory_size]
    after, logits, value = eqx.filter_jit(agent)(ours, starts, cells)
    with torch.no_grad():
        network = Network(agent, settings, forget)
        t_memory, t_logits, t_value = network(tensor(memory), starts, cells)
    if agent.memory_size:
        assert np.allclose(after, torch.cat([t_memory[0].T, t_memory[1].T]), atol=1e-5)
    assert logits.shape == (5, settings.actions)
    assert np.allclose(logits, t_logits, atol=1e-5)
    assert np.allclose(value, t_value, atol=1e-5)


@pytest.mark.parametrize(("frames", "initial", "forget"), [(1, "scaled", 1), (8, "scaled", 1),
                                                           (8, "pytorch", 0)])  # fmt: skip
def test_the_memory_and_its_gradient_are_torchs(frames, initial, forget):
    """All frames at once, with episodes that begin in between."""
    rng = np.random.default_rng(1)
    n = 5
    settings = replace(SMALL, skip=False, initial=initial)
    agent = with_biases(Agent(jax.random.key(1), settings, CELLS), rng)
    x, on_out = rng.normal(size=(2, 64, frames * n)).astype(np.float32)
    memory, on_memory = rng.normal(size=(2, 128, n)).astype(np.float32)
    starts = rng.random((frames, n)) < 0.3
    assert starts.any()
    assert not starts.all()

    def ours(agent, memory, x):
        after, out = agent.remember(memory, starts, x)
        return (on_memory * after).sum() + (on_out * out).sum()

    gradient = jax.jit(jax.value_and_grad(ours, (0, 1, 2)))
    found, (d_agent, d_memory, d_x) = gradient(agent, memory, x)

    cell = torch_lstm(agent.lstm, forget)
    t_memory, t_x = (tensor(y).requires_grad_() for y in (memory, x))
    h, c = t_memory.T.split(64, 1)
    expected = 0.0
    for t in range(frames):
        carried = ~tensor(starts[t])[:, None]
        h, c = cell(t_x[:, t * n : (t + 1) * n].T, (h * carried, c * carried))
        expected = expected + (tensor(on_out[:, t * n : (t + 1) * n]) * h.T).sum()
    expected = expected + (tensor(on_memory) * torch.cat([h, c], 1).T).sum()
    expected.backward()
    assert np.allclose(found, expected.item(), rtol=1e-4)
    for mine, theirs in (
        (d_agent.lstm[0].weight, cell.weight_ih.grad.T),
        (d_agent.lstm[1].weight, cell.weight_hh.grad.T),
        (d_agent.lstm[0].bias, cell.bias_ih.grad),
        (d_agent.lstm[1].bias, cell.bias_hh.grad),
        (d_memory, t_memory.grad),
        (d_x, t_x.grad),
    ):
        assert np.allclose(mine, theirs, atol=1e-4)


def some_frames(settings, rng):
    """Frames for one update, with advantages and old policies out of nowhere."""
    shape = settings.per_update // settings.bptt, settings.bptt
    normal = partial(rng.normal, size=shape)
    return Frames(
        observation=rng.choice(SOME_CELLS, size=(*shape, 7, 7)).astype(np.uint8),
        starts=rng.random(shape) < 0.2,
        action=rng.integers(0, settings.actions, shape),
        log_probability=normal(-np.log(settings.actions), 0.3).astype(np.float32),
        value=normal().astype(np.float32),
        advantage=normal().astype(np.float32),
        memory=rng.normal(size=(shape[0], 128)).astype(np.float32),
    )


def torch_replay(network, frames):
    """Logits and values of every frame. Memory comes from before a segment, as data: gradients flow
    back in time within a segment only."""
    memory, found = tensor(frames.memory).split(64, 1), []
    for t in range(frames.action.shape[1]):
        memory, *out = network(memory, frames.starts[:, t], frames.observation[:, t])
        found.append(out)
    logits, value = zip(*found, strict=True)
    return torch.stack(logits, 1), torch.stack(value, 1)


@pytest.mark.parametrize(("settings", "forget"), [(SMALL_PAPER, 0), (SMALL, 1)])
def test_the_gradient_of_an_agent_is_torchs(settings, forget):
    """With bptt 1, as in 2018, the memory of each frame is data; with bptt 8, that of each 8th."""
    rng = np.random.default_rng(2)
    settings = replace(settings, envs=4, frames=16)
    agent = with_biases(Agent(jax.random.key(2), settings, space_of(settings)), rng)
    frames, h = some_frames(settings, rng), PPOHyper.of(settings)
    assert frames.action.shape == ((64, 1) if settings.bptt == 1 else (8, 8))
    found = eqx.filter_jit(eqx.filter_grad(ppo.loss))(agent, frames, settings, h)
    network = Network(agent, settings, forget)
    torch_loss(*torch_replay(network, frames), frames, settings).backward()
    expected = list(network.leaves(lambda x: x.grad))
    for mine, theirs in zip(jax.tree.leaves(found), expected, strict=True):
        assert np.allclose(mine, theirs, atol=1e-5, rtol=1e-4)


def test_learning_is_torchs_adam():
    """Three steps, each on all frames, with the paper's ε and with a smaller one. The gradient is
    cut to a length first."""
    rng = np.random.default_rng(3)
    settings = replace(SMALL_PAPER, envs=4, frames=16, epochs=1)
    first = with_biases(Agent(jax.random.key(3), settings, space_of(settings)), rng)
    frames = some_frames(settings, rng)
    improve = eqx.filter_jit(ppo.improve)
    for rate, epsilon, norm in ((7e-4, 1e-5, 0.5), (1e-3, 1e-8, 1e6)):
        h = PPOHyper.of(replace(settings, learning_rate=rate, epsilon=epsilon, gradient_norm=norm))
        agent, optimiser = first, new_adam(first)
        network = Network(agent, settings, forget=0)
        adam = torch.optim.Adam(network.parameters(), lr=rate, eps=epsilon)
        for _ in range(3):
            before = [x.detach().numpy().copy() for x in network.leaves(lambda x: x)]
            old = jax.tree.leaves(agent)
            agent, optimiser = improve(agent, optimiser, frames, jax.random.key(0), settings, h)
            adam.zero_grad()
            torch_loss(*torch_replay(network, frames), frames, settings).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), norm)
            adam.step()
            after = (x.detach().numpy() for x in network.leaves(lambda x: x))
            for mine, mine_before, theirs, theirs_before in zip(
                jax.tree.leaves(agent), old, after, before, strict=True
            ):
                assert np.abs(theirs - theirs_before).max() > rate / 10
                assert np.allclose(mine - mine_before, theirs - theirs_before, atol=0.01 * rate)


def test_actions_follow_the_policy():
    """By a uniform u, the first action with p_1 + … + p_a > u: inverse of the distribution."""
    quarters = np.log([[0.25, 0.25, 0.5]])
    uniforms = [0.0, 0.2, 0.25, 0.3, 0.5, 0.6, 0.999]
    chosen = [int(ppo.choose(quarters, np.array([u]))[0]) for u in uniforms]
    assert chosen == [0, 0, 1, 1, 2, 2, 2]

    logits = np.random.default_rng(0).normal(size=6).astype(np.float32)
    p = np.exp(logits) / np.exp(logits).sum()
    n = 100_000
    found = ppo.choose(np.tile(logits, (n, 1)), jax.random.uniform(jax.random.key(0), (n,)))
    assert found.dtype == np.int32
    frequency = np.bincount(found, minlength=6) / n
    assert np.all(np.abs(frequency - p) < 4 * np.sqrt(p * (1 - p) / n))


@pytest.mark.parametrize("impossible", [[0], [5], [0, 2, 5], [1, 2, 3, 4, 5]])
def test_an_impossible_action_is_never_chosen(impossible):
    rng = np.random.default_rng(0)
    ends = [0.0, np.nextafter(np.float32(1), np.float32(0))]
    uniforms = np.concatenate([rng.random(5000), ends]).astype(np.float32)
    logits = rng.normal(size=(len(uniforms), 6)).astype(np.float32)
    logits[:, impossible] = -1e9
    assert not np.isin(ppo.choose(logits, uniforms), impossible).any()


@pytest.mark.parametrize(
    "settings",
    [
        SMALL,
        NO_MEMORY,
        SMALL_PAPER,
        pytest.param(replace(SMALL, skip=False, encoding="raw"), marks=pytest.mark.slow),
        pytest.param(replace(NO_MEMORY, bptt=1), marks=pytest.mark.slow),
    ],
)
def test_what_is_replayed_is_what_was_played(settings):
    """The memory is cut at starts of episodes and carried from segment to segment as in play."""
    settings = replace(settings, frames=320)  # longer than an episode of 288
    agent, _, frames, played = collected(settings)
    assert int(played.episodes.sum()) >= 8
    assert np.asarray(frames.starts).sum() >= 16
    logits, value = jax.jit(ppo.replay)(agent, frames)
    chosen = ppo.log_probability(logits, frames.action)
    assert np.allclose(chosen, frames.log_probability, atol=1e-4)
    assert np.allclose(value, frames.value, atol=1e-4)


def test_with_bptt_1_the_memory_before_each_frame_is_kept():
    """Against playing the same frames again, one by one."""
    agent, _, frames, _ = collected(replace(SMALL_PAPER, frames=320))
    assert frames.memory.shape == (320 * 8, 128)
    kept = np.asarray(frames.memory).reshape(320, 8, 128)
    starts = np.asarray(frames.starts).reshape(320, 8)
    views = np.asarray(frames.observation).reshape(320, 8, 7, 7)
    one, memory = eqx.filter_jit(agent), np.zeros((128, 8), np.float32)
    assert starts[0].all()
    assert starts[1:].any()
    for t in range(320):
        assert np.allclose(kept[t], memory.T, atol=1e-5)
        memory, _, _ = one(memory, starts[t], views[t])
    assert np.abs(kept[1:]).max(-1).min() > 0


def test_what_was_played_is_counted_by_task():
    settings = replace(SMALL, frames=320)
    _, envs, frames, played = collected(settings, tasks=(0, 3))
    assert int(played.frames.sum()) == 8 * 320 == frames.action.size
    assert np.array_equal(np.flatnonzero(played.frames), [0, 3])
    ends = int(np.asarray(frames.starts).sum()) - 8 + int(np.asarray(envs.starts).sum())
    assert int(played.episodes.sum()) == ends
    assert (np.asarray(played.returns) <= np.asarray(played.episodes)).all()


def test_two_equal_runs_are_equal_to_the_bit_and_one_in_a_batch_is_that_run():
    @jax.jit
    def run(key):
        learner = ppo_minigrid.begin(key, SMALL)
        learner, played = ppo_minigrid.update(learner, UNLOCK, SMALL, PPOHyper.of(SMALL))
        return jax.tree.leaves((learner.agent, played))

    keys = jax.random.split(jax.random.key(0), 3)
    first, again = run(keys[1]), run(keys[1])
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    batch = jax.jit(jax.vmap(run))(keys)
    assert all(np.allclose(a, b[1], atol=1e-4) for a, b in zip(first, batch, strict=True))


def test_what_is_new_is_rewarded():
    """With γ = 0 an advantage is r + what novelty gives − V: against a plain loop over what was
    seen, with a set for each episode."""
    changes = {"discount": 0.0, "novelty": 8.0, "reward_scale": 0.5}
    _, envs, frames, played = collected(replace(SMALL, frames=320), **changes)
    in_time = [
        np.swapaxes(np.asarray(x).reshape(-1, 8, 8, *x.shape[2:]), 1, 2).reshape(320, 8, -1)
        for x in (frames.observation, frames.starts, frames.advantage + frames.value)
    ]
    last = [np.asarray(seen_cells(envs.state)).reshape(1, 8, -1), np.asarray(envs.starts)]
    cells = np.concatenate([in_time[0], last[0]])
    starts = np.concatenate([in_time[1][..., 0], last[1][None]])
    bonus = np.zeros((320, 8))
    for e in range(8):
        shown = set()
        for t in range(321):
            if starts[t, e]:
                shown = set()
            elif place(cells[t, e]) not in shown:
                bonus[t - 1, e] = 4.0
            shown.add(place(cells[t, e]))
    reward = in_time[2][..., 0] - bonus
    assert 0 < bonus.mean() < 3
    assert np.allclose(reward[~starts[1:]], 0, atol=1e-4)
    assert np.isclose(reward.sum(), 0.5 * float(played.returns.sum()), atol=1e-2)
    assert float(played.returns.sum()) < 8  # the teacher's returns know nothing of it


def place(cells):
    factors = np.random.default_rng(0).integers(2**32, size=(7, 7), dtype=np.uint32).ravel()
    return sum(int(c) * int(f) for c, f in zip(cells, factors, strict=True)) % 2**32 // 2**22


@pytest.mark.usefixtures("optimised")
def test_it_learns():
    """Unlock, from a return near zero to one well above it, in some 60,000 frames."""
    settings = PPOSettings(learning_rate=1e-3)
    h = PPOHyper.of(settings)
    begin = jax.jit(partial(ppo_minigrid.begin, settings=settings))

    @partial(jax.jit, donate_argnums=0)
    def chunk(learner):
        def one(learner, _):
            return ppo_minigrid.update(learner, UNLOCK, settings, h)

        return jax.lax.scan(one, learner, length=10)

    learner = begin(jax.random.key(0))
    means = []
    for _ in range(12):
        learner, played = chunk(learner)
        means.append(float(played.returns.sum() / played.episodes.sum()))
        if means[-1] > 0.5:
            break
    assert NAMES[0] == "Unlock"
    assert means[0] < 0.2
    assert means[-1] > 0.5, means
    assert int(learner.envs.pool.reuse()) == 0


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"encoding": "one-hot"}, "encoding is 'one-hot'; choose from onehot, raw"),
        ({"initial": "torch"}, "initial is 'torch'; choose from scaled, pytorch"),
        ({"edition": "2017"}, r"edition is '2017'; choose from 3\.2\.0, 2018, 2018-rules"),
        ({"epsilon": 0.0}, "epsilon is 0.0; it must be more than 0"),
        ({"memory": "gru"}, "memory is 'gru'"),
        ({"bptt": 7}, "frames must be a multiple of bptt, 7"),
        ({"batch": 100}, "batch must be a multiple of bptt"),
        ({"batch": 2048, "envs": 24}, r"batch is 2048: the 24 · 128 frames"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, text):
    with pytest.raises(MasteryError, match=text):
        PPOSettings(**settings)
