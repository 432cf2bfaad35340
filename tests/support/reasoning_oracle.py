"""Solves the problems of `mastery.reasoning` from their text, by plain Python, and says what a text
of a family and level looks like. Written from the table in `families`, not from its code."""

import re

TASKS = [
    (family, level)
    for family in (
        "sum", "difference", "product", "modulo", "compare", "sort", "reverse", "count", "parity",
        "brackets", "expression", "shift",
    )
    for level in (1, 2, 3, 4)
]  # fmt: skip
SECOND = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: a % b,
}
PAIRS = {"(": ")", "[": "]", "{": "}"}


def solve(text):
    """The answer to a prompt."""
    body, end = text[:-1], text[-1]
    assert end == "="
    if body[0].isdigit():
        a, sign, b = re.fullmatch(r"(\d+)([-+*%?])(\d+)", body).groups()
        if sign == "?":
            return "<" if int(a) < int(b) else ">" if int(a) > int(b) else "="
        return str(SECOND[sign](int(a), int(b)))
    return {
        "s": lambda given: "".join(sorted(given)),
        "r": lambda given: given[::-1],
        "c": lambda given: str(given.partition(":")[2].count(given[0])),
        "p": lambda given: str(given.count("1") % 2),
        "b": _closing,
        "x": _value,
        "h": lambda given: "".join(str((int(x) + int(given[0])) % 10) for x in given[2:]),
    }[body[0]](body[1:])


def _closing(given):
    """What closes all that is open; each bracket closes the one that was opened last."""
    still = []
    for bracket in given:
        if bracket in PAIRS:
            still.append(bracket)
        else:
            assert PAIRS[still.pop()] == bracket
    return "".join(PAIRS[bracket] for bracket in reversed(still))


def _value(given):
    """From left to right, without precedence; only the result is taken modulo 10."""
    value = int(given[0])
    for sign, digit in zip(given[1::2], given[2::2], strict=True):
        value = SECOND[sign](value, int(digit))
    return str(value % 10)


def fits(family, level, text):
    """Whether a prompt is one of this family and level."""
    few, many = 2 * level, 2 * level + 1  # digits of a string
    number = r"\d" if level == 1 else rf"[1-9]\d{{{level - 1}}}"
    longer = rf"[1-9]\d{{{level}}}"
    pattern = {
        "sum": r"(\d+)\+(\d+)=",
        "difference": r"(\d+)-(\d+)=",
        "product": rf"{number}\*[2-9]=",
        "modulo": rf"{longer}%[3-9]=",
        "compare": rf"({longer})\?({longer})=",
        "sort": rf"s\d{{{few},{many}}}=",
        "reverse": rf"r\d{{{few},{many}}}=",
        "count": rf"c[012]:[012]{{{3 * level - 1},{3 * level + 1}}}=",
        "parity": rf"p[01]{{{2 * level + 2},{2 * level + 3}}}=",
        "brackets": rf"b[()\[\]{{}}]{{{2 * level + 1},{2 * level + 2}}}=",
        "expression": rf"x\d([-+*]\d){{{level}}}=",
        "shift": rf"h[1-9]:\d{{{few},{many}}}=",
    }[family]
    found = re.fullmatch(pattern, text)
    if found and family in ("sum", "difference"):
        a, b = found.groups()
        return (
            max(len(a), len(b)) == level
            and all(x == str(int(x)) for x in (a, b))  # no leading zeros
            and (family == "sum" or int(a) >= int(b))
        )
    if found and family == "compare":
        return sum(x != y for x, y in zip(*found.groups(), strict=True)) <= 1
    return bool(found)


def is_held_out(symbols):
    """One problem in five, by a hash of its prompt: whole numbers of Python, cut to 32 bits."""
    h = 0
    for number in symbols:
        h = (33 * h + int(number)) % 2**32
    h = (h ^ h >> 15) * 0x2C1B3C6D % 2**32
    return (h ^ h >> 12) % 5 == 0
