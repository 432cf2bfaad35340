"""The simulator: its learner is what the docs say, and both ways to run it agree."""

import numpy as np
import pytest

from mastery import Curriculum, MasteryError, ProgramError, Task
from mastery.simulation.simulate import Learner, Outcome, _efforts, _start, _step, _world, simulate


def alone(**settings):
    """One task, and nothing but it to train on."""
    curriculum = Curriculum([Task("a")])
    return curriculum, Learner(**settings)


def test_a_ready_learner_takes_the_effort_it_is_said_to_take():
    # one episode a step, so that the steps are those of the differential equation
    curriculum, learner = alone(episodes=1, effort=2000, forgetting=0)
    (outcome,) = simulate(curriculum, ["uniform"], seeds=1, learner=learner, backend="numpy")
    assert outcome.steps[0] == pytest.approx(2000, rel=0.01)


def step_once(skill, edges, learner, drawn, n):
    """One time-step on a made-up state, all episodes on one task."""
    names = [f"t{i}" for i in range(n)]
    curriculum = Curriculum(
        Task(name, after=tuple(names[a] for a, b in edges if b == i))
        for i, name in enumerate(names)
    )
    world = _world(curriculum, learner, _efforts(curriculum, learner))

    class Only:
        def init(self, noise):
            return np.zeros(n)

        def observe(self, state, evidence, noise):
            return np.where(evidence.seen, evidence.mean, np.nan)

        def distribution(self, state):
            return np.arange(n) == drawn

    carry = _start(Only(), np.zeros((3, n)))._replace(skill=np.array(skill))
    luck = np.stack([np.full(learner.episodes, 0.5), np.linspace(0, 0.99, learner.episodes)])
    return _step(Only(), world, carry, luck, None), world.rate


def test_the_learning_step_by_hand():
    learner = Learner(episodes=4, effort=100, start=0.1, leak=0.2, rehearsal=0.5, forgetting=0.1)
    # a → c ← b; four episodes of c, whose readiness is 0.2 + 0.8·(0.5·0.4)
    carry, rate = step_once([0.5, 0.4, 0.2], [(0, 2), (1, 2)], learner, drawn=2, n=3)
    assert rate[0] == pytest.approx(np.log((0.9 + 0.1) / 0.1 / 0.1) / 1.1 / 100)
    c = 0.2 + 4 * rate[0] * (0.2 + 0.8 * 0.2) * 0.3 * 0.8
    a = 0.5 + 1 * rate[0] * 1.0 * 0.6 * 0.5  # half of c's four episodes, shared by a and b
    b = 0.4 + 1 * rate[0] * 1.0 * 0.5 * 0.6
    np.testing.assert_allclose(carry.skill, [0.9 * a, 0.9 * b, 0.9 * c], rtol=1e-12)
    # luck is 0, 0.33, 0.66, 0.99: one success of four at skill 0.2
    assert carry.state[2] == 0.25
    assert np.isnan(carry.state[:2]).all()
    # c is not mastered, and its readiness of 0.36 is below a half
    assert carry.spent.tolist() == [0, 0, 4]


def test_scores_without_noise_are_the_skill_and_the_ceiling_scales_them():
    learner = Learner(episodes=2, noise=0.0, ceiling=1.5)
    carry, _ = step_once([0.4], [], learner, drawn=0, n=1)
    assert carry.state[0] == pytest.approx(0.6)
    assert carry.spent.tolist() == [0, 2, 0]


def test_numpy_and_jax_agree():
    curriculum = Curriculum.load("obstructed-maze")
    programs = ["mr", "gamax-window", "sequential"]
    runs = [
        simulate(curriculum, programs, seeds=3, steps=300, backend=backend)
        for backend in ("numpy", "jax")
    ]
    for a, b in zip(*runs, strict=True):
        assert a.program == b.program
        # equal luck; float32 and float64 part only where a draw falls between them
        np.testing.assert_allclose(a.skill.mean(axis=1), b.skill.mean(axis=1), atol=0.02)
        np.testing.assert_allclose(a.spent, b.spent, atol=0.01)


def test_equal_seeds_give_equal_runs_and_stopping_early_is_for_those_who_are_done():
    curriculum = Curriculum.load("blocked-unlock-pickup")
    (a,), (b,) = (simulate(curriculum, ["mr"], seeds=4, backend="jax") for _ in range(2))
    np.testing.assert_array_equal(a.skill, b.skill)
    assert np.isfinite(a.steps).all()
    assert a.times[-1] < a.budget
    assert (a.skill[-1] >= 0.89).all()
    assert a.spent.sum() == pytest.approx(1)
    (c,) = simulate(curriculum, ["mr"], seeds=1, seed=3, backend="jax")
    assert c.steps[0] == a.steps[3]


def test_runs_that_never_get_there_are_censored_not_dropped():
    (outcome,) = simulate(Curriculum.load("key-corridor"), ["target"], seeds=3, steps=50)
    assert outcome.steps.tolist() == [np.inf] * 3
    assert outcome.median == np.inf
    assert outcome.times[-1] == 50


def test_the_interval_of_the_median():
    def outcome(steps):
        return Outcome("x", np.array(steps, float), 9, np.zeros(1), np.zeros((1, 1, 1)), np.ones(3))

    assert outcome([5] * 9).interval() == (5, 5)
    low, high = outcome(range(1, 101)).interval()
    assert 38 < low < 46
    assert 55 < high < 63
    low, high = outcome([1, 2, 3, np.inf, np.inf]).interval()
    assert low <= 3
    assert high == np.inf


def test_efforts_can_be_set_for_each_task():
    curriculum = Curriculum([Task("a", settings={"effort": 50}), Task("b", after=("a",))])
    assert _efforts(curriculum, Learner()).tolist() == [50, 1000]
    for effort in (0, float("inf"), "x"):
        bad = Curriculum([Task("a", settings={"effort": effort})])
        with pytest.raises(MasteryError, match=r"'a': settings\.effort is"):
            simulate(bad, ["mr"])


class Last:
    """A program of one's own: only the last task."""

    def init(self, noise):
        return noise[0]

    def observe(self, state, evidence, noise):
        return state

    def distribution(self, state):
        xp = state.__array_namespace__()
        return (xp.arange(state.shape[0]) == state.shape[0] - 1).astype(state.dtype)


def test_a_program_of_ones_own_can_be_tried():
    curriculum = Curriculum.load("blocked-unlock-pickup")
    own, target = simulate(curriculum, [Last(), "target"], seeds=2, steps=200)
    assert own.program == "Last"
    np.testing.assert_array_equal(own.skill, target.skill)
    (one,) = simulate(curriculum, "target", seeds=2, steps=200)
    np.testing.assert_array_equal(one.skill, target.skill)
    twins = simulate(curriculum, [Last(), Last()], seeds=1, steps=3)
    assert [o.program for o in twins] == ["Last", "Last #2"]
    with pytest.raises(MasteryError, match="needs a Curriculum"):
        simulate("key-corridor", ["mr"])
    with pytest.raises(MasteryError, match="is a class"):
        simulate(curriculum, [Last])


class NumPyOnly:
    """A program of one's own that calls NumPy on its inputs: uniform."""

    def init(self, noise):
        return noise[0] * 0

    def observe(self, state, evidence, noise):
        return np.where(evidence.seen, evidence.mean, state)

    def distribution(self, state):
        return np.full(state.shape[0], 1 / state.shape[0])


class InPlace(NumPyOnly):
    """One that changes an array in place."""

    def observe(self, state, evidence, noise):
        state = state + 0
        state[0] = 1
        return state


class Branches(NumPyOnly):
    """One that branches on a value, before the first time-step."""

    def init(self, noise):
        return noise[0] if noise[0, 0] < 0.5 else noise[1]


@pytest.mark.parametrize("program", [NumPyOnly(), InPlace(), Branches()])
def test_a_program_for_numpy_only_is_refused_under_jax(program):
    curriculum = Curriculum.load("blocked-unlock-pickup")
    name = type(program).__name__
    with pytest.raises(ProgramError, match=rf"{name} does not run under JAX.*backend=\"numpy\""):
        simulate(curriculum, [program], seeds=2, steps=20, backend="jax")
    own, uniform = simulate(curriculum, [program, "uniform"], seeds=2, steps=20, backend="numpy")
    np.testing.assert_allclose(own.skill, uniform.skill)


def test_what_is_trained_on_after_mastery_is_not_counted():
    """One learner alone and among slower ones: where its training went is the same."""
    curriculum = Curriculum.load("blocked-unlock-pickup")
    runs = [simulate(curriculum, ["gamax-window"], seeds=1, seed=s)[0] for s in range(4)]
    (together,) = simulate(curriculum, ["gamax-window"], seeds=4)
    episodes = np.array([run.steps[0] for run in runs])
    spent = (np.array([run.spent for run in runs]) * episodes[:, None]).sum(axis=0)
    np.testing.assert_allclose(together.spent, spent / spent.sum(), atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 0}, "seeds is 0; it must be a whole number from 1"),
        ({"seeds": 2.5}, "seeds is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"learner": Learner(effort=1e9)}, "time-steps are not between"),
        ({"steps": 10**9}, "10,000,000"),
        ({"backend": "torch"}, "choose from auto, jax, numpy"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(MasteryError, match=message):
        simulate(Curriculum([Task("a")]), ["mr"], **settings)


def test_a_learner_that_cannot_be():
    with pytest.raises(MasteryError, match=r"noise is 2; it must be in \[0, 1\]"):
        Learner(noise=2)
    with pytest.raises(MasteryError, match="effort is nan"):
        Learner(effort=float("nan"))
    with pytest.raises(MasteryError, match="episodes"):
        Learner(episodes=2.5)
