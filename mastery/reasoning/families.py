"""The families of problems. Each function makes one problem of a level, from 1 to 4.

    family        level 1      level 4            the answer
    sum           3+8=         4821+377=          a + b
    difference    8-3=         4821-377=          a − b, of the larger and the smaller
    product       3*8=         4821*7=            a · b, b of one digit
    modulo        38%7=        48217%7=           a mod b, b from 3 to 9
    compare       38?36=       48217?48917=       < or > or =; the numbers differ in one digit
    sort          s381=        s482113770=        the digits, least first
    reverse       r381=        r482113770=        the digits, last first
    count         c2:212=      c0:2012201221001=  how often the digit before the colon occurs
    parity        p1011=       p10110111010=      1 if the number of ones is odd, else 0
    brackets      b([(=        b([](({[](=        what closes all that is open
    expression    x3*8=        x3*8-2+7-4=        from left to right, modulo 10
    shift         h3:48=       h3:482113770=      each digit plus the digit before the colon, mod 10

A problem is drawn from uniform numbers u in [0, 1), NEEDED of them, so that one call to the random
number generator serves all families.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from mastery.reasoning.alphabet import Text, as_answer, as_prompt, number, sign, symbol

Array = Any  # a JAX array
LEVELS = 4
NEEDED = 32  # uniform numbers per problem


class Question(NamedTuple):
    """A prompt and the only right answer, as symbols."""

    prompt: Array  # int32 (PROMPT,)
    answer: Array  # int32 (ANSWER,)


def _whole(u: Array, low: Any, high: Any) -> Array:
    """A whole number from low to high, both included."""
    return low + jnp.floor(u * (high - low + 1)).astype(jnp.int32)


def _with_digits(digits: Array, u: Array) -> Array:
    """A number of so many digits; only a number of one digit may begin with 0."""
    low = jnp.where(digits > 1, 10 ** (digits - 1), 0)
    return _whole(u, low, 10**digits - 1)


def _two_numbers(level: Array, u: Array) -> tuple[Array, Array]:
    """One with `level` digits and one with as many or fewer, in either order."""
    a, b = _with_digits(level, u[0]), _with_digits(_whole(u[1], 1, level), u[2])
    swapped = u[3] < 0.5
    return jnp.where(swapped, b, a), jnp.where(swapped, a, b)


def _string(u: Array, digits: Any, length: Array) -> Text:
    """Digits below a number, each as likely as the others."""
    return Text(_whole(u, 0, digits - 1), length)


def sum_(level: Array, u: Array) -> Question:
    a, b = _two_numbers(level, u)
    return Question(as_prompt(number(a), sign("+"), number(b), sign("=")), as_answer(number(a + b)))


def difference(level: Array, u: Array) -> Question:
    one, other = _two_numbers(level, u)
    a, b = jnp.maximum(one, other), jnp.minimum(one, other)
    return Question(as_prompt(number(a), sign("-"), number(b), sign("=")), as_answer(number(a - b)))


def product(level: Array, u: Array) -> Question:
    a, b = _with_digits(level, u[0]), _whole(u[1], 2, 9)
    return Question(as_prompt(number(a), sign("*"), number(b), sign("=")), as_answer(number(a * b)))


def modulo(level: Array, u: Array) -> Question:
    a, b = _with_digits(level + 1, u[0]), _whole(u[1], 3, 9)
    return Question(as_prompt(number(a), sign("%"), number(b), sign("=")), as_answer(number(a % b)))


def compare(level: Array, u: Array) -> Question:
    a = _with_digits(level + 1, u[0])
    place = 10 ** _whole(u[1], 0, level)
    leading = place == 10**level
    digit = _whole(u[2], jnp.where(leading, 1, 0), 9)
    b = a + (digit - a // place % 10) * place
    signs = jnp.array([symbol(s) for s in "<=>"])
    answer = Text(signs[jnp.sign(a - b) + 1][None], jnp.int32(1))
    return Question(as_prompt(number(a), sign("?"), number(b), sign("=")), as_answer(answer))


def sort(level: Array, u: Array) -> Question:
    given = _string(u[1:10], 10, 2 * level + _whole(u[0], 0, 1))
    inside = jnp.arange(9) < given.length
    ordered = Text(jnp.sort(jnp.where(inside, given.symbols, 10)), given.length)
    return Question(as_prompt(sign("s"), given, sign("=")), as_answer(ordered))


def reverse(level: Array, u: Array) -> Question:
    given = _string(u[1:10], 10, 2 * level + _whole(u[0], 0, 1))
    back = given.symbols[jnp.clip(given.length - 1 - jnp.arange(9), 0, 8)]
    answer = as_answer(Text(back, given.length))
    return Question(as_prompt(sign("r"), given, sign("=")), answer)


def count(level: Array, u: Array) -> Question:
    given = _string(u[2:15], 3, 3 * level + _whole(u[0], -1, 1))
    digit = _whole(u[1], 0, 2)
    found = ((given.symbols == digit) & (jnp.arange(13) < given.length)).sum()
    prompt = as_prompt(sign("c"), number(digit), sign(":"), given, sign("="))
    return Question(prompt, as_answer(number(found)))


def parity(level: Array, u: Array) -> Question:
    given = _string(u[1:12], 2, 2 * level + _whole(u[0], 2, 3))
    ones = jnp.where(jnp.arange(11) < given.length, given.symbols, 0).sum()
    return Question(as_prompt(sign("p"), given, sign("=")), as_answer(number(ones % 2)))


def brackets(level: Array, u: Array) -> Question:
    length = 2 * level + _whole(u[0], 1, 2)
    opening = jnp.array([symbol(s) for s in "([{"])
    closing = jnp.array([symbol(s) for s in ")]}"])
    most = 10
    kinds, places = jnp.zeros(most, jnp.int32), jnp.arange(most)  # open brackets, and their places
    depth, written = jnp.int32(0), []
    for i in range(most):
        # as deep as an answer can be, it must close; with nothing open it cannot
        opens = ((u[1 + i] < 0.7) & (depth < 9)) | (depth == 0)
        kind = _whole(u[1 + most + i], 0, 2)
        last = (kinds * (places == depth - 1)).sum()
        written.append(jnp.where(opens, opening[kind], closing[last]))
        now = i < length
        kinds = jnp.where(now & opens & (places == depth), kind, kinds)
        depth = depth + jnp.where(now, jnp.where(opens, 1, -1), 0)
    back = closing[kinds[jnp.clip(depth - 1 - places, 0, most - 1)]]
    prompt = as_prompt(sign("b"), Text(jnp.stack(written), length), sign("="))
    return Question(prompt, as_answer(Text(back, depth)))


def expression(level: Array, u: Array) -> Question:
    operands, signs = _whole(u[:5], 0, 9), _whole(u[5:9], 0, 2)
    value = operands[0]
    for i in range(LEVELS):
        a, b = value, operands[i + 1]
        after = jnp.stack([a + b, a - b, a * b])[signs[i]] % 10
        value = jnp.where(i < level, after, value)
    operators = jnp.array([symbol(s) for s in "+-*"])[signs]
    mixed = jnp.stack([operands[:4], operators], 1).ravel()
    written = Text(jnp.append(mixed, operands[4]), 2 * level + 1)
    return Question(as_prompt(sign("x"), written, sign("=")), as_answer(number(value)))


def shift(level: Array, u: Array) -> Question:
    given = _string(u[2:11], 10, 2 * level + _whole(u[0], 0, 1))
    by = _whole(u[1], 1, 9)
    prompt = as_prompt(sign("h"), number(by), sign(":"), given, sign("="))
    return Question(prompt, as_answer(Text((given.symbols + by) % 10, given.length)))


FAMILIES: dict[str, Callable[[Array, Array], Question]] = {
    "sum": sum_,
    "difference": difference,
    "product": product,
    "modulo": modulo,
    "compare": compare,
    "sort": sort,
    "reverse": reverse,
    "count": count,
    "parity": parity,
    "brackets": brackets,
    "expression": expression,
    "shift": shift,
}
