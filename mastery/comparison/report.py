"""The result of a comparison: a table, a sentence, figures, and a page with all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from mastery.checkpoint import replace_file
from mastery.comparison.curves import TokenCurves
from mastery.comparison.jobs import ENTRIES, ORDER, Entry, label
from mastery.comparison.measures import Row, hard_tasks, rows, stuck_tasks, times
from mastery.drawing.static_page import section, static_page
from mastery.paper.sections import Table, to_html
from mastery.statistics import Estimate

REFERENCE = "uniform"
GOALS = (0.62, 0.63, 0.64, 0.65)  # pass rates


def percent(x: Estimate) -> str:
    """`12 % (3 … 20)`."""
    return f"{100 * x.value:.0f} % ({100 * x.low:.0f} … {100 * x.high:.0f})"


def millions(x: float) -> str:
    return f"{x / 1e6:.2f}M" if math.isfinite(x) else "never"


def named(found: Sequence[Row]) -> list[tuple[Entry, Row]]:
    """The rows in the order of the entries, with their names."""
    by_program = {row.program: row for row in found}
    return [(e, by_program[label(e)]) for e in ENTRIES if label(e) in by_program]


def main_table(found: Sequence[Row]) -> Table:
    """Every program beside the reference, at equal tokens."""
    cells = []
    for entry, row in named(found):
        own = row.program == REFERENCE
        better = f"{row.better.value:+.3f} ({row.better.low:+.3f} … {row.better.high:+.3f})"
        cells.append(
            [
                f"`{entry.name}`, {ORDER[entry.knows]}",
                millions(row.budget),
                f"{row.last.value:.3f} ({row.last.low:.3f} … {row.last.high:.3f})",
                "–" if own else better,
                "–" if own else str(row.chance),
                "–" if own else percent(row.saved),
            ]
        )
    head = (
        "program", "tokens", "pass rate there", f"minus `{REFERENCE}`",
        f"P(mean up to there > `{REFERENCE}`)", "tokens saved",
    )  # fmt: skip
    return Table(head, cells)


def times_table(curves: TokenCurves) -> Table:
    """Tokens to fixed pass rates."""
    found, cells = times(curves, GOALS), []
    for entry in ENTRIES:
        if label(entry) in found:
            each = [
                f"{millions(time.value)}, {reached} of {len(curves.runs[label(entry)])}"
                for time, reached in found[label(entry)]
            ]
            cells.append([f"`{entry.name}`, {ORDER[entry.knows]}", *each])
    return Table(("program", *(f"to {goal:g}" for goal in GOALS)), cells)


def training_table(found: Sequence[Row]) -> Table:
    """Where each program's training went."""
    cells = [
        [
            f"`{entry.name}`, {ORDER[entry.knows]}",
            percent(row.flat),
            f"{row.hard.value:.1f} ({row.hard.low:.1f} … {row.hard.high:.1f})",
            "–" if math.isnan(row.stuck) else f"{100 * row.stuck:.1f} %",
            "–" if math.isnan(row.rarest) else f"{row.rarest:.2f}",
        ]
        for entry, row in named(found)
    ]
    head = (
        "program", "groups without signal", "hard tasks learned",
        "training on tasks that stay at 0", "least completions of such a task per 1000",
    )  # fmt: skip
    return Table(head, cells)


def sentence(found: Sequence[Row]) -> str:
    """What a user takes home."""
    rows = named(found)

    def best(knows: str) -> tuple[Entry, Row] | None:
        own = [(e, r) for e, r in rows if e.knows == knows and r.program != REFERENCE]
        return max(own, key=lambda pair: pair[1].saved.value, default=None)

    parts = []
    for knows, words in (("none", "without an order"), ("true", "with the true order")):
        pair = best(knows)
        own = [(e, r) for e, r in rows if e.knows == knows and e.name in ("auto", "mr")]
        told = ", ".join(f"`{e.name}` saves {percent(r.saved)}" for e, r in own)
        extra = f" (best: `{pair[0].name}`, {percent(pair[1].saved)})" if pair else ""
        parts.append(f"{words} {told}{extra}")
    return f"Of the tokens that `{REFERENCE}` needs for the same pass rate: {'; '.join(parts)}."


def about(curves: TokenCurves) -> str:
    """What was trained, in a sentence."""
    programs, runs = len(curves.runs), len(curves.programs)
    tokens = curves.generated[-1].sum()
    return (
        f"{len(curves.tasks)} tasks, {programs} programs, {runs // programs} seeds each; "
        f"{curves.completions[-1]:,} completions per run; {millions(tokens)} generated tokens "
        "in all, in "
        f"{curves.about['seconds'] / 60:.1f} minutes on {curves.about['device'] or 'one device'}; "
        f"{len(hard_tasks(curves))} tasks are hard (a pass rate below 0.1 at the first evaluation)"
        f", {len(stuck_tasks(curves, REFERENCE))} stay at 0 under `{REFERENCE}`"
    )


def write(curves: TokenCurves, out: Path) -> Path:
    """Write figures (SVG and PNG), `tables.md` and `index.html`; return the page's path."""
    from mastery.comparison.figures import pass_rates, savings
    from mastery.paper.figures import write as save

    found = rows(curves, REFERENCE)
    out.mkdir(parents=True, exist_ok=True)
    for name, figure in (
        ("pass-rates", pass_rates(curves, ENTRIES, REFERENCE)),
        ("savings", savings(found, ENTRIES, REFERENCE)),
    ):
        save(figure, out / name)
    tables = {
        "At equal tokens": main_table(found),
        "Tokens to fixed pass rates": times_table(curves),
        "Training": training_table(found),
    }
    text = f"{sentence(found)}\n\n{about(curves)}.\n\n"
    text += "\n".join(f"## {title}\n\n{table.markdown()}" for title, table in tables.items())
    replace_file(out / "tables.md", [text.encode()])

    def picture(name: str) -> str:
        return (out / f"{name}.svg").read_text().partition("<svg")[2].join(["<svg", ""])

    page = static_page(
        "Programs on problems with verifiable rewards",
        f"{to_html(about(curves))}.",
        [
            section("What is saved", f"<p>{to_html(sentence(found))}</p>{picture('savings')}"),
            section("Pass rates", picture("pass-rates")),
            *(section(title, table.html()) for title, table in tables.items()),
        ],
        width=1000,
    )
    replace_file(out / "index.html", [page.encode()])
    return out / "index.html"
