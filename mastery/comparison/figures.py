"""Pictures of a comparison: pass rates over tokens, and what each program saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from mastery.comparison.curves import TokenCurves
from mastery.comparison.jobs import ORDER, Entry, label
from mastery.comparison.measures import Row, at_tokens, bootstrap, grid, mean, means, smoothed
from mastery.drawing.colours import program_styles
from mastery.paper.figures import STYLE

_LINES: dict[str, Any] = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}


def pass_rates(curves: TokenCurves, entries: Sequence[Entry], reference: str) -> Figure:
    """One panel for each thing that programs may know: mean pass rate by tokens, with intervals."""
    passed, every = means(curves), curves.runs
    shown = [entry for entry in entries if label(entry) in every]
    styles = program_styles([entry.name.lower() for entry in shown])
    panels = [key for key in ORDER if any(entry.knows == key for entry in shown)]
    with mpl.rc_context(STYLE):
        figure = Figure((9.6, 4.3), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False).ravel()
        for axis, key in zip(axes, panels, strict=True):
            own = [e for e in shown if e.knows == key or label(e) == reference]
            for entry in own:
                program = label(entry)
                tokens = grid(curves, program, program)
                values = smoothed(at_tokens(curves, passed, every[program], tokens))
                found = [bootstrap(mean, point) for point in values]
                colour, dash = styles[entry.name.lower()]
                x = tokens / 1e6
                low, high = [e.low for e in found], [e.high for e in found]
                axis.plot(x, values.mean(1), color=colour, linestyle=_LINES[dash], label=entry.name)
                if len(own) < 5:  # more bands than that hide each other
                    axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
            axis.set(title=ORDER[key], xlabel="generated tokens (millions)")
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, fontsize=7.5)
        axes[0].set_ylabel("pass rate on held-out problems")
    return figure


def savings(rows: Sequence[Row], entries: Sequence[Entry], reference: str) -> Figure:
    """Tokens saved at the reference's last pass rate: a point with its interval per program."""
    by_program = {row.program: row for row in rows}
    shown = [e for e in entries if label(e) in by_program and label(e) != reference]
    shown.sort(key=lambda e: by_program[label(e)].saved.value)
    styles = program_styles([entry.name.lower() for entry in shown])
    with mpl.rc_context(STYLE):
        figure = Figure((8.4, 0.8 + 0.27 * len(shown)), layout="constrained")
        axis = figure.subplots()
        for y, entry in enumerate(shown):
            found = by_program[label(entry)].saved
            colour, _ = styles[entry.name.lower()]
            axis.plot([100 * found.low, 100 * found.high], [y, y], color=colour, linewidth=2)
            axis.plot([100 * found.value], [y], "o", color=colour, markersize=5)
        axis.axvline(0, color="#8a949b", linewidth=1)
        names = [f"{e.name}, {ORDER[e.knows]}" for e in shown]
        axis.set_yticks(range(len(shown)), names)
        axis.set_xlabel(f"tokens saved at the last pass rate of {reference} (%)")
    return figure
