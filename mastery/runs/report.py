"""The page of a training job: one file, no script, works offline."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np

from mastery.draw import curriculum_svg, curves_svg
from mastery.plot import quartiles, range_ticks, stroke
from mastery.report import PAGE, section
from mastery.runs.charts import mastery_svg, shares_svg, task_colours
from mastery.runs.results import RECENT, Floats, Ints, Results, smooth

POINTS = 200  # of a curve; more cannot be told apart
TASKS = 60  # that have a picture or a row of their own


def job_page(results: Results) -> str:
    """The whole job as HTML."""
    if len(results.frames):
        sections = [
            section("At the end" if results.ended else "So far", _table(results)),
            section(f"{results.score.capitalize()} of each task", _returns(results)),
            section("What was trained on", _probabilities(results)),
            section("Mastery", _mastery(results)),
        ]
    else:
        sections = [
            section(
                "Nothing to see yet",
                "<p>The curves begin when the first chunk of training is done; make this page "
                "again then.</p>",
            )
        ]
    if len(results.curriculum) <= 400:
        sections.append(_graph(results))
    sections.append(section("How this was made", _making(results)))
    return PAGE.format(
        title=f"Training {escape(results.curriculum.name)}",
        subtitle=escape(_headline(results)),
        sections="\n".join(sections),
    )


def _headline(results: Results) -> str:
    groups = list(results.groups.items())
    names = [label for label, _ in groups]
    programs = ", ".join(names) if len(names) <= 4 else f"{len(names)} programs or settings"
    seeds = len(groups[0][1])
    done = int(results.frames[-1]) if len(results.frames) else 0
    if results.training:
        state = f"training now: {done:,} of {results.total:,} {results.unit} a run"
    elif results.ended:
        state = f"finished: {results.ended}"
    else:
        state = f"stopped after {done:,} of {results.total:,} {results.unit} a run"
    tasks = _count(len(results.curriculum), "task")
    return f"{tasks} · {programs} · {_count(seeds, 'seed')} · {state}"


def _count(number: int, of: str) -> str:
    return f"{number} {of}{'s' * (number != 1)}"


def _table(results: Results) -> str:
    """The returns at the end, over all tasks and of each."""
    columns: dict[str, Floats] = {  # each (runs, tasks)
        policy: evaluation.returns[-1]
        for policy, evaluation in results.evaluations.items()
        if len(evaluation.frames)
    }
    columns["training"] = smooth(results.returns, results.episodes, _window(results))[-1]
    frames = results.played.sum(axis=0)  # (runs, tasks)
    names = results.curriculum.names
    rows: list[str] = []
    if len(names) > 1:
        means = [column.mean(axis=1) for column in columns.values()]
        rows += _rows(results, "all tasks", means, frames.sum(axis=1))
    for i, name in enumerate(names[:TASKS]):
        rows += _rows(results, name, [c[:, i] for c in columns.values()], frames[:, i])
    shown = {"greedy": "validation"} if results.score == "accuracy" else {}
    heads = "".join(f"<th>{shown.get(name, name)}</th>" for name in [*columns, results.unit])
    evaluated = (
        "Greedy and sampled: in the last evaluation, with the likeliest action, and with actions "
        "drawn by their probability. "
        if results.score == "return"
        else "Validation: in the last evaluation, on examples that the teacher never sees. "
    )
    return (
        f"<p class='soft'>Mean {results.score}{_over(results)}. "
        f"{evaluated if len(columns) > 1 else ''}"
        f"Training: the last {_lately(results):,} {results.unit}.</p>"
        f"<table><tr><th>task</th><th class='left'>program</th>{heads}</tr>{''.join(rows)}</table>"
        f"{_left_out(results)}{_solved(results)}"
    )


def _solved(results: Results) -> str:
    """How long it took to learn everything, where that is judged."""
    if results.solved is None:
        return ""
    rows = []
    for label, runs in results.groups.items():
        known = np.sort(results.solved[runs])  # NaN, not yet, is last
        each = ", ".join("–" if np.isnan(x) else f"{x:,.0f}" for x in known)
        middle = known[len(known) // 2]  # of an even number the higher of those in the middle
        median = f"more than {results.frames[-1]:,}" if np.isnan(middle) else f"{middle:,.0f}"
        rows.append(f"<tr><td>{escape(label)}</td><td>{median}</td><td>{each}</td></tr>")
    return (
        "<p class='soft'>Examples until every task had 99 % of its validation examples right, "
        "three epochs running; – not yet.</p><table><tr><th>program</th><th>median</th>"
        f"<th>each run</th></tr>{''.join(rows)}</table>"
    )


def _rows(results: Results, task: str, returns: list[Floats], frames: Ints) -> list[str]:
    """One task's rows, one for each program; the columns are one number a run."""
    groups = results.groups
    rows = []
    for i, (label, runs) in enumerate(groups.items()):
        cells = "".join(f"<td>{_spread(column[runs])}</td>" for column in returns)
        first = f'<td rowspan="{len(groups)}">{escape(task)}</td>' if i == 0 else ""
        rows.append(
            f"<tr>{first}<td class='left'>{escape(label)}</td>{cells}"
            f"<td>{np.median(frames[runs]):,.0f}</td></tr>"
        )
    return rows


def _spread(values: Floats) -> str:
    low, median, high = quartiles(values)
    if np.isnan(median):
        return "–"
    around = f" <small>{_number(low)} … {_number(high)}</small>" if len(values) > 1 else ""
    return _number(median) + around


def _number(value: float) -> str:
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 1000 else 0}f}"


def _returns(results: Results) -> str:
    text = (
        f"<p class='soft'>In training: the mean over the {_tests(results)} the last "
        f"{_lately(results):,} {results.unit}{_over(results)}. Along the bottom: "
        f"{_unit(results)[1]} of each run.</p>"
    )
    shown = smooth(results.returns, results.episodes, _window(results))
    text += _program_key(results) + _task_panels(results, results.frames, shown)
    for policy, evaluation in results.evaluations.items():
        if len(evaluation.frames) > 1:
            text += (
                f"<details><summary>In evaluations{_with(results, policy)}</summary>"
                f"{_task_panels(results, evaluation.frames, evaluation.returns)}</details>"
            )
    return text + _left_out(results)


def _tests(results: Results) -> str:
    return "episodes that ended in" if results.score == "return" else "tests after the epochs of"


def _with(results: Results, policy: str) -> str:
    return f", with the {policy} policy" if results.score == "return" else ""


def _task_panels(results: Results, frames: Ints, values: Floats) -> str:
    """A picture for each task, a curve in it for each program; values are (points, runs, tasks)."""
    curriculum = results.curriculum
    some, (scale, unit) = _some(len(frames)), _unit(results)
    x, values = frames[some] / scale, values[some]
    alike = np.ptp(curriculum.minimum) == 0 and np.ptp(curriculum.maximum) == 0
    pictures = []
    for i, name in enumerate(curriculum.names[:TASKS]):
        within = values if alike else values[:, :, i]  # tasks of one scale are drawn to one scale
        known = [
            curriculum.minimum[i],
            curriculum.maximum[i],
            *within[np.isfinite(within)].tolist(),
        ]
        curves = {label: (x, values[:, runs, i]) for label, runs in results.groups.items()}
        ticks = range_ticks(min(known), max(known))
        pictures.append(curves_svg(curves, unit, f"mean {results.score}", ticks, name))
    return _panels(pictures)


def _probabilities(results: Results) -> str:
    names = results.curriculum.names
    colours = zip(names, task_colours(len(names)), strict=True)
    key = "".join(
        f'<span><i style="background:{colour};margin-left:0"></i>{escape(name)}</span> '
        for name, colour in colours
    )
    scale, unit = _unit(results)
    pictures = [
        shares_svg(results.frames / scale, results.probability[:, runs].mean(1), names, label)
        for label, runs in results.groups.items()
    ]
    return (
        f"<p class='soft'>The probability that each task was given{_mean(results)}. "
        f"Along the bottom: {unit} of each run.</p>"
        f"<p class='soft key'>{key if len(names) <= TASKS else ''}</p>{_panels(pictures, 'wide')}"
    )


def _mastery(results: Results) -> str:
    scale, unit = _unit(results)
    x, names = results.frames / scale, results.curriculum.names[:TASKS]
    some, mean = _some(len(x)), results.mastery.mean(axis=2)
    curves = {label: (x[some], mean[some][:, runs]) for label, runs in results.groups.items()}
    pictures = [
        mastery_svg(x, results.mastery[:, runs, : len(names)].mean(1), names, label)
        for label, runs in results.groups.items()
    ]
    return (
        f"<p class='soft'>Mastery is the mean {results.score} where 0 is the lowest and 1 the "
        "highest that is known of the task: its mean over tasks, and below that of each task, "
        "darker for more"
        f"{_mean(results)}.</p>"
        f"{curves_svg(curves, unit, 'mean mastery')}{_panels(pictures, 'wide')}{_left_out(results)}"
    )


def _graph(results: Results) -> str:
    if not len(results.frames):
        return section("The curriculum", curriculum_svg(results.curriculum), "graph")
    label, runs = next(iter(results.groups.items()))
    final = results.mastery[-1, runs].mean(axis=0).tolist()
    mastery = dict(zip(results.curriculum.names, final, strict=True))
    picture = curriculum_svg(results.curriculum, mastery)
    return section(f"The curriculum, as {escape(label)} leaves it", picture, "graph")


def _making(results: Results) -> str:
    parts = []
    for session in results.sessions:
        hardware, versions = session.hardware, session.versions
        parts.append(
            f"<p><code>{escape(session.command) or 'called from Python'}</code><br>"
            f"<span class='soft'>{escape(session.started)}, from update {session.step:,}, on "
            f"{hardware.get('devices', '?')} × {escape(str(hardware.get('device', '?')))}, "
            f"{hardware.get('cores', '?')} cores, {escape(str(hardware.get('machine', '?')))}; "
            f"{_listed(versions.items())}</span></p>"
        )
    if len(results.seconds):
        seconds = float(results.seconds[-1])
        frames = int(results.frames[-1]) * len(results.labels)
        parts.append(
            f"<p>{_count(len(results.labels), 'run')}, {frames:,} {results.unit} together in "
            f"{_duration(seconds)}: {frames / max(seconds, 1e-9):,.0f} {results.unit} a "
            "second.</p>"
        )
    own = ("curriculum", "programs", "settings", "grid", "variants")  # these are shown elsewhere
    plain = {k: v for k, v in results.job.items() if k not in own}
    programs = "<br>".join(escape(program) for program in results.job["programs"])
    parts.append(
        f"<p class='soft' style='overflow-wrap:anywhere'>Programs:<br>{programs}</p>"
        f"<p class='soft'>Job: {_listed(plain.items())}.</p>"
        f"<p class='soft'>Learner: {_listed(results.job['settings'].items())}.</p>"
    )
    return "".join(parts)


def _listed(items: Iterable[tuple[str, object]]) -> str:
    return ", ".join(escape(f"{name} {value}") for name, value in items if value is not None)


def _duration(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 2:
        return f"{hours:.1f} hours"
    return f"{minutes:.1f} minutes" if minutes >= 2 else f"{seconds:.0f} seconds"


def _program_key(results: Results) -> str:
    lines = "".join(
        f'<span><svg width="26" height="9"><line x1="0" x2="24" y1="5" y2="5" stroke-width="3" '
        f"{stroke(i)}/></svg> {escape(label)}</span> "
        for i, label in enumerate(results.groups)
    )
    return f"<p class='key'>{lines}</p>"


def _panels(pictures: list[str], kind: str = "") -> str:
    return f'<div class="panels {kind}">{"".join(pictures)}</div>'


def _some(points: int) -> Ints:
    """The points of a curve that are drawn, with the first and the last."""
    return np.unique(np.linspace(0, points - 1, POINTS).round().astype(np.int64))


def _window(results: Results) -> int:
    """Points over which returns are averaged: more of them where there are many."""
    return max(RECENT, len(results.frames) // 20)


def _lately(results: Results) -> int:
    """Frames over which returns are averaged."""
    first = max(len(results.frames) - _window(results), 0)
    return int(results.frames[-1] - (results.frames[first - 1] if first else 0))


def _unit(results: Results) -> tuple[float, str]:
    """What numbers of frames are divided by, and the name of that."""
    end, unit = results.frames[-1], results.unit
    if end < 10_000:
        return 1.0, unit
    return (1e3, f"thousand {unit}") if end < 1_000_000 else (1e6, f"million {unit}")


def _several(results: Results) -> bool:
    return any(len(runs) > 1 for runs in results.groups.values())


def _over(results: Results) -> str:
    return ", median and quartiles over seeds" if _several(results) else ""


def _mean(results: Results) -> str:
    return ", the mean over seeds" if _several(results) else ""


def _left_out(results: Results) -> str:
    """What is said where there are more tasks than pictures."""
    n = len(results.curriculum)
    return f"<p class='soft'>The first {TASKS} of {n} tasks.</p>" if n > TASKS else ""
