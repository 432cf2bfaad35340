"""Write figures, tables and verdicts as a page, and as Markdown for the documentation.

FOLDER/paper.html        the page: one file, works offline
FOLDER/interactive.html  the jobs on the page of `mastery report`
FOLDER/paper.md          the same text and tables as Markdown
FOLDER/figures/          the figures, SVG and PNG
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from mastery.checkpoint import replace_file
from mastery.drawing.static_page import folded, section, static_page
from mastery.errors import MasteryError
from mastery.paper import claims, curves, learned, scorecard
from mastery.paper.claims import WORLDS, shown
from mastery.paper.configurations import configurations
from mastery.paper.curves import Found, PaperCurves, with_baselines
from mastery.paper.experiments import EXPERIMENTS, PAPER_JOBS, SMALL, THREE, TITLES
from mastery.paper.interactive import write_interactive
from mastery.paper.learned import GOOD, LEARNED
from mastery.paper.sections import Section, Table, to_html
from mastery.paper.verdicts import Verdict
from mastery.statistics import (
    Estimate,
    first_time,
    improvement,
    interquartile_mean,
    interval,
    median_time,
)

DATA = Path(__file__).parent / "data"  # the shipped curves
ONE_SIDED = ("target", "sequential")  # they do not train on every task all the time
INTERACTIVE = "interactive.html"
WORDS = {True: "reproduced", False: "**not** reproduced", None: "open"}


def read_shipped(folder: Path, names: Sequence[str] = ()) -> dict[str, PaperCurves]:
    """Load the curves in a folder, of these jobs or of all."""
    found = {
        name: curves.load(folder / f"{name}.npz")
        for name in PAPER_JOBS
        if (not names or name in names) and (folder / f"{name}.npz").exists()
    }
    if not found:
        raise MasteryError(f"there are no curves in {folder}; train some: mastery paper")
    return found


def write_page(found: Found, folder: Path) -> Path:
    """Write the page from these curves, and return its path."""
    scale = min(float(c.about.get("scale", 1.0)) for c in found.values())
    pictures = draw_figures(found, folder / "figures")
    judgements = claims.judge(found)
    sections = [
        *_claims(judgements),
        *_reinforcement(found, pictures),
        *_apart(found, pictures),
        *_agents(found, pictures),
        *_addition(found, pictures),
        *_ablation(found, pictures),
        _making(found),
    ]
    title = "Mastering Rate based Curriculum Learning, reproduced"
    done = sum(len(c.seeds) for c in found.values())
    about = f"{done} runs of {len(found)} jobs"
    if scale < 1:
        small = ", small networks, and addition of three digits" if scale <= SMALL else ""
        about = (
            f"Scaled down: {scale:g} of the frames and seeds{small}, so nothing here says anything "
            f"about the paper · {about}"
        )
    card = scorecard.html(judgements, pictures) if judgements else ""
    html = static_page(
        escape(title),
        f'{escape(about)} · <a href="{INTERACTIVE}">look closer: the interactive page</a>',
        [
            *([section("Scorecard", card, key="scorecard")] if card else []),
            *(folded(escape(s.title), _section_html(s, folder), s.key, s.note) for s in sections),
        ],
        width=1080,
        contents=({"scorecard": "Scorecard"} if card else {})
        | {s.key: escape(s.title) for s in sections},
        style=scorecard.STYLE,
    )
    text = [f"# {title}\n", f"{about}.\n"]
    if judgements:
        text += ["## Scorecard\n", f"{scorecard.tally_text(judgements)}.\n"]
        text += [f"{scorecard.EXPLAINED}\n", Table(*scorecard.table(judgements)).markdown()]
    for s in sections:
        text += [f"## {s.title}\n"] + [f"{s.text}\n"] * bool(s.text)
        text += [f"![{name}](figures/{name}.svg)\n" for name in s.figures]
        text += [s.table.markdown()] if s.table else []
    replace_file(folder / "paper.md", ["\n".join(text).encode()])
    write_interactive(found, folder / INTERACTIVE)
    page = folder / "paper.html"
    replace_file(page, [html.encode()])
    return page


def _section_html(s: Section, folder: Path) -> str:
    parts = [f"<p class='soft'>{to_html(s.text)}</p>"] if s.text else []
    for name in s.figures:
        data = _as_address((folder / "figures" / f"{name}.svg").read_text())
        alt = name.replace("-", " ")
        parts.append(f'<figure id="{name}"><img alt="figure: {alt}" src="{data}"></figure>')
    return "".join(parts) + (s.table.html() if s.table else "")


def _as_address(svg: str) -> str:
    """An SVG as a `data:` address: escaped, which is shorter than base64, and with coordinates to
    a hundredth of a point."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"-?\d+\.\d{3,}(?![\w%])", lambda x: f"{float(x[0]):.2f}", svg)
    svg = re.sub(r"\s+", " ", svg)
    for sign in '%#<>&"':
        svg = svg.replace(sign, f"%{ord(sign):02X}")
    return f"data:image/svg+xml,{svg}"


def draw_figures(found: Found, folder: Path) -> list[str]:
    """Draw every figure that these curves allow, and return their names."""
    from mastery.paper import figures as f

    folder.mkdir(parents=True, exist_ok=True)
    drawn: list[str] = []

    def write(name: str, figure: Any) -> None:
        f.write(figure, folder / name)
        drawn.append(name)

    for suffix in WORLDS:
        _draw_world(found, suffix, write)
    for name, tables, title in (
        ("apart", learned.apart(found), "The world of 2018, taken apart"),
        ("agents", learned.agents(found), "Who needs a curriculum?"),
    ):
        if tables:
            each = {
                head: {
                    row: {program: cell.share for program, cell in cells.items()}
                    for row, cells in rows.items()
                }
                for head, rows in tables.items()
            }
            what = f"share of runs with more than {LEARNED} on each task in the end, 95 % interval"
            write(name, f.shares(each, what, title))
    if bars := configurations(found):
        write("addition", f.bars(bars, "Addition of nine digits"))
    if "ablation" in found:
        c = found["ablation"]
        rows = {p: (_area(c, p), c.area(p).mean(1)) for p in c.runs}
        what = "mean return over tasks and frames: interquartile mean, 95 % interval, and each run"
        write("ablation", f.dots(rows, what, "The mastering-rate program, changed", "mr"))
    return drawn


def _draw_world(found: Found, suffix: str, write: Callable[[str, Any], None]) -> None:
    """The figures of the paper's three curricula in one world."""
    from mastery.paper import figures as f

    own = {name: found[name + suffix] for name in THREE if name + suffix in found}
    if not own:
        return
    by = f", {suffix[1:]}"
    for name, c in own.items():
        for kind, programs in (
            ("teachers", ("gamax-window", "gamax-linreg", "gprop-linreg")),
            ("mr", ("gprop-linreg", "mr")),
        ):
            if all(p in c.runs for p in programs):
                title = f"{TITLES[name]}{by}"
                write(f"{name}{suffix}-{kind}", f.returns_by_task(c, programs, title))
    if "blocked-unlock-pickup" in own:
        c = own["blocked-unlock-pickup"]
        until, title = min(2e6, c.frames[-1]), f"gProp Linreg{by}"
        figure = f.returns_and_probabilities(c, "gprop-linreg", until, title)
        write(f"shortcomings{suffix}", figure)
    pairs = {
        f"{TITLES[name]}, {f.NAMES[p]}": (c, p)
        for name, c in own.items()
        for p in ("gprop-linreg", "mr")
    }
    title = f"What was trained on: probabilities, mean over seeds{by}"
    write(f"probabilities{suffix}", f.probabilities(pairs, title))
    named = {TITLES[name]: shown(with_baselines(found, name + suffix)) for name in own}
    write(f"programs{suffix}", f.means(named, f"All programs{by}"))


def _claims(judgements: Sequence[claims.Judgement]) -> list[Section]:
    sections = []
    numbered = {f"claim-{i}": j for i, j in enumerate(judgements, start=1)}
    for title, worlds in (
        ("The paper's claims: reinforcement learning", WORLDS.values()),
        ("The paper's claims: addition", ("",)),
    ):
        own = {key: j for key, j in numbered.items() if set(j.verdicts) <= set(worlds)}
        rows = [
            [
                j.claim.words,
                j.claim.where,
                f"{j.claim.statistic}: {j.claim.threshold:g}",
                *(_verdict(j.verdicts.get(world)) for world in worlds),
            ]
            for j in own.values()
        ]
        if rows:
            names = [world or "verdict" for world in worlds]
            head = ["the paper says", "where", "how it is judged", *names]
            text = _HOW_CLAIMS if worlds != ("",) else ""
            sections.append(Section(title, text, table=Table(head, rows, tuple(own))))
    return sections


def _verdict(verdict: Verdict | None) -> str:
    return "–" if verdict is None else f"{WORDS[verdict.holds]}: {verdict.numbers}"


_HOW_CLAIMS = (
    "The return in training at that many frames, over the seeds. A run's score is the area under "
    "its curve: the mean return over tasks and frames. P: the probability that a run of the one "
    "scores more than a run of the other. In brackets: 95 % intervals. Of the nine tasks of "
    "ObstructedMaze of 2018 the six count that the paper shows."
)


def _area(c: PaperCurves, program: str) -> Estimate:
    return interval(interquartile_mean, c.area(program).mean(1, keepdims=True))


def _reinforcement(found: Found, pictures: Sequence[str]) -> list[Section]:
    sections = []
    for suffix, world in ((ending, ending[1:]) for ending in WORLDS):
        for name in THREE:
            if name + suffix not in found:
                continue
            whole = with_baselines(found, name + suffix)
            c = shown(whole)
            all_tasks = f"area, all {len(whole.tasks)} tasks" * (len(whole.tasks) > len(c.tasks))
            own = tuple(
                p for p in pictures if p in (f"{name}{suffix}-teachers", f"{name}{suffix}-mr")
            )
            mean = c.smooth().mean(2)
            rows = []
            for program, runs in c.runs.items():
                time = median_time(first_time(c.frames, mean[:, runs], GOOD))
                everywhere = program not in ONE_SIDED
                cells = [f"`{program}`", str(_area(c, program)) if everywhere else "–"]
                if all_tasks:
                    cells.append(str(_area(whole, program)) if everywhere else "–")
                if not np.isnan(c.sampled).any():
                    cells.append(str(interval(interquartile_mean, c.sampled[runs])))
                cells.append(_millions(time, int(c.frames[-1])) if everywhere else "–")
                if everywhere and program != "mr":
                    scores = [c.area(p).mean(1, keepdims=True) for p in ("mr", program)]
                    cells.append(str(interval(improvement, *scores)))
                else:
                    cells.append("–")
                rows.append(cells)
            head = [
                "program",
                "area under the curve",
                *[all_tasks] * bool(all_tasks),
                "return at the end",
                f"frames to {GOOD}",
                "P(mr is better)",
            ]
            if np.isnan(c.sampled).any():
                head.remove("return at the end")
            sections.append(
                Section(
                    f"{TITLES[name]}, {world}",
                    f"{EXPERIMENTS[name].where}. {_left_out(found, name + suffix, c)}"
                    f"{len(c.seeds)} runs of {c.frames[-1]:,} frames. "
                    "Area: a run's mean return over tasks and frames; the interquartile mean over "
                    "seeds. Return at the end: an evaluation on fresh levels, actions drawn from "
                    "the policy; the interquartile mean over seeds and tasks. "
                    f"Frames to {GOOD}: median over seeds, of the mean over tasks, in training, "
                    "where a task that was not trained on counts as it was last. In brackets: "
                    "95 % intervals. – for programs that train on only some tasks.",
                    own,
                    Table(head, rows),
                )
            )
    rest = tuple(p for p in pictures if p.startswith(("programs", "shortcomings", "probabilities")))
    if rest:
        sections.append(Section("Programs, and what they train on", figures=rest))
    return sections


def _millions(time: Estimate, end: int) -> str:
    def one(x: float) -> str:
        return f"> {end / 1e6:.1f}M" if np.isinf(x) else f"{x / 1e6:.2f}M"

    return f"{one(time.value)} ({one(time.low)} … {one(time.high)})"


def _left_out(found: Found, name: str, shown: PaperCurves) -> str:
    """Name the baselines that cannot be shown because their frames differ from the job's."""
    rest = found.get(f"{name}-baselines")
    if rest is None or set(rest.runs) <= set(shown.runs):
        return ""
    names = ", ".join(f"`{program}`" for program in rest.runs)
    return f"Not shown: {names}, stopped after {rest.frames[-1] / 1e6:.1f}M frames. "


def _apart(found: Found, pictures: Sequence[str]) -> list[Section]:
    tables = learned.apart(found)
    if not tables:
        return []
    rows = {row: [row] for panel in tables.values() for row in panel}
    head = ["world"]
    for title, panel in tables.items():
        for program in ("mr", "gprop-linreg"):
            head.append(f"{title}: `{program}`")
            for row, cells in rows.items():
                cell = panel.get(row, {}).get(program)
                cells.append("–" if cell is None else _learned(cell))
    ends = {
        title: max(cell.frames for row in panel.values() for cell in row.values())
        for title, panel in tables.items()
    }
    after = " and ".join(f"{n / 1e6:.0f}M ({title})" for title, n in ends.items())
    text = (
        f"Runs with more than {LEARNED} on each of these tasks after {after} frames; – not "
        "trained. 2019: today's MiniGrid with the authors' agent of 2019 and six tasks, the "
        "reproduction that failed."
    )
    own = tuple(p for p in pictures if p == "apart")
    return [Section("The world of 2018, taken apart", text, own, Table(head, list(rows.values())))]


def _agents(found: Found, pictures: Sequence[str]) -> list[Section]:
    tables = learned.agents(found)
    if not tables:
        return []
    rows: dict[tuple[str, str], list[str]] = {}
    for panel in tables.values():
        for agent, cells in panel.items():
            for program in sorted(cells, key=("mr", "gprop-linreg", "uniform").index):
                rows[agent, program] = [agent, f"`{program}`"]
    for (agent, program), row in rows.items():
        for panel in tables.values():
            cell = panel.get(agent, {}).get(program)
            if cell is None:
                row.append("–")
            else:
                row.append(f"{_learned(cell)}; {_millions(cell.good, cell.frames)}")
    text = (
        f"Runs with more than {LEARNED} on each of the tasks at the end, and frames until the mean "
        f"over them is {GOOD}: the median over seeds with its 95 % interval."
    )
    own = tuple(p for p in pictures if p == "agents")
    head = ["agent", "program", *tables]
    return [Section("Who needs a curriculum?", text, own, Table(head, list(rows.values())))]


def _learned(cell: learned.Cell) -> str:
    stopped = f" (stopped at {cell.frames / 1e6:.1f}M)" if cell.stopped else ""
    return f"{cell.learned} of {cell.runs}{stopped}"


def _addition(found: Found, pictures: Sequence[str]) -> list[Section]:
    rows = []
    for bar in configurations(found):
        each = ", ".join("–" if np.isinf(t) else f"{t / 1e6:.2f}" for t in np.sort(bar.times))
        median = f"> {bar.budget / 1e6:.1f}" if np.isinf(bar.median) else f"{bar.median / 1e6:.2f}"
        rows.append([bar.group, bar.name, median, each])
    if not rows:
        return []
    text = (
        "Million examples until every task had 99 % of its validation examples right, three epochs "
        "running; – not within the budget. Of an even number of runs the median is the higher one "
        "of the two in the middle."
    )
    table = Table(["family", "estimator, converter", "median", "each run"], rows)
    own = tuple(p for p in pictures if p == "addition")
    return [Section("Addition of nine digits", text, own, table)]


def _ablation(found: Found, pictures: Sequence[str]) -> list[Section]:
    if "ablation" not in found:
        return []
    c = found["ablation"]
    mean = c.smooth().mean(2)
    rows = []
    for program, runs in c.runs.items():
        scores = [c.area(p).mean(1, keepdims=True) for p in ("mr", program)]
        time = median_time(first_time(c.frames, mean[:, runs], GOOD))
        chance = "–" if program == "mr" else str(interval(improvement, *scores))
        rows.append(
            [f"`{program}`", str(_area(c, program)), _millions(time, int(c.frames[-1])), chance]
        )
    head = ["program", "area under the curve", f"frames to {GOOD}", "P(mr is better)"]
    text = (
        f"KeyCorridor, {c.frames[-1]:,} frames. `power=0`, `unlearned=0` and `successors=0` leave "
        "out the first, second and third factor of equation 1."
    )
    own = tuple(p for p in pictures if p == "ablation")
    return [Section("Ablation", text, own, Table(head, rows))]


def _making(found: Found) -> Section:
    rows = []
    for name, c in found.items():
        about = c.about
        done = c.frames[-1] * len(c.seeds)
        rows.append(
            [
                f"`{name}`",
                str(len(c.seeds)),
                f"{c.frames[-1]:,} of {about['planned']:,} {about['unit']}",
                f"{about['seconds']:,.0f} s",
                f"{done / max(about['seconds'], 1e-9) / 1e6:.2f}M/s",
                f"{about['devices']} × {about['device']}, jax {about['versions'].get('jax', '?')}",
            ]
        )
    text = "Seconds are of training with compiling, evaluation, curves and checkpoints."
    head = ["job", "runs", "length of each", "time", "all runs together", "on"]
    return Section("How this was made", text, table=Table(head, rows))
