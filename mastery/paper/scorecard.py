"""The paper's claims at a glance: a mark for each claim and world, and the intervals behind it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mastery.paper.claims import SHORT, WORLDS, Claim, Judgement
from mastery.paper.verdicts import MARKS, NOT_REPRODUCED, REPRODUCED, Ground, Verdict

ADDITION = "addition"  # the claims that know one world only
_MEANING = dict(zip(MARKS, ("reproduced", "not reproduced", "undecided"), strict=True))
_KIND = dict(zip(MARKS, ("yes", "no", "open"), strict=True))
_WIDE, _ROW, _EDGE = 132, 10, 6  # of a bar, in pixels

EXPLAINED = (
    "✓ reproduced, ✗ not reproduced, ≈ undecided: the training leaves it open, or a threshold lies "
    "inside the 95 % interval, so other seeds might decide otherwise. (By the rules below such a "
    "claim is not reproduced.)"
)
_BARS = (
    "A bar for each curriculum, rival or task, all of which must hold: the estimate (dot), its "
    "95 % interval (line) and the threshold (|). For addition: the share of pairs in which MR is "
    "faster, without and with the undecided ones."
)
STYLE = """
.tally{font-size:19px;margin:4px 0 14px;display:flex;flex-wrap:wrap;gap:0 26px}
.tally span,.card td.world a{white-space:nowrap}
.mark{font-size:22px;font-weight:700;line-height:1}
.yes{color:var(--yes);stroke:var(--yes)} .no{color:var(--no);stroke:var(--no)}
.open{color:var(--soft);stroke:var(--soft)} .mark,.tally b{stroke:none}
.card td{vertical-align:top;white-space:normal} .card th{white-space:normal}
.card .number{width:1%} .card td.world{text-align:left;width:212px}
.card .row{display:flex;gap:10px;align-items:flex-start}
.card small{line-height:1.4;display:inline-block} .card .bar{min-width:0;display:block}
.bar circle{stroke:none;fill:currentColor}
.bar .axis{stroke:var(--line)} .bar .limit{stroke:var(--ink)}
.bar text{fill:var(--soft);font-size:9px}
.card tr.group th{padding-top:18px;text-align:left;color:var(--ink)}
tr:target{outline:2px solid var(--link);outline-offset:-2px}
@media screen and (max-width:700px){.card tr{display:grid;grid-template-columns:1fr 1fr;
 border-bottom:1px solid var(--line);padding:6px 0} .card tr.heads{display:none}
 .card td,.card th{border:0;padding:4px 6px} .card td.number{display:none}
 .card td.claim,.card tr.group th{grid-column:1/-1} .card td.world{width:auto}
 .card td.world::before{content:attr(data-world);display:block;color:var(--soft);font-size:13px}}
"""


def tally(judgements: Sequence[Judgement]) -> dict[str, dict[str, int]]:
    """How many of the paper's claims have each mark, by world."""
    found: dict[str, dict[str, int]] = {}
    for world, verdicts in _by_world(judgements).items():
        marks = [verdict.mark for claim, verdict in verdicts if claim.in_paper]
        if marks:
            found[world] = {mark: marks.count(mark) for mark in MARKS}
    return found


def tally_text(judgements: Sequence[Judgement]) -> str:
    """The same in one line."""
    return " · ".join(
        f"{name}: " + " ".join(f"{n} {mark}" for mark, n in _ordered(counts))
        for name, counts in tally(judgements).items()
    )


def table(judgements: Sequence[Judgement]) -> tuple[list[str], list[list[str]]]:
    """The marks as a table: its head and its rows."""
    names = list(_by_world(judgements))
    rows = []
    for i, (claim, verdicts) in enumerate(judgements, start=1):
        own = _named(verdicts)
        marks = [own[name].mark if name in own else "" for name in names]
        rows.append([str(i), claim.words, claim.where, *marks])
    return ["", "the paper says", "where", *names], rows


def html(judgements: Sequence[Judgement], figures: Sequence[str]) -> str:
    """The scorecard; marks link to these figures, by their names, and to the numbers."""
    line = "".join(
        f"<span>{escape(name)}: "
        + " ".join(f'<b class="{_KIND[mark]}">{n} {mark}</b>' for mark, n in _ordered(counts))
        + "</span>"
        for name, counts in tally(judgements).items()
    )
    worlds = [name for name in _by_world(judgements) if name != ADDITION]
    heads = "".join(f'<th class="left" scope="col">{name}</th>' for name in worlds)
    rows, last = [], True
    for i, judgement in enumerate(judgements, start=1):
        if last and not judgement.claim.several_worlds:
            wide = 2 + max(len(worlds), 1)
            rows.append(f'<tr class="group"><th colspan="{wide}">Addition</th></tr>')
        last = judgement.claim.several_worlds
        rows.append(_row(i, judgement, worlds, figures))
    return (
        f'<p class="tally">{line}</p>'
        f'<p class="soft">{escape(EXPLAINED)}</p>'
        f'<table class="card"><tr class="heads"><th></th><th class="left">the paper says</th>'
        f"{heads}</tr>{''.join(rows)}</table><p><small>{escape(_BARS)}</small></p>"
    )


def _ordered(counts: dict[str, int]) -> list[tuple[str, int]]:
    """✓, ≈, ✗: from good to bad."""
    rest = [mark for mark in counts if mark not in (REPRODUCED, NOT_REPRODUCED)]
    return [(mark, counts[mark]) for mark in (REPRODUCED, *rest, NOT_REPRODUCED)]


def _named(verdicts: dict[str, Verdict]) -> dict[str, Verdict]:
    """Verdicts by the short name of the world."""
    short = {"": ADDITION} | {world: suffix[1:] for suffix, world in WORLDS.items()}
    return {short[world]: verdict for world, verdict in verdicts.items()}


def _by_world(judgements: Sequence[Judgement]) -> dict[str, list[tuple[Claim, Verdict]]]:
    found: dict[str, list[tuple[Claim, Verdict]]] = {
        name: [] for name in (*(suffix[1:] for suffix in WORLDS), ADDITION)
    }
    for claim, verdicts in judgements:
        for name, verdict in _named(verdicts).items():
            found[name].append((claim, verdict))
    return {name: own for name, own in found.items() if own}


def _row(i: int, judgement: Judgement, worlds: Sequence[str], figures: Sequence[str]) -> str:
    claim, verdicts = judgement
    own = _named(verdicts)
    cells = [
        f'<td class="number"><a href="#claim-{i}" title="the numbers">{i}</a></td>',
        f'<td class="left claim">{escape(claim.words)}<br><small>{escape(claim.where)} · '
        f'<a href="#claim-{i}">numbers</a></small></td>',
    ]
    if not claim.several_worlds:
        wide = max(len(worlds), 1)
        cells.append(_cell(claim, ADDITION, own[ADDITION], figures, f' colspan="{wide}"'))
    else:
        cells += [_cell(claim, world, own.get(world), figures) for world in worlds]
    return f"<tr>{''.join(cells)}</tr>"


def _cell(
    claim: Claim, world: str, verdict: Verdict | None, figures: Sequence[str], wide: str = ""
) -> str:
    if verdict is None:
        return f'<td class="world" data-world="{world}"{wide}>–</td>'
    kind, meaning = _KIND[verdict.mark], _MEANING[verdict.mark]
    links = " · ".join(
        f'<a href="#{name}">{escape(text)}</a>'
        for name, text in _figures(claim, world).items()
        if name in figures
    )
    said = " · ".join(filter(None, (_short(verdict.parts), links)))
    return (
        f'<td class="world" data-world="{world}"{wide}><div class="row">'
        f'<span class="mark {kind}" role="img" aria-label="{meaning}" title="{meaning}">'
        f"{verdict.mark}</span><div>{bars(verdict.parts)}<small>{said}</small></div></div></td>"
    )


def _figures(claim: Claim, world: str) -> dict[str, str]:
    """The figures that show a claim in a world, and the texts of the links to them."""
    if claim.figure == ADDITION:
        return {ADDITION: "figure"}
    if claim.figure == "shortcomings":
        return {f"shortcomings-{world}": "figure"}
    several = len(claim.parts) > 1
    return {
        f"{part}-{world}-{claim.figure}": f"figure {SHORT[part]}" if several else "figure"
        for part in claim.parts
    }


def _short(parts: Sequence[Ground]) -> str:
    """The estimate, or how many of several hold."""
    if len(parts) == 1:
        value, low, high = parts[0].estimate
        return f"{value:.2f}" if low == high else str(parts[0].estimate)
    agree = [part.agrees for part in parts]
    counts = {"hold": agree.count(True), "undecided": agree.count(None), "fail": agree.count(False)}
    return ", ".join(f"{n} {name}" for name, n in counts.items() if n)


def bars(parts: Sequence[Ground]) -> str:
    """The intervals of a verdict as one small picture; nothing if it has none."""
    if not parts:
        return ""
    ends = [x for p in parts for x in (*p.estimate, *p.thresholds)]
    # most are shares or returns; a difference is centred on 0
    low, high = (0.0, 1.0) if min(ends) >= 0 else (-max(map(abs, ends)), max(map(abs, ends)))

    def at(x: float) -> float:
        return _EDGE + (min(max(x, low), high) - low) / (high - low) * (_WIDE - 2 * _EDGE)

    high_px, inside = _ROW * len(parts), []
    for x in parts[0].thresholds:
        place = f'x1="{at(x):.1f}" x2="{at(x):.1f}"'
        inside.append(f'<line class="limit" {place} y1="0" y2="{high_px}"/>')
    kinds = {True: "yes", False: "no", None: "open"}
    for i, part in enumerate(parts):
        y, (value, left, right) = _ROW * (i + 0.5), part.estimate
        inside.append(
            f'<g class="{kinds[part.agrees]}"><title>{escape(_told(part))}</title>'
            f'<line class="axis" x1="{_EDGE}" x2="{_WIDE - _EDGE}" y1="{y}" y2="{y}"/>'
            f'<line x1="{at(left):.1f}" x2="{at(right):.1f}" y1="{y}" y2="{y}" stroke-width="4" '
            f'stroke-opacity="0.55"/><circle cx="{at(value):.1f}" cy="{y}" r="3"/></g>'
        )
    for x, where, anchor in ((low, 0, "start"), (high, _WIDE, "end")):
        text = f"{x:.2g}".replace("-", "−")
        inside.append(f'<text x="{where}" y="{high_px + 9}" text-anchor="{anchor}">{text}</text>')
    said = "; ".join(map(_told, parts))
    return (
        f'<svg class="bar" viewBox="0 0 {_WIDE} {high_px + 11}" width="{_WIDE}" '
        f'height="{high_px + 11}" role="img" aria-label="{escape(said)}">{"".join(inside)}</svg>'
    )


def _told(part: Ground) -> str:
    limits = " to ".join(f"{x:g}" for x in part.thresholds)
    return f"{part.name}: {part.estimate}, threshold {limits}"
