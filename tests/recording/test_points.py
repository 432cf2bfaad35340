"""Which updates a point covers."""

import pytest

from mastery.recording.points import end_of_point, first_points


def test_points_double_when_the_number_of_updates_has():
    ends = sorted({end_of_point(step, 4) for step in range(1, 33)})
    assert ends == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]


def test_a_point_ends_at_the_next_end():
    ends = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
    for step in range(1, 33):
        assert end_of_point(step, 4) == min(end for end in ends if end >= step)


@pytest.mark.parametrize(("tasks", "first"), [(1, 512), (3, 512), (900, 512), (100_000, 4)])
def test_many_tasks_have_fewer_points(tasks, first):
    assert first_points(tasks) == first


def test_a_million_tasks_have_a_point_for_each_doubling():
    assert first_points(1_000_000) == 2
    assert sorted({end_of_point(step, 2) for step in range(1, 65)}) == [1, 2, 4, 8, 16, 32, 64]


def test_rows_stay_bounded():
    for tasks in (3, 1000, 20_000):
        first, points, step = first_points(tasks), 0, 0
        while step < 500_000:
            step, points = end_of_point(step + 1, first), points + 1
        assert points * tasks <= 4_000_000
