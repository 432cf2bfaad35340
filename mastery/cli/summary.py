"""The end of `mastery train`: a table a program, and one sentence that compares the programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mastery.cli.live import SHOWN, short
from mastery.page.data import TASKS
from mastery.page.thinned import fewer_points, fitting_bins
from mastery.rundir.results import Results, load_results
from mastery.rundir.where import KINDS, LEARNABLE, MASTERED, Account, account
from mastery.statistics import upper_median

TABLES = 4  # the most programs with a table each; more share one
NAMED = 6  # the most programs in the sentence

Accounts = Mapping[str, Account]


def print_summary(console: Console, directory: Path) -> None:
    """Print what each program of a job learned and where its training went."""
    results = load_results(directory)
    if not len(results.steps):
        return
    accounts = accounts_of(results)
    tasks, unit, score = results.curriculum.names, results.unit, results.score
    console.print()
    if len(accounts) <= TABLES:
        for label, own in accounts.items():
            console.print(f"[bold]{escape(label)}[/bold]: {_learned(own)}", highlight=False)
            console.print(_task_table(own, tasks, score))
            console.print(f" training on tasks: {_spent(own)}\n", highlight=False)
    else:
        console.print(_program_table(accounts, tasks, score), highlight=False)
    console.print(
        f"[dim]Learned: a mastery of {MASTERED:g} or more; “after”: {unit} until then, the median "
        f"over runs. Learnable: not learned, and every task before it has {LEARNABLE:g} or more."
        "[/dim]",
        highlight=False,
    )
    if len(accounts) > 1:
        console.print(f"\n{escape(story(accounts, tasks, unit))}", highlight=False)


def accounts_of(results: Results) -> dict[str, Account]:
    """The account of each program, from the same points as the page's numbers."""
    runs, tasks = len(results.labels), len(results.curriculum)
    k = fitting_bins(len(results.steps), runs, min(tasks, TASKS))
    curves, _ = fewer_points(results, int(results.job["chunk"]), k)
    return {
        label: account(curves, results.curriculum, own) for label, own in results.groups.items()
    }


def _learned(own: Account) -> str:
    learned = int(np.isfinite(own.medians).sum())
    runs = f"{own.runs} runs" if own.runs > 1 else "1 run"
    return f"{learned} of {len(own.share)} tasks learned, {runs}"


def _spent(own: Account) -> str:
    return ", ".join(f"{kind} {x:.0%}" for x, kind in zip(own.spent, KINDS, strict=True))


def _task_table(own: Account, tasks: Sequence[str], score: str) -> Table:
    table = Table(box=None, header_style="dim")
    table.add_column("task", overflow="fold")
    for name in ("learned in", "after", score, "share of training"):
        table.add_column(name, justify="right", no_wrap=True)
    medians, learned = own.medians, own.learned
    for i, name in enumerate(tasks[:SHOWN]):
        table.add_row(
            escape(name),
            f"{learned[i]} of {own.runs}",
            _time(medians[i]),
            f"{own.returns[i]:.2f}",
            f"{own.share[i]:.0%}",
        )
    if len(tasks) > SHOWN:
        table.add_row(f"… and {len(tasks) - SHOWN} more")
    return table


def _program_table(accounts: Accounts, tasks: Sequence[str], score: str) -> Table:
    table = Table(box=None, header_style="dim")
    table.add_column("program", overflow="fold")
    for name in ("tasks learned", "all after", score, *KINDS):
        table.add_column(name, justify="right")
    for label, own in accounts.items():
        every = float(upper_median(own.times.max(axis=1)))
        table.add_row(
            f"[bold]{escape(label)}",
            f"{int(np.isfinite(own.medians).sum())} of {len(tasks)}",
            _time(every),
            f"{own.returns.mean():.2f}",
            *(f"{x:.0%}" for x in own.spent),
        )
    return table


def _time(frames: float) -> str:
    return short(int(frames)) if np.isfinite(frames) else "–"


def story(accounts: Accounts, tasks: Sequence[str], unit: str) -> str:
    """How much of each program's training went to tasks that could be learned, how many tasks it
    learned, and when it learned the last task that any of them learned."""
    some = list(accounts.items())[:NAMED]
    spent = [_spent_in_words(label, own, first=not i) for i, (label, own) in enumerate(some)]
    known = np.flatnonzero(np.any([own.learned for own in accounts.values()], axis=0))
    if len(known):
        last = int(known[-1])
        learned = [_learned_in_words(label, own, tasks, last, unit) for label, own in some]
        if last < len(tasks) - 1:
            learned.append(f"no program learned {tasks[-1]}")
    else:
        learned = ["no program learned a task"]
    rest = len(accounts) - len(some)
    more = f" The table above has the other {rest}." if rest else ""
    return f"{', '.join(spent)}; {'; '.join(learned)}.{more}"


def _spent_in_words(label: str, own: Account, first: bool) -> str:
    learnable, not_yet = (f"{100 * x:.0f} %" for x in own.spent[1:])
    if not first:
        return f"{label} {learnable} and {not_yet}"
    return (
        f"{label} spent {learnable} of its training on tasks that could be learned and {not_yet} "
        "on tasks out of reach"
    )


def _learned_in_words(label: str, own: Account, tasks: Sequence[str], last: int, unit: str) -> str:
    """How many tasks a program learned, and when it learned a certain one: the median over the
    runs that learned it."""
    count = int(np.isfinite(own.medians).sum())
    words = f"{label} learned {count} of {len(tasks)} tasks"
    times = own.times[:, last]
    times = times[np.isfinite(times)]
    if len(times):
        after = f"after {short(int(upper_median(times)))} {unit}"
        runs = f"in {len(times)} of {own.runs} runs"
        if not np.isfinite(own.medians[last]):  # in too few runs to count
            words = f"{words}, and" if count else f"{label} learned"
            return f"{words} {tasks[last]} {runs}, {after}"
        return f"{words}, {tasks[last]} {after}" + f" {runs}" * (own.runs > 1)
    return f"{words}, but not {tasks[last]}" if count else words
