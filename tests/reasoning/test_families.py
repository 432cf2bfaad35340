"""Every family and level against plain Python: the answers, the prompts, the symbols."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reasoning_oracle import TASKS, fits, solve

from mastery import Curriculum, MasteryError
from mastery.random_numbers import uniform
from mastery.reasoning import alphabet
from mastery.reasoning.alphabet import ANSWER, CHARACTERS, END, PAD, PROMPT, decode, encode
from mastery.reasoning.families import FAMILIES, LEVELS, NEEDED
from mastery.reasoning.problems import FamilyLevels, make

EACH = 400


@pytest.fixture(scope="module")
def made():
    """The symbols of many problems per family and level: prompts and answers."""
    families, levels = zip(*TASKS, strict=True)
    numbers = [list(FAMILIES).index(family) for family in families]
    tasks = FamilyLevels(*(np.repeat(np.array(x, np.int32), EACH) for x in (numbers, levels)))
    u = uniform(jax.random.key(0), (len(tasks.family), NEEDED))
    # the ends of the range too
    u = u.at[::EACH].set(0.0).at[1::EACH].set(1 - 2**-23)
    problem = jax.jit(make)(tasks, u)
    return {
        task: tuple(np.asarray(x[i * EACH : (i + 1) * EACH]) for x in problem)
        for i, task in enumerate(TASKS)
    }


def test_the_families_and_levels_are_those_of_the_table():
    assert list(FAMILIES) == list(dict.fromkeys(family for family, _ in TASKS))
    assert max(level for _, level in TASKS) == LEVELS


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task[0]}-{task[1]}")
def test_every_answer_is_pythons_and_every_prompt_is_of_its_level(made, task):
    for prompt, answer in zip(*made[task], strict=True):
        text = decode(prompt)
        assert fits(*task, text), text
        assert decode(answer) == solve(text), text


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task[0]}-{task[1]}")
def test_prompts_are_padded_before_and_answers_end_once(made, task):
    for prompt, answer in zip(*made[task], strict=True):
        text = decode(prompt)
        assert prompt.tolist() == [PAD] * (PROMPT - len(text)) + [CHARACTERS.index(c) for c in text]
        written = [CHARACTERS.index(c) for c in decode(answer)]
        assert answer.tolist() == [*written, END, *[PAD] * (ANSWER - 1 - len(written))]


def test_every_length_of_a_level_occurs(made):
    for (family, level), (prompts, _) in made.items():
        lengths = {len(decode(prompt)) for prompt in prompts}
        expected = {
            "sum": set(range(level + 3, 2 * level + 3)),
            "difference": set(range(level + 3, 2 * level + 3)),
            "product": {level + 3},
            "modulo": {level + 4},
            "compare": {2 * level + 4},
            "sort": {2 * level + 2, 2 * level + 3},
            "reverse": {2 * level + 2, 2 * level + 3},
            "count": {3 * level + 3, 3 * level + 4, 3 * level + 5},
            "parity": {2 * level + 4, 2 * level + 5},
            "brackets": {2 * level + 3, 2 * level + 4},
            "expression": {2 * level + 3},
            "shift": {2 * level + 4, 2 * level + 5},
        }[family]
        assert lengths == expected, (family, level)


def test_the_longest_prompt_and_answer_fit_exactly(made):
    """`c0:2012201221001=` and nine brackets with END."""
    assert max(len(decode(p)) for prompts, _ in made.values() for p in prompts) == PROMPT
    longest = max((decode(a) for _, answers in made.values() for a in answers), key=len)
    assert len(longest) == ANSWER - 1


def test_answers_vary_and_no_constant_guess_beats_half(made):
    """The minima of the curriculum are what guessing gets, so no guess is far below them."""
    curriculum = Curriculum.load("reasoning")
    assert len(curriculum) == len(TASKS)
    for (family, level), (_, answers) in made.items():
        counts = Counter(map(decode, answers))
        best = counts.most_common(1)[0][1] / EACH
        assert len(counts) >= 2
        assert best < 0.58, (family, level)
        task = curriculum[f"{family}-{level}"]
        assert task.settings == {"family": family, "level": level}
        assert task.minimum <= best + 0.08, (family, level)


def test_the_shipped_order_is_level_after_level():
    for name in ("reasoning", "reasoning-reverse"):
        for task in Curriculum.load(name):
            family, level = task.settings["family"], task.settings["level"]
            assert task.name == f"{family}-{level}"
            assert task.after == ((f"{family}-{level - 1}",) if level > 1 else ())
            assert task.maximum == 1.0


@pytest.mark.parametrize("value", [0, 7, 10, 99, 100, 40_506, 999_999])
def test_numbers_are_written_in_decimal(value):
    symbols, length = alphabet.number(jnp.int32(value))
    assert symbols[: int(length)].tolist() == [int(digit) for digit in str(value)]


def test_prompts_are_read_and_written():
    assert encode("12+34=") == [PAD] * 11 + [1, 2, 10, 3, 4, 15]
    assert decode(encode("b([](({[](=")) == "b([](({[](="
    assert decode([4, 6, END, 7, PAD]) == "46"
    assert decode([END]) == ""
    assert len(set(CHARACTERS)) == len(CHARACTERS) == PAD == END - 1
    with pytest.raises(MasteryError, match="'/' cannot be read; the alphabet is 0123456789"):
        encode("8/2=")
    with pytest.raises(MasteryError, match="the prompt has 18 characters; the most is 17"):
        encode("1" * 18)
