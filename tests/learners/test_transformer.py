"""The transformer against PyTorch, and what it samples against exact probabilities."""

from collections import Counter

import jax
import numpy as np
import pytest
import scipy.stats
import torch
import torch_transformer as oracle

from mastery.learners.transformer import Transformer, log_probability, read, sample, score
from mastery.reasoning.alphabet import ANSWER, END, PAD, SYMBOLS, encode

HEADS = 2
PROMPTS = np.array([encode(text) for text in ("12+34=", "r381=", "c0:2012201221001=")], np.int32)
score_all = jax.jit(score)
sample_all = jax.jit(sample, static_argnames="greedy")


@pytest.fixture(scope="module")
def model():
    """Two layers, and scales that are not all 1."""
    random = np.random.default_rng(0)
    model = Transformer(jax.random.key(0), width=16, layers=2, heads=HEADS)
    return jax.tree.map(lambda x: x + 0.2 * random.normal(size=x.shape).astype(np.float32), model)


@pytest.fixture(scope="module")
def sampled(model):
    uniforms = np.random.default_rng(1).random((ANSWER, len(PROMPTS), 40), np.float32)
    return tuple(map(np.asarray, sample_all(model, PROMPTS, uniforms)))


def test_the_logits_are_pytorchs_for_every_completion_by_itself(model):
    """Prompts of several lengths, read once for all completions; some end, some do not."""
    completion = np.random.default_rng(2).integers(0, SYMBOLS, (len(PROMPTS), 3, ANSWER))
    completion[:, 0, 3:] = [END] + [PAD] * (ANSWER - 4)
    found = np.asarray(score_all(model, PROMPTS, completion))
    assert found.shape == (len(PROMPTS), 3, ANSWER, SYMBOLS)
    w = oracle.weights(model)
    for prompt, completions, logits in zip(PROMPTS, completion, found, strict=True):
        for one, ours in zip(completions, logits, strict=True):
            expected = oracle.completion_logits(w, HEADS, prompt, one)
            assert np.allclose(ours, expected.detach(), atol=2e-5)


def test_padding_before_a_prompt_changes_nothing(model):
    """As many symbols of padding more, which also moves all positions."""
    more = np.pad(PROMPTS, ((0, 0), (5, 0)), constant_values=PAD)
    first, moved = read(model, PROMPTS)[1], read(model, more)[1]
    assert np.allclose(first, moved, atol=2e-5)


def test_a_symbol_sees_nothing_that_comes_after_it(model):
    completion = np.random.default_rng(3).integers(0, SYMBOLS, (len(PROMPTS), 2, ANSWER))
    other = completion.copy()
    other[:, 1, 4:] = 7
    before, after = score_all(model, PROMPTS, completion), score_all(model, PROMPTS, other)
    assert np.array_equal(before[:, :, :5], after[:, :, :5])
    assert np.array_equal(before[:, 0], after[:, 0])  # nor another completion of the group
    assert not np.allclose(before[:, 1, 5:], after[:, 1, 5:], atol=1e-3)


def test_what_was_drawn_has_the_probability_that_the_whole_pass_gives_it(model, sampled):
    """Symbol by symbol with a cache, all at once, and by PyTorch."""
    completion, log_p = sampled
    whole = log_probability(score_all(model, PROMPTS, completion), completion)
    first = np.cumsum(completion == END, -1) - (completion == END)
    counts = first == 0  # up to END
    assert np.allclose(np.where(counts, whole, 0.0), log_p, atol=2e-5)
    w = oracle.weights(model)
    for i, prompt in enumerate(PROMPTS):
        for j in range(3):
            expected = oracle.log_probabilities(w, HEADS, prompt, completion[i, j]).detach()
            assert np.allclose(log_p[i, j], np.where(counts[i, j], expected, 0.0), atol=2e-5)


def test_there_is_only_padding_after_the_end(sampled):
    completion, log_p = sampled
    ended = np.cumsum(completion == END, -1) > 0
    after = ended & (completion != END)
    assert (completion[after] == PAD).all()
    assert (np.sum(completion == END, -1) <= 1).all()
    assert (log_p[after] == 0).all()
    assert after.any()
    assert not ended[..., -1].all()  # others are cut off


def test_the_greedy_choice_is_the_likeliest_symbol(model):
    """Whatever the uniform numbers are, all completions of a prompt are the same."""
    uniforms = np.random.default_rng(4).random((ANSWER, len(PROMPTS), 2), np.float32)
    completion, _ = map(np.asarray, sample_all(model, PROMPTS, uniforms, greedy=True))
    assert np.array_equal(completion[:, 0], completion[:, 1])
    w = oracle.weights(model)
    for prompt, one in zip(PROMPTS, completion[:, 0], strict=True):
        best = oracle.completion_logits(w, HEADS, prompt, one).argmax(-1).tolist()
        length = best.index(END) + 1 if END in best else ANSWER
        assert one[:length].tolist() == best[:length]


def exact_pairs(model, prompt):
    """The probability of each first and second symbol, (SYMBOLS, SYMBOLS); after END, padding."""
    w = oracle.weights(model)
    with torch.no_grad():
        known = [int(s) for s in prompt if s != PAD]
        first = oracle.sequence_logits(w, HEADS, known)[-1].softmax(-1)
        pairs = torch.zeros(SYMBOLS, SYMBOLS, dtype=torch.float64)
        for symbol in range(SYMBOLS):
            if symbol == END:
                pairs[symbol, PAD] = first[symbol]
            else:
                after = oracle.sequence_logits(w, HEADS, [*known, symbol])[-1].softmax(-1)
                pairs[symbol] = first[symbol] * after
    return pairs.numpy()


def test_symbols_are_drawn_with_their_exact_probabilities(model):
    """χ² of first symbols, and of first and second symbols together; rare cells are one cell."""
    n = 20_000
    uniforms = np.random.default_rng(5).random((2, 1, n), np.float32)
    for i in range(2):
        prompt = PROMPTS[i : i + 1]
        drawn = np.asarray(sample_all(model, prompt, uniforms)[0])[0]
        pairs = exact_pairs(model, prompt[0])
        assert np.isclose(pairs.sum(), 1)
        found = np.zeros_like(pairs)
        for pair, count in Counter(map(tuple, drawn.tolist())).items():
            found[pair] = count
        for counts, expected in ((found.sum(1), pairs.sum(1)), (found.ravel(), pairs.ravel())):
            common = expected * n >= 5
            assert common.sum() > 10
            counts = np.append(counts[common], counts[~common].sum())
            expected = np.append(expected[common], expected[~common].sum()) * n
            kept = expected > 0
            assert counts[~kept].sum() == 0
            p = scipy.stats.chisquare(counts[kept], expected[kept]).pvalue
            assert 0.001 < p < 0.9999


@pytest.mark.parametrize("u", [0.0, 1 - 2**-24])
def test_the_ends_of_the_range_draw_symbols_too(model, u):
    completion, log_p = sample_all(model, PROMPTS, np.full((ANSWER, 3, 1), u, np.float32))
    assert ((completion >= 0) & (completion < SYMBOLS)).all()
    assert np.isfinite(log_p).all()
