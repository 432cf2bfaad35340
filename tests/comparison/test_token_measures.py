"""Numbers of the comparison, on curves whose answers are plain."""

from dataclasses import replace

import numpy as np
import pytest

from mastery.comparison import curves as files
from mastery.comparison.curves import TokenCurves
from mastery.comparison.measures import (
    GRID,
    SMOOTH,
    first_time,
    hard_tasks,
    means,
    rows,
    saved,
    smoothed,
    stuck_tasks,
    times,
)
from mastery.errors import MasteryError

POINTS, TASKS = 21, 4


def made(speeds, per_completion=None, luck=0.0):
    """Runs whose pass rate on every task rises in a line: to `speed` at the last point."""
    runs = len(speeds)
    done = np.linspace(0, 1, POINTS)
    completions = 1000 * np.arange(1, POINTS + 1)
    per = np.ones(runs) if per_completion is None else np.array(per_completion)
    passed = done[:, None] * np.array(list(speeds.values()))
    if luck:
        passed = passed + luck * np.where(np.arange(POINTS) % 2, 1, -1)[:, None]
    generated = completions[:, None] * per
    return TokenCurves(
        tasks=np.array([f"t{i}" for i in range(TASKS)]),
        programs=np.array([name.split("/")[0] for name in speeds]),
        seeds=np.arange(runs),
        completions=completions,
        generated=generated.astype(float),
        trained=generated / 2,
        flat=np.full((POINTS, runs), 0.5),
        passed=np.repeat(passed[:, :, None], TASKS, 2),
        greedy=np.repeat(passed[:, :, None], TASKS, 2),
        share=np.full((POINTS, runs, TASKS), 1 / TASKS),
        about={},
    )


def test_a_program_twice_as_fast_saves_half():
    tokens = np.linspace(0, 1000, GRID)
    line = np.linspace(0, 1, GRID)[:, None] * np.ones(3)
    assert saved(tokens, 2 * line, line).value == pytest.approx(0.5, abs=1 / GRID)
    assert saved(tokens, line, line).value == pytest.approx(0.0, abs=1 / GRID)


def test_a_program_half_as_fast_loses_half():
    tokens = np.linspace(0, 1000, GRID)
    line = np.linspace(0, 1, GRID)[:, None] * np.ones(3)
    found = saved(tokens, line / 2, line)
    assert found.value == pytest.approx(-0.5, abs=1 / GRID)
    assert found.low == found.high == found.value  # all seeds are equal


def test_the_interval_of_a_saving_is_wide_if_seeds_differ():
    tokens = np.linspace(0, 1000, GRID)
    line = np.linspace(0, 1, GRID)[:, None]
    found = saved(tokens, line * np.array([1.0, 4.0, 1.0, 4.0]), line * np.ones(4))
    assert found.low < 0.1 < found.value == pytest.approx(0.6, abs=0.02)  # the mean is 2.5 times
    assert found.high <= 0.76


def test_programs_are_compared_up_to_the_tokens_that_both_have():
    curves = made({"uniform/0": 0.5, "uniform/1": 0.5, "wordy": 0.5}, [1, 1, 2])
    found = {row.program: row for row in rows(curves)}
    assert found["wordy"].budget == 1000 * POINTS
    # with twice the tokens per completion it has done half of its completions there
    assert found["uniform"].last.value > found["wordy"].last.value > 0.5 * 0.4
    assert found["wordy"].better.value < -0.2
    assert found["wordy"].saved.value == pytest.approx(-0.5, abs=0.05)
    assert found["uniform"].chance.value == 0.5


def test_luck_that_all_runs_share_is_taken_off():
    plain = made({"uniform": 0.5, "mr": 0.8})
    noisy = made({"uniform": 0.5, "mr": 0.8}, luck=0.02)
    assert (np.diff(noisy.passed[5:, :, 0], axis=0) < 0).any()  # it goes up and down
    assert (np.diff(means(noisy)[5:], axis=0) > 0).all()
    gap = means(noisy)[:, 1] - means(noisy)[:, 0]
    assert gap == pytest.approx(plain.passed[:, 1, 0] - plain.passed[:, 0, 0])


def test_few_evaluations_are_left_as_they_are():
    curves = made({"uniform": 0.5})
    short = replace(curves, passed=curves.passed[:5], completions=curves.completions[:5])
    assert np.array_equal(means(short), short.passed.mean(2))


def test_a_goal_that_is_never_reached_is_infinitely_late():
    tokens = np.array([1.0, 2.0, 3.0])
    values = np.array([[0.1, 0.1], [0.5, 0.2], [0.4, 0.3]])
    assert first_time(tokens, values, 0.4).tolist() == [2.0, np.inf]


def test_times_count_the_runs_that_get_there():
    curves = made({"uniform/0": 0.4, "uniform/1": 0.4, "uniform/2": 0.9})
    ((median, reached),) = times(curves, (0.6,))["uniform"]
    assert (median.value, reached) == (np.inf, 1)


def test_smoothing_is_the_mean_of_what_came_before():
    values = np.arange(GRID, dtype=float)[:, None]
    found = smoothed(values)[:, 0]
    assert found[0] == 0.0
    assert found[3] == pytest.approx(1.5)
    assert found[-1] == pytest.approx(GRID - 1 - (SMOOTH - 1) / 2)


def test_hard_tasks_and_tasks_that_stay_at_0():
    curves = made({"uniform": 0.6, "mr": 0.9})
    curves.passed[0, :, 1:] = 0.3  # only the first task is hard at the start
    curves.passed[:, :, 0] = 0.0  # and it stays at 0
    curves.passed[-1, 1, 0] = 0.5  # but under mr
    assert hard_tasks(curves).tolist() == [0]
    assert stuck_tasks(curves, "uniform").tolist() == [0]
    found = {row.program: row for row in rows(curves)}
    assert found["uniform"].stuck == pytest.approx(1 / TASKS)
    assert found["uniform"].rarest == pytest.approx(1000 / TASKS)
    assert found["uniform"].hard.value == 0


def test_curves_come_back_from_their_file(tmp_path):
    curves = made({"uniform": 0.5, "mr": 0.8})
    files.save(curves, tmp_path / "x.npz")
    again = files.load(tmp_path / "x.npz")
    assert again.programs.tolist() == curves.programs.tolist()
    assert np.abs(again.passed - curves.passed).max() < 1e-3
    assert np.array_equal(again.generated, curves.generated)
    (tmp_path / "x.npz").write_bytes(b"nothing")
    with pytest.raises(MasteryError, match=r"cannot read the curves in .*x\.npz"):
        files.load(tmp_path / "x.npz")
