"""`mastery paper`: run the paper's experiments from the command line."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mastery.cli.arguments import check_folder, console
from mastery.cli.live import several_view
from mastery.cli.train import job_progress
from mastery.errors import install, needs

if TYPE_CHECKING:
    from mastery.paper.experiments import PaperJob
    from mastery.training.train import Progress, Trained, TrainOptions

    Ends = Iterator[tuple[PaperJob, Trained | str]]


def paper_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Experiments: [bold]blocked-unlock-pickup[/bold], [bold]key-corridor[/bold], "
            "[bold]obstructed-maze[/bold], [bold]addition[/bold], [bold]ablation[/bold]; by "
            "default all of these. Beyond the paper: [bold]apart[/bold] (the differences between "
            "2018 and 2019, one at a time), [bold]agents[/bold] (other agents), "
            "[bold]addition-long[/bold] (200M examples). Or a single job, such as "
            "[bold]key-corridor-2018[/bold].",
        ),
    ] = None,
    scale: Annotated[
        float,
        typer.Option(
            help="The share of the paper's frames and seeds: 1 for all, 0.05 for a CPU. At 0.1 and "
            "below, networks are also smaller, and addition has three digits instead of nine and "
            "this share of 4M examples."
        ),
    ] = 1.0,
    out: Annotated[Path, typer.Option("--out", "-o", help="The output folder.")] = Path(
        "runs/paper"
    ),
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Stop after this many minutes; the same command resumes."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Jobs to run in parallel, each in its own process with its share of the cores. On "
            "one GPU this is faster only with NVIDIA's Multi-Process Service, which "
            "nvidia-cuda-mps-control -d starts.",
            show_default="1 on a GPU, else the number of cores, at most 4",
        ),
    ] = None,
    save_every: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 60.0,
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="Allow resuming on a different device.")
    ] = False,
    redraw: Annotated[
        bool,
        typer.Option("--redraw", help="Do not train; draw figures and page from existing curves."),
    ] = False,
) -> None:
    """Reproduce the paper: train its experiments, check its claims, draw its figures.

    The MiniGrid experiments train with the MiniGrid and the agent of September 2018, which the
    paper's runs used, and with today's MiniGrid and our agent. Run the command again to resume
    stopped jobs. The page is written at the end.

    [dim]mastery paper                         all of the paper's experiments, on a GPU[/dim]
    [dim]mastery paper key-corridor            one experiment[/dim]
    [dim]mastery paper --scale 0.05            scaled down, on a CPU[/dim]
    [dim]mastery paper --jobs 3                three jobs in parallel[/dim]
    [dim]mastery paper --redraw                from the curves that ship with mastery[/dim]
    """
    with needs("mastery paper", "paper"):
        from mastery.paper.experiments import chosen, shown_beside
        from mastery.paper.page import DATA, read_shipped, write_page
        from mastery.paper.processes import usual
        from mastery.training.train import TrainOptions
    parts = chosen(names or [])
    check_folder(out)
    if not redraw:
        options = TrainOptions(
            minutes=minutes,
            checkpoint_seconds=save_every,
            elsewhere=elsewhere,
            command=shlex.join(["mastery", *sys.argv[1:]]),
        )
        jobs = jobs or usual()
        if min(jobs, len(parts)) == 1:
            ends = _one_by_one(parts, out, scale, options)
        else:
            ends = _together(parts, out, jobs, scale, options)
        code = 0
        for part, outcome in ends:
            if isinstance(outcome, str):
                typer.echo(f"{part.name}: {outcome}", err=True)
                code = max(code, 1)
            else:
                status = outcome.ended or "stopped; run the same command again to resume"
                typer.echo(f"{part.name}: {status}")
                code = 130 if outcome.interrupted else code
        if code:
            raise typer.Exit(code)
    kept = DATA if redraw and not (out / "curves").is_dir() else out / "curves"
    wanted = [*(part.name for part in parts), *shown_beside(names)] if names else []
    found = read_shipped(kept, wanted)
    try:
        page = write_page(found, out)
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        typer.echo(
            f"The curves are in {kept}. Figures and page need Matplotlib: run "
            f"{install('paper')}, then mastery paper --redraw --out {shlex.quote(str(out))}",
            err=True,
        )
        raise typer.Exit(1 if redraw else 0) from None
    typer.echo(f"Page: {page}")


def _one_by_one(parts: list[PaperJob], out: Path, scale: float, options: TrainOptions) -> Ends:
    from mastery.paper.run import cores_for, run
    from mastery.training.devices import cores, prepare

    devices = cores()
    if len(parts) == 1:
        devices = cores_for(out / parts[0].name, parts[0].job(scale), devices)
    prepare(devices)
    yield from run(parts, out, scale, replace(options, note=_note), job_progress)


def _together(
    parts: list[PaperJob], out: Path, jobs: int, scale: float, options: TrainOptions
) -> Ends:
    from mastery.paper.processes import together

    units = {part.name: part.job(scale).settings.unit for part in parts}
    with several_view(console) as show:

        def say(part: PaperJob, what: Progress | str) -> None:
            if isinstance(what, str):
                _note(f"{part.name}: {what}")
            else:
                show(part.name, units[part.name], what)

        yield from together(parts, out, jobs, say, scale, options)


def _note(text: str) -> None:
    typer.echo(f"note: {text}", err=True)
