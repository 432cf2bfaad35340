"""Mastery, learnability, equations 1 to 3, Exp3.S and the baselines, worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from mastery import Curriculum, Recipe, Task
from mastery.programs.attention import Exp3S, MasteringRate, TimeStep, View, mastering_rate
from mastery.programs.evidence import Evidence
from mastery.programs.graph import make_graph

BACKENDS = pytest.mark.parametrize("xp", [np, jnp], ids=["numpy", "jax"])
GRAPHS = pytest.mark.parametrize("dense", [True, False], ids=["matrices", "lists"])

# a → b → d, a → c → d: a diamond, and e alone
DIAMOND = Curriculum(
    [
        Task("a"),
        Task("b", after=("a",)),
        Task("c", after=("a",)),
        Task("d", after=("b", "c")),
        Task("e"),
    ]
)
ORDER = ["a", "e", "b", "c", "d"]  # topological: levels 0, 0, 1, 1, 2


def test_names_are_in_topological_order():
    assert list(DIAMOND.names) == ORDER


@BACKENDS
@GRAPHS
def test_learnability_is_the_least_mastery_among_all_ancestors(xp, dense):
    graph = make_graph(DIAMOND, dense=dense)
    mastery = xp.asarray([0.5, 0.1, 0.9, 0.7, 0.3])
    # a and e have no ancestor: 1. b and c: a. d: min(a, b, c) = 0.5
    assert np.asarray(graph.anc_succ(mastery)[0]).tolist() == [1, 1, 0.5, 0.5, 0.5]


@BACKENDS
@GRAPHS
def test_successors_min_is_over_direct_successors_and_0_without(xp, dense):
    graph = make_graph(DIAMOND, dense=dense)
    mastery = xp.asarray([0.5, 0.125, 0.75, 0.625, 0.25])
    # a: min(b, c) = 0.625. b and c: d = 0.25. d and e have none: 0
    assert np.asarray(graph.anc_succ(mastery)[1]).tolist() == [0.625, 0, 0.25, 0.25, 0]


def test_a_quotient_that_a_device_rounds_up_is_no_mastery_above_1():
    """On a GPU x / x may be 1 + 1.2e-7; then M (1 − M) would be negative."""
    above = jnp.nextafter(jnp.float32(1), jnp.float32(2))
    assert mastering_rate(jnp.asarray([above, -above]), 0.0, 1.0).tolist() == [1, 0]


@BACKENDS
@GRAPHS
def test_equation_1(xp, dense):
    graph = make_graph(DIAMOND, dense=dense)
    mastery = xp.asarray([0.5, 0.0, 0.5, 1.0, 0.0])
    beta = xp.asarray([0.02, -0.04, 0.0, 0.01, 0.0])
    a = MasteringRate(0.5, 2.0, 0.0, 0.0).attend((), View(mastery, beta, graph))
    # β̂ = [0.5, 1, 0, 0.25, 0]; δ(1−M) + (1−δ)|β̂| = [0.5, 1, 0.25, 0.125, 0.5]
    # M_Anc² = [1, 1, 0.25, 0.25, 0.25]; 1 − M_Succ = [1 − 0.5, 1, 1 − 0, 1 − 0, 1]
    expected = [0.5 * 0.5, 1, 0.25 * 0.25, 0.125 * 0.25, 0.5 * 0.25]
    np.testing.assert_allclose(a, expected, rtol=1e-6)


@BACKENDS
@GRAPHS
@pytest.mark.parametrize(
    ("left_out", "expected"),  # the factors are worked out in the test above
    [
        ({"power": 0.0}, [0.25, 1, 0.25, 0.125, 0.5]),
        ({"unlearned": 0.0}, [0.5, 1, 0.25, 0.25, 0.25]),
        ({"successors": 0.0}, [0.5, 1, 0.0625, 0.03125, 0.125]),
    ],
)
def test_each_factor_of_equation_1_can_be_left_out(xp, dense, left_out, expected):
    graph = make_graph(DIAMOND, dense=dense)
    mastery = xp.asarray([0.5, 0.0, 0.5, 1.0, 0.0])
    beta = xp.asarray([0.02, -0.04, 0.0, 0.01, 0.0])
    attention = MasteringRate(
        **{"delta": 0.5, "power": 2.0, "gamma_pred": 0, "gamma_succ": 0} | left_out
    )
    np.testing.assert_allclose(attention.attend((), View(mastery, beta, graph)), expected, 1e-6)


@BACKENDS
def test_equation_1_without_any_progress_takes_beta_hat_as_0(xp):
    graph = make_graph(DIAMOND)
    zeros = xp.zeros(5)
    a = MasteringRate(0.6, 6.0, 0.0, 0.0).attend((), View(zeros, zeros, graph))
    np.testing.assert_allclose(a, [0.6, 0.6, 0, 0, 0], rtol=1e-6)


@BACKENDS
@GRAPHS
def test_equations_2_and_3(xp, dense):
    graph = make_graph(DIAMOND, dense=dense)
    attention = MasteringRate(0.6, 6.0, gamma_pred=0.5, gamma_succ=0.25).solved(graph)
    a = xp.asarray([0.0, 1.0, 0.0, 0.0, 8.0])  # a, e, b, c, d
    # eq. 2, last task first: d' = 4; b' = c' = 0.5/2·4 = 1; a' = 0.5/1·1 + 0.5/1·1 = 1; e' = 0.5
    # eq. 3: a'' = 0.75·1; e'' = 0.75·0.5; b'' = c'' = 0.75·1 + 0.25/2·1 = 0.875;
    #        d'' = 0.75·4 + 0.25/1·1 + 0.25/1·1 = 3.5
    expected = [0.75, 0.375, 0.875, 0.875, 3.5]
    np.testing.assert_allclose(attention.redistribute(a, graph), expected, rtol=1e-6)


def mastery_after(returns, minimum=0.0, maximum=0.5, window=2):
    program = Recipe.parse("mr", window=window).build(Curriculum([Task("a", minimum, maximum)]))
    state = program.init(np.zeros((3, 1)))
    rates = []
    for r in returns:
        state = program.observe(
            state, Evidence.single(np.array([r]), np.array([True])), state.noise
        )
        rates.append(float(program.view(state).mastery[0]))
    return rates


def test_mastery_starts_at_0_and_follows_the_running_mean_and_maximum():
    # K = 2. One return 0.25: mean 0.25 of 0.5. Then means 0.5, 1.0 (the new maximum), 0.75, 0.25
    assert mastery_after([0.25, 0.75, 1.25, 0.25, 0.25]) == [0.5, 1.0, 1.0, 0.75, 0.25]


def test_before_k_returns_the_bounds_stand_still_and_the_mean_is_cut():
    assert mastery_after([3.0, 3.0], window=10) == [1.0, 1.0]
    # K = 2: a mean of −1 becomes the new minimum, so that 0 is then half way from −1 to 1
    assert mastery_after([-1.0, -1.0, 1.0], minimum=0.0, maximum=1.0) == [0.0, 0.0, 0.5]


def test_uniform_and_target():
    uniform = Recipe.parse("uniform").build(DIAMOND)
    target = Recipe.parse("target").build(DIAMOND)
    noise = np.zeros((3, 5))
    assert uniform.distribution(uniform.init(noise)).tolist() == [0.2] * 5
    assert target.distribution(target.init(noise)).tolist() == [0, 0.5, 0, 0, 0.5]  # d and e


@BACKENDS
def test_sequential_moves_on_when_all_of_a_level_is_mastered_and_never_back(xp):
    program = Recipe.parse("sequential:threshold=0.5,window=2").build(DIAMOND)
    noise = xp.zeros((3, 5))
    state = program.init(noise)
    levels = []
    for a, e in [(1.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0), (0.0, 0.0)]:
        levels.append(np.flatnonzero(program.distribution(state)).tolist())
        both = xp.asarray([True, True, False, False, False])
        state = program.observe(state, Evidence.single(xp.asarray([a, e, 0, 0, 0]), both), noise)
    # e reaches the mean 0.5 with the third return; then b and c, whatever happens to a and e
    assert levels == [[0, 1], [0, 1], [0, 1], [2, 3], [2, 3]]
    np.testing.assert_allclose(program.distribution(state), [0, 0, 0.5, 0.5, 0])


@BACKENDS
def test_exp3s_follows_its_update(xp):
    program = Recipe.parse("exp3s:eta=0.5,epsilon=0.2,window=2").build(
        Curriculum([Task("a"), Task("b"), Task("c")])
    )
    noise = xp.zeros((3, 3))
    state = program.init(noise)
    both = xp.asarray([True, True, False])
    state = program.observe(
        state, Evidence.single(xp.asarray([0.0, 0.0, 0.0]), both), noise
    )  # no gain yet
    np.testing.assert_allclose(program.distribution(state), [1 / 3] * 3, rtol=1e-6)
    state = program.observe(state, Evidence.single(xp.asarray([1.0, 0.5, 0.0]), both), noise)
    # Gains 1 and 0.5. Both percentiles are the lower of the two (index ⌊0.2⌋ = ⌊0.8⌋ = 0), so
    # r = sign(gain − 0.5) = 1 and 0. π was 1/3 each: w + η r̃ = [1.5, 0, 0]. t = 2:
    # w = log(½ e^v + ¼ Σ_others e^v')
    e = np.exp([1.5, 0, 0])
    w = np.log(0.5 * e + 0.25 * (e.sum() - e))
    pi = 0.8 * np.exp(w) / np.exp(w).sum() + 0.2 / 3
    np.testing.assert_allclose(program.distribution(state), pi, rtol=1e-5)


def test_exp3s_rescales_gains_between_the_20th_and_80th_percentile():
    n = 6
    program = Recipe.parse("exp3s:eta=1,epsilon=0,window=2").build(
        Curriculum([Task(f"t{i}") for i in range(n)])
    )
    noise, seen = np.zeros((3, n)), np.ones(n, bool)
    state = program.init(noise)
    state = program.observe(state, Evidence.single(np.zeros(n), seen), noise)
    gains = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    state = program.observe(state, Evidence.single(gains, seen), noise)
    # sorted gains at ⌊0.2·5⌋ = 1 and ⌊0.8·5⌋ = 4: low 1, high 4, so r = 2(g − 1)/3 − 1, cut
    r = np.array([-1, -1, -1 / 3, 1 / 3, 1, 1])
    e = np.exp(r * n)  # r̃ = r / (1/n)
    w = np.log(0.5 * e + (e.sum() - e) / (2 * (n - 1)))
    np.testing.assert_allclose(program.distribution(state), np.exp(w) / np.exp(w).sum(), rtol=1e-12)


@BACKENDS
def test_exp3s_does_not_overflow_after_millions_of_time_steps(xp):
    """t (N − 1) is beyond int32: 2.2 million time-steps with a thousand tasks."""
    n, t = 1000, 2_200_000
    w = xp.asarray(np.linspace(0, 1, n), dtype=xp.float32)
    zeros = xp.zeros(n, dtype=xp.float32)
    step = TimeStep(
        xp.asarray(t, dtype=xp.int32),
        Evidence.single(zeros, zeros > 0),
        rate=zeros,
        deviation=zeros,
        probabilities=zeros + 1 / n,
        count=xp.ones(n, dtype=xp.int32),
        window=2,
        gains=xp.zeros((2, n), dtype=xp.float32),
    )
    after = Exp3S(0.001).advance(w, View(zeros, zeros, None), step)
    e = np.exp(np.linspace(0, 1, n))
    expected = np.log((1 - 1 / t) * e + (e.sum() - e) / (t * (n - 1)))
    np.testing.assert_allclose(after, expected, atol=1e-6)


@BACKENDS
@pytest.mark.parametrize("size", [1e5, 1e-6])
def test_a_high_power_of_progress_fits_into_float32(xp, size):
    """|β|^8 of slopes of 1e5 is more than float32 can hold, of 1e-6 less."""
    program = Recipe.parse("gprop-linreg:exponent=8,epsilon=0").build(
        Curriculum([Task("a"), Task("b"), Task("c")])
    )
    noise = xp.zeros((3, 3))
    state = program.init(noise)
    for i in range(6):
        returns = xp.asarray([size * i, 0.5 * size * i, 0.0])
        state = program.observe(state, Evidence.single(returns, returns > -1), noise)
    # slopes 1 and 1/2, so 1 and 1/256
    expected = [256 / 257, 1 / 257, 0]
    np.testing.assert_allclose(program.distribution(state), expected, rtol=1e-4)
