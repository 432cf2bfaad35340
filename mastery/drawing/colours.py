"""The one map of colours: how each program looks in every picture, page and figure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from zlib import crc32

Style = tuple[str, str]  # a colour, and one of `DASHES`

# Okabe and Ito's palette, which colour-blind people can tell apart
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#999999", "#B8A900")
INK = "#000000"  # drawn in the colour of text, which is light on a dark page
DASHES = ("solid", "dash", "dot", "dashdot")

_BLUE, _ORANGE, _GREEN, _RED, _PINK, _SKY, _GREY, _OLIVE = PALETTE
_BROWN = "#8C5A2B"
_COLOURS = (*PALETTE, _BROWN, INK)

PROGRAM_STYLES: dict[str, Style] = {  # relatives share a colour
    "mr": (_BLUE, "solid"),
    "auto": (_SKY, "solid"),
    "gprop-linreg": (_RED, "solid"),
    "gamax-linreg": (_ORANGE, "solid"),
    "naive": (_ORANGE, "dash"),
    "sampling": (_ORANGE, "dot"),
    "gamax-window": (_PINK, "solid"),
    "gamax-online": (_PINK, "dash"),
    "boltzmann-window": (_PINK, "dot"),
    "exp3s": (_BROWN, "solid"),
    "sec": (_BROWN, "dash"),
    "dump": (_BROWN, "dot"),
    "competence": (_OLIVE, "solid"),
    "plr": (_OLIVE, "dash"),
    "bidirectional": (_OLIVE, "dot"),
    "learnability": (_GREEN, "dash"),
    "learnability-topk": (_GREEN, "dot"),
    "adarft": (_SKY, "dash"),
    "mopps": (_SKY, "dot"),
    "odm": (_GREY, "dash"),
    "ado": (_GREY, "dot"),
    "uniform": (INK, "solid"),
    "greso": (INK, "dash"),
    "target": (_GREY, "solid"),
    "sequential": (_GREEN, "solid"),
}
PROGRAM_COLOURS = {name: colour for name, (colour, _) in PROGRAM_STYLES.items()}


def program_style(label: str) -> Style:
    """How a program is drawn, if nothing else in the picture looks the same.

    Args:
        label: A program, with or without settings: `mr`, `mr:delta=0.8`.
    """
    return next(_candidates(label, taken=set()))


def program_styles(labels: Iterable[str]) -> dict[str, Style]:
    """How the programs of one picture are drawn; up to 40 all look different.

    A named program always looks the same. One with other settings has the colour of its name and
    another dash, and your own program a colour that follows from its name, unless that is taken.

    Args:
        labels: The programs, with or without settings.

    Returns:
        Colour and dash of each, in the order given; the same whatever that order is.
    """
    wanted = list(dict.fromkeys(labels))
    found: dict[str, Style] = {}
    for label in sorted(wanted, key=lambda label: (label not in PROGRAM_STYLES, label)):
        taken = set(found.values())
        found[label] = next(_candidates(label, taken), program_style(label))
    return {label: found[label] for label in wanted}


def numbered_styles(names: Iterable[str]) -> dict[str, Style]:
    """How lines that are not of programs are drawn: one colour after the other."""
    styles = [(colour, dash) for dash, colour in product(DASHES, PALETTE)]
    return {name: styles[i % len(styles)] for i, name in enumerate(names)}


def _candidates(label: str, taken: set[Style]) -> Iterator[Style]:
    """The styles a label may have, the best first, without those taken."""
    if label in PROGRAM_STYLES:
        yield PROGRAM_STYLES[label]
        return
    number, base = crc32(label.encode()), _base(label)
    if base is not None:
        colour, own = PROGRAM_STYLES[base]
        others = [dash for dash in DASHES if dash != own]
        dashes = (others[(number + i) % len(others)] for i in range(len(others)))
        yield from ((colour, dash) for dash in dashes if (colour, dash) not in taken)
    used = {colour for colour, _ in taken}
    colours = [_COLOURS[(number + i) % len(_COLOURS)] for i in range(len(_COLOURS))]
    colours.sort(key=lambda colour: colour in used)
    every = ((colour, dash) for dash, colour in product(DASHES, colours))
    yield from (style for style in every if style not in taken)


def _base(label: str) -> str | None:
    """The name at the start of a label such as `mr:delta=0.8`, if it is a program's."""
    names = (name for name in PROGRAM_STYLES if re.match(rf"{re.escape(name)}(?!\w)", label))
    return max(names, key=len, default=None)
