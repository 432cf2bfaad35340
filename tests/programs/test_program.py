"""Programs against the slow oracle, and under every way they can be run."""

from functools import partial

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import SlowProgram
from strategies import curricula, histories, recipes

from mastery import Curriculum, Program, ProgramError, Recipe, Task, Teacher
from mastery.programs.evidence import Evidence
from mastery.programs.graph import make_graph
from mastery.programs.named import PROGRAMS

STEPS = 40


def dense(history, n, steps=STEPS):
    """A history as arrays; time-steps at the end in which nothing is seen change nothing."""
    returns, seen = np.zeros((steps, n)), np.zeros((steps, n), bool)
    for t, step in enumerate(history):
        for c, r in step.items():
            returns[t, c], seen[t, c] = r, True
    return returns, seen


@partial(jax.jit, static_argnames="slots")
def scanned(program, returns, seen, noise, slots=None):
    """A whole history under JAX: init, then one lax.scan, then the distribution."""
    state = program.init(noise[0], slots)

    def step(state, step):
        returns, seen, noise = step
        return program.observe(state, Evidence.single(returns, seen), noise), None

    state, _ = jax.lax.scan(step, state, (returns, seen, noise))
    return program.distribution(state)


def numpy_distribution(program, history, n):
    noise = np.zeros((3, n))
    state = program.init(noise)
    for returns, seen in zip(*dense(history, n, len(history)), strict=True):
        state = program.observe(state, Evidence.single(returns, seen), noise)
    return program.distribution(state)


@st.composite
def situations(draw):
    curriculum = draw(curricula(sizes=(1, 3, 6)))
    return curriculum, draw(recipes()), draw(histories(len(curriculum), STEPS))


def check_against_the_oracle(situation):
    curriculum, recipe, history = situation
    n = len(curriculum)
    slow = SlowProgram(curriculum, recipe)
    for step in history:
        slow.observe(step)
    expected = slow.distribution()
    program = recipe.build(curriculum)

    np.testing.assert_allclose(numpy_distribution(program, history, n), expected, atol=1e-9)

    layered = program._replace(graph=make_graph(curriculum, dense=False))
    np.testing.assert_allclose(numpy_distribution(layered, history, n), expected, atol=1e-9)

    noise = np.zeros((STEPS, 3, n), np.float32)
    # the window is traced, so its number of slots is given
    result = scanned(program, *dense(history, n), noise, slots=int(program.window))
    np.testing.assert_allclose(result, expected, atol=1e-5)


# the same examples in every run, so that most of them are left to the slow test
some, many = (
    settings(max_examples=n, deadline=None, suppress_health_check=list(HealthCheck))
    for n in (200, 2000)
)


@some
@given(situations())
def test_numpy_and_jax_agree_with_the_oracle(situation):
    check_against_the_oracle(situation)


@pytest.mark.slow
@many
@given(situations())
def test_they_agree_in_two_thousand_situations(situation):
    check_against_the_oracle(situation)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(curricula(sizes=(9,)), recipes(windows=(10,)), st.data())
def test_lists_and_matrices_agree_under_jax(curriculum, recipe, data):
    history = data.draw(histories(len(curriculum)))
    program = recipe.build(curriculum)
    layered = program._replace(graph=make_graph(curriculum, dense=False))
    noise = np.zeros((STEPS, 3, len(curriculum)), np.float32)
    arrays = dense(history, len(curriculum))
    np.testing.assert_allclose(
        scanned(layered, *arrays, noise, slots=10),
        scanned(program, *arrays, noise, slots=10),
        atol=1e-5,
    )


@settings(max_examples=200, deadline=None)
@given(curricula(), st.data())
def test_without_edges_and_delta_0_mr_with_gprop_is_gprop_linreg(curriculum, data):
    """The paper's remark at the end of section 4.2."""
    bare = Curriculum([Task(t.name, t.minimum, t.maximum) for t in curriculum])
    history = data.draw(histories(len(bare)))
    mr = Recipe.parse("mr:delta=0,distribution=gprop").build(bare)
    teacher_student = Recipe.parse("gprop-linreg").build(bare)
    np.testing.assert_allclose(
        numpy_distribution(mr, history, len(bare)),
        numpy_distribution(teacher_student, history, len(bare)),
        rtol=1e-12,
    )


def test_window_with_alpha_1_is_linreg():
    curriculum = Curriculum.load("obstructed-maze")
    a, b = Recipe.parse("gamax-window:alpha=1"), Recipe.parse("gamax-linreg")
    assert a.build(curriculum).progress == b.build(curriculum).progress


def random_log(n, steps=STEPS, seed=0):
    random = np.random.default_rng(seed)
    return (
        random.integers(0, 16, (steps, n)) / 16,
        random.random((steps, n)) < 0.6,
        random.random((steps, 3, n), np.float32),
    )


def loop(program, returns, seen, noise, xp):
    state = program.init(xp.asarray(noise[0]))
    for mean, which, fresh in zip(*map(xp.asarray, (returns, seen, noise)), strict=True):
        state = program.observe(state, Evidence.single(mean, which), fresh)
    return np.asarray(program.distribution(state))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_program_runs_under_numpy_jit_and_scan(name):
    curriculum = Curriculum.load("obstructed-maze")
    program = Recipe.parse(name).build(curriculum)
    log = random_log(len(curriculum))
    expected = loop(program, *log[:2], log[2].astype(float), np)
    assert expected.dtype == np.float64
    np.testing.assert_allclose(loop(program, *log, jnp), expected, atol=1e-5)
    result = scanned(program, *log, slots=50)
    assert result.dtype == jnp.float32
    np.testing.assert_allclose(result, expected, atol=1e-5)


def test_vmap_over_programs_with_different_hyper_parameters_and_edges():
    """Edges or none, δ, p, γ, ε and the window are data: one vmap runs them all."""
    curriculum = Curriculum.load("obstructed-maze")
    bare = Curriculum([Task(t.name, t.minimum, t.maximum) for t in curriculum])
    recipes = [
        (curriculum, "mr"),
        (curriculum, "mr:delta=0.2,power=1,window=5"),
        (curriculum, "mr:gamma_pred=0,gamma_succ=0.5,progress=window,alpha=0.3"),
        (bare, "mr:delta=0,distribution=gprop,epsilon=0.3"),
    ]
    programs = [Recipe.parse(text).build(c) for c, text in recipes]
    stacked = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(i) for i in x]), *programs)
    log = random_log(len(curriculum))
    together = jax.vmap(lambda p: scanned(p, *log, slots=10))(stacked)
    for program, result in zip(programs, together, strict=True):
        alone = loop(program, *log[:2], log[2].astype(float), np)
        np.testing.assert_allclose(result, alone, atol=1e-5)


def test_a_window_smaller_than_the_slots_counts_only_its_own():
    curriculum = Curriculum.load("key-corridor")
    for name in ("mr", "gamax-window", "sampling", "exp3s", "competence", "naive", "gamax-online"):
        program = Recipe.parse(f"{name}:window=4").build(curriculum)
        log = random_log(len(curriculum))
        np.testing.assert_allclose(
            scanned(program, *log, slots=10), scanned(program, *log, slots=4), atol=1e-6
        )


def test_late_time_steps_cost_no_digits():
    """After sixteen million time-steps float32 still finds the slope of 1/16 a step."""
    program = Recipe.parse("gprop-linreg").build(Curriculum([Task("a"), Task("b")]))
    state = jax.tree.map(jnp.asarray, program.init(jnp.zeros((3, 2))))
    state = state._replace(t=jnp.int32(2**24))
    for i in range(10):
        state = program.observe(
            state, Evidence.single(jnp.array([i / 16, 0.5]), jnp.array([True, True])), 0
        )
    np.testing.assert_allclose(program.view(state).progress, [1 / 16, 0.0], rtol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_updating_in_place_is_the_same_as_observing(name):
    """The teacher touches only the tasks that were seen; the pure function says what is right."""
    curriculum = Curriculum.load("obstructed-maze")
    program = Recipe.parse(name).build(curriculum)
    returns, seen, noise = random_log(len(curriculum))
    pure = program.init(noise[0].astype(float))
    owned = jax.tree.map(np.array, pure)
    for t in range(STEPS):
        step = noise[t].astype(float)
        pure = program.observe(pure, Evidence.single(returns[t], seen[t]), step)
        rows = np.random.default_rng(t).permutation(np.flatnonzero(seen[t]))
        tasks = rows if len(rows) != 1 else rows[0]
        one = np.ones_like(tasks, float)
        evidence = Evidence(returns[t][tasks], one, 0 * one, one)
        owned = program.observe_in_place(owned, tasks, evidence, step, [])
        for a, b in zip(jax.tree.leaves(pure), jax.tree.leaves(owned), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_program_is_plain_data():
    program = Recipe.parse("mr").build(Curriculum.load("key-corridor"))
    assert isinstance(program, Program)
    assert all(isinstance(x, np.ndarray | float | int) for x in jax.tree.leaves(program))


def test_learning_moves_attention_to_what_is_learnable_but_not_learned():
    teacher = Teacher(Curriculum.load("key-corridor"), "mr", seed=0)
    assert teacher.sample(20).count("S3R1") > 10  # the rest is what S3R1 yields to S3R2
    for _ in range(30):
        teacher.update({"S3R1": 0.9, "S3R2": 0.0})
    assert max(teacher.probabilities, key=teacher.probabilities.get) == "S3R2"
    assert teacher.probabilities["S5R3"] == 0


def hubs(n, seed=0):
    """Few tasks with many neighbours, many with few: degrees from 1 to hundreds."""
    random = np.random.default_rng(seed)
    names = [f"t{i}" for i in range(n)]
    return Curriculum(
        Task(
            name, after=tuple({names[int(i * u**3)] for u in random.random(random.zipf(1.6) % 300)})
        )
        if i > 9
        else Task(name)
        for i, name in enumerate(names)
    )


def test_tasks_with_few_and_with_many_neighbours():
    """The lists put tasks of like degree together; networkx says what is right."""
    curriculum = hubs(700)
    graph = make_graph(curriculum, dense=False)
    program = Recipe.parse("mr").build(curriculum)._replace(graph=graph)
    assert max(len(g.neighbours) for g in graph.successors) > 100
    mastery = np.random.default_rng(1).random(700)
    slow = SlowProgram(curriculum, Recipe.parse("mr"))
    slow.mastery, slow.attention = mastery.__getitem__, mastery.tolist
    m_anc, m_succ = graph.anc_succ(mastery)
    for c in range(0, 700, 7):
        ancestors, successors = nx.ancestors(slow.graph, c), slow.graph.successors(c)
        assert m_anc[c] == min((mastery[k] for k in ancestors), default=1.0)
        assert m_succ[c] == min((mastery[k] for k in successors), default=0.0)
    np.testing.assert_allclose(program.redistribute(mastery), slow.redistributed(), rtol=1e-9)


def test_more_tasks_than_fit_into_a_block():
    curriculum = Curriculum.random(20_000)
    program = Recipe.parse("mr").build(curriculum)
    random = np.random.default_rng(0)
    noise = np.zeros((3, 20_000))
    pure = program.init(noise)
    owned = jax.tree.map(np.array, pure)
    for share in (0.7, 1.0, 0.0001):
        seen = random.random(20_000) < share
        returns = random.random(20_000)
        rows = random.permutation(np.flatnonzero(seen))
        pure = program.observe(pure, Evidence.single(returns, seen), noise)
        one = np.ones(len(rows))
        owned = program.observe_in_place(
            owned, rows, Evidence(returns[rows], one, 0 * one, one), noise, []
        )
        for a, b in zip(jax.tree.leaves(pure), jax.tree.leaves(owned), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_matrices_are_taken_for_long_chains_and_lists_for_wide_graphs():
    chain = Curriculum(Task(f"t{i}", after=(f"t{i - 1}",) if i else ()) for i in range(300))
    assert type(make_graph(chain)).__name__ == "Dense"
    assert type(make_graph(Curriculum.random(300))).__name__ == "Layered"


def test_bounds_that_float32_cannot_tell_apart_give_no_nonsense():
    program = Recipe.parse("mr").build(Curriculum([Task("a", 1e8, 1e8 + 1), Task("b")]))
    noise = jnp.zeros((3, 2))
    state = program.init(noise)
    for _ in range(12):
        state = program.observe(
            state, Evidence.single(jnp.array([1e8, 0.5]), jnp.array([True, True])), noise
        )
        assert np.isfinite(program.distribution(state)).all()


def test_too_few_slots_for_the_window_are_refused():
    program = Recipe.parse("mr:window=20").build(Curriculum.load("key-corridor"))
    with pytest.raises(ProgramError, match="slots is 10; a window of 20 needs at least 20"):
        program.init(np.zeros((3, 6)), slots=10)
    stacked = program._replace(window=np.array([4, 20]))
    with pytest.raises(ProgramError, match="a window of 20 needs at least 20"):
        stacked.init(np.zeros((3, 6)), slots=10)
