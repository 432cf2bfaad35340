"""The synthetic language model: it learns by the equations it documents, and nothing leaks."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kendalltau, norm

from mastery import MasteryError, Teacher
from mastery.simulation import prompts
from mastery.simulation.prompts import (
    PromptWorld,
    _chain,
    _curriculum,
    _held_out,
    _Model,
    _names,
    _pass_rate,
    _random,
    _start,
    _train,
    simulate_prompts,
)

SMALL = PromptWorld(categories=3, prompts=4, batch=6, group=4)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def by_quadrature(theta, beta, spread):
    """The mean of sigmoid(θ − b), b normal with mean β, by adaptive quadrature."""
    value, _ = quad(lambda z: sigmoid(theta - beta - spread * z) * norm.pdf(z), -10, 10)
    return value


def pair(theta=(0.0, 0.0)):
    """Two categories of two prompts: the first, with β = 2, is harder than the second, β = 1."""
    return _Model(
        category=np.array([0, 0, 1, 1]),
        rank=np.array([1, 0]),
        beta=np.array([2.0, 1.0]),
        difficulty=np.array([2.5, 1.5, 1.0, 0.5]),
        broken=np.array([False, False, False, True]),
        theta=np.array(theta),
        memorised=np.zeros(4),
    )


@pytest.fixture
def taught(monkeypatch):
    """The teachers of a simulation; each lists what it drew and what was reported to it."""
    teachers = []

    class Recorded(Teacher):
        def __init__(self, *arguments, **settings):
            super().__init__(*arguments, **settings)
            self.steps = []
            teachers.append(self)

        def sample(self, k):
            drawn = super().sample(k)
            self.steps.append([drawn])
            return drawn

        def update(self, returns):
            self.steps[-1].append(returns)
            super().update(returns)

    monkeypatch.setattr(prompts, "Teacher", Recorded)
    return teachers


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 2.0])
def test_held_out_pass_rates_are_means_over_the_difficulties(spread):
    model = pair(theta=(0.3, 4.0))
    expected = [by_quadrature(0.3, 2.0, spread), by_quadrature(4.0, 1.0, spread)]
    np.testing.assert_allclose(_held_out(PromptWorld(spread=spread), model), expected, atol=1e-8)


def test_held_out_pass_rates_are_those_of_fresh_prompts():
    world = PromptWorld(categories=2, prompts=200_000, easiest=0.0, hardest=3.0, spread=2.0)
    model = _start(world, np.random.default_rng(0))
    fresh = (1 / (1 + np.exp(model.difficulty))).reshape(2, -1).mean(axis=1)
    np.testing.assert_allclose(_held_out(world, model), fresh, atol=4 * 0.5 / 200_000**0.5)


def test_nothing_memorised_and_no_broken_prompt_counts_as_held_out():
    model = pair(theta=(1.0, 2.0))
    learned = model._replace(memorised=np.full(4, 9.0), broken=np.ones(4, bool))
    np.testing.assert_array_equal(_held_out(SMALL, model), _held_out(SMALL, learned))


def test_the_categories_are_spread_from_the_easiest_to_the_hardest():
    world = PromptWorld(categories=4, prompts=5, easiest=-1.0, hardest=5.0, spread=0.0, rate=0.0)
    (outcome,) = simulate_prompts(["uniform"], world, seeds=3, steps=2)
    expected = [sigmoid(1), sigmoid(-1), sigmoid(-3), sigmoid(-5)]
    np.testing.assert_allclose(outcome.last, [expected] * 3)
    np.testing.assert_allclose(outcome.passed, np.full((3, 3), np.mean(expected)))
    np.testing.assert_allclose(outcome.area, [np.mean(expected)] * 3)
    orders = {tuple(_start(world, _random(seed)).rank) for seed in range(20)}
    assert len(orders) > 5  # so the names do not show it


def test_the_shares_of_prompts_never_drawn_and_of_groups_without_signal():
    world = PromptWorld(categories=2, prompts=5, batch=1, group=1)
    (outcome,) = simulate_prompts(["uniform"], world, seeds=4, steps=1)
    assert outcome.unseen.tolist() == [0.9] * 4  # one of ten was drawn
    assert outcome.wasted.tolist() == [1.0] * 4  # one completion cannot both pass and fail
    np.testing.assert_array_equal(outcome.passed[:, 0], outcome.passed[:, 1])


def test_the_pass_rate_by_hand():
    model = pair(theta=(0.5, 2.0))._replace(memorised=np.array([1.0, 0.0, 0.0, 9.0]))
    found = _pass_rate(model, np.array([0, 1, 2, 3, 0]))
    expected = [sigmoid(0.5 + 1 - 2.5), sigmoid(0.5 - 1.5), sigmoid(2 - 1), 0, sigmoid(-1)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "theta", "memorised"),
    [
        # signals 1; 0.75 and 0.75; 0: 0.1 for the first category, 0.15 for the second
        ({}, [0.1, 0.15], [0, 0, 0, 0]),
        # 0.6 of each one's own, and half of 0.4 · 0.25
        ({"common": 0.4}, [0.06 + 0.05, 0.09 + 0.05], [0, 0, 0, 0]),
        ({"common": 1.0}, [0.125, 0.125], [0, 0, 0, 0]),
        ({"memorised": 0.3}, [0.1, 0.15], [0.3, 0, 0.225 + 0.225, 0]),
        ({"rate": 0.0, "memorised": 2.0}, [0, 0], [2, 0, 3, 0]),
    ],
)
def test_a_time_step_of_learning_by_hand(settings, theta, memorised):
    world = PromptWorld(**{"categories": 2, "prompts": 2, "rate": 0.1, **settings})
    chosen, share = np.array([0, 2, 2, 3]), np.array([0.5, 0.25, 0.75, 1.0])
    learned = _train(world, pair(), chosen, share)
    np.testing.assert_allclose(learned.theta, theta, rtol=1e-12)
    np.testing.assert_allclose(learned.memorised, memorised, rtol=1e-12)


def test_in_a_chain_a_category_needs_the_next_easier_one():
    world = PromptWorld(categories=2, prompts=2, rate=0.1, spread=0.0, chain=True)
    chosen, share = np.array([0, 2]), np.array([0.5, 0.5])
    # the easier category has a pass rate of one half: θ = β = 1
    learned = _train(world, pair(theta=(0.0, 1.0)), chosen, share)
    np.testing.assert_allclose(learned.theta, [0.1 * (0.05 + 0.95 * 0.5), 1.1], rtol=1e-12)
    # three categories in the order 1, 2, 0; what is common is shared by all three
    world = PromptWorld(categories=3, prompts=1, rate=0.1, spread=0.0, chain=True, common=0.5)
    model = _Model(
        category=np.arange(3),
        rank=np.array([2, 0, 1]),
        beta=np.array([4.0, 0.0, 2.0]),
        difficulty=np.array([4.0, 0.0, 2.0]),
        broken=np.zeros(3, bool),
        theta=np.array([0.0, 1.0, 0.5]),
        memorised=np.zeros(3),
    )
    learned = _train(world, model, np.array([0, 1, 2]), np.full(3, 0.5))
    own = [0.1 * (0.05 + 0.95 * sigmoid(-1.5)), 0.1, 0.1 * (0.05 + 0.95 * sigmoid(1.0))]
    expected = model.theta + 0.5 * np.array(own) + 0.5 * sum(own) / 3
    np.testing.assert_allclose(learned.theta, expected, rtol=1e-12)


def oracle(world, start, steps):
    """Replay a run from the teacher's draws and returns, prompt by prompt."""
    K, place = world.categories, {name: i for i, name in enumerate(_names(world, "prompts"))}
    easier = {start.rank[k]: k for k in range(K)}
    theta, flat, seen = [0.0] * K, 0, set()

    def pass_rate(k):
        return by_quadrature(theta[k], start.beta[k], world.spread)

    curve = [sum(map(pass_rate, range(K))) / K]
    for _, returns in steps:
        ready = [1.0] * K
        for k in range(K):
            if world.chain and start.rank[k] > 0:
                ready[k] = 0.05 + 0.95 * pass_rate(easier[start.rank[k] - 1])
        for name, values in returns.items():
            seen.add(name)
            k = place[name] // world.prompts
            for i in range(0, len(values), world.group):
                p = sum(values[i : i + world.group]) / world.group
                flat += p in (0, 1)
                gain = world.rate * ready[k] * 4 * p * (1 - p)
                theta[k] += (1 - world.common) * gain
                for j in range(K):
                    theta[j] += world.common * gain / K
        curve.append(sum(map(pass_rate, range(K))) / K)
    groups = len(steps) * world.batch
    return curve, flat / groups, 1 - len(seen) / (K * world.prompts)


@pytest.mark.parametrize(
    "settings",
    [{}, {"chain": True}, {"common": 0.5, "broken": 0.3}, {"memorised": 0.5, "group": 5}],
)
def test_a_run_is_that_of_a_plain_loop(taught, settings):
    world = PromptWorld(**{"categories": 3, "prompts": 4, "batch": 5, "rate": 0.1, **settings})
    (outcome,) = simulate_prompts(["learnability"], world, seeds=2, seed=7, steps=15)
    for i, teacher in enumerate(taught):
        start = _start(world, _random(7 + i))
        curve, wasted, unseen = oracle(world, start, teacher.steps)
        np.testing.assert_allclose(outcome.passed[i], curve, atol=1e-8)
        assert outcome.wasted[i] == pytest.approx(wasted)
        assert outcome.unseen[i] == pytest.approx(unseen)
    assert outcome.passed[0, -1] > outcome.passed[0, 0]


@pytest.mark.parametrize("tasks", ["prompts", "categories"])
def test_every_completion_is_reported_to_the_task_that_was_drawn(taught, tasks):
    simulate_prompts(["mr"], SMALL, tasks=tasks, seeds=1, steps=10)
    (teacher,) = taught
    assert len(teacher.steps) == 10
    for drawn, returns in teacher.steps:
        assert len(drawn) == SMALL.batch
        assert {name: len(values) for name, values in returns.items()} == {
            name: 4 * drawn.count(name) for name in drawn
        }
        assert {value for values in returns.values() for value in values} <= {0.0, 1.0}


@pytest.mark.parametrize("tasks", ["prompts", "categories"])
def test_completions_pass_as_often_as_they_should(taught, tasks):
    world = PromptWorld(categories=3, prompts=4, batch=50, rate=0.0, broken=0.25)
    simulate_prompts(["uniform"], world, tasks=tasks, seeds=1, steps=400)
    model, (teacher,) = _start(world, _random(0)), taught
    p = [0 if x else sigmoid(-b) for b, x in zip(model.difficulty, model.broken, strict=True)]
    assert 0 < model.broken.sum() < 12
    if tasks == "categories":  # prompts are drawn evenly
        p = np.reshape(p, (3, 4)).mean(axis=1)
    for name, expected in zip(_names(world, tasks), p, strict=True):
        values = [x for _, returns in teacher.steps for x in returns.get(name, [])]
        deviation = math.sqrt(max(expected * (1 - expected), 1e-3) / len(values))
        # prompts of a category differ, and so do groups: eight completions are of one prompt
        assert abs(np.mean(values) - expected) < 4 * deviation * math.sqrt(8)
        if expected == 0:
            assert not any(values)


def test_what_is_memorised_is_passed(taught):
    world = PromptWorld(categories=1, prompts=1, batch=1, easiest=0.0, hardest=0.0, rate=0.0)
    rates = []
    for memorised in (0.0, 0.5):
        simulate_prompts(
            ["uniform"], PromptWorld(**{**vars(world), "memorised": memorised}), seeds=1, steps=100
        )
        returns = [step[1]["category-0/0"] for step in taught[-1].steps[-50:]]
        rates.append(np.mean(returns))
    assert rates[1] > 0.95 > rates[0] + 0.2


def test_broken_prompts_teach_nothing_and_pass_nothing(taught):
    (outcome,) = simulate_prompts(["uniform"], PromptWorld(broken=1.0), seeds=1, steps=5)
    assert outcome.wasted.tolist() == [1.0]
    assert set(outcome.passed[0]) == {outcome.passed[0, 0]}
    assert not any(sum(values) for _, returns in taught[0].steps for values in returns.values())


def test_equal_seeds_give_equal_worlds_and_runs():
    a, b = (_start(PromptWorld(broken=0.2), _random(5)) for _ in range(2))
    for one, other in zip(a, b, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(a.difficulty, _start(PromptWorld(), _random(6)).difficulty)
    # what a world is like does not depend on what is drawn in it
    c = _start(PromptWorld(batch=3, group=2, rate=1.0, chain=True), _random(5))
    np.testing.assert_array_equal(a.difficulty, c.difficulty)
    first, second = (simulate_prompts(["mopps", "uniform"], SMALL, seeds=3) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert one.program == other.program
        np.testing.assert_array_equal(one.passed, other.passed)
        np.testing.assert_array_equal(one.wasted, other.wasted)
    (last,) = simulate_prompts("uniform", SMALL, seeds=1, seed=2)
    np.testing.assert_array_equal(last.passed[0], first[1].passed[2])


def test_the_world_does_not_share_its_random_numbers_with_the_teacher(taught):
    for tasks, order in (("prompts", "none"), ("categories", "shuffled")):
        simulate_prompts(["uniform"], SMALL, tasks=tasks, order=order, seeds=3, steps=1)
    for seed in range(3):
        streams = [np.random.default_rng(seed), _random(seed), _random(seed, 2)]
        numbers = np.concatenate([stream.random(1000) for stream in streams])
        assert len(set(numbers)) == 3000
        # the first draw of the teacher is that of the first stream
        at = (np.random.default_rng(seed).random(SMALL.batch) * 12).astype(int)
        names = _names(SMALL, "prompts")
        assert taught[seed].steps[0][0] == [names[i] for i in at]


def test_the_true_order_is_the_chain_from_the_easiest(taught):
    simulate_prompts(["mr"], SMALL, tasks="categories", order="true", seeds=4, steps=1)
    for seed, teacher in enumerate(taught):
        beta = _start(SMALL, _random(seed)).beta
        a, b, c = (f"category-{k}" for k in sorted(range(3), key=lambda k: beta[k]))
        assert teacher.curriculum.names == (a, b, c)
        assert teacher.curriculum.edges.tolist() == [[0, 1], [1, 2]]


def test_without_an_order_tasks_are_in_the_order_of_their_names(taught):
    for tasks in ("prompts", "categories"):
        simulate_prompts(["uniform"], SMALL, tasks=tasks, seeds=1, steps=1)
        assert list(taught[-1].curriculum.names) == _names(SMALL, tasks)
        assert len(taught[-1].curriculum.edges) == 0
    assert _names(SMALL, "categories") == ["category-0", "category-1", "category-2"]
    assert _names(SMALL, "prompts")[3:5] == ["category-0/3", "category-1/0"]


def test_a_shuffled_order_is_a_chain_that_says_nothing_about_the_true_one():
    names, agreement = _names(PromptWorld(), "categories"), []
    for seed in range(200):
        rank = _start(PromptWorld(), _random(seed)).rank
        chain = _chain("shuffled", rank, seed)
        curriculum = _curriculum(names, chain)
        assert curriculum.names == tuple(names[k] for k in chain)
        assert curriculum.edges.tolist() == [[i, i + 1] for i in range(19)]
        assert sorted(chain) == list(range(20))
        agreement.append(kendalltau(range(20), rank[chain]).statistic)
        np.testing.assert_array_equal(rank[_chain("true", rank, seed)], range(20))
    # Kendall's τ of random orders has mean 0 and variance 2 (2n + 5) / (9 n (n − 1))
    deviation = math.sqrt(2 * 45 / (9 * 20 * 19))
    assert abs(np.mean(agreement)) < 3 * deviation / math.sqrt(200)
    assert np.std(agreement) == pytest.approx(deviation, rel=0.2)


def test_choosing_on_both_levels_is_better_than_on_one():
    """Broken prompts can only be told apart within their category."""
    world = PromptWorld(categories=5, prompts=40, batch=16, broken=0.3, rate=0.05)
    area = {
        tasks: simulate_prompts(["uniform"], world, tasks=tasks, seeds=6, steps=120)[0].area.mean()
        for tasks in ("prompts", "categories", "both")
    }
    assert area["both"] > max(area["prompts"], area["categories"]) + 0.02


def test_an_order_changes_what_a_program_does_that_follows_one():
    world = PromptWorld(categories=6, prompts=5, chain=True, rate=0.1)
    areas = {}
    for order in ("none", "true", "shuffled"):
        mr, uniform = simulate_prompts(
            ["mr", "uniform"], world, tasks="categories", order=order, seeds=8, steps=100
        )
        areas[order] = mr.area.mean(), uniform.area.mean()
    assert areas["true"][0] > areas["shuffled"][0] + 0.02
    # the order of tasks decides which number draws which of them, and no more
    assert abs(areas["true"][1] - areas["none"][1]) < 0.02


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"categories": 0}, "categories is 0; it must be a whole number from 1"),
        ({"prompts": 2.5}, r"prompts is 2\.5"),
        ({"batch": -1}, "batch is -1"),
        ({"group": True}, "group is True"),
        ({"common": 1.5}, r"common is 1\.5; it must be from 0 to 1"),
        ({"broken": -0.1}, r"broken is -0\.1; it must be from 0 to 1"),
        ({"memorised": math.nan}, "memorised is nan; it must be from 0 to 100"),
        ({"rate": "fast"}, "rate is 'fast'; it must be from 0 to 10"),
        ({"spread": -1.0}, r"spread is -1\.0; it must be from 0 to 5"),
        ({"hardest": math.inf}, "hardest is inf; it must be from -100 to 100"),
        ({"easiest": 6.0}, r"easiest is 6\.0 and hardest 5\.0; easiest must not be greater"),
    ],
)
def test_a_world_that_cannot_be(settings, message):
    with pytest.raises(MasteryError, match=message):
        PromptWorld(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tasks": "prompt"}, "tasks is 'prompt'; choose from prompts, categories"),
        ({"order": "easy"}, "order is 'easy'; choose from none, true, shuffled"),
        ({"order": "true"}, "order is 'true', but prompts have none; set tasks='categories'"),
        ({"steps": 0}, "steps is 0; it must be a whole number from 1"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seed": -1}, "seed is -1; it must be a whole number from 0"),
        ({"programs": ["mt"]}, "'mt'"),
    ],
)
def test_arguments_that_cannot_be(settings, message):
    with pytest.raises(MasteryError, match=message):
        simulate_prompts(**{"programs": ["uniform"], "world": SMALL, **settings})
