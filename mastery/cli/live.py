"""The live view of training jobs: progress bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.spinner import Spinner
from rich.table import Table

from mastery.drawing.pictures import bar
from mastery.rundir.metrics import SCORES

if TYPE_CHECKING:
    from mastery.training.train import Means
    from mastery.training.train import Progress as State

SHOWN = 24  # maximum number of tasks shown
LINES_EVERY = 5.0  # seconds between plain lines


@contextmanager
def progress_view(
    console: Console, tasks: Sequence[str], unit: str
) -> Iterator[Callable[[State], None]]:
    """Yield a function to call after each chunk. `unit` is frames or examples."""
    if not console.is_terminal:
        typer.echo("compiling: this can take half a minute")
        yield _Lines(tasks, unit)
        return
    waiting = Spinner("dots", "compiling: this can take half a minute")
    with Live(waiting, console=console, refresh_per_second=8) as live:
        done = Progress(
            TextColumn("[bold]{task.fields[frames]}"),
            BarColumn(_between(10, console.width - 48, 40)),
            TaskProgressColumn(),
            TextColumn("{task.fields[speed]}"),
            TextColumn("[dim]{task.fields[left]}"),
        )
        row = done.add_task("", total=1.0, frames="", speed="", left="")
        clock = _Clock()

        def show(state: State) -> None:
            done.update(
                row,
                completed=state.update,
                total=state.updates,
                frames=f"{short(state.frames)} {unit}",
                speed=f"{state.speed:,.0f} {unit}/s",
                left=clock.left(state),
            )
            live.update(Group(done, *_tables(console, tasks, state, SCORES[unit])))

        yield show


@contextmanager
def several_view(console: Console) -> Iterator[Callable[[str, str, State], None]]:
    """Yield a function to call with a job's name, unit and progress; each job gets one line."""
    if not console.is_terminal:
        typer.echo("compiling: this can take half a minute")
        lines: dict[str, _Lines] = {}

        def tell(name: str, unit: str, state: State) -> None:
            lines.setdefault(name, _Lines((), unit, name))(state)

        yield tell
        return
    done = Progress(
        TextColumn("{task.description}"),
        BarColumn(_between(10, console.width - 72, 30)),
        TaskProgressColumn(),
        TextColumn("{task.fields[speed]}"),
        TextColumn("[dim]{task.fields[left]}"),
        console=console,
    )
    rows: dict[str, tuple[Any, _Clock]] = {}
    with done:

        def show(name: str, unit: str, state: State) -> None:
            if name not in rows:
                rows[name] = done.add_task(escape(name), total=1.0, speed="", left=""), _Clock()
            row, clock = rows[name]
            done.update(
                row,
                completed=state.update,
                total=state.updates,
                speed=f"{state.speed:,.0f} {unit}/s",
                left=clock.left(state),
            )

        yield show


def _tables(
    console: Console, tasks: Sequence[str], state: State, good: str
) -> Iterator[Table | str]:
    """A table a program, or one with the mean over all where that is too much for the screen."""
    room = min(SHOWN, console.height - 5)
    each = state.programs if len(state.programs) * (len(tasks) + 2) <= room + 2 else {}
    wide = _between(8, console.width - max(map(len, tasks)) - 38, 24)
    if title := _averaged(state.programs, by_program=bool(each)):
        yield f"[dim]{title}[/dim]"
    for label, means in each.items():
        if len(each) > 1:
            yield f"[bold]{escape(label)}[/bold]"
        yield _table(tasks, means, good, len(tasks), wide)
    if not each:
        yield _table(tasks, state, good, room, wide)


def _averaged(programs: Mapping[str, Means], by_program: bool) -> str:
    """What the numbers average over; nothing if they are of one run."""
    parts = []
    if not by_program and len(programs) > 1:
        parts.append(f"{len(programs)} programs")  # or settings of a program
    runs = next(iter(programs.values())).runs
    if runs > 1:
        parts.append(f"{runs} seeds")
    return f"mean over {' × '.join(parts)}" if parts else ""


def _table(tasks: Sequence[str], means: Means | State, good: str, most: int, wide: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("task", overflow="fold")
    table.add_column("mastery", min_width=wide)
    for name in ("", good, "share of training"):
        table.add_column(name, justify="right", no_wrap=True)
    for i, name in enumerate(tasks[:most]):
        m = float(means.mastery[i])
        table.add_row(
            escape(name),
            f"[green]{bar(m, wide)}[/green]",
            f"{m:4.0%}",
            _number(means.returns[i]),
            f"{means.share[i]:.0%}",
        )
    if len(tasks) > most:
        table.add_row(f"… and {len(tasks) - most} more", "", f"{means.mastery.mean():4.0%}")
    return table


class _Lines:
    """Prints progress as plain lines, every few seconds and at the end."""

    def __init__(self, tasks: Sequence[str], unit: str, name: str = "") -> None:
        self.tasks, self.unit, self.clock = tasks, unit, _Clock()
        self.name = f"{name}: " if name else ""
        self.last = -np.inf

    def __call__(self, state: State) -> None:
        left = self.clock.left(state)
        if time.monotonic() - self.last < LINES_EVERY and state.update < state.updates:
            return
        self.last = time.monotonic()
        done = f"{short(state.frames)} {self.unit} ({state.update / state.updates:.0%})"
        speed = f"{state.speed:,.0f} {self.unit}/s"
        left = f", {left}" if left else ""
        typer.echo(f"{self.name}{done}, {speed}{left}{self._scores(state)}")

    def _scores(self, state: State) -> str:
        """The scores of each program if there are few, else the means over all."""
        if not self.tasks:
            return ""

        def each(means: Means | State) -> str:
            known = zip(self.tasks[:SHOWN], means.returns.tolist(), strict=False)
            return "  ".join(f"{name} {_number(r)}" for name, r in known)

        several = 1 < len(state.programs) <= 4 and len(state.programs) * len(self.tasks) <= SHOWN
        averaged = _averaged(state.programs, by_program=several)
        head = f" | {SCORES[self.unit]}" + (f", {averaged}" if averaged else "")
        if not several:
            return f"{head}: {each(state)}"
        return head + "".join(f" | {label}: {each(of)}" for label, of in state.programs.items())


class _Clock:
    """Estimates the time left from the chunks after the first, which includes compilation."""

    def __init__(self) -> None:
        self.first: tuple[float, int] | None = None

    def left(self, state: State) -> str:
        now = time.monotonic()
        if self.first is None or state.update <= self.first[1]:
            self.first = now, state.update
            return ""
        began, update = self.first
        seconds = (now - began) / (state.update - update) * (state.updates - state.update)
        hours, rest = divmod(round(seconds), 3600)
        text = (
            f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
            if hours
            else f"{rest // 60}:{rest % 60:02d}"
        )
        return f"{text} left"


def _between(low: int, x: int, high: int) -> int:
    return min(max(low, x), high)


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def short(frames: int) -> str:
    """A number in short form: `1.25M`, `500k`."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if frames >= size:
            return f"{frames / size:.3g}{letter}"
    return str(frames)
