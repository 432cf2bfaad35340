"""`mastery simulate`: compare programs on synthetic learners."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from mastery.checkpoint import replace_file
from mastery.cli.arguments import (
    OWN_PROGRAM,
    CurriculumArgument,
    check_place,
    console,
    read_programs,
)
from mastery.curriculum import Curriculum
from mastery.drawing.pictures import bar, sparkline
from mastery.errors import MasteryError, ProgramError, did_you_mean
from mastery.programs.named import PROGRAMS
from mastery.programs.own import read_program
from mastery.programs.recipe import default_program
from mastery.simulation.order import order_note, true_order, without_order
from mastery.simulation.page import simulation_page, steps_text
from mastery.simulation.simulate import Learner, Outcome, simulate

SPENT_ON = ("mastered", "learnable", "not yet")


def simulate_command(
    curriculum: CurriculumArgument,
    program: Annotated[
        str | None,
        typer.Option(
            help="Programs to try, separated by commas, e.g. [bold]mr[/bold]. " + OWN_PROGRAM,
            show_default="mr if the curriculum has an order, else auto",
        ),
    ] = None,
    against: Annotated[
        str,
        typer.Option(help="Programs to compare it with, separated by commas; or [bold]all[/bold]."),
    ] = "gprop-linreg,uniform,sequential",
    seeds: Annotated[int, typer.Option(min=1, help="Learners per program.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="The first learner's seed.")] = 0,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**7,
            help="The maximum number of time-steps.",
            show_default="10 · Σ effort / episodes",
        ),
    ] = None,
    learner: Annotated[
        str,
        typer.Option(
            help="The learner's settings, such as noise=0.5,leak=0 (see docs/simulator.md). "
            "[bold]order=[/bold] gives it another order than the curriculum's: none, reversed, "
            "half:SEED or one:SEED (half of the edges, or one, reversed), shuffled:SEED, "
            "hidden:SEED (random prerequisites), or a curriculum with the same tasks, e.g. "
            "order=true.toml. "
            "Programs still see the curriculum's order."
        ),
    ] = "",
    hide_order: Annotated[
        bool,
        typer.Option(
            "--without-order",
            help="Let the programs see the tasks without their order; the learner keeps it.",
        ),
    ] = False,
    backend: Annotated[str, typer.Option(help="The array library: auto, jax or numpy.")] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the curves to this HTML file.")
    ] = None,
) -> None:
    """Compare how long programs take to teach synthetic learners every task.

    [dim]mastery simulate key-corridor --program mr --against gprop-linreg,uniform --seeds 20[/dim]
    """
    loaded = Curriculum.load(curriculum)
    model = _learner(learner)
    model = replace(model, order=true_order(model.order, loaded))
    if hide_order:
        loaded = without_order(loaded)
    check_place(out)
    tried = read_programs(default_program(loaded) if program is None else program)
    if not tried:
        raise MasteryError("there is no program: give one, such as mr")
    others = _all_for(loaded) if against.strip() == "all" else read_programs(against)
    recipes = list(dict.fromkeys([*tried, *others]))
    for recipe in recipes:
        read_program(recipe).build(loaded)  # raises before anything is simulated
    outcomes: list[Outcome] = []
    interrupted = False
    with _progress(loaded, len(recipes), model.mastered) as report:
        try:
            for recipe in recipes:
                outcomes += simulate(
                    loaded,
                    [recipe],
                    seeds=seeds,
                    seed=seed,
                    steps=steps,
                    learner=model,
                    backend=backend,
                    report=report,
                )
        except KeyboardInterrupt:
            interrupted = True
    if outcomes:
        _print_outcomes(loaded, outcomes, model)
    if outcomes and out:
        command = shlex.join(["mastery", *sys.argv[1:]])
        replace_file(out, [simulation_page(loaded, outcomes, model, command).encode()])
        typer.echo(f"\nReport: {out.resolve().as_uri()}")
    if interrupted:
        typer.echo(f"stopped: {len(outcomes)} of {len(recipes)} programs finished", err=True)
        raise typer.Exit(130)


def _all_for(curriculum: Curriculum) -> list[str]:
    """All named programs, without those that need to know more about the tasks."""
    found = []
    for name in PROGRAMS:
        try:
            read_program(name).build(curriculum)
            found.append(name)
        except ProgramError as error:
            console.print(f"Without {name}: {error}", soft_wrap=True)
    return found


def _learner(text: str) -> Learner:
    known = {f.name: f.type for f in fields(Learner)}
    settings: dict[str, Any] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        key, _, value = item.partition("=")
        if key not in known:
            raise MasteryError(f"the learner has no setting {key!r}{did_you_mean(key, known)}")
        if key == "order":
            settings[key] = value.strip()
            continue
        try:
            settings[key] = int(value) if known[key] == "int" else float(value)
        except ValueError:
            raise MasteryError(
                f"the learner's setting {item!r} must be a number, e.g. {key}=0.5"
            ) from None
    return Learner(**settings)


@contextmanager
def _progress(curriculum: Curriculum, programs: int, mastered: float) -> Iterator[Any]:
    """Yield a function that shows progress: bars in a terminal, plain lines elsewhere.

    The bars are one for the program and one per task.
    """
    if not console.is_terminal:
        yield _ProgramLines(programs)
        return
    steps = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("time-steps"),
        TimeRemainingColumn(),
    )
    shown = curriculum.names[:30]
    width = max(len(name) for name in shown)
    with Live(steps, console=console, transient=True, refresh_per_second=8) as live:
        bars: dict[str, Any] = {}

        def report(program: str, step: int, budget: int, skill: NDArray[np.float64]) -> None:
            if program not in bars:
                for old in bars.values():
                    steps.update(old, visible=False)
                bars[program] = steps.add_task(
                    f"{len(bars) + 1}/{programs} {program}", total=budget
                )
            steps.update(bars[program], completed=step)
            lines = [
                f"  {escape(name.ljust(width))}  [green]{bar(m, 30)}[/green] {m:4.0%}"
                for name, m in zip(shown, skill, strict=False)
            ]
            if len(curriculum) > len(shown):
                count = int((skill >= mastered).sum())
                lines.append(f"  … {count} of {len(curriculum)} tasks mastered on average")
            live.update(Group(steps, *lines))

        yield report


class _ProgramLines:
    """Prints progress as plain lines, every two seconds."""

    def __init__(self, programs: int) -> None:
        self.programs, self.seen, self.last = programs, dict[str, None](), 0.0

    def __call__(self, program: str, step: int, budget: int, skill: NDArray[np.float64]) -> None:
        new = program not in self.seen
        self.seen[program] = None
        if new or time.monotonic() - self.last > 2:
            self.last = time.monotonic()
            typer.echo(
                f"[{len(self.seen)}/{self.programs}] {program}: time-step {step:,} of at most "
                f"{budget:,}, mean skill {skill.mean():.2f}"
            )


def _print_outcomes(curriculum: Curriculum, outcomes: list[Outcome], learner: Learner) -> None:
    seeds = len(outcomes[0].steps)
    table = Table(
        title=f"\nTime-steps until every task of {escape(curriculum.name)} is mastered "
        f"({seeds} learners per program)",
        title_justify="left",
        box=None,
    )
    table.add_column("program", overflow="fold")  # that of an own program may be long
    for column in ("median", "95% interval", "learners", *SPENT_ON):
        table.add_column(column, justify="right", no_wrap=True)
    for o in outcomes:
        low, high = (steps_text(s, o.budget) for s in o.interval())
        table.add_row(
            f"[bold]{escape(o.program)}",
            steps_text(o.median, o.budget),
            f"{low} … {high}" if low != high else low,
            f"{int(np.isfinite(o.steps).sum())}/{seeds}",
            *(f"{share:.0%}" for share in o.spent),
        )
    console.print(table, highlight=False)
    if note := order_note(true_order(learner.order, curriculum), curriculum):
        console.print(escape(note), highlight=False)
    console.print(
        "[dim]The last three columns are shares of training: on tasks already mastered, on tasks "
        "learnable but not mastered, and on tasks not yet learnable.[/dim]"
    )
    end = max(int(o.times[-1]) for o in outcomes)
    console.print(f"\nShare of tasks mastered, time-steps 0 to {end:,}, mean over learners")
    width = min(max(len(o.program) for o in outcomes), 26)
    grid = np.linspace(0, end, 50)
    for o in outcomes:
        curve = (o.skill >= learner.mastered).mean(axis=(1, 2))
        inside = grid[grid <= o.times[-1]]
        line = sparkline(np.interp(inside, o.times, curve).tolist(), len(inside))
        name = o.program.ljust(width) + f"\n  {' ' * width}" * (len(o.program) > width)
        console.print(f"  {escape(name)}  {line}", highlight=False)
