"""`mastery benchmark`: compare programs on problems with verifiable rewards."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mastery.cli.arguments import check_folder
from mastery.cli.train import job_progress
from mastery.errors import MasteryError, did_you_mean, needs


def benchmark_command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The comparison: [bold]reasoning[/bold].")
    ],
    scale: Annotated[
        float,
        typer.Option(
            help="The share of the completions and seeds: 1 for all, on a GPU; at 0.1 and below "
            "the model is small enough for a CPU."
        ),
    ] = 1.0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The output folder.", show_default="runs/NAME"),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Stop after this many minutes; the same command resumes."),
    ] = None,
    save_every: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 120.0,
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="Allow resuming on a different device.")
    ] = False,
    redraw: Annotated[
        bool,
        typer.Option("--redraw", help="Do not train; draw from existing curves, or those shipped."),
    ] = False,
) -> None:
    """Compare programs at equal tokens: train them, measure what each saves, draw the figures.

    A small transformer learns by GRPO on twelve families of problems, four levels each. Every
    program trains the same number of runs from the same pre-trained model.

    [dim]mastery benchmark reasoning                  all programs and seeds, on a GPU[/dim]
    [dim]mastery benchmark reasoning --scale 0.02     scaled down, on a CPU[/dim]
    [dim]mastery benchmark reasoning --redraw         from the curves that ship with mastery[/dim]
    """
    with needs("mastery benchmark", "paper"):
        import matplotlib  # noqa: F401  (the figures at the end need it)

        from mastery.comparison import curves
        from mastery.comparison.jobs import JOBS
        from mastery.comparison.report import write
        from mastery.paper.run import run
        from mastery.rundir.results import load_results
        from mastery.training.devices import prepare
        from mastery.training.train import TrainOptions
    if name not in JOBS:
        raise MasteryError(f"there is no comparison {name!r}{did_you_mean(name, JOBS)}")
    out = out or Path("runs") / name
    check_folder(out)
    kept = out / "curves" / f"{name}.npz"

    def keep(directory: Path, folder: Path, scale: float) -> None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        curves.save(curves.from_results(load_results(directory), scale), kept)

    if not redraw:
        options = TrainOptions(
            minutes=minutes,
            checkpoint_seconds=save_every,
            elsewhere=elsewhere,
            command=shlex.join(["mastery", *sys.argv[1:]]),
            note=lambda text: typer.echo(f"note: {text}", err=True),
        )
        prepare(JOBS[name].job(scale).devices)
        for part, outcome in run([JOBS[name]], out, scale, replace(options), job_progress, keep):
            status = outcome.ended or "stopped; run the same command again to resume"
            typer.echo(f"{part.name}: {status}")
            if outcome.interrupted:
                raise typer.Exit(130)
    shipped = Path(curves.__file__).parent / "data" / f"{name}.npz"
    found = curves.load(kept if kept.exists() or not redraw else shipped)
    page = write(found, out)
    typer.echo((out / "tables.md").read_text())
    typer.echo(f"Page: {page}")
