"""Programs by name and setting."""

import pytest

from mastery import Curriculum, ProgramError, Recipe
from mastery.programs.named import PROGRAMS
from mastery.programs.recipe import BASE_SETTINGS, PARTS, SETTINGS


def test_the_named_programs_have_the_papers_defaults():
    mr = Recipe.parse("mr")
    assert (mr.progress, mr.attention, mr.distribution) == ("linreg", "mastering-rate", "prop")
    assert mr.settings == {
        "window": 10,
        "delta": 0.6,
        "power": 6.0,
        "unlearned": 1.0,
        "successors": 1.0,
        "gamma_pred": 0.2,
        "gamma_succ": 0.05,
        "by_cost": 0.0,
        "reprobe": 0.0,
    }
    assert Recipe.parse("gamax-window").settings["alpha"] == 0.1
    longer = {"learnability": 50, "learnability-topk": 50, "dump": 40}
    for name in PROGRAMS:
        assert Recipe.parse(name).settings["window"] == longer.get(name, 10)


def test_what_earlier_versions_did_not_have_is_left_out_of_the_full_text():
    """So that what they saved is still the same program."""
    assert Recipe.parse("uniform").full == (
        "uniform:progress=linreg,attention=uniform,distribution=prop,window=10"
    )
    assert Recipe.parse("uniform:gate=retire,by_cost=1").full == (
        "uniform:progress=linreg,attention=uniform,distribution=prop,gate=retire,window=10,"
        "by_cost=1.0,reprobe=0.05,pass_rate=0.95"
    )


def test_settings_on_the_command_line():
    recipe = Recipe.parse("mr:delta=0.8,window=20, progress=online")
    assert recipe.settings["delta"] == 0.8
    assert recipe.settings["window"] == 20
    assert recipe.settings["alpha"] == 0.1
    assert recipe == Recipe.parse("mr", delta=0.8, window=20, progress="online")


@pytest.mark.parametrize(
    "text", ["mr", "mr:delta=0.8", "exp3s:epsilon=0.1", "mr:progress=window,alpha=0.3"]
)
def test_a_recipe_can_be_written_down_and_read_back(text):
    assert str(Recipe.parse(text)) == text
    assert Recipe.parse(str(Recipe.parse(text))) == Recipe.parse(text)


def test_any_composition_can_be_built():
    curriculum = Curriculum.load("obstructed-maze")
    for progress in PARTS["progress"]:
        for attention in ("mastering-rate", "learning-progress"):
            for distribution in PARTS["distribution"]:
                text = f"mr:progress={progress},attention={attention},distribution={distribution}"
                Recipe.parse(text).build(curriculum)


def test_every_setting_is_described():
    used = set(BASE_SETTINGS) | {
        s for kind in PARTS.values() for part in kind.values() for s in part.settings
    }
    assert used == set(SETTINGS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mrr", "no program 'mrr'; did you mean 'mr'?"),
        ("mr:deta=1", "no setting 'deta'; did you mean 'delta'?"),
        ("uniform:delta=1", "no setting 'delta'"),
        ("mr:delta=2", "delta=2 must be in [0, 1]"),
        ("mr:delta=nan", "delta=nan must be in [0, 1]"),
        ("mr:delta=x", "delta=x must be a number"),
        ("mr:delta", "not have the form setting=value"),
        ("mr:window=1", "window=1 must be"),
        ("mr:window=2.5", "must be a whole number"),
        ("mr:power=inf", "power=inf must be in [0, 1000]"),
        ("mr:progress=linregg", "no progress 'linregg'; did you mean 'linreg'?"),
        ("exp3s:progress=linreg", "set progress=change"),
        ("mr:delta=0.1,delta=0.2", "'delta' is set twice"),
        ("boltzmann-window:temperature=inf", "must be at least"),
        ("boltzmann-window:temperature=0", "temperature=0 must be"),
    ],
)
def test_wrong_recipes(text, message):
    with pytest.raises(ProgramError) as caught:
        Recipe.parse(text)
    assert message in str(caught.value)


def test_settings_given_in_two_ways_are_refused_and_absurd_numbers_too():
    with pytest.raises(ProgramError, match="set twice"):
        Recipe.parse("mr:delta=0.1", delta=0.9)
    with pytest.raises(ProgramError, match="power"):
        Recipe.parse("mr", power=10**400)


def test_the_full_text_says_everything():
    recipe = Recipe.parse("exp3s")
    assert recipe.full == (
        "exp3s:progress=change,attention=exp3s,distribution=gprop,window=10,eta=0.001,epsilon=0.05"
    )
    assert Recipe.parse(recipe.full) == recipe
