"""Drawing problems, some of them held out, and checking completions."""

from collections import Counter

import jax
import numpy as np
import pytest
import scipy.stats
from reasoning_oracle import TASKS, fits, is_held_out, solve

from mastery.random_numbers import uniform
from mastery.reasoning import problems
from mastery.reasoning.alphabet import ANSWER, END, PAD, PROMPT, decode, encode
from mastery.reasoning.families import FAMILIES, NEEDED
from mastery.reasoning.problems import FamilyLevels

EACH = 60
draw = jax.jit(problems.draw, static_argnames="held_out")
right = jax.jit(problems.is_right)
hashed = jax.jit(problems.is_held_out)


def tasks_of(names, each):
    """So many of each (family, level)."""
    numbers = [(list(FAMILIES).index(family), level) for family, level in names]
    return FamilyLevels(*np.repeat(np.array(numbers, np.int32), each, 0).T)


@pytest.fixture(scope="module")
def drawn():
    """Prompts and answers of all tasks: those to train on, and those held out."""
    tasks = tasks_of(TASKS, EACH)
    return {
        held_out: tuple(map(np.asarray, draw(jax.random.key(1), tasks, held_out=held_out)))
        for held_out in (False, True)
    }


def test_the_hash_is_the_one_of_whole_numbers(drawn):
    prompts = np.concatenate([drawn[False][0], drawn[True][0]])
    found = np.asarray(hashed(prompts))
    assert found.tolist() == [is_held_out(prompt) for prompt in prompts]
    # any symbols, also large ones that overflow 32 bits soon
    prompts = np.random.default_rng(0).integers(0, END + 1, (2000, PROMPT)).astype(np.int32)
    found = np.asarray(hashed(prompts))
    assert found.tolist() == [is_held_out(prompt) for prompt in prompts]
    assert abs(found.mean() - 0.2) < 4 * (0.2 * 0.8 / 2000) ** 0.5


def test_training_and_evaluation_never_share_a_problem(drawn):
    """Every task has problems of both kinds, each of the right kind, level and answer."""
    for held_out, (prompts, answers) in drawn.items():
        assert len(prompts) == len(TASKS) * EACH
        for i, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
            text = decode(prompt)
            assert is_held_out(prompt) is held_out
            assert fits(*TASKS[i // EACH], text), text
            assert decode(answer) == solve(text)


def test_a_fifth_of_each_task_is_held_out():
    """By the hash of what a task draws before problems are left out."""
    tasks, each = tasks_of(TASKS, 500), 500
    u = uniform(jax.random.key(7), (len(tasks.family), NEEDED))
    prompts = np.asarray(jax.jit(problems.make)(tasks, u).prompt)
    both = np.column_stack([prompts, hashed(prompts)]).reshape(len(TASKS), each, -1)
    for task, some in zip(TASKS, both, strict=True):
        different = np.unique(some, axis=0)
        share = different[:, -1].mean()
        # a task of few problems has 5 to 35 %; in large ones it is close to 20 %
        assert abs(share - 0.2) < 4.5 * (0.16 / len(different)) ** 0.5, (task, share)


def every_problem(family):
    """All problems of level 1, each as likely as the others, by plain Python."""
    digits = range(10)
    if family == "sum":
        return [f"{a}+{b}=" for a in digits for b in digits]
    if family == "product":
        return [f"{a}*{b}=" for a in digits for b in range(2, 10)]
    return [f"x{a}{sign}{b}=" for a in digits for sign in "+-*" for b in digits]


@pytest.mark.parametrize("family", ["sum", "product", "expression"])
@pytest.mark.parametrize("held_out", [False, True])
def test_what_is_left_is_as_likely_as_before(family, held_out):
    """χ² over all problems of the kind: nothing missing, nothing more often than the rest."""
    expected = {text for text in every_problem(family) if is_held_out(encode(text)) is held_out}
    n = len(TASKS) * EACH  # as above, so that it is compiled once
    prompts = draw(jax.random.key(3), tasks_of([(family, 1)], n), held_out=held_out).prompt
    counts = Counter(map(decode, np.asarray(prompts)))
    assert set(counts) == expected
    assert 0.001 < scipy.stats.chisquare(list(counts.values())).pvalue < 0.999


def test_the_same_key_draws_the_same_and_problems_differ(drawn):
    tasks = tasks_of(TASKS, EACH)
    again = draw(jax.random.key(1), tasks, held_out=False)
    assert np.array_equal(again.prompt, drawn[False][0])
    other = draw(jax.random.key(2), tasks, held_out=False)
    assert (np.asarray(other.prompt) != drawn[False][0]).any(1).mean() > 0.9
    several = {tuple(prompt) for prompt in drawn[False][0][:EACH]}  # of sum-1: 100 problems
    assert len(several) > EACH / 3


def padded(*symbols):
    return [*symbols, *[PAD] * (ANSWER - len(symbols))]


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        (padded(4, 6, END), True),
        (padded(4, 7, END), False),  # a wrong digit
        (padded(6, 4, END), False),
        (padded(4, 6), False),  # no END
        (padded(4, END), False),  # too short
        (padded(4, 6, 0, END), False),  # too long
        (padded(0, 4, 6, END), False),  # a leading zero
        (padded(4, 6, END, 4), False),  # something after END
        (padded(4, 6, END, END), False),
        (padded(PAD, 4, 6, END), False),
        (padded(4, PAD, 6, END), False),
        (padded(END), False),  # empty
        (padded(), False),
        ([4] * ANSWER, False),
    ],
)
def test_only_the_exact_answer_with_its_end_is_right(completion, expected):
    answer = np.array([padded(4, 6, END), padded(END)], np.int32)
    both = np.array([[completion, padded(4, 6, END)], [completion, padded(END)]], np.int32)
    found = right(both, answer)
    assert found.shape == (2, 2)
    assert bool(found[0, 0]) is expected
    assert found[:, 1].all()
    assert bool(found[1, 0]) is (completion == padded(END))  # nothing to close: END alone


def test_every_answer_is_right_for_its_own_problem_only(drawn):
    _, answers = drawn[True]
    assert right(answers[:, None], answers).all()
    equal = (np.roll(answers, 1, 0) == answers).all(1)
    assert np.array_equal(right(np.roll(answers, 1, 0)[:, None], answers)[:, 0], equal)
