"""Pictures of one program's runs: how training was spread over the tasks, and their mastery."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.draw import mastery_colour
from mastery.plot import STYLE, Plot, heading, svg

# from the first task of the curriculum to the last: viridis without its darkest part
_RAMP = np.array([(65, 68, 135), (42, 120, 142), (34, 168, 132), (122, 209, 81), (253, 231, 37)])
MOST = 120  # columns of a picture; more cannot be told apart


def task_colours(n: int) -> list[str]:
    """A colour for each task, in the order of the curriculum."""
    at = np.linspace(0, len(_RAMP) - 1, n) if n > 1 else np.array([1.0])
    mixed = [np.interp(at, range(len(_RAMP)), channel) for channel in _RAMP.T]
    return [
        "#{:02x}{:02x}{:02x}".format(*(round(c) for c in rgb)) for rgb in zip(*mixed, strict=True)
    ]


def shares_svg(x: NDArray[Any], shares: NDArray[Any], names: Sequence[str], title: str) -> str:
    """Shares (points, tasks) of a whole, one on top of the other, the first task at the bottom.

    Each column is what was between a point and the one before it.
    """
    x, shares = _columns(x, shares, last=False)
    plot = Plot(float(x[-1]) or 1.0, (0, 0.5, 1), 400, 236, left=36, right=14, top=34, bottom=26)
    tops = np.concatenate([np.zeros((len(x), 1)), np.cumsum(shares, axis=1)], axis=1)
    edges = np.repeat(np.concatenate([[0.0], x]), 2)[1:-1]  # a column has two corners at each side
    parts = [STYLE, heading(title), plot.x_axis(""), plot.y_axis("")]
    for i, colour in enumerate(task_colours(len(names))):
        low, high = np.repeat(tops[:, i], 2), np.repeat(tops[:, i + 1], 2)
        area = plot.points(np.concatenate([edges, edges[::-1]]), np.concatenate([low, high[::-1]]))
        parts.append(f'<polygon points="{area}" fill="{colour}">{_tip(names[i])}</polygon>')
    return svg(plot.wide, plot.high, f"{title}: shares of the tasks", "".join(parts))


def mastery_svg(x: NDArray[Any], mastery: NDArray[Any], names: Sequence[str], title: str) -> str:
    """Mastery (points, tasks): a row for each task, the first at the top, darker is more."""
    x, mastery = _columns(x, mastery, last=True)
    row = 17
    plot = Plot(
        float(x[-1]) or 1.0, wide=400, high=28 + row * len(names) + 26,
        left=round(min(max(len(name) for name in names), 24) * 7) + 12, right=14, top=28,
        bottom=26,
    )  # fmt: skip
    edges = plot.x(np.concatenate([[0.0], x]))
    parts = [STYLE, heading(title), plot.x_axis("")]
    for i, name in enumerate(names):
        y = plot.top + row * i
        short = name if len(name) <= 24 else name[:23] + "…"
        parts.append(
            f'<text class="soft" x="{plot.left - 8}" y="{y + 13}" font-size="12" '
            f'text-anchor="end">{escape(short)}{_tip(name)}</text>'
        )
        fills = [mastery_colour(float(m))[0] for m in mastery[:, i]]
        for k, fill in enumerate(fills):
            if k == 0 or fill != fills[k - 1]:  # up to the end, under those after it: no seams
                size = f'width="{edges[-1] - edges[k]:.1f}" height="{row - 2}"'
                parts.append(f'<rect x="{edges[k]:.1f}" y="{y}" {size} fill="{fill}"/>')
    return svg(plot.wide, plot.high, f"{title}: mastery of the tasks", "".join(parts))


def _tip(name: str) -> str:
    return f"<title>{escape(name)}</title>"


def _columns(
    x: NDArray[Any], values: NDArray[Any], last: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """At most MOST points: of several the last, or their mean."""
    parts = np.array_split(np.arange(len(x)), min(len(x), MOST))
    ends = [part[-1] for part in parts]
    return x[ends], values[ends] if last else np.stack([values[part].mean(0) for part in parts])
