"""`mastery paper`: the paper's experiments from the command line."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from mastery.cli.train import job_progress, prepare, with_jax


def paper_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Experiments: [bold]blocked-unlock-pickup[/bold], [bold]key-corridor[/bold], "
            "[bold]obstructed-maze[/bold], [bold]addition[/bold], [bold]ablation[/bold]; all if "
            "none is given.",
        ),
    ] = None,
    scale: Annotated[
        float,
        typer.Option(help="The share of frames and seeds: 1 is the paper, 0.05 is for a CPU."),
    ] = 1.0,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of all of it.")] = Path(
        "runs/paper"
    ),
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Stop after that long; the same command goes on from there."),
    ] = None,
    save_every: Annotated[
        float, typer.Option(min=0, help="Seconds between two checkpoints.")
    ] = 60.0,
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="Go on on another device than before.")
    ] = False,
    redraw: Annotated[
        bool,
        typer.Option("--redraw", help="Train nothing: figures and page from the curves there are."),
    ] = False,
) -> None:
    """Reproduce the paper: train its experiments, judge its claims, draw its figures.

    What was stopped goes on from where it was. The page is written at the end.

    [dim]mastery paper                         everything, on a GPU[/dim]
    [dim]mastery paper key-corridor            one experiment[/dim]
    [dim]mastery paper --scale 0.05            small, on a CPU[/dim]
    [dim]mastery paper --redraw                from the curves that ship with mastery[/dim]
    """
    with with_jax():
        from mastery.paper.experiments import chosen
        from mastery.paper.page import DATA, read_curves, write_page
        from mastery.paper.run import run
    parts = chosen(names or [])
    if not redraw:
        prepare(max(part.job(scale).devices for part in parts))
        for part, outcome in run(
            parts, out, scale, minutes, elsewhere, job_progress,
            command=shlex.join(["mastery", *sys.argv[1:]]),
            note=lambda text: typer.echo(f"note: {text}", err=True),
            checkpoint_seconds=save_every,
        ):  # fmt: skip
            typer.echo(f"{part.name}: {outcome.ended or 'stopped; the same command goes on'}")
            if outcome.interrupted:
                raise typer.Exit(130)
    kept = DATA if redraw and not (out / "curves").is_dir() else out / "curves"
    found = read_curves(kept, [part.name for part in parts])
    try:
        page = write_page(found, out)
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        typer.echo(
            f"The curves are in {kept}. Figures and page need Matplotlib: pip install "
            f"'mastery[paper]', and then: mastery paper --redraw --out {shlex.quote(str(out))}",
            err=True,
        )
        raise typer.Exit(1 if redraw else 0) from None
    typer.echo(f"The page: {page}")
