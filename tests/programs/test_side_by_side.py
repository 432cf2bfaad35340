"""A switch gives what the program it points at gives by itself."""

import jax
import numpy as np
import pytest

from mastery import Curriculum, Recipe
from mastery.programs.evidence import Evidence
from mastery.programs.named import PROGRAMS
from mastery.programs.side_by_side import Switch, stack

CURRICULUM = Curriculum.load("obstructed-maze")
N = len(CURRICULUM)


def steps(seed, count=30):
    """Returns, which tasks were seen, and noise, of so many time-steps."""
    random = np.random.default_rng(seed)
    return [
        (random.random(N) * 0.5, random.random(N) < 0.6, random.random((3, N)))
        for _ in range(count)
    ]


def test_programs_of_the_same_parts_are_stacked_and_others_stand_side_by_side():
    texts = ["mr", "mr:delta=0.9,window=4", "uniform", "gprop-linreg", "mr:gamma_pred=0"]
    switch = stack([Recipe.parse(text).build(CURRICULUM) for text in texts])
    assert switch.which.tolist() == [0, 0, 1, 2, 0]
    assert len(switch.programs) == 3
    assert switch.programs[0].attention.delta.tolist() == [0.6, 0.9, 0.6, 0.6, 0.6]
    assert switch.programs[0].window.tolist() == [10, 4, 10, 10, 10]


def test_under_vmap_each_run_has_the_distribution_of_its_own_program():
    texts = [*PROGRAMS, "mr:delta=0.9,window=4", "mr:progress=online"]
    programs = [Recipe.parse(text).build(CURRICULUM) for text in texts]
    switches = stack(programs)
    first = np.random.default_rng(7).random((3, N)).astype(np.float32)
    given = [(r.astype(np.float32), seen, noise.astype(np.float32)) for r, seen, noise in steps(0)]

    @jax.jit
    @jax.vmap
    def run(switch):
        def step(state, given):
            returns, seen, noise = given
            after = switch.observe(state, Evidence.single(returns, seen), noise)
            return after, switch.distribution(state)

        state = switch.init(jax.numpy.asarray(first), 50)
        state, found = jax.lax.scan(step, state, tuple(map(np.stack, zip(*given, strict=True))))
        return found, switch.mastery(state)

    floats = jax.tree.map(lambda x: x.astype("f4") if x.dtype == np.float64 else x, switches)
    found, mastery = run(floats)
    for i, program in enumerate(programs):
        state = program.init(first.astype(float))
        expected = []
        for returns, seen, noise in given:
            expected.append(program.distribution(state))
            state = program.observe(
                state, Evidence.single(returns.astype(float), seen), noise.astype(float)
            )
        assert np.allclose(found[i], expected, atol=2e-4), texts[i]
        assert np.allclose(mastery[i], program.factors(state).mastery, atol=1e-5), texts[i]


@pytest.mark.parametrize("which", [0, 1])
def test_without_jax_it_is_the_same(which):
    programs = tuple(Recipe.parse(text).build(CURRICULUM) for text in ("mr", "gamax-window"))
    switch = Switch(np.int32(which), programs)
    noise = np.random.default_rng(1).random((3, N))
    state, own = switch.init(noise), programs[which].init(noise)
    for returns, seen, fresh in steps(2):
        state = switch.observe(state, Evidence.single(returns, seen), fresh)
        own = programs[which].observe(own, Evidence.single(returns, seen), fresh)
        assert np.array_equal(switch.distribution(state), programs[which].distribution(own))
