"""The command line. It parses and prints; the work is callable from Python."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import mastery
from mastery.checkpoint import replace_file
from mastery.curriculum import Curriculum, shipped
from mastery.draw import bar, curriculum_svg, curriculum_text, sparkline
from mastery.errors import MasteryError, did_you_mean
from mastery.recipe import PARTS, PROGRAMS, SETTINGS, Recipe
from mastery.report import simulation_page, steps_text
from mastery.simulate import Learner, Outcome, simulate
from mastery.teacher import Teacher

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Decide what a learner trains on next: mastering-rate curriculum learning.",
)
console = Console()
SPENT_ON = ("mastered", "learnable", "not yet")

CurriculumArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help=f"A curriculum: a .toml or .json file, random-N, or one of {', '.join(shipped())}.",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mastery {mastery.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


@app.command()
def show(
    curriculum: CurriculumArgument,
    svg: Annotated[Path | None, typer.Option(help="Also draw it into this SVG file.")] = None,
    teacher: Annotated[
        Path | None, typer.Option(help="A saved teacher, whose mastery is shown.")
    ] = None,
) -> None:
    """Check a curriculum and draw it.

    [dim]mastery show obstructed-maze[/dim]
    [dim]mastery show my.toml --svg my.svg[/dim]
    """
    loaded = Curriculum.load(curriculum)
    known = Teacher.load(teacher, loaded).mastery if teacher else None
    typer.echo(curriculum_text(loaded, known))
    if svg:
        replace_file(svg, [curriculum_svg(loaded, known).encode()])
        typer.echo(f"\ndrawn: {svg}")


@app.command()
def programs(
    name: Annotated[str | None, typer.Argument(help="One program, to see only that.")] = None,
) -> None:
    """List the programs, what they are made of, and their settings.

    A program is written as its name, or with settings: [bold]mr:delta=0.8,window=20[/bold]. Any
    part can be exchanged as well: [bold]mr:progress=online,distribution=gamax[/bold].
    """
    if name is not None:
        recipe = Recipe.parse(name)
        typer.echo(f"{recipe}: {PROGRAMS[recipe.name].what}\n")
        for kind in PARTS:
            choice = getattr(recipe, kind)
            typer.echo(f"  {kind:<13} {choice:<18} {PARTS[kind][choice].what}")
        typer.echo()
        for key, value in recipe.settings.items():
            typer.echo(f"  {key:<13} {value:<18g} {SETTINGS[key].what}")
        return
    table = Table(
        "program", "progress", "attention", "distribution", "settings", "what it is", box=None
    )
    for program, entry in PROGRAMS.items():
        settings = Recipe.parse(program).settings
        text = " ".join(f"{k}={v:g}" for k, v in settings.items())
        table.add_row(
            f"[bold]{program}",
            entry.progress,
            entry.attention,
            entry.distribution,
            text,
            entry.what,
        )
    console.print(table)
    for kind, choices in PARTS.items():
        console.print(f"\n[bold]{kind}=[/bold]")
        for choice, part in choices.items():
            console.print(f"  {choice:<18} {escape(part.what)}", highlight=False)
    console.print("\n[bold]settings[/bold]")
    for key, setting in SETTINGS.items():
        console.print(f"  {key:<18} {escape(setting.what)}", highlight=False)


@app.command("simulate")
def simulate_command(
    curriculum: CurriculumArgument,
    program: Annotated[str, typer.Option(help="The program to try.")] = "mr",
    against: Annotated[
        str,
        typer.Option(help="Programs to compare it with, separated by commas; or [bold]all[/bold]."),
    ] = "gprop-linreg,uniform,sequential",
    seeds: Annotated[int, typer.Option(min=1, help="Learners for each program.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="The first learner's seed.")] = 0,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1, max=10**7, help="The most time-steps; by default 10 · Σ effort / episodes."
        ),
    ] = None,
    learner: Annotated[
        str,
        typer.Option(
            help="The learner's settings, as in noise=0.5,leak=0 (see docs/simulator.md)."
        ),
    ] = "",
    backend: Annotated[str, typer.Option(help="auto, jax or numpy.")] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write a page with the curves (HTML).")
    ] = None,
) -> None:
    """Teach synthetic learners, and see how long each program takes to master every task.

    [dim]mastery simulate key-corridor --program mr --against gprop-linreg,uniform --seeds 20[/dim]
    """
    loaded = Curriculum.load(curriculum)
    model = _learner(learner)
    _check_place(out)
    names = [program, *(PROGRAMS if against.strip() == "all" else split_programs(against))]
    recipes = list(dict.fromkeys(str(Recipe.parse(name)) for name in names))
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
        typer.echo(f"\nThe report: {out.resolve()}")
    if interrupted:
        typer.echo(f"stopped: {len(outcomes)} of {len(recipes)} programs were finished", err=True)
        raise typer.Exit(130)


@app.command("play")
def play_command(
    task: Annotated[
        str, typer.Argument(help="A MiniGrid task, such as KeyCorridorS3R3; [bold]list[/bold].")
    ],
    gif: Annotated[Path | None, typer.Option(help="Write the episode as a GIF.")] = None,
    agent: Annotated[
        str, typer.Option(help="Who plays: [bold]random[/bold] or [bold]planner[/bold].")
    ] = "random",
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Of the level and of the random agent.")
    ] = 0,
    steps: Annotated[int, typer.Option(min=1, help="The most steps to play.")] = 300,
    fps: Annotated[float, typer.Option(help="Frames a second of the GIF.")] = 8.0,
    tile: Annotated[int, typer.Option(min=4, max=64, help="Pixels of a cell.")] = 32,
    view: Annotated[bool, typer.Option(help="Show what the agent sees beside the map.")] = True,
) -> None:
    """Play an episode of a MiniGrid task.

    [dim]mastery play list[/dim]
    [dim]mastery play ObstructedMaze-Full --agent planner --gif maze.gif[/dim]
    """
    from mastery.minigrid import NAMES, task_id

    if task == "list":
        typer.echo("\n".join(NAMES))
        return
    name = NAMES[task_id(task)]
    _check_place(gif)
    try:
        from mastery.minigrid.play import check_gif, pictures, play, write_gif
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        raise MasteryError("MiniGrid needs JAX: pip install 'mastery[minigrid]'") from None
    if gif:
        check_gif(fps)
    episode = play(name, agent, seed, steps)
    if episode.terminated:
        end = f"reached the goal, return {episode.reward:.3f}"
    elif episode.truncated:
        end = "ran out of steps, return 0"
    else:
        end = "not over yet; --steps shows more"
    typer.echo(f"{name}: {episode.mission}. {len(episode.actions)} steps: {end}")
    if gif:
        with console.status("drawing"):
            write_gif(gif, pictures(episode.states, tile, view), fps)
        typer.echo(f"The GIF: {gif.resolve()}")


def _check_place(path: Path | None) -> None:
    """Before the work is done: is there a place for what will come of it?"""
    if path and (path.is_dir() or not path.resolve().parent.is_dir()):
        raise MasteryError(f"cannot write {path}: it must be a file in a folder that is there")


def split_programs(text: str) -> list[str]:
    """`mr:delta=0.8,window=20,uniform` is two programs: a setting belongs to what is before it."""
    found: list[str] = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        if found and "=" in item and ":" not in item:
            found[-1] += f",{item}"
        else:
            found.append(item)
    return found


def _learner(text: str) -> Learner:
    known = {f.name: f.type for f in fields(Learner)}
    settings: dict[str, Any] = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        key, _, value = item.partition("=")
        if key not in known:
            raise MasteryError(f"the learner has no setting {key!r}{did_you_mean(key, known)}")
        try:
            settings[key] = int(value) if known[key] == "int" else float(value)
        except ValueError:
            raise MasteryError(f"the learner's {item!r} is not a number") from None
    return Learner(**settings)


@contextmanager
def _progress(curriculum: Curriculum, programs: int, mastered: float) -> Iterator[Any]:
    """A live view in a terminal: one bar for the program, one for each task. Else plain lines."""
    if not console.is_terminal:
        yield _Lines(programs)
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
                lines.append(f"  … {count} of {len(curriculum)} tasks are mastered on average")
            live.update(Group(steps, *lines))

        yield report


class _Lines:
    """Progress as plain lines, one every two seconds."""

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
        f"({seeds} learners a program)",
        title_justify="left",
        box=None,
    )
    table.add_column("program", no_wrap=True)
    for column in ("median", "95% interval", "learners", *SPENT_ON):
        table.add_column(column, justify="right", no_wrap=True)
    for o in outcomes:
        low, high = (steps_text(s, o.budget) for s in o.interval())
        table.add_row(
            f"[bold]{o.program}",
            steps_text(o.median, o.budget),
            f"{low} … {high}" if low != high else low,
            f"{int(np.isfinite(o.steps).sum())}/{seeds}",
            *(f"{share:.0%}" for share in o.spent),
        )
    console.print(table, highlight=False)
    console.print(
        "[dim]The last three columns: where training went, on tasks mastered by then, on tasks "
        "learnable but not mastered, on tasks not learnable yet.[/dim]"
    )
    end = max(int(o.times[-1]) for o in outcomes)
    console.print(f"\nShare of tasks mastered, time-steps 0 to {end:,}, mean over learners")
    width = max(len(o.program) for o in outcomes)
    grid = np.linspace(0, end, 50)
    for o in outcomes:
        curve = (o.skill >= learner.mastered).mean(axis=(1, 2))
        inside = grid[grid <= o.times[-1]]
        line = sparkline(np.interp(inside, o.times, curve).tolist(), len(inside))
        console.print(f"  {o.program.ljust(width)}  {line}", highlight=False)
