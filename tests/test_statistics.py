"""Statistics against rliable, scipy and numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rliable import library, metrics
from scipy import stats

from mastery.errors import MasteryError
from mastery.statistics import (
    first_time,
    improvement,
    interquartile_mean,
    interval,
    median_time,
)

random = np.random.default_rng(7)
OURS, THEIRS = random.beta(5, 2, (10, 6)), random.beta(3, 2, (8, 6))


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=60))
def test_the_interquartile_mean_is_scipys_trimmed_mean(scores):
    expected = stats.trim_mean(scores, 0.25)
    assert interquartile_mean(np.array(scores)[:, None]) == pytest.approx(expected, abs=1e-9)


def test_the_interquartile_mean_is_rliables():
    assert interquartile_mean(OURS) == pytest.approx(metrics.aggregate_iqm(OURS))


def test_the_probability_of_improvement_is_rliables():
    expected = metrics.probability_of_improvement(OURS, THEIRS)
    assert improvement(OURS, THEIRS) == pytest.approx(expected)
    tied = np.round(OURS, 1), np.round(THEIRS, 1)
    expected = metrics.probability_of_improvement(*tied)
    assert improvement(*tied) == pytest.approx(expected)


def test_the_probability_of_improvement_by_hand():
    # of four pairs 3 > 1, 3 > 2, 2 > 1, and 2 = 2
    assert improvement(np.array([[3.0], [2.0]]), np.array([[1.0], [2.0]])) == 3.5 / 4


@pytest.mark.filterwarnings("ignore:random_state is deprecated:FutureWarning")  # rliable's own
def test_intervals_are_rliables():
    """Two bootstraps of the same scores, with other random numbers: they agree to a percent."""
    _, expected = library.get_interval_estimates(
        {"ours": OURS}, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=4000,
        random_state=np.random.RandomState(0),
    )  # fmt: skip
    found = interval(interquartile_mean, OURS, draws=4000)
    assert [found.low, found.high] == pytest.approx(expected["ours"][:, 0], abs=0.01)
    _, expected = library.get_interval_estimates(
        {"pair": (OURS, THEIRS)}, metrics.probability_of_improvement, reps=2000,
        random_state=np.random.RandomState(0),
    )  # fmt: skip
    found = interval(improvement, OURS, THEIRS)
    assert [found.low, found.high] == pytest.approx(expected["pair"].ravel(), abs=0.015)


def test_the_time_to_a_threshold():
    frames = np.array([10, 20, 30])
    values = np.array([[0.0, 0.9, 0.5], [0.8, 0.1, 0.5], [0.9, 0.9, 0.5]])
    assert first_time(frames, values, 0.8).tolist() == [20, 10, np.inf]


def test_the_median_of_times_counts_those_that_never_got_there():
    assert median_time(np.array([3.0, 1.0, 2.0])).value == 2
    assert median_time(np.array([3.0, 1.0, 2.0, np.inf])).value == 3  # the higher of 2 and 3
    assert median_time(np.array([1.0, np.inf, np.inf])).value == np.inf
    many = median_time(np.array([*range(1, 10), np.inf]))
    assert 2 <= many.low <= 5 <= many.value <= 7 <= many.high
    assert median_time(np.full(4, np.inf)) == (np.inf, np.inf, np.inf)


def test_scores_that_are_missing_are_not_compared():
    scores = np.array([[0.5, np.nan], [0.4, 0.3]])
    with pytest.raises(MasteryError, match="1 of 4 scores are NaN; leave out tasks and times"):
        interval(improvement, scores, scores)
