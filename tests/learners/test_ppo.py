"""PPO against independent versions of its parts, and as a whole."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from mastery import MasteryError
from mastery.learners import ppo
from mastery.learners.encoders import Space
from mastery.learners.ppo import PAPER, Agent, Frames, Hyper, Settings, Trajectory
from mastery.minigrid import NAMES
from mastery.minigrid.cells import DECODED
from mastery.minigrid.vision import seen_cells

SMALL = Settings(envs=8, frames=32, batch=64, ahead=4)
NO_MEMORY = replace(SMALL, memory="none")
CELLS = Space("cells", (7, 7), 6)
UNLOCK = np.eye(18, dtype=np.float32)[0]


def collected(settings, seed=0, probabilities=UNLOCK):
    """An agent, what it played, and the frames it would learn from."""

    @jax.jit
    def run(key):
        learner = ppo.begin(key, settings)
        h = Hyper.of(settings)
        envs = ppo.with_levels(learner.envs, key, probabilities)
        envs, frames, played = ppo.collect(learner.agent, envs, key, settings, h)
        return learner.agent, envs, frames, played

    return run(jax.random.key(seed))


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
    settings = Settings(envs=2, frames=4, batch=4, bptt=2)
    h = Hyper.of(replace(settings, discount=0.5, gae=0.5, reward_scale=3.0, novelty=0.5))
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


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("clip_value", [True, False])
def test_the_loss_and_its_gradient_are_torchs(normalise, clip_value):
    rng = np.random.default_rng(1)
    n, actions = 96, 6
    settings = Settings(normalise=normalise, clip_value=clip_value)
    h = Hyper.of(replace(settings, clip=0.2, value=0.7, entropy=0.03))
    logits, old_logits = rng.normal(size=(2, n, actions)).astype(np.float32)
    value, old_value, advantage = rng.normal(size=(3, n)).astype(np.float32)
    action = rng.integers(0, actions, n)
    old = torch.log_softmax(torch.tensor(old_logits), -1)[torch.arange(n), torch.tensor(action)]
    frames = Frames(None, None, jnp.asarray(action), old.numpy(), old_value, advantage, None)

    t_logits, t_value = (torch.tensor(x, requires_grad=True) for x in (logits, value))
    a, v_old = torch.tensor(advantage), torch.tensor(old_value)
    target = a + v_old
    if normalise:
        a = (a - a.mean()) / a.std(unbiased=False)
    policy = torch.distributions.Categorical(logits=t_logits)
    ratio = (policy.log_prob(torch.tensor(action)) - old).exp()
    surrogate = torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
    error = (t_value - target) ** 2
    if clip_value:
        near = v_old + (t_value - v_old).clamp(-0.2, 0.2)
        error = torch.max(error, (near - target) ** 2)
    expected = -surrogate + 0.7 * error.mean() - 0.03 * policy.entropy().mean()
    expected.backward()

    def ours(logits, value):
        return ppo.ppo_loss(logits, value, frames, settings, h)

    found, (d_logits, d_value) = jax.value_and_grad(ours, (0, 1))(logits, value)
    assert np.allclose(found, expected.item(), atol=1e-5)
    assert np.allclose(d_logits, t_logits.grad.numpy(), atol=1e-6)
    assert np.allclose(d_value, t_value.grad.numpy(), atol=1e-6)


def test_advantages_that_are_all_the_same_are_normalised_to_nothing():
    settings, n = Settings(value=0.0, entropy=0.0, normalise=True), 32
    zeros = np.zeros(n, np.float32)
    frames = Frames(None, None, np.zeros(n, int), zeros, zeros, np.full(n, 0.7, np.float32), None)

    def ours(logits):
        return ppo.ppo_loss(logits, zeros, frames, settings, Hyper.of(settings))

    found, slope = jax.value_and_grad(ours)(np.zeros((n, 6), np.float32))
    assert found == 0
    assert not np.any(slope)


def tensor(x):
    return torch.tensor(np.asarray(x))


def torch_network(agent, cells, memory, starts, encoding):
    """Memory after one frame, logits and values of n views, with the same weights in torch.

    `cells` (n, 7, 7), `memory` two of (n, 64): hidden and cell, `starts` (n,).
    """
    if encoding == "raw":
        y = tensor(DECODED[cells].astype(np.float32)).permute(0, 3, 1, 2)
    else:
        kind, colour, state = tensor(DECODED[cells]).long().unbind(-1)
        one_hot = torch.nn.functional.one_hot
        coloured, door = (kind > 1)[..., None], (kind == 4)[..., None]
        parts = one_hot(kind, 8), one_hot(colour, 6) * coloured, one_hot(state, 3) * door
        y = torch.cat(parts, -1).permute(0, 3, 1, 2).float()
    for n, layer in enumerate(agent.encoder.layers):
        channels = layer.weight.shape[0] // 4
        kernel = tensor(layer.weight).reshape(2, 2, channels, -1).permute(3, 2, 0, 1)
        y = torch.relu(torch.nn.functional.conv2d(y, kernel, tensor(layer.bias)))
        if n == 0:
            y = torch.nn.functional.max_pool2d(y, 2)
    y = y.reshape(len(cells), 64)
    if agent.lstm is not None:
        memory = torch_lstm(agent.lstm)(y, [m * ~tensor(starts)[:, None] for m in memory])
        y = torch.cat([memory[0], y], 1) if agent.skip else memory[0]

    def head(layers):
        first, last = layers
        y1 = torch.tanh(y @ tensor(first.weight) + tensor(first.bias))
        return y1 @ tensor(last.weight) + tensor(last.bias)

    return memory, head(agent.policy), head(agent.value)[:, 0]


def torch_lstm(lstm):
    """The same LSTM in torch; ours adds 1 to the forget gate."""
    seen, remembered = lstm
    cell = torch.nn.LSTMCell(64, 64)
    with torch.no_grad():
        cell.weight_ih.copy_(tensor(seen.weight).T)
        cell.weight_hh.copy_(tensor(remembered.weight).T)
        cell.bias_ih.copy_(tensor(seen.bias))
        cell.bias_hh.copy_(tensor(remembered.bias))
        cell.bias_ih[64:128] += 1
    return cell


def with_biases(agent, rng):
    """With random numbers for the biases, which are 0 in a new agent."""

    def some(x):
        return rng.normal(size=x.shape).astype(np.float32) if x.ndim == 1 else x

    return jax.tree.map(some, agent)


@pytest.mark.parametrize("settings", [PAPER, SMALL, NO_MEMORY])
def test_the_network_is_torchs_too(settings):
    """Convolutions, pooling, LSTM and heads with the same weights in torch."""
    rng = np.random.default_rng(0)
    agent = with_biases(Agent(jax.random.key(0), settings, CELLS), rng)
    cells = rng.choice([0, 13, 40, 18, 26, 48, 61, 66, 90], size=(5, 7, 7)).astype(np.uint8)
    memory = rng.normal(size=(2, 5, 64)).astype(np.float32)
    starts = np.array([False, True, False, False, True])
    ours = np.concatenate([memory[0].T, memory[1].T])[: agent.memory_size]
    after, logits, value = eqx.filter_jit(agent)(ours, starts, cells)
    with torch.no_grad():
        t_memory, t_logits, t_value = torch_network(
            agent, cells, tensor(memory), starts, settings.encoding
        )
    if agent.memory_size:
        assert np.allclose(after, torch.cat([t_memory[0].T, t_memory[1].T]), atol=1e-5)
    assert np.allclose(logits, t_logits, atol=1e-5)
    assert np.allclose(value, t_value, atol=1e-5)


@pytest.mark.parametrize("frames", [1, 8])
def test_the_memory_and_its_gradient_are_torchs(frames):
    """All frames at once, with episodes that begin in between."""
    rng = np.random.default_rng(1)
    n = 5
    agent = with_biases(Agent(jax.random.key(1), replace(SMALL, skip=False), CELLS), rng)
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

    cell = torch_lstm(agent.lstm)
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


@pytest.mark.parametrize("settings", [SMALL, replace(SMALL, skip=False, encoding="raw"), NO_MEMORY,
                                      replace(NO_MEMORY, bptt=1)])  # fmt: skip
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


def test_what_was_played_is_counted_by_task():
    p = np.zeros(18, np.float32)
    p[[0, 3]] = 1
    settings = replace(SMALL, frames=320)
    _, envs, frames, played = collected(settings, probabilities=p)
    assert int(played.frames.sum()) == 8 * 320 == frames.action.size
    assert np.array_equal(np.flatnonzero(played.frames), [0, 3])
    ends = int(np.asarray(frames.starts).sum()) - 8 + int(np.asarray(envs.starts).sum())
    assert int(played.episodes.sum()) == ends
    assert (np.asarray(played.returns) <= np.asarray(played.episodes)).all()


def test_two_equal_runs_are_equal_to_the_bit_and_one_in_a_batch_is_that_run():
    @jax.jit
    def run(key):
        h = Hyper.of(SMALL)
        learner = ppo.begin(key, SMALL)
        learner, played = ppo.update(learner, UNLOCK, SMALL, h)
        return jax.tree.leaves((learner.agent, played))

    keys = jax.random.split(jax.random.key(0), 3)
    first, again = run(keys[1]), run(keys[1])
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    batch = jax.jit(jax.vmap(run))(keys)
    assert all(np.allclose(a, b[1], atol=1e-4) for a, b in zip(first, batch, strict=True))


def test_what_is_new_is_rewarded():
    """With γ = 0 an advantage is r + what novelty gives − V: against a plain loop over what was
    seen, with a set for each episode."""
    settings = replace(SMALL, frames=320, discount=0.0, novelty=8.0, reward_scale=0.5)
    _, envs, frames, played = collected(settings)
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


def test_it_learns():
    """Unlock, from a return near zero to one well above it, in some 60,000 frames."""
    settings = Settings(learning_rate=1e-3)
    h = Hyper.of(settings)
    begin = jax.jit(partial(ppo.begin, settings=settings))

    @partial(jax.jit, donate_argnums=0)
    def chunk(learner):
        def one(learner, _):
            return ppo.update(learner, UNLOCK, settings, h)

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
        ({"encoding": "one-hot"}, "encoding is 'one-hot'; there is onehot and raw"),
        ({"memory": "gru"}, "memory is 'gru'"),
        ({"bptt": 7}, "frames must be a multiple of bptt, 7"),
        ({"batch": 100}, "batch must be a multiple of bptt"),
        ({"batch": 2048, "envs": 24}, r"batch is 2048: the 24 · 128 frames"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, text):
    with pytest.raises(MasteryError, match=text):
        Settings(**settings)
