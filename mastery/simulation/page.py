"""The HTML page of `mastery simulate --out`: one file without scripts that works offline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from mastery.curriculum import Curriculum
from mastery.drawing.pictures import curriculum_svg, curves_svg
from mastery.simulation.simulate import Learner, Outcome

KINDS = ("mastered", "learnable", "not yet learnable")

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root{{color-scheme:light dark;--back:#fbfaf8;--card:#fff;--ink:#1d2327;--soft:#5c666d;--line:#e3e1dc}}
@media (prefers-color-scheme:dark){{:root{{--back:#15181b;--card:#1d2125;--ink:#e8eaec;--soft:#a9b2b8;--line:#333a40}}}}
body{{margin:0;background:var(--back);color:var(--ink);font:16px/1.55 ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif}}
main{{max-width:860px;margin:0 auto;padding:40px 20px 80px}}
h1{{font-size:28px;line-height:1.2;margin:0 0 8px}} h2{{font-size:19px;margin:0 0 6px}}
p{{margin:0 0 12px}} .soft{{color:var(--soft)}}
section{{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:22px;margin-top:22px;overflow-x:auto}}
svg{{max-width:100%;min-width:560px;height:auto}} section.graph svg{{max-width:none;min-width:0}}
table{{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}}
th,td{{text-align:right;padding:7px 10px;border-bottom:1px solid var(--line);white-space:nowrap}}
th:first-child,td:first-child{{text-align:left}} th{{color:var(--soft);font-weight:600;font-size:13px}}
.split{{display:flex;height:16px;min-width:150px;border-radius:8px;overflow:hidden}}
.k0{{background:#086852}}.k1{{background:#56B4E9}}.k2{{background:#D55E00}}
.key span{{white-space:nowrap;margin-right:16px}} td.left,th.left{{text-align:left}}
small{{color:var(--soft)}} summary{{cursor:pointer;color:var(--soft)}} details{{margin-top:16px}}
.key i{{display:inline-block;width:12px;height:12px;border-radius:4px;margin:0 5px 0 14px}}
code{{font-size:14px}}
</style></head><body><main>
<h1>{title}</h1>
<p class="soft">{subtitle}</p>
{sections}
</main></body></html>
"""


def simulation_page(
    curriculum: Curriculum, outcomes: Sequence[Outcome], learner: Learner, command: str
) -> str:
    """The whole comparison as HTML.

    Args:
        curriculum: The curriculum.
        outcomes: The outcomes to compare; the curriculum is drawn with the skills of the first.
        learner: The synthetic learner's settings.
        command: The command line to show on the page.
    """
    best = outcomes[0]
    final = dict(zip(curriculum.names, best.skill[-1].mean(axis=0).tolist(), strict=True))
    mean = {o.program: (o.times, o.skill.mean(axis=2)) for o in outcomes}
    share = {o.program: (o.times, (o.skill >= learner.mastered).mean(axis=2)) for o in outcomes}
    sections = [
        section("Time-steps to master every task", _table(outcomes) + _key()),
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
                f"The curriculum, as {escape(best.program)} leaves it",
                curriculum_svg(curriculum, final),
                "graph",
            )
        )
    seeds = len(best.steps)
    settings = ", ".join(f"{k} {v:g}" for k, v in vars(learner).items())
    sections.append(
        section(
            "How this was made",
            f"<p><code>{escape(command)}</code></p><p class='soft'>Synthetic learners, not a "
            f"neural network: {settings}. Budget: {best.budget:,} time-steps.</p>",
        )
    )
    return PAGE.format(
        title=f"Teaching {escape(curriculum.name)}",
        subtitle=f"{len(curriculum)} tasks, {seeds} synthetic learners for each program",
        sections="\n".join(sections),
    )


def steps_text(steps: float, budget: int) -> str:
    """A number of time-steps as text; `> budget` if it is infinite."""
    return f"{steps:,.0f}" if math.isfinite(steps) else f"> {budget:,}"


def section(title: str, inside: str, kind: str = "") -> str:
    return f'<section class="{kind}"><h2>{title}</h2>{inside}</section>'


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
