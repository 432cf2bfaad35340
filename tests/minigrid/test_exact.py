"""The engine and the real package, step by step: nothing may differ in a single bit."""

from __future__ import annotations

import pytest
from episodes import compare

from mastery.minigrid.tasks import NAMES


@pytest.mark.parametrize("task", range(len(NAMES)), ids=NAMES)
def test_every_step_equals_the_package(task):
    steps, successes, differences = compare(task, steps=4000, successes=10, seed=0)
    assert steps >= 4000
    assert successes >= 10
    assert differences == 0


@pytest.mark.slow
@pytest.mark.parametrize("task", range(len(NAMES)), ids=NAMES)
def test_ten_million_steps_equal_the_package(task):
    steps, successes, differences = compare(task, steps=556_000, successes=500, seed=1)
    print(f"{NAMES[task]}: {steps:,} steps, {successes:,} successes, {differences} differences")
    assert steps * len(NAMES) >= 10_000_000
    assert differences == 0
