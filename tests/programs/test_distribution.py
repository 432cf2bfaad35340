"""The A2D converters by hand, drawing by χ², allocation exact and unbiased."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mastery import Curriculum, Recipe, Task, Teacher
from mastery.programs.distribution import Amax, Boltzmann, Prop, allocate, cumulative, draw

BACKENDS = pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])


def convert(xp, converter, a, uniforms=(0.0, 0.0, 0.0, 0.0)):
    return np.asarray(converter.convert(xp.asarray(a), xp.asarray(uniforms)))


@BACKENDS
def test_converters_by_hand(xp):
    a = [1.0, 3.0, 0.0, 0.0]
    close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-12)  # noqa: E731
    close(convert(xp, Prop(0.0), a), [0.25, 0.75, 0, 0])
    close(convert(xp, Prop(0.2), a), [0.25, 0.65, 0.05, 0.05])  # 0.8·prop + 0.2/4
    close(convert(xp, Amax(0.0), a), [0, 1, 0, 0])
    close(convert(xp, Amax(0.2), a), [0.05, 0.85, 0.05, 0.05])
    e = np.exp([0.5, 1.5, 0, 0])
    close(convert(xp, Boltzmann(2.0), a), e / e.sum())


@BACKENDS
def test_no_attention_is_uniform(xp):
    nothing = [0.0] * 4
    for converter in (Prop(0.0), Prop(0.3), Boltzmann(1e-4)):
        np.testing.assert_allclose(convert(xp, converter, nothing), [0.25] * 4, rtol=1e-6)


@BACKENDS
def test_boltzmann_does_not_overflow(xp):
    result = convert(xp, Boltzmann(4e-4), [1000.0, 0.0, 999.9999, 0.0])
    assert np.isfinite(result).all()
    assert result.sum() == pytest.approx(1)


@BACKENDS
def test_ties_of_argmax_go_to_the_largest_uniform(xp):
    assert convert(xp, Amax(0.0), [2.0, 1.0, 2.0, 2.0], [0.1, 0.9, 0.7, 0.3]).tolist() == [
        0,
        0,
        1,
        0,
    ]


def test_ties_of_argmax_are_broken_evenly_by_the_teacher():
    teacher = Teacher(
        Curriculum([Task("a"), Task("b"), Task("c")]), "gamax-linreg:epsilon=0", seed=3
    )
    counts = {"a": 0, "b": 0, "c": 0}
    for _ in range(3000):
        counts[teacher.sample()] += 1
        teacher.update({})  # nothing is learned: all attention stays 0, a tie of three
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


PROGRAMS = ["mr:distribution=" + d for d in ("amax", "gamax", "boltzmann", "prop", "gprop")]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_million_draws_follow_the_probabilities(program):
    teacher = Teacher(
        Curriculum.load("obstructed-maze"),
        program + (",temperature=0.2" if "boltz" in program else ""),
        seed=5,
    )
    for t in range(12):
        teacher.update({"1Dl": 0.03 * t, "1Dlh": 0.01 * t, "2Dl": 0.02 * t})
    p = teacher.distribution
    names = np.array(teacher.sample(1_000_000))
    counts = np.array([(names == name).sum() for name in teacher.curriculum.names])
    assert (counts[p == 0] == 0).all()
    if (p > 0).sum() > 1:
        expected = p[p > 0] * 1_000_000
        assert stats.chisquare(counts[p > 0], expected).pvalue > 1e-4


@given(
    st.lists(st.sampled_from([0.0, 1e-300, 1e-12, 0.1, 1.0, 7.0]), min_size=1, max_size=30),
    st.sampled_from([0.0, 0.3, 1 - 2**-53]),
)
def test_a_task_without_probability_is_never_drawn(weights, uniform):
    if sum(weights) == 0:
        weights = [*weights, 1.0]
    sums = cumulative(np.array(weights) / sum(weights))
    assert weights[int(draw(sums, np.array([uniform]))[0])] > 0


@pytest.mark.parametrize("n", [6, 2000, 20_000])
def test_running_sums_never_go_down_and_grow_only_where_they_should(n):
    """JAX adds up in parts, in float32, so this is not a matter of course."""
    random = np.random.default_rng(0)
    p = np.where(random.random(n) < 0.3, random.random(n), 0.0)
    p[0] = 0.5
    for xp in (np, jnp):
        sums = np.asarray(cumulative(xp.asarray(p / p.sum())))
        steps = np.diff(sums, prepend=0.0)
        assert (steps >= 0).all()
        assert (steps[p == 0] == 0).all()
        assert sums[-1] == 1.0
        numbers = np.asarray(allocate(xp.asarray(sums), 100_000, 0.3))
        assert numbers.sum() == 100_000
        assert (numbers >= 0).all()


@BACKENDS
def test_allocation_adds_up_for_the_largest_uniform_too(xp):
    sums = cumulative(xp.full(6, 1 / 6))
    for n in (1, 128, 65_536):
        for u in (0.0, 1 - 2**-24):
            assert int(allocate(sums, n, xp.asarray(u, dtype="float32")).sum()) == n


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda w: sum(w) > 1e-9),
    st.integers(0, 5000),
    st.floats(0, 1, exclude_max=True),
)
def test_allocation_adds_up_and_is_the_share_rounded_up_or_down(weights, n, uniform):
    p = np.array(weights) / sum(weights)
    numbers = allocate(cumulative(p), n, uniform)
    assert numbers.sum() == n
    assert (numbers >= 0).all()
    assert (abs(numbers - n * p) < 1 + 1e-6).all()


@BACKENDS
def test_allocation_is_unbiased(xp):
    # the mean over all shifts: every allocation for a grid of uniforms, by the definition
    p = xp.asarray([0.5, 0.25, 0.15, 0.1, 0.0])
    grid = (np.arange(2000) + 0.5) / 2000
    mean = np.mean([np.asarray(allocate(cumulative(p), 7, u)) for u in grid], axis=0)
    np.testing.assert_allclose(mean, 7 * np.asarray(p), atol=2e-3)


def test_the_teacher_allocates_a_minibatch():
    teacher = Teacher(Curriculum.load("addition-9"), "gprop-linreg", seed=0)
    totals = np.zeros(9)
    for _ in range(2000):
        numbers = teacher.allocate(100)
        assert numbers.total() == 100
        totals += [numbers[name] for name in teacher.curriculum.names]
    np.testing.assert_allclose(totals / 2000, 100 * teacher.distribution, atol=0.05)
    assert teacher.allocate(0).total() == 0


def test_the_programs_of_the_paper_convert_as_they_should():
    for name, epsilon in (("gprop-linreg", 0.1), ("gamax-window", 0.1), ("exp3s", 0.05)):
        assert Recipe.parse(name).settings["epsilon"] == epsilon
