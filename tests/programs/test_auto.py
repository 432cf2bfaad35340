"""The program `auto` gives what its slow oracle gives, and does what its equations promise."""

import itertools

import jax
import numpy as np
import pytest
from auto_oracle import BOUNDS, SETTINGS, SlowAuto, make_history
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_oracle import Step
from traces import Trace

import mastery
from mastery import Curriculum, Recipe, Task, Teacher, check_program
from mastery.programs.evidence import Evidence

SLOTS = 20  # the largest window of a program
TEXTS = [
    "auto:block=7",
    "auto:block=3,dark=0",
    "auto:block=3,hint=0",
    "auto:block=5,cheap=0",
    "auto:block=5,pool=0",
    "auto:block=7,patience=1e9",
    "auto:block=7,sigma=1e9",
    "auto:block=4,hint=8,dark=0.5,cheap=1,memory=30,fade=20,patience=5,sigma=2",
    "auto:epsilon=0.3,window=4",
]


def slow_auto(text, curriculum, **about):
    given = Recipe.parse(text).settings
    return SlowAuto(curriculum, **about, **{name: given[name] for name in SETTINGS})


def oracles(text, trace, margin=1e-9):
    """The oracle before the first time-step and after each."""
    oracle = slow_auto(text, trace.curriculum, margin=margin)
    yield oracle
    for step in trace.steps:
        oracle.observe(step)
        yield oracle


def expected(text, trace, margin=1e-9):
    """The oracle's distribution before each time-step and after the last, and whether each is
    certain."""
    given = [(o.distribution(), o.clear) for o in oracles(text, trace, margin)]
    return np.array([d for d, _ in given]), np.array([clear for _, clear in given])


def states(text, trace):
    """The program, and its states under NumPy: before the first time-step and after each."""
    program = Recipe.parse(text).build(trace.curriculum)
    found = [program.init(trace.noise)]
    for *step, noise in trace.steps:
        found.append(program.observe(found[-1], Evidence(*step), noise))
    return program, found


def found(text, trace):
    """The library's distributions, with NumPy."""
    program, seen = states(text, trace)
    return np.array([program.distribution(state) for state in seen])


def same(wanted, clear, result, atol):
    off = np.abs(result - wanted).max(axis=1)
    wrong = np.flatnonzero(clear & ~(off <= atol))
    assert not len(wrong), f"after {wrong[0]} time-steps: off by {off[wrong[0]]}"


def test_defaults():
    assert str(mastery.programs.auto()) == "auto"
    assert mastery.programs.auto(block=50) == Recipe.parse("auto:block=50")
    assert SETTINGS.items() <= Recipe.parse("auto").settings.items()


@pytest.mark.parametrize("text", ["auto", "auto:block=4,dark=1,hint=0,cheap=0,pool=0"])
def test_auto_fulfils_the_contract(text):
    done = check_program(text, Curriculum.load("obstructed-maze"))
    assert "JAX" in done[-1]


def in_units(oracle, name):
    """The oracle's memory; it has returns as they are, where the library has shares of bounds."""
    value = np.array(getattr(oracle, name), float)
    low = np.array(oracle.lowest)
    span = np.array(oracle.highest) - low
    if name == "total":
        return (value - low * np.array(oracle.returns)) / span
    return (value - low) / span if name == "best" else value


def compare(text, seeds, least=0.9, **kind):
    compared = total = 0
    for seed in seeds:
        trace = make_history(seed, **kind)
        program, after = states(text, trace)
        for t, (oracle, state) in enumerate(zip(oracles(text, trace), after, strict=True)):
            where = f"history {seed}, after {t} time-steps"
            d = oracle.distribution()
            if oracle.decided:
                for name, value in state.attention._asdict().items():
                    wanted = in_units(oracle, name)
                    assert np.allclose(value, wanted, rtol=1e-9, atol=1e-9), f"{where}: {name}"
            if oracle.clear:
                off = np.abs(program.distribution(state) - d).max()
                assert off <= 1e-9, f"{where}: off by {off}"
            compared += oracle.clear
            total += 1
    assert compared > least * total


@pytest.mark.parametrize("text", TEXTS)
def test_numpy_agrees_with_the_oracle(text):
    first = 8 * TEXTS.index(text)
    compare(text, range(first, first + 8))


@pytest.mark.slow
@pytest.mark.parametrize("graph", ["none", "chain", "random"])
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("text", TEXTS)
def test_numpy_agrees_with_the_oracle_on_many_histories(text, bounds, graph):
    compare(text, range(20), bounds=bounds, graph=graph)


@pytest.mark.slow
def test_numpy_agrees_with_the_oracle_on_long_histories_of_many_tasks():
    # more tasks than a graph of matrices has; and the more tasks, the sooner two are close
    compare("auto:block=20", range(10), 0.7, size=60, length=150)
    compare("auto:block=20", range(10), 0.7, size=5, length=1500)


@jax.jit
@jax.vmap
def scanned(program, first, steps):
    """The distributions under JAX, from one `lax.scan`; the runs are the first axis."""

    def step(state, given):
        state = program.observe(state, Evidence(*given[:4]), given[4])
        return state, program.distribution(state)

    state = program.init(first, SLOTS)
    _, after = jax.lax.scan(step, state, tuple(steps))
    return jax.numpy.concatenate([program.distribution(state)[None], after])


def float32(*arrays):
    """Arrays of several runs as one, in float32 if they are real."""
    array = np.stack([np.asarray(x) for x in arrays])
    return array.astype(np.float32) if array.dtype == np.float64 else array


def compare_jax(size, seeds, length=100):
    # Returns and bounds are the same numbers in float32; what was computed from them differs by
    # rounding, so that what decides is compared if it is further apart than 0.00001.
    runs = [
        (text, make_history(seed, size=size, length=length, exact=True))
        for text, seed in itertools.product(TEXTS, seeds)
    ]
    programs = [Recipe.parse(text).build(trace.curriculum) for text, trace in runs]
    first = float32(*[trace.noise for _, trace in runs])
    steps = jax.tree.map(float32, *[jax.tree.map(float32, *t.steps) for _, t in runs])
    result = np.asarray(scanned(jax.tree.map(float32, *programs), first, steps))
    compared = total = 0
    for (text, trace), distributions in zip(runs, result, strict=True):
        wanted, clear = expected(text, trace, 1e-5)
        same(wanted, clear, distributions, 1e-4)
        compared += clear.sum()
        total += len(clear)
    assert compared > 0.8 * total


def test_jax_agrees_with_the_oracle():
    compare_jax(5, range(3))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_jax_agrees_with_the_oracle_on_many_histories(size):
    compare_jax(size, range(20))


histories = st.builds(make_history, st.integers(0, 10**6))
texts = st.sampled_from(["auto", *TEXTS])


@settings(max_examples=12, deadline=None)
@given(texts, histories)
def test_probabilities_sum_to_one_and_spread_epsilon_evenly(text, trace):
    d, epsilon = found(text, trace), Recipe.parse(text).settings["epsilon"]
    assert np.allclose(d.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert (d >= epsilon / len(trace.curriculum) - 1e-15).all()


def rescaled(trace, scale, shift):
    """The same history with returns and bounds in another unit."""
    tasks = [
        Task(task.name, scale * task.minimum + shift, scale * task.maximum + shift, task.after)
        for task in trace.curriculum
    ]
    steps = [
        step._replace(mean=scale * step.mean + shift, variance=scale**2 * step.variance)
        for step in trace.steps
    ]
    return trace._replace(curriculum=Curriculum(tasks), steps=steps)


@settings(max_examples=12, deadline=None)
@given(texts, histories, st.sampled_from([0.01, 0.5, 3, 1e4]), st.sampled_from([0, 0.1, -5, 100]))
def test_the_unit_of_the_returns_does_not_matter(text, trace, scale, shift):
    other = rescaled(trace, scale, shift)
    assert other.curriculum.names == trace.curriculum.names
    clear = expected(text, trace, 1e-7)[1] & expected(text, other, 1e-7)[1]
    same(found(text, trace), clear, found(text, other), 1e-6)


@settings(max_examples=8, deadline=None)
@given(texts, histories)
def test_without_hint_the_order_does_not_matter(text, trace):
    tasks = [Task(task.name, task.minimum, task.maximum) for task in trace.curriculum]
    without = trace._replace(curriculum=Curriculum(tasks))
    assert without.curriculum.names == trace.curriculum.names
    recipe = Recipe.parse(text)
    ignored = str(mastery.programs.auto(**{n: recipe.settings[n] for n in SETTINGS} | {"hint": 0}))
    assert np.array_equal(found(ignored, trace), found(ignored, without))
    # and without an order, the hint does not matter
    assert np.array_equal(found(text, without), found(ignored, without))


@settings(max_examples=10, deadline=None)
@given(texts, histories, st.integers(0, 30))
def test_a_teacher_resumes_exactly(text, trace, at):
    names = trace.curriculum.names
    first, second = Teacher(trace.curriculum, text, seed=0), Teacher(trace.curriculum, text)
    for t, step in enumerate(trace.steps):
        if t == at:
            second.load_state_dict(first.state_dict())
        seen = {names[c]: c for c in np.flatnonzero(step.count)}
        returns = {name: [step.mean[c]] * int(step.count[c]) for name, c in seen.items()}
        cost = {name: step.cost[c] for name, c in seen.items()}
        for teacher in (first, second) if t >= at else (first,):
            teacher.update(returns, cost=cost)
        if t >= at:
            assert first.sample() == second.sample()
            assert np.array_equal(first.distribution, second.distribution)


@pytest.mark.parametrize(("size", "most"), [(5, 5), (5, 1), (100, 3), (100, 100)])
def test_in_place_is_the_same(size, most):
    for seed in range(3):
        trace = make_history(seed, size=size, length=60, exact=True)
        random = np.random.default_rng(seed)
        steps = []
        for step in trace.steps:
            kept = np.isin(np.arange(size), random.permutation(size)[:most])
            count = step.count * kept
            steps.append(step._replace(count=count, cost=step.cost * (count > 0)))
        trace = trace._replace(steps=steps)
        program = Recipe.parse("auto:block=5").build(trace.curriculum)
        state = jax.tree.map(np.array, program.init(trace.noise))
        result = [program.distribution(state)]
        for mean, count, variance, cost, noise in trace.steps:
            rows = np.flatnonzero(count)[::-1]
            evidence = Evidence(mean[rows], count[rows], variance[rows], cost[rows])
            state = program.observe_in_place(state, rows, evidence, noise, [])
            result.append(program.distribution(state))
        assert np.allclose(result, found("auto:block=5", trace), rtol=0, atol=1e-12)


def tasks(n, minimum=0.0, maximum=1.0, *, chain=False):
    """n tasks t0, t1, …; with `chain` each is after the one before."""
    before = [(f"t{i - 1}",) if chain and i else () for i in range(n)]
    return Curriculum([Task(f"t{i}", minimum, maximum, before[i]) for i in range(n)])


def history(curriculum, means, *, count=1.0, cost=1.0, u=0.0):
    """A history from the mean returns of each time-step.

    Args:
        curriculum: The curriculum.
        means: (T, N) The mean returns; NaN where the task is not seen.
        count: The number of returns of each task that is seen.
        cost: The cost of a return, for each task.
        u: The noise that decides between equal tasks, for each task.
    """
    noise = np.zeros((3, len(curriculum)))
    noise[0] = u
    steps = []
    for mean in np.asarray(means, float):
        counts = np.where(np.isnan(mean), 0.0, count)
        steps.append(Step(mean, counts, 0 * counts, cost * counts, noise))
    return Trace(curriculum, noise, steps, exact=True)


def block_on(task, n, epsilon=0.1):
    """The distribution in a block, while nothing succeeds."""
    return epsilon / n + (1 - epsilon) * (np.arange(n) == task)


def sequence(text, trace, block):
    """The tasks of the blocks, from the first on; each must last as long as it should."""
    d = found(text, trace)[10:]
    chosen = d.argmax(axis=1)[: len(d) // block * block].reshape(-1, block)
    assert (chosen == chosen[:, :1]).all()
    return chosen[:, 0].tolist()


def test_one_task_at_a_time_while_nothing_succeeds():
    trace = history(tasks(4), np.zeros((69, 4)), u=[0.1, 0.9, 0.5, 0.3])
    d = found("auto:block=20", trace)
    assert np.allclose(d[:10], 1 / 4)
    assert np.allclose(d[10:30], block_on(1, 4))
    assert np.allclose(d[30:50], block_on(2, 4))
    assert np.allclose(d[50:], block_on(3, 4))


def test_equal_tasks_take_turns():
    trace = history(tasks(4), np.zeros((210, 4)), u=[0.1, 0.9, 0.5, 0.3])
    assert sequence("auto:block=20", trace, 20) == [1, 2, 3, 0] * 2 + [1, 2]


def test_tasks_take_turns_if_only_the_chosen_one_is_trained():
    program = Recipe.parse("auto:block=20").build(tasks(4))
    random = np.random.default_rng(0)
    state, chosen = program.init(random.random((3, 4))), []
    for t in range(170):
        seen = np.arange(4) == state.attention.task if t >= 10 else np.ones(4, bool)
        evidence = Evidence.single(np.zeros(4), seen)
        state = program.observe(state, evidence, random.random((3, 4)))
        chosen.append(int(state.attention.task))
    blocks = chosen[9:169:20]
    assert sorted(blocks[:4]) == [0, 1, 2, 3]
    assert blocks[4:] == blocks[:4]  # the one trained longest ago has the fewest failures left


def test_a_block_ends_in_time_even_if_its_task_gives_no_returns():
    means = np.zeros((49, 2))
    means[10:, 1] = np.nan
    d = found("auto:block=20", history(tasks(2), means, u=[0, 1]))
    assert np.allclose(d[10:30], block_on(1, 2))
    assert np.allclose(d[30:50], block_on(0, 2))


def test_a_block_counts_time_steps_without_its_task():
    means = np.zeros((49, 2))
    means[10::2, 1] = np.nan  # in each second time-step of the block
    d = found("auto:block=20", history(tasks(2), means, u=[0, 1]))
    assert np.allclose(d[10:30], block_on(1, 2))
    assert np.allclose(d[30:50], block_on(0, 2))


def test_a_block_ends_after_500_returns_in_vain():
    trace = history(tasks(2), np.zeros((24, 2)), count=100, u=[0, 1])
    assert sequence("auto", trace, 5) == [1, 0, 1]


def test_a_block_ends_after_2000_returns():
    trace = history(tasks(2), np.full((69, 2), 0.005), count=100, u=[0, 1])
    assert sequence("auto", trace, 20) == [1, 0, 1]


def test_a_block_ends_when_its_task_is_learned():
    means = np.zeros((60, 2))
    means[10:, 1] = 1
    _, found_out = states("auto", history(tasks(2), means, count=8, u=[0, 1]))
    assert found_out[10].attention.task == 1
    assert found_out[-1].attention.task == 0
    assert found_out[-1].attention.tried.tolist() == [0, 0]  # it was not in vain


def test_there_is_no_block_when_all_is_learned():
    d = found("auto", history(tasks(2), np.ones((100, 2)), count=8))
    assert np.allclose(d, 1 / 2)


def test_a_cheap_task_comes_first():
    # A cost of 1 where others cost 5: with m returns of each, (5 m + 4) / (m + 4) of them relative
    # to the cheap one, since the mean cost is 4. After t = 90 time-steps m = 59.5, so the promise
    # of the cheap task is 4.75² = 22.6 times that of the others before the 2^-4 of its 4 blocks;
    # after 110 it is 4.78² = 22.8 times, before 2^-5.
    trace = history(tasks(4), np.zeros((130, 4)), cost=np.array([5, 5, 1, 5]), u=[0, 0.9, 0, 0])
    assert sequence("auto:block=20", trace, 20) == [2, 2, 2, 2, 2, 1]
    assert sequence("auto:block=20,cheap=0", trace, 20)[:2] == [1, 0]


def test_noise_decides_between_tasks_that_differ_by_less_than_a_thousandth():
    for cost, first in ((1.0002, 1), (1.002, 0)):  # squared: 1.0004 and 1.004
        trace = history(tasks(2), np.zeros((10, 2)), cost=np.array([1, cost]), u=[0, 1])
        assert sequence("auto", trace, 1) == [first]


def test_a_task_never_seen_counts_as_of_mean_cost():
    # Its chance is 0.4 / 40, and 0.4 / 49.4 of those with 9.4 failures left. The mean cost is 1.5
    # and m = 9.56, so the cheap task's is (m + 1.5) / (m + 1) / 1.5 = 0.70 of it: 49.4 · 0.49 < 40.
    means = np.tile([0, 0, np.nan], (10, 1))
    assert sequence("auto", history(tasks(3), means, cost=np.array([1, 2, 9])), 1) == [0]
    assert sequence("auto", history(tasks(3), means), 1) == [2]


def test_success_ends_the_dark():
    means = np.zeros((32, 3))
    means[20:, 2] = 0.5
    d = found("auto", history(tasks(3), means, count=8, u=[0.9, 0, 0]))
    assert np.allclose(d[10:21], block_on(0, 3))
    # s = 0.126 of the task with x = 0.5, and at most 4 (0.126 / 3) / 100 of the others
    assert np.allclose(d[32], block_on(2, 3), atol=1e-3)


def test_a_task_never_seen_has_the_mean_signal():
    means = np.tile([0.2, 0.4, 0.6, np.nan], (9, 1))
    d = found("auto", history(tasks(4), means, count=8))
    signals = np.sqrt(d[1:] - 0.1 / 4)  # in some unit
    assert np.allclose(signals[:, 3], signals[:, :3].mean(axis=1))
    assert np.allclose(d[0], 1 / 4)


def test_a_task_that_does_not_rise_loses_attention():
    # After 200 time-steps at x = 0.5: e < 2^-5, M = 0.5 / (0.5 + 0.5 e + 0.005) > 0.96, s < 0.002;
    # at x = 0.4 and rising: M = 0.4, s = 0.14. If the maximum is believed, M = 0.5 and s = 0.125.
    means = np.stack([np.full(200, 0.5), np.linspace(0.1, 0.5, 200)], axis=1)
    trace = history(tasks(2), means)
    assert found("auto", trace)[-1][0] < 0.06
    assert 0.35 < found("auto:patience=1e9", trace)[-1][0] < 0.5


def test_a_task_that_was_better_keeps_attention():
    # Both are at x = 0.5 for 300 time-steps; of the first g = 0.9 − 0.5, so M = 0.55, s = 0.11.
    means = np.full((360, 2), 0.5)
    means[:60, 0] = 0.9
    assert found("auto", history(tasks(2), means))[-1][0] > 0.9


def test_with_an_order_the_first_task_is_the_root():
    # 2^(−hint · trust) = 1/4 of a task whose ancestor is not mastered: two blocks in vain
    trace = history(tasks(3, chain=True), np.zeros((90, 3)), u=[0, 0.9, 0.5])
    assert sequence("auto:block=10", trace, 10) == [0, 0, 1, 2, 0, 1, 2, 0]
    assert sequence("auto:block=10,hint=0", trace, 10) == [1, 2, 0, 1, 2, 0, 1, 2]
    assert sequence("auto:block=10,hint=10", trace, 10)[:6] == [0, 0, 0, 0, 0, 1]


def test_trust_falls_when_a_descendant_is_learned_first():
    means = np.tile([0.0, 1.0], (30, 1))
    _, found_out = states("auto", history(tasks(2, chain=True), means, count=8))
    assert found_out[0].attention.trust == 1 / 2
    assert found_out[-1].attention.trust == 1 / 3


def test_trust_rises_when_the_order_is_right():
    means = np.repeat([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], 30, axis=0)
    _, found_out = states("auto", history(tasks(2, chain=True), means, count=8))
    assert found_out[59].attention.trust == 1 / 2  # the root alone says nothing
    assert found_out[-1].attention.trust == 2 / 3


@pytest.mark.parametrize(("root", "trust"), [(0.45, 1 / 3), (0.55, 2 / 3)])
def test_an_order_is_right_if_the_ancestors_are_half_mastered(root, trust):
    means = np.repeat([[root, 0.0], [root, 1.0]], 30, axis=0)
    _, found_out = states("auto:patience=1e9", history(tasks(2, chain=True), means, count=8))
    assert found_out[-1].attention.trust == trust


EXTREMES = {
    "at the minimum": (0.0, 1.0, 1.0),
    "in the middle": (0.5, 1.0, 1.0),
    "at the maximum": (1.0, 1.0, 1.0),
    "far above": (1e6, 1.0, 1.0),
    "far below": (-1e6, 1.0, 1.0),
    "no cost": (0.0, 1.0, 0.0),
    "one task without cost": (0.0, 3.0, np.array([0.0, 1.0, 1.0, 1.0])),
    "very different costs": (0.0, 3.0, np.array([1e-6, 1.0, 1.0, 1e6])),
    "many returns": (0.5, 1e6, 1.0),
    "never seen": (np.nan, 1.0, 1.0),
}


def extreme(name, n=4):
    mean, count, cost = EXTREMES[name]
    cost = cost if np.ndim(cost) == 0 else cost[np.arange(n) % 4]
    return history(tasks(n), np.full((60, n), mean), count=count, cost=cost)


@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_returns_and_costs(name):
    for text, n in itertools.product(["auto:block=3", "auto:block=3,dark=0,pool=0"], [1, 4]):
        d = found(text, extreme(name, n))
        assert np.allclose(d.sum(axis=1), 1)
        assert (d > 0).all()


def test_extreme_returns_and_costs_in_float32():
    runs = [(text, extreme(name)) for text in TEXTS for name in EXTREMES]
    programs = [Recipe.parse(text).build(trace.curriculum) for text, trace in runs]
    first = float32(*[trace.noise for _, trace in runs])
    steps = jax.tree.map(float32, *[jax.tree.map(float32, *t.steps) for _, t in runs])
    d = np.asarray(scanned(jax.tree.map(float32, *programs), first, steps))
    assert np.allclose(d.sum(axis=-1), 1, atol=1e-5)
    assert (d > 0).all()


@pytest.mark.parametrize("chain", [False, True])
def test_a_thousand_tasks(chain):
    random = np.random.default_rng(0)
    means = np.where(random.random((60, 1000)) < 0.01, random.random((60, 1000)), np.nan)
    d = found("auto:block=3", history(tasks(1000, chain=chain), means))
    assert np.allclose(d.sum(axis=1), 1)
    assert (d >= 0.1 / 1000 - 1e-15).all()


def test_a_learned_task_gets_no_block_while_others_never_succeed():
    means = np.tile([1.0, 0.0], (200, 1))
    d = found("auto", history(tasks(2), means, count=8))
    assert d[-1][1] > 0.5


def test_without_dark_there_are_no_blocks():
    d = found("auto:dark=0", history(tasks(4), np.zeros((20, 4))))
    assert np.allclose(d, 1 / 4)


def test_rounding_is_no_signal():
    trace = history(tasks(3, 0.1, 1.1), np.full((9, 3), 0.1), count=np.array([3.0, 5.0, 6.0]))
    assert np.allclose(found("auto", trace), 1 / 3)


def test_tasks_take_turns_for_ever():
    trace = history(tasks(2), np.zeros((2300, 2)), u=[0, 1])
    assert sequence("auto:block=1", trace, 1)[-4:] in ([0, 1, 0, 1], [1, 0, 1, 0])
