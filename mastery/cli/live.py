"""The live view of training jobs: progress bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
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
    from mastery.training.train import Progress as State

SHOWN = 24  # maximum number of tasks shown
LINES_EVERY = 5.0  # seconds between plain lines


@contextmanager
def progress_view(
    console: Console, tasks: Sequence[str], unit: str
) -> Iterator[Callable[[State], None]]:
    """Yield a function to call after each chunk. `unit` is frames or examples."""
    if not console.is_terminal:
        typer.echo("compiling: this takes about half a minute")
        yield _Lines(tasks, unit)
        return
    waiting = Spinner("dots", "compiling: this takes about half a minute")
    with Live(waiting, console=console, refresh_per_second=8) as live:
        done = Progress(
            TextColumn("[bold]{task.fields[frames]}"),
            BarColumn(40),
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
            live.update(Group(done, _table(tasks, state, SCORES[unit])))

        yield show


@contextmanager
def several_view(console: Console) -> Iterator[Callable[[str, str, State], None]]:
    """Yield a function to call with a job's name, unit and progress; each job gets one line."""
    if not console.is_terminal:
        typer.echo("compiling: this takes about half a minute")
        lines: dict[str, _Lines] = {}

        def tell(name: str, unit: str, state: State) -> None:
            lines.setdefault(name, _Lines((), unit, name))(state)

        yield tell
        return
    done = Progress(
        TextColumn("{task.description}"),
        BarColumn(30),
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


def _table(tasks: Sequence[str], state: State, good: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("task")
    table.add_column("mastery")
    for name in ("", good, "share of training"):
        table.add_column(name, justify="right")
    for i, name in enumerate(tasks[:SHOWN]):
        m = float(state.mastery[i])
        table.add_row(
            escape(name),
            f"[green]{bar(m, 24)}[/green]",
            f"{m:4.0%}",
            _number(state.returns[i]),
            f"{state.share[i]:.0%}",
        )
    if len(tasks) > SHOWN:
        table.add_row(f"… and {len(tasks) - SHOWN} more", "", f"{state.mastery.mean():4.0%}")
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
        each = "  ".join(
            f"{name} {_number(r)}"
            for name, r in zip(self.tasks[:SHOWN], state.returns.tolist(), strict=False)
        )
        done = f"{short(state.frames)} {self.unit} ({state.update / state.updates:.0%})"
        speed = f"{state.speed:,.0f} {self.unit}/s"
        left = f", {left}" if left else ""
        scores = f" | {SCORES[self.unit]}: {each}" if each else ""
        typer.echo(f"{self.name}{done}, {speed}{left}{scores}")


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


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def short(frames: int) -> str:
    """A number in short form: `1.25M`, `500k`."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if frames >= size:
            return f"{frames / size:.3g}{letter}"
    return str(frames)
