"""Programs as functions are the programs by name."""

import inspect

import pytest

from mastery import Curriculum, ProgramError, Recipe, Teacher, programs
from mastery.programs.named import PROGRAMS
from mastery.programs.recipe import Common


def test_there_is_a_function_for_each_named_program():
    assert {name.replace("_", "-") for name in programs.__all__} == set(PROGRAMS)


@pytest.mark.parametrize("name", programs.__all__)
def test_the_defaults_are_those_of_the_name(name):
    function = getattr(programs, name)
    assert function() == Recipe.parse(name.replace("_", "-"))
    assert function.__doc__
    given = {
        key: parameter.default
        for key, parameter in inspect.signature(function).parameters.items()
        if key not in ("progress", "distribution", "common")
    }
    common = set(Common.__annotations__)
    own = {key: value for key, value in function().settings.items() if key not in common}
    assert given == own  # every setting is an argument


def test_every_program_takes_a_gate_and_shares_by_cost():
    for name in programs.__all__:
        recipe = getattr(programs, name)(gate="retire", pass_rate=0.9, by_cost=1, reprobe=0.1)
        text = name.replace("_", "-") + ":gate=retire,pass_rate=0.9,by_cost=1,reprobe=0.1"
        assert recipe == Recipe.parse(text)


def test_settings_as_arguments_and_as_text_are_equal():
    recipe = programs.mr(delta=0.8, progress="online", distribution="gamax")
    assert recipe == Recipe.parse("mr:delta=0.8,progress=online,distribution=gamax")
    assert str(programs.exp3s(eta=0.5)) == "exp3s:eta=0.5"
    with pytest.raises(ProgramError, match="delta=2 must be in"):
        programs.mr(delta=2)


def test_a_teacher_takes_one():
    curriculum = Curriculum.load("key-corridor")
    one, other = Teacher(curriculum, programs.mr(delta=0.8)), Teacher(curriculum, "mr:delta=0.8")
    assert one.probabilities == other.probabilities
    assert one.recipe == other.recipe
