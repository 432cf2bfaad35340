"""A prompt borrows from its task: numbers worked out by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mastery.prompts.estimates import completions_wanted, estimate, learnability, task_rate


def one(rate, n, s, q, strength):
    return float(estimate(rate, *(np.array([x]) for x in (n, s, n * q)), strength)[0])


def test_a_task_starts_at_one_half_and_follows_its_returns():
    assert task_rate(0.0, 0.0) == 0.5
    assert task_rate(3.0, 4.0) == pytest.approx(4 / 6)


def test_a_prompt_without_returns_is_as_its_task():
    assert one(0.3, 0.0, 0.0, 0.0, 4.0) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("rate", "n", "s", "strength", "expected"),
    [
        (0.5, 8, 0, 4, 2 / 12),  # (0 + 4 · 0.5) / (8 + 4)
        (0.5, 8, 8, 4, 10 / 12),
        (0.25, 8, 4, 8, 6 / 16),  # (4 + 8 · 0.25) / (8 + 8)
        (0.25, 4, 1, 4, 2 / 8),  # as the task: nothing moves
    ],
)
def test_while_the_task_stands_still_it_is_a_beta_posterior(rate, n, s, strength, expected):
    assert one(rate, n, s, rate, strength) == pytest.approx(expected)


def test_it_moves_with_its_task_in_odds():
    # 8 failures while the task was at 1/2: posterior 1/6, odds 1/5 against the task's 1.
    # the task is at 2/3 now, odds 2, so the prompt's are 2/5: 2/7
    assert one(2 / 3, 8, 0, 0.5, 4) == pytest.approx(2 / 7)
    # the task is at 9/10, odds 9: 9/5, so 9/14
    assert one(0.9, 8, 0, 0.5, 4) == pytest.approx(9 / 14)


shares = st.integers(1, 99).map(lambda x: Fraction(x, 100))


@given(rate=shares, q=shares, n=st.integers(1, 64), data=st.data(), strength=st.integers(1, 16))
def test_against_exact_fractions(rate, q, n, data, strength):
    s = data.draw(st.integers(0, n))

    def odds(p):
        return p / (1 - p)

    wanted = odds(rate) * odds((s + strength * q) / (n + strength)) / odds(q)
    wanted = wanted / (1 + wanted)
    found = one(float(rate), float(n), float(s), float(q), float(strength))
    assert found == pytest.approx(float(wanted), rel=1e-9)
    assert 0 < found < 1


def test_learnability_is_greatest_at_one_half():
    assert learnability(np.array([0.0, 0.1, 0.5, 1.0])).tolist() == pytest.approx(
        [0, 0.09, 0.25, 0]
    )


def test_more_completions_where_all_may_be_alike():
    # 0.5⁴ = 0.0625 ≤ 0.1 < 0.5³; 0.9²² = 0.0985 ≤ 0.1 < 0.9²¹ = 0.109
    p = np.array([0.5, 0.9, 0.1, 0.0, 1.0])
    assert completions_wanted(p, 2, 100).tolist() == [4, 22, 22, 100, 100]
    assert completions_wanted(p, 6, 16).tolist() == [6, 16, 16, 16, 16]
