"""The HTML page of `mastery simulate --out`: one file without scripts that works offline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from mastery.curriculum import Curriculum
from mastery.drawing.pictures import curriculum_svg, curves_svg
from mastery.drawing.static_page import section, static_page
from mastery.simulation.order import order_note, true_order
from mastery.simulation.simulate import Learner, Outcome

KINDS = ("mastered", "learnable", "not yet learnable")


def simulation_page(
    curriculum: Curriculum, outcomes: Sequence[Outcome], learner: Learner, command: str
) -> str:
    """The whole comparison as HTML.

    Args:
        curriculum: The curriculum.
        outcomes: The outcomes to compare; the curriculum is drawn with the skills of the first.
        learner: The synthetic learner's settings. If its order differs from the curriculum's, the
            page says so and draws both.
        command: The command line to show on the page.
    """
    first = outcomes[0]
    final = dict(zip(curriculum.names, first.skill[-1].mean(axis=0).tolist(), strict=True))
    mean = {o.program: (o.times, o.skill.mean(axis=2)) for o in outcomes}
    share = {o.program: (o.times, (o.skill >= learner.mastered).mean(axis=2)) for o in outcomes}
    order = true_order(learner.order, curriculum)
    note = order_note(order, curriculum)
    said = f"<p>{escape(note)}</p>" if note else ""
    sections = [
        section("Time-steps to master every task", said + _table(outcomes) + _key()),
        section(
            "How many tasks are mastered",
            f"<p class='soft'>Share of tasks with a skill of at least {learner.mastered:g}: median "
            "and quartiles over learners. A curve ends when all learners have mastered all tasks."
            "</p>" + curves_svg(share, "time-steps", "share of tasks mastered"),
        ),
        section("Mean skill", curves_svg(mean, "time-steps", "mean skill over tasks")),
    ]
    if len(curriculum) <= 400:
        sections.append(
            section(
                f"The curriculum, as {escape(first.program)} leaves it",
                curriculum_svg(curriculum, final),
                "graph",
            )
        )
        if note:
            needs = "The order that the learner needs"
            sections.append(section(needs, curriculum_svg(order, final), "graph"))
    seeds = len(first.steps)
    settings = ", ".join(f"{k} {v:g}" for k, v in vars(learner).items() if k != "order")
    settings += f", order {escape(order.name)}"
    sections.append(
        section(
            "How this was made",
            f"<p><code>{escape(command)}</code></p><p class='soft'>Synthetic learners, not a "
            f"neural network: {settings}. Budget: {first.budget:,} time-steps.</p>",
        )
    )
    return static_page(
        f"Teaching {escape(curriculum.name)}",
        f"{len(curriculum)} tasks, {seeds} synthetic learners for each program",
        sections,
    )


def steps_text(steps: float, budget: int) -> str:
    """A number of time-steps as text; `> budget` if it is infinite."""
    return f"{steps:,.0f}" if math.isfinite(steps) else f"> {budget:,}"


def _table(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for o in outcomes:
        low, high = (steps_text(s, o.budget) for s in o.interval())
        split = "".join(
            f'<div class="k{i}" style="width:{share:.2%}" title="{KINDS[i]}: {share:.0%}"></div>'
            for i, share in enumerate(o.spent)
        )
        rows.append(
            f"<tr><td>{escape(o.program)}</td><td>{steps_text(o.median, o.budget)}</td>"
            f"<td>{low} … {high}</td><td>{np.isfinite(o.steps).sum()} of {len(o.steps)}</td>"
            f'<td><div class="split">{split}</div></td></tr>'
        )
    head = "<th>program</th><th>median</th><th>95 % interval</th><th>mastered by</th>"
    return f"<table><tr>{head}<th>where training went</th></tr>{''.join(rows)}</table>"


def _key() -> str:
    marks = "".join(f'<i class="k{i}"></i>{kind}' for i, kind in enumerate(KINDS))
    return (
        f'<p class="soft key" style="margin-top:12px">Tasks that were, when trained on:{marks}</p>'
    )
