"""PPO against independent versions of its parts, and as a whole."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from mastery import MasteryError
from mastery.learners import ppo
from mastery.learners.ppo import PAPER, Agent, Frames, Hyper, Settings
from mastery.minigrid import NAMES
from mastery.minigrid.cells import CLOSED, DECODED, RED

SMALL = Settings(envs=8, frames=32, batch=64, ahead=4)
UNLOCK = np.eye(18, dtype=np.float32)[0]


def collected(settings, seed=0, probabilities=UNLOCK):
    """An agent, what it played, and the frames it would learn from."""

    @jax.jit
    def run(key):
        learner = ppo.begin(key, probabilities, settings)
        h = Hyper.of(settings)
        envs, frames, played = ppo.collect(learner.agent, learner.envs, key, settings, h)
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
        a = (a - a.mean()) / (a.std(unbiased=False) + 1e-8)
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


def test_the_network_is_torchs_too():
    """Convolutions, pooling, LSTM and heads with the same weights in torch."""
    agent = Agent(jax.random.key(0), PAPER)
    rng = np.random.default_rng(0)
    cells = rng.choice([0, 13, 40, 18, 26, 48, 61, 66, 90], size=(5, 7, 7)).astype(np.uint8)
    memory = rng.normal(size=(5, 2, 64)).astype(np.float32)
    after, x = agent.remember(memory, agent.embed(cells))
    logits, value = agent.judge(x)

    def tensor(x):
        return torch.tensor(np.asarray(x))

    y = tensor(DECODED[cells].astype(np.float32)).permute(0, 3, 1, 2)
    for n, layer in enumerate(agent.convolutions):
        channels = layer.weight.shape[0] // 4
        kernel = tensor(layer.weight).reshape(2, 2, channels, -1).permute(3, 2, 0, 1)
        y = torch.relu(torch.nn.functional.conv2d(y, kernel, tensor(layer.bias)))
        if n == 0:
            y = torch.nn.functional.max_pool2d(y, 2)
    y = y.reshape(5, 64)
    cell = torch.nn.LSTMCell(64, 64)
    with torch.no_grad():
        cell.weight_ih.copy_(tensor(agent.lstm.weight[:64]).T)
        cell.weight_hh.copy_(tensor(agent.lstm.weight[64:]).T)
        cell.bias_ih.copy_(tensor(agent.lstm.bias))
        cell.bias_ih[64:128] += 1  # of the forget gate
        cell.bias_hh.zero_()
        h, c = cell(y, (tensor(memory[:, 0]), tensor(memory[:, 1])))
        (p1, p2), (v1, v2) = agent.policy, agent.value
        t_logits = torch.tanh(h @ tensor(p1.weight) + tensor(p1.bias)) @ tensor(p2.weight)
        t_value = torch.tanh(h @ tensor(v1.weight) + tensor(v1.bias)) @ tensor(v2.weight)
    assert np.allclose(after, np.stack([h, c], 1), atol=1e-5)
    assert np.allclose(logits, t_logits, atol=1e-5)
    assert np.allclose(value, t_value[:, 0], atol=1e-5)


def test_the_one_hot_encoding_by_hand():
    door = ppo._one_hot(np.array(CLOSED << 3 | RED, np.uint8))
    assert np.flatnonzero(door).tolist() == [4, 8, 15]  # a door, red, closed
    wall = ppo._one_hot(np.array(13, np.uint8))
    assert np.flatnonzero(wall).tolist() == [2, 13]  # a wall, grey
    empty, unseen = (ppo._one_hot(np.array(cell, np.uint8)) for cell in (40, 0))
    assert np.flatnonzero(empty).tolist() == [1]
    assert np.flatnonzero(unseen).tolist() == [0]


@pytest.mark.parametrize("settings", [SMALL, replace(SMALL, skip=False, encoding="raw"),
                                      replace(SMALL, memory="none", bptt=1)])  # fmt: skip
def test_what_is_replayed_is_what_was_played(settings):
    """The memory is cut at starts of episodes and carried from segment to segment as in play."""
    settings = replace(settings, frames=320)  # longer than an episode of 288
    agent, _, frames, played = collected(settings)
    assert int(played.episodes.sum()) >= 8
    assert np.asarray(frames.starts).sum() >= 16
    logits, value = jax.jit(ppo.replay)(agent, frames)
    chosen = ppo._log_probability(logits, frames.action)
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
        learner = ppo.begin(key, UNLOCK, SMALL)
        learner, played = ppo.update(learner, UNLOCK, SMALL, h)
        return jax.tree.leaves((learner.agent, played))

    keys = jax.random.split(jax.random.key(0), 3)
    first, again = run(keys[1]), run(keys[1])
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    batch = jax.jit(jax.vmap(run))(keys)
    assert all(np.allclose(a, b[1], atol=1e-4) for a, b in zip(first, batch, strict=True))


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

    learner = begin(jax.random.key(0), UNLOCK)
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
