"""Programs as functions are the programs by name."""

import inspect

import pytest

from mastery import Curriculum, ProgramError, Recipe, Teacher, programs
from mastery.programs.named import PROGRAMS


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
        if key not in ("progress", "distribution")
    }
    assert given == function().settings  # every setting is an argument


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
