"""Figures like the paper's: median with first and last quartile over the seeds, by frames.

Each function draws curves and returns a Matplotlib figure; `write` saves it as SVG, for pages, and
as PNG.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from mastery.drawing.axes import quartiles, task_colours
from mastery.drawing.colours import PROGRAM_COLOURS
from mastery.paper.configurations import CENSORED, FAMILIES, Bar
from mastery.paper.curves import PaperCurves
from mastery.statistics import Estimate

Floats = NDArray[np.float64]
NAMES = {
    "mr": "MR",
    "gprop-linreg": "gProp Linreg",
    "gamax-linreg": "gAmax Linreg",
    "gamax-window": "gAmax Window",
}
STYLE: Any = {
    "font.size": 9,
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "mastery",
}


def write(figure: Figure, path: Path) -> None:
    """Save as PATH.svg and PATH.png; the same figure gives the same bytes."""
    with mpl.rc_context(STYLE):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        figure.set_layout_engine("none")  # keep the layout of the SVG
        figure.savefig(path.with_suffix(".png"), dpi=160)


def returns_by_task(curves: PaperCurves, programs: Sequence[str], title: str) -> Figure:
    """One panel per task, one line per program."""
    columns = 3
    rows = -(-len(curves.tasks) // columns)
    shown = curves.smooth()
    with mpl.rc_context(STYLE):
        figure = Figure((8.4, 0.7 + 1.75 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for i, (axis, task) in enumerate(zip(axes, curves.tasks, strict=False)):
            for program in programs:
                _band(axis, curves, shown[:, curves.runs[program], i], program)
            axis.set(title=task, ylim=(-0.03, 1))
        _frames(axes[-columns:], curves)
        figure.supylabel("return in training", fontsize=9)
        _legend(figure, axes[0], title)
    return figure


def means(each: Mapping[str, PaperCurves], title: str) -> Figure:
    """One panel per job: the mean over its tasks, one line per program."""
    with mpl.rc_context(STYLE):
        figure = Figure((8.4, 3.1), layout="constrained")
        axes = figure.subplots(1, len(each), sharey=True, squeeze=False).ravel()
        for axis, (name, curves) in zip(axes, each.items(), strict=True):
            shown = curves.smooth().mean(2)
            for program, runs in curves.runs.items():
                _band(axis, curves, shown[:, runs], program)
            axis.set(title=name, ylim=(-0.03, 1))
            _frames([axis], curves)
        axes[0].set_ylabel("return, mean over tasks")
        widest = max(each, key=lambda name: len(each[name].runs))
        _legend(figure, axes[list(each).index(widest)], title)
    return figure


def returns_and_probabilities(
    curves: PaperCurves, program: str, until: float, title: str
) -> Figure:
    """Returns above, probabilities of the tasks below, up to `until` frames."""
    some = slice(0, curves.at(until) + 1)
    runs = curves.runs[program]
    x = curves.frames[some] / 1e6
    with mpl.rc_context(STYLE):
        figure = Figure((8.4, 4.2), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        colours = task_colours(len(curves.tasks))
        for i, (task, colour) in enumerate(zip(curves.tasks, colours, strict=True)):
            low, middle, high = quartiles(curves.smooth()[some][:, runs, i])
            above.plot(x, middle, color=colour, label=task, linewidth=1.6)
            above.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
        above.set(ylabel="return in training", ylim=(-0.03, 1))
        mean = curves.probability[some][:, runs].mean(1)
        below.stackplot(x, mean.T, colors=colours, labels=curves.tasks)
        below.set(ylabel="probability", ylim=(0, 1), xlabel="frames (millions)")
        below.margins(x=0)
        _legend(figure, above, title)
    return figure


def probabilities(each: Mapping[str, tuple[PaperCurves, str]], title: str) -> Figure:
    """One panel per (job, program): the probabilities of the tasks, mean over seeds."""
    columns = 2
    rows = -(-len(each) // columns)
    with mpl.rc_context(STYLE):
        figure = Figure((8.4, 0.3 + 2.05 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
        for axis, (name, (curves, program)) in zip(axes, each.items(), strict=False):
            colours = task_colours(len(curves.tasks))
            mean = curves.probability[:, curves.runs[program]].mean(1)
            axis.stackplot(curves.frames / 1e6, mean.T, colors=colours, labels=curves.tasks)
            axis.set(title=name, ylim=(0, 1))
            axis.margins(x=0)
            axis.legend(
                *(x[::-1] for x in axis.get_legend_handles_labels()),
                loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, handlelength=1,
            )  # fmt: skip
            _frames([axis], curves)
        figure.suptitle(title, fontsize=10, fontweight="bold", x=0.01, ha="left")
    return figure


def bars(found: Sequence[Bar], title: str) -> Figure:
    """Examples to 99 % of every task: the median as a bar, each run as a point. A triangle at the
    end of the budget marks runs that never got there."""
    groups = list(dict.fromkeys(bar.group for bar in found))
    with mpl.rc_context(STYLE):
        figure = Figure((8.4, 2.1 * len(groups) + 0.5), layout="constrained")
        axes = figure.subplots(len(groups), 1, squeeze=False, sharex=True).ravel()
        for axis, group in zip(axes, groups, strict=True):
            own = [bar for bar in found if bar.group == group]
            for y, bar in enumerate(own):
                colour = PROGRAM_COLOURS.get(bar.name, FAMILIES[bar.family])
                censored = np.isinf(bar.times)
                median = bar.median
                end = bar.budget if np.isinf(median) else median
                never = bool(np.isinf(median))
                axis.barh(
                    y, end / 1e6, color=colour, height=0.7, alpha=0.25 if never else 0.75,
                    hatch="////" if never else None, edgecolor=colour, linewidth=0.5,
                )  # fmt: skip
                axis.plot(bar.times[~censored] / 1e6, np.full((~censored).sum(), y), "o", ms=3.2,
                          color="black", mfc="white", mew=0.7)  # fmt: skip
                if censored.any():
                    axis.plot([bar.budget / 1e6], [y], ">", ms=5, color="black", clip_on=False)
                    axis.annotate(f" {censored.sum()}", (bar.budget / 1e6, y), fontsize=6,
                                  va="center", xytext=(3, 0), textcoords="offset points",
                                  annotation_clip=False)  # fmt: skip
            axis.set_yticks(range(len(own)), [bar.name for bar in own], fontsize=7)
            axis.set_title(group, loc="left")
            axis.grid(axis="y", visible=False)
            axis.invert_yaxis()
        axes[-1].set_xlabel(f"million examples until every task has 99 %; ▸ {CENSORED}")
        heights = [sum(bar.group == group for bar in found) for group in groups]
        figure.set_size_inches(8.4, 0.9 + 0.45 * len(groups) + 0.165 * sum(heights))
        axes[0].get_gridspec().set_height_ratios([h + 1 for h in heights])
        figure.suptitle(title, fontsize=10, fontweight="bold", x=0.01, ha="left")
    return figure


def dots(found: Mapping[str, tuple[Estimate, Floats]], what: str, title: str, base: str) -> Figure:
    """One row per estimate, with its interval and runs; a dashed line marks the base."""
    with mpl.rc_context(STYLE):
        figure = Figure((8.4, 0.8 + 0.24 * len(found)), layout="constrained")
        axis = figure.subplots()
        for y, (name, (estimate, runs)) in enumerate(found.items()):
            colour = PROGRAM_COLOURS["mr"] if name == base else "#444444"
            axis.plot([estimate.low, estimate.high], [y, y], color=colour, linewidth=2.2, alpha=0.6)
            axis.plot(estimate.value, y, "o", color=colour, ms=5.5)
            axis.plot(runs, np.full(len(runs), y), "|", color=colour, ms=6, mew=0.8)
        axis.axvline(
            found[base][0].value, color=PROGRAM_COLOURS["mr"], linewidth=0.8, linestyle="--"
        )
        axis.set_yticks(range(len(found)), list(found), fontsize=8)
        axis.invert_yaxis()
        axis.set_xlabel(what)
        figure.suptitle(title, fontsize=10, fontweight="bold", x=0.01, ha="left")
    return figure


def shares(
    panels: Mapping[str, Mapping[str, Mapping[str, Estimate]]], what: str, title: str
) -> Figure:
    """One panel per set of tasks. Each row shows the share of runs that learned them: one point
    with its interval per program."""
    rows = list(dict.fromkeys(row for panel in panels.values() for row in panel))
    programs = list(
        dict.fromkeys(p for panel in panels.values() for cells in panel.values() for p in cells)
    )
    with mpl.rc_context(STYLE):
        figure = Figure((8.4, 1.1 + 0.3 * len(rows)), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False).ravel()
        for axis, (name, panel) in zip(axes, panels.items(), strict=True):
            for row, cells in panel.items():
                for program, x in cells.items():
                    y = rows.index(row) + 0.22 * (programs.index(program) - len(programs) / 2 + 0.5)
                    colour = PROGRAM_COLOURS.get(program, "#444444")
                    axis.plot([x.low, x.high], [y, y], color=colour, linewidth=1.8, alpha=0.5)
                    axis.plot(x.value, y, "o", color=colour, ms=4.5, clip_on=False, zorder=3)
            for y in range(1, len(rows)):
                axis.axhline(y - 0.5, color="#d8d8d8", linewidth=0.6)
            axis.set(
                title=fill(name, 20, break_long_words=False),
                xlim=(0, 1),
                ylim=(len(rows) - 0.5, -0.5),
            )
            axis.set_xticks([0, 0.5, 1], ["0", "½", "all"])
            axis.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(rows)), rows, fontsize=8)
        figure.supxlabel(what, fontsize=8.5)
        figure.suptitle(title, fontsize=10, fontweight="bold", x=0.01, ha="left")
        handles = [
            Line2D([], [], color=PROGRAM_COLOURS.get(p, "#444444"), marker="o", linewidth=1.8)
            for p in programs
        ]
        labels = [NAMES.get(p, p) for p in programs]
        figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), fontsize=8)
    return figure


def _band(axis: Any, curves: PaperCurves, values: Floats, program: str) -> None:
    """Draw a program's median and quartiles over seeds."""
    low, middle, high = quartiles(values)
    x, colour = curves.frames / 1e6, PROGRAM_COLOURS.get(program, "#444444")
    axis.plot(x, middle, color=colour, label=NAMES.get(program, program), linewidth=1.6)
    axis.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)


def _frames(axes: Any, curves: PaperCurves) -> None:
    for axis in axes:
        axis.set_xlabel(f"{curves.about['unit']} (millions)")
        axis.set_xlim(0, curves.frames[-1] / 1e6)


def _legend(figure: Figure, axis: Any, title: str) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.suptitle(title, fontsize=10, fontweight="bold", x=0.01, ha="left")
    place: Any = "outside upper right" if len(labels) <= 4 else "outside lower center"
    figure.legend(handles, labels, loc=place, ncols=len(labels), fontsize=8)
