"""The symbols of prompts and answers, and how to write them with arrays.

A symbol is a small whole number; a digit is its own value. A text under construction is an array of
fixed size with its length, so that texts of different lengths fit into one compiled program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax.numpy as jnp

from mastery.errors import MasteryError

Array = Any  # a JAX array
CHARACTERS = "0123456789+-*%?=:<>()[]{}bchprsx"
PAD = len(CHARACTERS)  # before a prompt and after the end of an answer
END = PAD + 1  # ends an answer
SYMBOLS = END + 1

PROMPT = 17  # symbols of the longest prompt
ANSWER = 10  # symbols of the longest answer, with END
_DIGITS = 6  # of the largest number that can be written


class Text(NamedTuple):
    """Symbols and how many of them count."""

    symbols: Array  # int32 (size,)
    length: Array  # int32 ()


def symbol(character: str) -> int:
    """The number of a character."""
    return CHARACTERS.index(character)


def sign(character: str) -> Text:
    """A single character."""
    return Text(jnp.array([symbol(character)]), jnp.int32(1))


def number(value: Array) -> Text:
    """A whole number from 0 to 999,999 in decimal, without leading zeros."""
    powers = 10 ** jnp.arange(_DIGITS - 1, -1, -1)
    digits = value // powers % 10
    length = 1 + (value >= powers[:-1]).sum()
    return Text(digits[_clip(jnp.arange(_DIGITS) + _DIGITS - length, _DIGITS)], length)


def join(*pieces: Text, size: int) -> Text:
    """Write pieces one after the other."""
    place, found, at = jnp.arange(size), jnp.full(size, PAD), jnp.int32(0)
    for symbols, length in pieces:
        index = place - at
        inside = (index >= 0) & (index < length)
        found = jnp.where(inside, symbols[_clip(index, len(symbols))], found)
        at = at + length
    return Text(found, at)


def as_prompt(*pieces: Text) -> Array:
    """The pieces as a prompt, int32 (PROMPT,): padded on the left, so that all end together."""
    symbols, length = join(*pieces, size=PROMPT)
    index = jnp.arange(PROMPT) - (PROMPT - length)
    return jnp.where(index >= 0, symbols[_clip(index, PROMPT)], PAD)


def as_answer(*pieces: Text) -> Array:
    """The pieces as an answer, int32 (ANSWER,): then END, and padding on the right."""
    end = Text(jnp.array([END]), jnp.int32(1))
    return join(*pieces, end, size=ANSWER).symbols


def _clip(index: Array, size: int) -> Array:
    return jnp.clip(index, 0, size - 1)


def decode(symbols: Iterable[int]) -> str:
    """The characters of a prompt or an answer, up to END and without padding.

    Example:
        >>> decode([PAD, 1, 10, 2, 15])
        '1+2='
    """
    text = ""
    for number in symbols:
        if number == END:
            break
        text += CHARACTERS[number] if number < PAD else ""
    return text


def encode(text: str) -> list[int]:
    """A prompt as symbols, padded to PROMPT.

    Raises:
        MasteryError: If a character is unknown, or the prompt is too long.
    """
    for character in text:
        if character not in CHARACTERS:
            raise MasteryError(f"{character!r} cannot be read; the alphabet is {CHARACTERS}")
    if len(text) > PROMPT:
        raise MasteryError(f"the prompt has {len(text)} characters; the most is {PROMPT}")
    return [PAD] * (PROMPT - len(text)) + [symbol(character) for character in text]
