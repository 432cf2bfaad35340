"""Where training went and what was learned, against numbers worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from made_jobs import chain, diamond

from mastery.rundir.results import Curves
from mastery.rundir.where import account, kinds_of_training

# two tasks, the second after the first; three points of 100, 100 and 200 frames; two runs
MASTERY = np.array([[[0.5, 0.0], [0.4, 0.0]], [[0.9, 0.3], [0.5, 0.1]], [[0.8, 0.95], [1.0, 0.2]]])
PLAYED = np.array([[[80, 20], [50, 50]], [[60, 40], [50, 50]], [[20, 180], [100, 100]]])
NEVER = np.nan
RETURNS = np.array(
    [[[0.2, NEVER], [0.1, NEVER]], [[0.6, 0.1], [NEVER, NEVER]], [[0.7, 0.9], [0.4, NEVER]]]
)


def made(returns=RETURNS):
    steps = np.array([1, 2, 3])
    none = np.zeros_like(MASTERY)
    return Curves(
        steps, np.array([100, 200, 400]), steps / 2, none, MASTERY, none, returns,
        np.ones_like(PLAYED), PLAYED, {},
    )  # fmt: skip


def test_training_counts_by_the_mastery_before():
    share = PLAYED / PLAYED.sum(axis=2, keepdims=True)
    found = kinds_of_training(share, MASTERY, chain(2))
    # the first run: at first only t0 is learnable; from 0.5 on t1 too; then t0 is mastered
    assert found[:, 0] == pytest.approx(np.array([[0, 0.8, 0.2], [0, 1, 0], [0.1, 0.9, 0]]))
    # the second: t0 has 0.4, then 0.5
    assert found[:, 1] == pytest.approx(np.array([[0, 0.5, 0.5], [0, 0.5, 0.5], [0, 1, 0]]))


def test_a_task_is_learnable_if_all_that_come_before_it_are_mastered_by_half():
    mastery = np.array([[[0.9, 0.5, 0.4, 0.0]], [[0.9, 0.5, 0.5, 0.0]], [[0.4, 0.9, 0.9, 0.9]]])
    share = np.full((4, 1, 4), 0.25)
    found = kinds_of_training(share, np.concatenate([mastery, mastery[:1]]), diamond())
    assert found[:, 0].tolist() == [
        [0, 0.25, 0.75],  # nothing is known yet: only the first is learnable
        [0.25, 0.5, 0.25],  # the last has an ancestor at 0.4
        [0.25, 0.75, 0],
        [0.75, 0.25, 0],  # mastered counts first, whatever became of the ancestor
    ]


def test_the_account_of_some_runs():
    found = account(made(), chain(2), np.array([0, 1]))
    assert found.times.tolist() == [[200, 400], [400, np.inf]]
    assert found.learned.tolist() == [2, 1]
    assert found.medians.tolist() == [400, np.inf]  # of two the later
    # weights 1/4, 1/4, 1/2; of the first run 1/20, 18/20, 1/20, of the second 0, 3/4, 1/4
    assert found.spent == pytest.approx([0.025, 0.825, 0.15])
    # (80 + 60 + 20) / 400 and (50 + 50 + 100) / 400
    assert found.share == pytest.approx([0.45, 0.55])
    # t0: 0.2 0.6 0.7 and 0.1 0.1 0.4; t1: 0 0.1 0.9 and its minimum, 0, three times
    assert found.returns == pytest.approx([2.1 / 6, 1 / 6])
    one = account(made(), chain(2), np.array([1]))
    assert (one.runs, one.times.tolist()) == (1, [[400, np.inf]])
    assert one.spent == pytest.approx([0, 0.75, 0.25])


def test_a_run_that_ended_early_counts_as_long_as_it_trained():
    curves = made()
    ended = PLAYED.copy()
    ended[2, 1] = 0  # the second run has trained for half of the time
    early = replace(curves, played=ended)
    found = account(early, chain(2), np.array([0, 1]))
    assert found.spent.sum() == pytest.approx(1)
    # over 400 and 200 frames: 20, 360, 20 of the first run and 0, 100, 100 of the second
    assert found.spent == pytest.approx([20 / 600, 460 / 600, 120 / 600])
    assert found.share == pytest.approx([(80 + 60 + 20 + 100) / 600, (240 + 100) / 600])


def test_mastery_has_as_many_digits_as_on_the_page():
    curves = made()
    curves.mastery[0, 0, 0] = 0.89996
    try:
        assert account(curves, chain(2), np.array([0])).times[0, 0] == 100
    finally:
        curves.mastery[0, 0, 0] = 0.5
