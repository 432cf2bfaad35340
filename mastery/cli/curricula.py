"""`mastery show` and `mastery programs`: show a curriculum, list the programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mastery.checkpoint import replace_file
from mastery.cli.arguments import CurriculumArgument, check_place, console, print_indented
from mastery.curriculum import Curriculum
from mastery.drawing.pictures import curriculum_svg, curriculum_text
from mastery.programs.named import PROGRAMS
from mastery.programs.recipe import PARTS, SETTINGS, Recipe
from mastery.teacher import Teacher


def show(
    curriculum: CurriculumArgument,
    svg: Annotated[Path | None, typer.Option(help="Also draw it to this SVG file.")] = None,
    teacher: Annotated[
        Path | None, typer.Option(help="Show the mastery of this saved teacher.")
    ] = None,
) -> None:
    """Check a curriculum and draw it.

    [dim]mastery show obstructed-maze[/dim]
    [dim]mastery show my.toml --svg my.svg[/dim]
    [dim]mastery show runs/mine           with the mastery that a job has reached[/dim]
    """
    check_place(svg)
    if Path(curriculum).is_dir():
        loaded, known = _of_job(Path(curriculum))
    else:
        loaded, known = Curriculum.load(curriculum), None
    if teacher:
        known = Teacher.load(teacher, loaded).mastery
    typer.echo(curriculum_text(loaded, known))
    if svg:
        replace_file(svg, [curriculum_svg(loaded, known).encode()])
        typer.echo(f"\nwrote {svg}")


def _of_job(directory: Path) -> tuple[Curriculum, dict[str, float] | None]:
    """The curriculum of a run directory, and the mean mastery over its runs, if there is any."""
    from mastery.rundir.results import load_results

    job = load_results(directory)
    if not len(job.mastery):
        return job.curriculum, None
    mastery = job.mastery[-1].mean(axis=0).tolist()
    return job.curriculum, dict(zip(job.curriculum.names, mastery, strict=True))


def programs(
    name: Annotated[str | None, typer.Argument(help="Show only this program.")] = None,
) -> None:
    """List the programs, their parts and their settings.

    Write a program as its name, or with settings: [bold]mr:delta=0.8,window=20[/bold]. You can also
    replace any part: [bold]mr:progress=online,distribution=gamax[/bold].
    """
    if name is not None:
        recipe = Recipe.parse(name)
        typer.echo(f"{recipe}: {PROGRAMS[recipe.name].what}\n")
        for kind in PARTS:
            choice = getattr(recipe, kind)
            print_indented(kind, f"{choice}: {PARTS[kind][choice].what}", column=14)
        typer.echo()
        for key, value in recipe.settings.items():
            print_indented(f"{key}={value:g}", SETTINGS[key].what)
        return
    typer.echo("Each program: progress → attention → distribution, and its settings\n")
    for program, entry in PROGRAMS.items():
        settings = Recipe.parse(program).settings
        off = ("by_cost", "reprobe")  # most programs have these at 0
        print_indented(
            program,
            entry.what,
            f"{entry.progress} → {entry.attention} → {entry.distribution}"
            + f", gate {entry.gate}" * (entry.gate != "none"),
            " ".join(f"{k}={v:g}" for k, v in settings.items() if v or k not in off),
        )
    console.print(
        "\nEvery program also takes a gate (below), [bold]by_cost=1[/bold] and "
        "[bold]reprobe=0.05[/bold].",
        highlight=False,
    )
    for kind, choices in PARTS.items():
        console.print(f"\n[bold]{kind}=[/bold]")
        for choice, part in choices.items():
            print_indented(choice, part.what)
    console.print("\n[bold]settings[/bold]")
    for key, setting in SETTINGS.items():
        print_indented(key, setting.what)
