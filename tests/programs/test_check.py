"""check_program finds what is wrong with a program, and nothing wrong with ours."""

import numpy as np
import pytest

from mastery import Curriculum, ProgramError, Recipe, check_program
from mastery.programs.named import PROGRAMS

CURRICULUM = Curriculum.load("obstructed-maze")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_named_program_is_right(name):
    done = check_program(Recipe.parse(name).build(CURRICULUM), CURRICULUM)
    assert len(done) == 5
    assert "JAX" in done[-1]


class Counting:
    """A right program of one's own: less of what was seen more."""

    def init(self, noise):
        xp = noise.__array_namespace__()
        return (xp.zeros_like(noise[0]),)

    def observe(self, state, evidence, noise):
        return (state[0] + evidence.seen,)

    def distribution(self, state):
        weight = 1 / (1 + state[0])
        return weight / weight.sum()


def test_a_right_program():
    check_program(Counting(), CURRICULUM)


class NotNormalised(Counting):
    def distribution(self, state):
        return 1 / (1 + state[0])


class Negative(Counting):
    def distribution(self, state):
        weight = 0.3 - state[0]
        return weight / weight.sum()


class NotFinite(Counting):
    def distribution(self, state):
        with np.errstate(all="ignore"):
            return state[0] / state[0].sum()


class WrongShape(Counting):
    def distribution(self, state):
        return np.ones(2) / 2


class InPlace(Counting):
    def observe(self, state, evidence, noise):
        state[0][evidence.seen] += 1
        return state


class InPlaceLater(Counting):
    def distribution(self, state):
        state[0][:] = 0
        return super().distribution(state)


class HiddenState(Counting):
    steps = 0

    def observe(self, state, evidence, noise):
        self.steps += 1
        return (state[0] + evidence.seen * self.steps,)


class OwnRandomness(Counting):
    def distribution(self, state):
        weight = np.random.default_rng().random(len(state[0]))
        return weight / weight.sum()


class GrowingState(Counting):
    def observe(self, state, evidence, noise):
        return (*state, evidence.mean)


class Text(Counting):
    def init(self, noise):
        return (super().init(noise)[0], "text")

    def observe(self, state, evidence, noise):
        return (state[0] + evidence.seen, "text")


class OnlyNumpy(Counting):
    def observe(self, state, evidence, noise):
        counts = np.array(state[0])
        counts[np.asarray(evidence.seen)] += 1
        return (counts,)


class OtherUnderJax(Counting):
    def distribution(self, state):
        if hasattr(state[0], "at"):
            return state[0] * 0 + 1 / state[0].shape[0]
        return super().distribution(state)


class ChangesNoise(Counting):
    def init(self, noise):
        start = super().init(noise)
        if not hasattr(noise, "at"):
            noise[:] = 0
        return start


class OtherTypeUnderJax(Counting):
    def observe(self, state, evidence, noise):
        return (
            (state[0] + evidence.seen,)
            if not hasattr(evidence.seen, "at")
            else ((state[0] + evidence.seen).astype(int),)
        )


class MasksUnderJax(Counting):
    def distribution(self, state):
        return super().distribution(state) + 0 * state[0][state[0] > 0].sum()


class ForgetsReturn(Counting):
    def observe(self, state, evidence, noise):
        state[0] + evidence.seen


class GivesText(Counting):
    def distribution(self, state):
        return "uniform"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (NotNormalised, "sums to"),
        (Negative, "is negative"),
        (NotFinite, "is not finite"),
        (WrongShape, r"has shape \(2,\), not \(6,\)"),
        (ForgetsReturn, "the program's state has None"),
        (GivesText, "'uniform', not an array of numbers"),
        (ChangesNoise, "init changed its argument"),
        (OtherTypeUnderJax, "does not run under jax.jit and scan"),
        (MasksUnderJax, "does not run under jax.jit and scan"),
        (InPlace, "observe changed its argument in place"),
        (InPlaceLater, "distribution changed the state in place"),
        (HiddenState, "differs at time-step"),
        (OwnRandomness, "take all randomness from noise"),
        (GrowingState, "structure of the state changes"),
        (Text, "dicts of arrays of numbers"),
        (OnlyNumpy, "does not run under jax.jit"),
        (OtherUnderJax, "JAX gives probabilities that differ"),
    ],
)
def test_wrong_programs(wrong, message):
    with pytest.raises(ProgramError, match=message):
        check_program(wrong(), CURRICULUM)


def test_a_name_or_a_float32_program_will_do():
    check_program("mr:delta=0.5", CURRICULUM)

    class Single(Counting):
        def distribution(self, state):
            return super().distribution(state).astype("float32")

    check_program(Single(), CURRICULUM)
    with pytest.raises(ProgramError, match="is a class"):
        check_program(Counting, CURRICULUM)
    with pytest.raises(ProgramError, match="has no init"):
        check_program(object(), CURRICULUM)
    with pytest.raises(ProgramError, match="for 3 tasks"):
        check_program(Recipe.parse("mr").build(Curriculum.load("addition-3")), CURRICULUM)
    with pytest.raises(ProgramError, match="steps is 0; check_program needs at least 2"):
        check_program(Counting(), CURRICULUM, steps=0)
    with pytest.raises(ProgramError, match="needs a Curriculum"):
        check_program(Counting(), "key-corridor")


def test_a_program_of_an_earlier_version_is_told_what_has_changed():
    class Earlier(Counting):
        def observe(self, state, returns, seen, noise):
            return state

    with pytest.raises(ProgramError, match="observe takes 4 arguments; it must take three"):
        check_program(Earlier(), CURRICULUM)


def test_a_state_may_have_lists():
    class Listed(Counting):
        def init(self, noise):
            return [super().init(noise), [noise[:1, :1]]]

        def observe(self, state, evidence, noise):
            return [super().observe(state[0], evidence, noise), state[1]]

        def distribution(self, state):
            return super().distribution(state[0])

    assert "JAX, under jit and scan, agrees with NumPy" in check_program(Listed(), CURRICULUM)
