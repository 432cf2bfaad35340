"""GRPO against PyTorch: advantages, the clipped loss, its gradient, the step of Adam; counts."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch_transformer as oracle
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mastery import MasteryError
from mastery.learners import grpo
from mastery.learners.grpo import SMALL, ReasoningHyper, ReasoningSettings, Sampled
from mastery.learners.transformer import Transformer, sample
from mastery.reasoning.alphabet import ANSWER, END, PAD, encode
from mastery.reasoning.problems import FamilyLevels

HEADS, PROMPTS, GROUP = 2, 4, 5
advantages = jax.jit(grpo.advantages)
gradient_of = jax.jit(jax.value_and_grad(grpo.loss))
few = settings(max_examples=30, deadline=None)


def new_model(seed=0, noise=0.2):
    random = np.random.default_rng(seed)
    model = Transformer(jax.random.key(seed), width=16, layers=2, heads=HEADS)
    return jax.tree.map(lambda x: x + noise * random.normal(size=x.shape).astype(np.float32), model)


def hyper(**changes):
    return ReasoningHyper.of(replace(SMALL, **changes))


@pytest.fixture(scope="module")
def seen():
    """Groups of an older model; the last group is without variance."""
    prompt = np.array([encode(text) for text in ("3+8=", "12+34=", "s381=", "b([(=")], np.int32)
    uniforms = np.random.default_rng(1).random((ANSWER, PROMPTS, GROUP), np.float32)
    completion, log_p = map(np.asarray, jax.jit(sample)(new_model(), prompt, uniforms))
    reward = np.array([[1, 0, 0, 1, 0], [0, 0, 0, 0, 1], [1, 1, 1, 1, 0], [1] * 5], np.float32)
    return Sampled(prompt, completion, log_p, np.asarray(advantages(reward)))


def named(tree):
    """The arrays of a model, or of its gradient, as the oracle names them."""
    return {name: x.detach().numpy() for name, x in oracle.weights(tree).items()}


def test_advantages_by_hand():
    """One of four: mean 1/4, deviation √3/4; two of four: 1/2; four of five: 4/5, 2/5."""
    found = advantages(np.array([[1, 0, 0, 0], [0, 1, 0, 1]], np.float32))
    assert np.allclose(found[0], [3**0.5, *[-(3**-0.5)] * 3], atol=1e-5)
    assert np.allclose(found[1], [-1, 1, -1, 1], atol=1e-5)
    found = advantages(np.array([[1, 1, 0, 1, 1], [0] * 5, [1] * 5], np.float32))
    assert np.allclose(found[0], [0.5, 0.5, -2, 0.5, 0.5], atol=1e-5)
    assert (found[1:] == 0).all()


rewards = arrays(np.float32, (3, 6), elements=st.sampled_from([0.0, 1.0]))


@few
@given(rewards, st.permutations(range(6)))
def test_advantages_are_the_oracles_and_follow_their_completions(reward, order):
    found = np.asarray(advantages(reward))
    assert np.allclose(found, [oracle.advantages(group.tolist()) for group in reward], atol=1e-5)
    assert np.allclose(advantages(reward[:, order]), found[:, order], atol=1e-6)
    assert np.allclose(found.sum(1), 0, atol=1e-5)


@pytest.mark.parametrize("group", [2, 3, 7, 41, 47, 55, 64])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_group_without_variance_has_no_advantage_whatever_its_size(group, reward):
    """The compiled mean of 41 ones is not 1."""
    assert (advantages(np.full((2, group), reward, np.float32)) == 0).all()


@pytest.mark.parametrize("drop", [0.0, 1.0, 0.5])
@pytest.mark.parametrize("far", [False, True], ids=["inside the clip", "outside"])
def test_the_loss_and_its_gradient_are_pytorchs(seen, drop, far):
    """A model that has moved a little since it drew the completions, or far."""
    model = new_model()
    random = np.random.default_rng(2)
    size = 0.1 if far else 0.002
    model = jax.tree.map(lambda x: x + size * random.normal(size=x.shape).astype(np.float32), model)
    h = hyper(drop=drop)
    found, gradient = gradient_of(model, seen, h)
    w = oracle.weights(model)
    ratios = [
        (oracle.log_probabilities(w, HEADS, p, c).detach().numpy() - old)[c != PAD]
        for p, group, olds in zip(seen.prompt, seen.completion, seen.log_probability, strict=True)
        for c, old in zip(group, olds, strict=True)
    ]
    ratio = np.exp(np.concatenate(ratios))
    outside = (ratio < 0.8) | (ratio > 1.28)
    assert outside.mean() > 0.1 if far else not outside.any()
    assert not outside.all()
    expected = oracle.loss(w, HEADS, seen, SMALL.clip, SMALL.clip_high, drop)
    expected.backward()
    assert np.isclose(found, expected.item(), atol=1e-5)
    for name, ours in named(gradient).items():
        assert np.allclose(ours, w[name].grad, atol=2e-5), name
    assert max(np.abs(x.grad.numpy()).max() for x in w.values()) > 0.01


def test_the_clip_stops_a_gradient_on_one_side_only(seen):
    """By hand: with A > 0, a ratio above 1 + ε_high counts as 1.28 and has no gradient; a ratio
    below 1 − ε counts as it is. With A < 0 it is the other way round."""
    model = new_model()
    counts = seen.completion != PAD
    symbols = counts.sum()
    for advantage, moved, expected in (
        (1.0, np.log(2), -1.28),
        (1.0, -np.log(2), -0.5),
        (-1.0, np.log(2), 2.0),
        (-1.0, -np.log(2), 0.8),
    ):
        other = seen._replace(
            log_probability=np.where(counts, seen.log_probability - moved, 0).astype(np.float32),
            advantage=np.full((PROMPTS, GROUP), advantage, np.float32),
        )
        found, gradient = gradient_of(model, other, hyper())
        assert np.isclose(found, expected, atol=1e-4)
        stopped = expected in (-1.28, 0.8)
        norm = sum(float((g**2).sum()) for g in jax.tree.leaves(gradient)) ** 0.5
        assert (norm < 1e-6) is stopped
    assert symbols > 20


def test_groups_without_variance_give_no_gradient(seen):
    """Alone they do nothing; beside others they count in the mean, unless they are dropped."""
    model = new_model(noise=0.21)
    flat = seen._replace(advantage=np.zeros_like(seen.advantage))
    for drop in (0.0, 1.0):
        found, gradient = gradient_of(model, flat, hyper(drop=drop))
        assert found == 0
        assert all((x == 0).all() for x in jax.tree.leaves(gradient))
    kept, dropped = (float(gradient_of(model, seen, hyper(drop=d))[0]) for d in (0.0, 1.0))
    symbols = (seen.completion != PAD).sum((1, 2))
    assert np.isclose(dropped / kept, symbols.sum() / symbols[:3].sum(), rtol=1e-4)


@pytest.mark.parametrize("largest", [1e3, 0.01], ids=["free", "limited"])
def test_two_steps_of_adam_are_pytorchs(seen, largest):
    model = new_model(noise=0.21)
    w = oracle.weights(model)
    adam = torch.optim.Adam(w.values(), lr=0.01)
    learner = grpo.begin(jax.random.key(0), model)
    optimiser, model = learner.optimiser, learner.model
    step = jax.jit(grpo.descend)
    for _ in range(2):
        _, gradient = gradient_of(model, seen, hyper())
        model, optimiser = step(model, optimiser, gradient, 0.01, largest)
        adam.zero_grad()
        oracle.loss(w, HEADS, seen, SMALL.clip, SMALL.clip_high, 0.0).backward()
        norm = torch.nn.utils.clip_grad_norm_(w.values(), largest)
        assert bool(norm > largest) is (largest < 1)
        adam.step()
    large = 0
    for name, ours in named(model).items():
        # Adam divides by the gradient's size: what is nearly 0 in both may differ
        clear = (w[name].grad.abs() > 1e-4 * min(largest, 1)).numpy()
        assert np.allclose(ours[clear], w[name].detach()[clear], atol=2e-4), name
        large += clear.sum()
    assert large > 1000


TASKS = FamilyLevels(np.array([0, 6, 9], np.int32), np.array([1, 2, 1], np.int32))
TINY = ReasoningSettings(
    prompts=8, group=4, minibatches=2, width=8, layers=1, heads=2, learning_rate=0.01
)


@pytest.fixture(scope="module")
def learn():
    return jax.jit(partial(grpo.learn, tasks=TASKS, settings=TINY, h=ReasoningHyper.of(TINY)))


def test_an_update_draws_tasks_by_their_probabilities_and_moves_the_model(learn):
    learner = grpo.begin(jax.random.key(1), grpo.new_model(jax.random.key(0), TINY))
    after, found = learn(learner, np.array([0.5, 0.0, 0.5], np.float32))
    assert found.completions[1] == found.tokens[1] == found.right[1] == found.flat[1] == 0
    assert found.completions.sum() == TINY.per_update == 32
    again, _ = learn(learner, np.array([0.5, 0.0, 0.5], np.float32))
    same = jax.tree.map(
        np.array_equal, *(eqx.filter(x.model, eqx.is_array) for x in (after, again))
    )
    assert all(jax.tree.leaves(same))
    assert not np.array_equal(jax.random.key_data(after.key), jax.random.key_data(learner.key))


def model_that_ends():
    """Whatever comes, its likeliest symbols are `)` and END, at about 1/2 each."""
    model = grpo.new_model(jax.random.key(0), TINY)
    model = jax.tree.map(jnp.zeros_like, model)
    out = jnp.zeros_like(model.out).at[0, jnp.array([20, END])].set(6.0)
    symbols = jnp.zeros_like(model.symbols).at[:, 0].set(1.0)
    return eqx.tree_at(
        lambda m: (m.out, m.symbols, m.scale), model, (out, symbols, jnp.ones_like(model.scale))
    )


@settings(max_examples=15, deadline=None, phases=[Phase.generate])
@given(st.integers(0, 2**31), st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any))
def test_what_is_found_adds_up(learn, seed, weights):
    """Groups that vary are those of brackets, of which `)` is an answer."""
    learner = grpo.begin(jax.random.key(seed), model_that_ends())
    p = np.array(weights, np.float32) / sum(weights)
    _, found = learn(learner, p)
    found = grpo.Counted(*map(np.asarray, found))
    assert found.completions.sum() == 32
    assert (found.completions % TINY.group == 0).all()
    assert (found.completions[p == 0] == 0).all()
    assert ((found.right >= 0) & (found.right <= found.completions)).all()
    assert (found.tokens >= found.completions).all()  # END at least
    assert (found.tokens <= ANSWER * found.completions).all()
    groups = found.completions // TINY.group
    assert ((found.flat >= 0) & (found.flat <= groups)).all()
    assert (found.trained <= found.tokens).all()
    assert ((found.trained == 0) == (found.flat == groups)).all()
    assert (found.trained >= TINY.group * (groups - found.flat)).all()
    assert ((found.right == 0) <= (found.trained == 0)).all()
    assert (found.trained[:2] == 0).all()  # `)` answers no sum and reverses nothing


def test_a_model_that_knows_the_answer_gets_it(learn):
    """Of sampled completions of brackets, right are those that a model of coin throws gets."""
    evaluate = jax.jit(partial(grpo.evaluate, tasks=TASKS, each=400))
    right, long = map(np.asarray, evaluate(model_that_ends(), jax.random.key(3)))
    assert right.shape == long.shape == (2, 3)
    assert (right[:, :2] == 0).all()
    assert 0.02 < right[1, 2] < 0.4
    # throws until the first END, ten at most: 2 − 2^−9 symbols, but for other symbols sometimes
    assert abs(long[1] - 2).max() < 0.4


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"width": 20, "heads": 8}, "width is 20; it must be a multiple of heads, 8"),
        ({"prompts": 9, "minibatches": 2}, "prompts is 9; it must be a multiple of minibatches, 2"),
        ({"width": 24, "heads": 8}, "width / heads is 3; it must be even"),
        ({"drop": 1.5}, "drop is 1.5; it must be 0 or more, and at most 1"),
        ({"clip": 0.0}, "clip is 0.0; it must be more than 0"),
        ({"group": 0}, "group is 0"),
        ({"group": 1}, "group is 1; it must be at least 2, since a completion is compared"),
        ({"layers": 0}, "layers is 0"),
        ({"pretrain_rate": -1.0}, "pretrain_rate is -1.0; it must be more than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, text):
    with pytest.raises(MasteryError, match=text):
        ReasoningSettings(**changes)
