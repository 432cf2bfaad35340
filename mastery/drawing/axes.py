"""What all pictures share: SVG in the page's light or dark colours, and axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.drawing.colours import Style

# from the first task of a curriculum to the last: viridis without its darkest part
_RAMP = np.array([(65, 68, 135), (42, 120, 142), (34, 168, 132), (122, 209, 81), (253, 231, 37)])
_DASHES = {"solid": "", "dash": "7 4", "dot": "2 3", "dashdot": "9 3 2 3"}

STYLE = """<style>
.ink{fill:#1d2327}.soft{fill:#5c666d}.line{stroke:#8a949b;fill:none}.grid{stroke:#dfe3e6}
text{font-family:ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif}
@media (prefers-color-scheme:dark){.ink{fill:#e8eaec}.soft{fill:#a9b2b8}.line{stroke:#7d878e}
.grid{stroke:#3a4147}[stroke="#000000"]{stroke:#e8eaec}[fill="#000000"]{fill:#e8eaec}}
</style>"""


@dataclass(frozen=True)
class Plot:
    """A plot's axes and its mapping from data to pixels. The x-axis starts at 0."""

    x_end: float
    y_ticks: Sequence[float] = (0, 0.25, 0.5, 0.75, 1)  # first and last: the ends of the axis
    wide: int = 760
    high: int = 340
    left: int = 58
    right: int = 190
    top: int = 16
    bottom: int = 46

    def x(self, x: Any) -> NDArray[np.float64]:
        at: NDArray[np.float64] = np.asarray(x) / self.x_end
        return self.left + at * (self.wide - self.left - self.right)

    def y(self, y: Any) -> NDArray[np.float64]:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        at: NDArray[np.float64] = (np.clip(y, low, high) - low) / (high - low)
        return self.high - self.bottom - at * (self.high - self.top - self.bottom)

    def points(self, x: Any, y: Any) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(self.x(x), self.y(y), strict=True))

    def x_axis(self, name: str) -> str:
        floor = self.high - self.bottom
        ticks = round_ticks(self.x_end, 8 if self.wide > 600 else 4)
        parts = [label(float(self.x(x)), floor + 20, f"{x:,.10g}", "middle") for x in ticks]
        if name:
            middle = (self.left + self.wide - self.right) / 2
            parts.append(label(middle, floor + 38, name, "middle"))
        return "".join(parts)

    def y_axis(self, name: str) -> str:
        parts = []
        for y in self.y_ticks:
            ends, at = f'x1="{self.left}" x2="{self.wide - self.right}"', float(self.y(y))
            parts.append(f'<line class="grid" {ends} y1="{at:.1f}" y2="{at:.1f}"/>')
            parts.append(label(self.left - 8, at + 4, f"{y:,.10g}", "end"))
        if name:
            turned = f"translate(16 {(self.top + self.high - self.bottom) / 2}) rotate(-90)"
            parts.append(
                '<text class="soft" font-size="13" text-anchor="middle" '
                f'transform="{turned}">{escape(name)}</text>'
            )
        return "".join(parts)


def svg(width: float, height: float, title: str, inside: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title)}">'
        f"{inside}</svg>\n"
    )


def label(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text class="soft" x="{x:.1f}" y="{y:.1f}" font-size="13" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def heading(text: str) -> str:
    """The title of a small picture."""
    return f'<text class="ink" x="2" y="14" font-size="14" font-weight="600">{escape(text)}</text>'


def stroke(style: Style) -> str:
    """The SVG stroke attributes of a line."""
    colour, dash = style
    array = _DASHES[dash]
    return f'stroke="{colour}"' + f' stroke-dasharray="{array}"' * bool(array)


def round_ticks(end: float, most: int = 8) -> NDArray[np.float64]:
    """Round numbers from 0 to `end`: the 0 and at most `most` others."""
    return np.arange(0, end * 1.0001, _round_step(end, most))


def _round_step(length: float, most: int) -> float:
    size = 10.0 ** np.floor(np.log10(length))
    return float(
        next(
            size * m for m in (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5, 10) if length / (size * m) <= most
        )
    )


def task_colours(n: int) -> list[str]:
    """A colour for each task, in the order of the curriculum."""
    at = np.linspace(0, len(_RAMP) - 1, n) if n > 1 else np.array([1.0])
    mixed = [np.interp(at, range(len(_RAMP)), channel) for channel in _RAMP.T]
    return [
        "#{:02x}{:02x}{:02x}".format(*(round(c) for c in rgb)) for rgb in zip(*mixed, strict=True)
    ]


def quartiles(values: NDArray[Any]) -> NDArray[np.float64]:
    """Lower quartile, median and upper quartile over the last axis, ignoring NaN."""
    found = np.full((3, *values.shape[:-1]), np.nan)
    known = ~np.isnan(values).all(axis=-1)
    if known.any():
        found[:, known] = np.nanquantile(values[known], [0.25, 0.5, 0.75], axis=-1)
    return found


def unbroken(values: NDArray[Any]) -> list[slice]:
    """Slices of the stretches without NaN, in order."""
    known = np.concatenate([[False], ~np.isnan(values), [False]])
    return [slice(a, b) for a, b in np.flatnonzero(np.diff(known)).reshape(-1, 2).tolist()]
