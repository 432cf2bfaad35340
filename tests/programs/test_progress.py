"""Each estimator of learning progress, on traces worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from mastery import Curriculum, Recipe, Task
from mastery.programs.evidence import Evidence

BACKENDS = pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])


def trace(xp, progress, steps, noise=0.0, **settings):
    """β of one task after each time-step; None is a time-step in which it was not seen."""
    recipe = Recipe.parse("gprop-linreg", progress=progress, **settings)
    program = recipe.build(Curriculum([Task("a"), Task("b")]))
    uniforms = xp.full((3, 2), noise)
    state = program.init(uniforms)
    betas = []
    for r in steps:
        seen = xp.asarray([r is not None, False])
        state = program.observe(
            state, Evidence.single(xp.asarray([r or 0.0, np.nan]), seen), uniforms
        )
        betas.append(float(program.view(state).progress[0]))
    return betas


def close(a, b):
    return a == pytest.approx(b, abs=1e-6)


@BACKENDS
def test_linreg_is_the_slope_over_time_steps(xp):
    # (1, 0): nothing yet. (1, 0), (2, 1): slope 1. Then unseen at t = 3, and
    # (1, 0), (2, 1), (4, 1): t̄ = 7/3, Σ(t−t̄)r = −1/3 + 5/3 = 4/3, Σ(t−t̄)² = 14/3, slope 2/7
    assert close(trace(xp, "linreg", [0.0, 1.0, None, 1.0], window=3), [0, 1, 1, 2 / 7])


@BACKENDS
def test_linreg_forgets_what_is_older_than_the_window(xp):
    # with K = 2 only the last two count: slopes 0.5, then −0.25 over two time-steps
    assert close(trace(xp, "linreg", [0.5, 1.0, None, 0.5], window=2), [0, 0.5, 0.5, -0.25])


@BACKENDS
def test_equal_returns_and_symmetric_returns_have_no_progress_at_all(xp):
    assert trace(xp, "linreg", [0.3] * 12)[-1] == 0.0
    assert trace(xp, "linreg", [0.1, 0.7, None, None, 0.7, 0.1])[-1] == 0.0


@BACKENDS
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_what_rounding_alone_makes_is_no_progress(xp, scale):
    # Σ(t − 5.5) r = −0.35 − 0.5 − 0.45 − 0.2 + 0.25 + 0.9 + 0.35 = 0, but not in binary numbers
    returns = [scale * r for r in (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0, 0.1, 0)]
    assert trace(xp, "linreg", returns, window=10)[-1] == 0.0
    # and a slope that is small, but not by rounding, is kept: 1e-4 at the end adds 4.5e-4 / 82.5
    returns[-1] = 1e-4 * scale
    assert trace(xp, "linreg", returns, window=10)[-1] == pytest.approx(5.4545e-6 * scale, rel=0.1)


@BACKENDS
def test_window_averages_slopes_only_when_the_task_is_seen(xp):
    # slopes 0, 1, (unseen), 2/7 as above; β = 0.1·1 = 0.1, stays, then 0.1·2/7 + 0.9·0.1
    betas = trace(xp, "window", [0.0, 1.0, None, 1.0], window=3, alpha=0.1)
    assert close(betas, [0, 0.1, 0.1, 0.2 / 7 + 0.09])


@BACKENDS
def test_online_averages_changes(xp):
    # changes: none, +1, (unseen), −0.5; α = 0.5: 0, 0.5, 0.5, −0.25 + 0.25 = 0
    assert close(trace(xp, "online", [0.0, 1.0, None, 0.5], alpha=0.5), [0, 0.5, 0.5, 0.0])


@BACKENDS
def test_sampling_draws_one_of_the_last_changes_and_is_1_before_any(xp):
    # the changes are 0.5 and −0.25; a uniform of 0 draws the first, of 0.9 the second
    steps = [0.0, 0.5, 0.25]
    assert close(trace(xp, "sampling", steps, noise=0.0), [1, 0.5, 0.5])
    assert close(trace(xp, "sampling", steps, noise=0.9), [1, 0.5, -0.25])


def test_sampling_draws_every_kept_change_alike():
    # K = 3 keeps the changes +1, −1, +0.5 of 0, 0.25, 1.25, 0.25, 0.75
    recipe = Recipe.parse("sampling:window=3").build(Curriculum([Task("a"), Task("b")]))
    random = np.random.default_rng(0)
    state = recipe.init(random.random((3, 2)))
    for r in (0.0, 0.25, 1.25, 0.25, 0.75):
        state = recipe.observe(
            state, Evidence.single(np.array([r, 0.0]), np.array([True, False])), state.noise
        )
    drawn = [
        recipe.view(state._replace(noise=random.random((3, 2)))).progress[0] for _ in range(3000)
    ]
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [-1.0, 0.5, 1.0]
    assert abs(counts / 3000 - 1 / 3).max() < 0.04


@BACKENDS
def test_change_is_the_last_change(xp):
    assert close(trace(xp, "change", [0.0, 0.5, None, 0.25], window=2), [0, 0.5, 0.5, -0.25])


@BACKENDS
def test_competence_compares_the_newer_half_with_the_older(xp):
    # [0, 1]: 1 − 0. [0, 1, 1]: the newest against the one before: 1 − 1 = 0.
    # [0, 1, 1, 2]: (1 + 2)/2 − (0 + 1)/2 = 1. K = 4, then [1, 1, 2, 0]: 1 − 1 = 0
    betas = trace(xp, "competence", [0.0, 1.0, 1.0, 2.0, 0.0], window=4)
    assert close(betas, [0, 1, 0, 1, 0])


@BACKENDS
def test_naive_trains_on_one_task_for_k_steps_then_takes_its_slope(xp):
    program = Recipe.parse("naive:window=3,alpha=0.5,epsilon=0").build(
        Curriculum([Task("a"), Task("b")])
    )
    # ties go to the larger uniform: b first, and the draw follows the distribution
    tie = xp.asarray([[0.5, 0.5], [0.1, 0.2], [0.5, 0.5]])
    state = program.init(tie)
    seen = []
    for t in range(6):
        seen.append(np.asarray(program.distribution(state)).tolist())
        r = xp.asarray([0.9, 0.25 * t])  # only b's returns count while b is held
        state = program.observe(state, Evidence.single(r, xp.asarray([True, True])), tie)
    assert seen == [[0, 1]] * 6  # β_b = 0.125 after the first block, so b again
    # two blocks of slope 0.25: 0.5·0.25, then 0.5·0.25 + 0.5·0.125
    assert close(np.asarray(state.tasks.progress).tolist(), [0.0, 0.1875])


def test_naive_draws_a_new_task_only_at_the_end_of_a_block():
    program = Recipe.parse("naive:window=5,epsilon=1").build(Curriculum.load("key-corridor"))
    random = np.random.default_rng(1)
    state = program.init(random.random((3, 6)))
    held = []
    for _ in range(200):
        held.append(int(np.argmax(program.distribution(state))))
        one = np.arange(6) == held[-1]
        state = program.observe(
            state, Evidence.single(random.random(6), one), random.random((3, 6))
        )
    blocks = np.array(held).reshape(40, 5)
    assert (blocks == blocks[:, :1]).all()
    assert len(set(blocks[:, 0])) == 6  # ε = 1: every task gets its turn
