"""Draw a curriculum as text or SVG, and learning curves as SVG or one line of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.drawing.axes import STYLE, Plot, heading, quartiles, stroke, svg, unbroken
from mastery.drawing.colours import Style, program_styles
from mastery.errors import MasteryError

_NOTHING, _MASTERED = (240, 238, 232), (8, 104, 82)  # the colours of mastery 0 and 1


def curriculum_text(curriculum: Curriculum, mastery: Mapping[str, float] | None = None) -> str:
    """Draw the order as text, one task per line, with its bounds and its mastery.

    Above 60 tasks, list the levels instead.
    """
    n = len(curriculum)
    levels = int(curriculum.level[-1]) + 1
    title = f"{curriculum.name}: {n} tasks, {len(curriculum.edges)} edges, {levels} levels"
    if n > 60:
        return "\n".join([title, *_level_lines(curriculum)])
    rows = _rails(curriculum)
    rail = max(len(row) for row, _ in rows)
    name = max(len(name) for name in curriculum.names)
    lines = [title, ""]
    for row, i in rows:
        line = row.ljust(rail + 2)
        if i is not None:
            low, high = curriculum.minimum[i], curriculum.maximum[i]
            line += f"{curriculum.names[i].ljust(name)}  {low:g} … {high:g}"
            m = _known(mastery, curriculum.names[i])
            if m is not None:
                line += f"  {bar(m)} {m:4.0%}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def bar(share: float, width: int = 12) -> str:
    """A bar of text: 0.5 gives `██████░░░░░░`."""
    full = round(min(max(share, 0.0), 1.0) * width)
    return "█" * full + "░" * (width - full)


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """A curve with values from 0 to 1 as one line of text."""
    if not len(values):
        return ""
    points = np.interp(np.linspace(0, len(values) - 1, width), np.arange(len(values)), values)
    return "".join(" ▁▂▃▄▅▆▇█"[round(float(np.clip(p, 0, 1)) * 8)] for p in points)


def curriculum_svg(curriculum: Curriculum, mastery: Mapping[str, float] | None = None) -> str:
    """Draw the order as SVG, one level per column, coloured by mastery where it is known."""
    n = len(curriculum)
    if n > 2000:
        raise MasteryError(f"{n} tasks are too many to draw; 2000 is the most")
    named = n <= 80
    longest = max(len(name) for name in curriculum.names)
    width, height = (max(84, 8.8 * longest + 28), 46) if named else (14, 14)
    gap_x, gap_y = (56, 20) if named else (46, 6)
    place = places(curriculum)
    rows = 1 + max(row for _, row in place)
    total_x = (int(curriculum.level[-1]) + 1) * (width + gap_x) - gap_x + 40
    total_y = rows * (height + gap_y) - gap_y + 40

    def corner(i: int) -> tuple[float, float]:
        level, row = place[i]
        return 20 + level * (width + gap_x), 20 + row * (height + gap_y)

    parts = [STYLE]
    look = 'stroke-width="1.4" marker-end="url(#tip)"' if named else 'opacity="0.35"'
    for before, after in curriculum.edges:
        (x0, y0), (x1, y1) = corner(before), corner(after)
        x0, y0, y1 = x0 + width, y0 + height / 2, y1 + height / 2
        bend = (x1 - x0) / 2
        parts.append(
            f'<path class="line" {look} d="M{x0:.1f} {y0:.1f}C{x0 + bend:.1f} {y0:.1f} '
            f'{x1 - bend:.1f} {y1:.1f} {x1 - 3:.1f} {y1:.1f}"/>'
        )
    for i, name in enumerate(curriculum.names):
        (x, y), m = corner(i), _known(mastery, name)
        fill, ink = mastery_colour(m)
        known = "" if m is None else f", mastery {m:.0%}"
        parts.append(
            f'<g><title>{escape(name)}{known}</title><rect x="{x:.1f}" y="{y:.1f}" '
            f'width="{width:.1f}" height="{height}" rx="{9 if named else 7}" fill="{fill}" '
            'stroke="#5c666d"/>'
        )
        if named:
            middle, line = x + width / 2, y + (height / 2 + 5 if m is None else 20)
            parts.append(
                f'<text x="{middle:.1f}" y="{line:.1f}" text-anchor="middle" font-size="14" '
                f'font-weight="600" fill="{ink}">{escape(name)}</text>'
            )
            if m is not None:
                parts.append(
                    f'<text x="{middle:.1f}" y="{y + 37:.1f}" text-anchor="middle" font-size="12" '
                    f'fill="{ink}">{m:.0%}</text>'
                )
        parts.append("</g>")
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#8a949b"/></marker></defs>'
    )
    return svg(total_x, total_y, f"The order of {curriculum.name}", tip + "".join(parts))


def curves_svg(
    curves: Mapping[str, tuple[NDArray[Any], NDArray[Any]]],
    x_label: str,
    y_label: str,
    y_ticks: Sequence[float] = Plot.y_ticks,
    title: str = "",
    styles: Mapping[str, Style] | None = None,
) -> str:
    """Draw one curve per name as SVG: the median over repeats, and a band between the quartiles.

    Args:
        curves: For each name x (points,) and values (points, repeats). NaN leaves a gap.
        x_label: The label of the x-axis.
        y_label: The label of the y-axis.
        y_ticks: The ticks of the y-axis; the first and last are its ends.
        title: If given, draw a small picture with this title, without axis labels and legend.
        styles: How each curve is drawn; by default, as the programs with these names.
    """
    styles = styles or program_styles(curves)
    x_end = max(float(x[-1]) for x, _ in curves.values()) or 1.0
    right = max(Plot.right, 54 + 8 * max(map(len, curves)))  # for the names
    plot = Plot(x_end, y_ticks, wide=Plot.wide - Plot.right + right, right=right)
    if title:
        plot = Plot(x_end, y_ticks, wide=320, high=196, left=44, right=14, top=34, bottom=26)
    parts = [STYLE, heading(title) if title else "", plot.x_axis("" if title else x_label)]
    parts.append(plot.y_axis("" if title else y_label))
    for i, (name, (x, values)) in enumerate(curves.items()):
        low, median, up = quartiles(values)
        colour, line_style = styles[name][0], stroke(styles[name])
        for part in unbroken(median):
            there_and_back = np.concatenate([x[part], x[part][::-1]])
            if values.shape[1] > 1:
                band = plot.points(there_and_back, np.concatenate([low[part], up[part][::-1]]))
                parts.append(f'<polygon points="{band}" fill="{colour}" opacity="0.16"/>')
            line = plot.points(x[part], median[part])
            if " " in line:
                parts.append(
                    f'<polyline points="{line}" fill="none" {line_style} '
                    f'stroke-width="{1.8 if title else 2.4}" stroke-linejoin="round"/>'
                )
            else:  # a line of one point is invisible
                at_x, at_y = line.split(",")
                parts.append(f'<circle cx="{at_x}" cy="{at_y}" r="3" fill="{colour}"/>')
        if not title:
            at, y = plot.wide - plot.right + 16, plot.top + 16 + i * 21
            parts.append(
                f'<line x1="{at}" x2="{at + 24}" y1="{y - 4}" y2="{y - 4}" {line_style} '
                'stroke-width="3"/>'
                f'<text class="ink" x="{at + 32}" y="{y}" font-size="13">{escape(name)}</text>'
            )
    high = plot.high if title else max(plot.high, plot.top + 16 + len(curves) * 21)
    what = f"{title}: {y_label} over {x_label}" if title else f"{y_label} over {x_label}"
    return svg(plot.wide, high, what, "".join(parts))


def _known(mastery: Mapping[str, float] | None, name: str) -> float | None:
    """A task's mastery, or None if it is unknown."""
    m = np.nan if mastery is None else float(mastery[name])
    return None if np.isnan(m) else m


def mastery_colour(m: float | None) -> tuple[str, str]:
    """The fill colour and the text colour for a mastery."""
    m = 0.0 if m is None else min(max(m, 0.0), 1.0)
    fill = [round(a + (b - a) * m) for a, b in zip(_NOTHING, _MASTERED, strict=True)]
    return "#{:02x}{:02x}{:02x}".format(*fill), "#ffffff" if m > 0.75 else "#1d2327"


def places(curriculum: Curriculum) -> list[tuple[int, float]]:
    """The level and row of each task; neighbours lie close together and levels are centred."""
    n, before, after = len(curriculum), *curriculum.edges.T
    level = curriculum.level
    members = [np.flatnonzero(level == k) for k in range(int(level[-1]) + 1)]
    row = np.zeros(n)
    for inside in members:
        row[inside] = np.arange(len(inside)) - len(inside) / 2
    for sweep in range(6):  # each level in the order of its neighbours' mean rows
        mine, theirs = (after, before) if sweep % 2 == 0 else (before, after)
        degree = np.bincount(mine, minlength=n)
        mean = np.bincount(mine, weights=row[theirs], minlength=n) / np.maximum(degree, 1)
        mean = np.where(degree > 0, mean, row)
        for inside in members:
            order = inside[np.argsort(mean[inside], kind="stable")]
            row[order] = np.arange(len(inside)) - (len(inside) - 1) / 2
    row -= row.min()
    return [(int(k), float(r)) for k, r in zip(level, row, strict=True)]


def _rails(curriculum: Curriculum) -> list[tuple[str, int | None]]:
    """The lines of the text drawing, each with its task's position, or None for a line between.

    Each task keeps a vertical rail until its last successor is drawn. `─│─` is a crossing.
    """
    last = np.full(len(curriculum), -1)
    np.maximum.at(last, curriculum.edges[:, 0], curriculum.edges[:, 1])
    lanes: list[int | None] = []
    rows: list[tuple[str, int | None]] = []
    for i in range(len(curriculum)):
        before = {int(p) for p in curriculum.predecessors(i)}
        entering = [k for k, lane in enumerate(lanes) if lane in before]
        if i:
            rows.append(("".join("│ " if lane is not None else "  " for lane in lanes), None))
        down = next((k for k in entering if last[lanes[k]] == i), None)
        free = [k for k, lane in enumerate(lanes) if lane is None]
        lane = down if down is not None else free[0] if free else len(lanes)
        if lane == len(lanes):
            lanes.append(None)
        touched = [*entering, lane]
        first, final = min(touched), max(touched)
        cells = []
        for k, holder in enumerate(lanes):
            ends = holder is not None and last[holder] == i
            if k == lane:
                cell = "●"
            elif k in entering and k == first:
                cell = "╰" if ends else "├"
            elif k in entering and k == final:
                cell = "╯" if ends else "┤"
            elif k in entering:
                cell = "┴" if ends else "┼"
            elif holder is not None:
                cell = "│"
            else:
                cell = "─" if first < k < final else " "
            cells.append(cell + ("─" if first <= k < final else " "))
        rows.append(("".join(cells), i))
        lanes = [None if h is not None and last[h] <= i else h for h in lanes]
        lanes[lane] = i if last[i] > i else None
    return rows


def _level_lines(curriculum: Curriculum) -> list[str]:
    lines = []
    for level in range(int(curriculum.level[-1]) + 1):
        inside = np.flatnonzero(curriculum.level == level)
        few = ", ".join(curriculum.names[i] for i in inside[:6])
        more = ", …" if len(inside) > 6 else ""
        lines.append(f"  level {level + 1:>4}: {len(inside):>6} tasks  {few}{more}")
    return lines if len(lines) <= 30 else [*lines[:15], "  …", *lines[-15:]]
