"""The one map of colours."""

import random

import pytest

from mastery.drawing.colours import (
    DASHES,
    PROGRAM_COLOURS,
    PROGRAM_STYLES,
    numbered_styles,
    program_style,
    program_styles,
)
from mastery.programs.named import PROGRAMS

VARIANTS = [
    *(f"mr:delta={i / 10}" for i in range(8)),
    *(f"gprop-linreg learning_rate=0.00{i}" for i in range(5)),
    *(f"own.py:Class:a={i}" for i in range(5)),
    "learnability-topk:top=0.5", "mr:window=20,delta=0.8", "package.module:Other",
]  # fmt: skip


def test_every_program_has_a_look_of_its_own():
    assert set(PROGRAM_STYLES) == set(PROGRAMS)
    assert len(set(PROGRAM_STYLES.values())) == len(PROGRAMS)
    assert all(dash in DASHES for _, dash in PROGRAM_STYLES.values())


def test_the_paper_s_programs_keep_their_colours():
    """Readers know them from the figures."""
    assert {name: PROGRAM_COLOURS[name] for name in ("mr", "gprop-linreg", "uniform")} == {
        "mr": "#0072B2", "gprop-linreg": "#D55E00", "uniform": "#000000",
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_no_two_of_thirty_look_alike_in_any_order(seed):
    drawn = random.Random(seed)
    labels = drawn.sample([*PROGRAMS, *VARIANTS], 30)
    found = program_styles(labels)
    assert list(found) == labels
    assert len(set(found.values())) == 30
    assert found == program_styles(drawn.sample(labels, 30))
    for label in set(labels) & set(PROGRAMS):
        assert found[label] == PROGRAM_STYLES[label] == program_style(label)


@pytest.mark.parametrize(
    ("label", "base"),
    [
        ("mr:delta=0.8", "mr"),
        ("gprop-linreg learning_rate=0.001", "gprop-linreg"),
        ("learnability-topk:top=0.5", "learnability-topk"),
        ("learnability:window=9", "learnability"),
    ],
)
def test_settings_keep_the_colour_of_the_name(label, base):
    (colour, dash), (own, plain) = program_style(label), PROGRAM_STYLES[base]
    assert (colour, dash != plain) == (own, True)
    assert program_styles([base, label])[label] == (colour, dash)


def test_a_name_that_only_begins_like_a_program_is_none_of_its_family():
    several = program_styles(["mr", "mrs.py:Program", "automatic.py:Program"])
    assert len({colour for colour, _ in several.values()}) == 3


def test_more_than_can_be_told_apart_are_drawn_all_the_same():
    assert len(program_styles(f"mr:delta=0.{i:03}" for i in range(100))) == 100
    assert len(set(numbered_styles(map(str, range(32))).values())) == 32
