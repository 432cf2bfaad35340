"""`mastery paper`: run the paper's experiments from the command line."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mastery.cli.arguments import check_folder, console
from mastery.cli.live import several_view
from mastery.cli.places import ClusterOption, place_of
from mastery.cli.train import job_progress
from mastery.errors import MasteryError, install, needs

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
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Seeds per program.", show_default="30, 10 or 4, by experiment, × --scale"
        ),
    ] = None,
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
            "a GPU one process is faster: it trains all jobs with the same agent as one program.",
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
    cluster: ClusterOption = None,
) -> None:
    """Reproduce the paper: train its experiments, check its claims, draw its figures.

    The MiniGrid experiments train with the MiniGrid and the agent of September 2018, which the
    paper's runs used, and with today's MiniGrid and our agent. Run the command again to resume
    stopped jobs. The page is written at the end.

    [dim]mastery paper                         all of the paper's experiments, on a GPU[/dim]
    [dim]mastery paper key-corridor            one experiment[/dim]
    [dim]mastery paper --scale 0.05            scaled down, on a CPU[/dim]
    [dim]mastery paper --jobs 3                three jobs in parallel[/dim]
    [dim]mastery paper --cluster auto          on a Ray cluster, all jobs at the same time[/dim]
    [dim]mastery paper --redraw                from the curves that ship with mastery[/dim]
    """
    with needs("mastery paper", "paper"):
        from mastery.paper.experiments import chosen, shown_beside
        from mastery.paper.page import DATA, read_shipped, write_page
        from mastery.paper.processes import usual
        from mastery.training.train import TrainOptions
    parts = chosen(names or [])
    if seeds is not None:  # `PaperJob.job` scales them
        parts = [replace(part, seeds=round(seeds / scale)) for part in parts]
    check_folder(out)
    if not redraw:
        options = TrainOptions(
            minutes=minutes,
            checkpoint_seconds=save_every,
            elsewhere=elsewhere,
            command=shlex.join(["mastery", *sys.argv[1:]]),
        )
        if cluster is not None and jobs is not None:
            raise MasteryError("--jobs is for this machine; on a cluster Ray decides: omit --jobs")
        jobs = jobs or usual()
        if cluster is not None:
            ends = _on_cluster(parts, out, cluster, scale, options)
        elif min(jobs, len(parts)) == 1:
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
    from mastery.paper.run import check_same, cores_for, run, with_minutes_left
    from mastery.paper.side_by_side import groups
    from mastery.training.devices import accelerated, cores, prepare

    devices = cores()
    if len(parts) == 1:
        devices = cores_for(out / parts[0].name, parts[0].job(scale), devices)
    prepare(devices)
    for part in parts:
        check_same(out / part.name, part.job(scale))
    began = time.monotonic()
    for group in groups(parts, out, scale) if accelerated() else [[part] for part in parts]:
        now = with_minutes_left(options, began)
        if now.minutes is not None and now.minutes <= 0:
            return
        if len(group) == 1:
            ends: Ends = run(group, out, scale, replace(now, note=_note), job_progress)
        else:
            ends = _side_by_side(group, out, scale, now)
        interrupted = False
        for part, outcome in ends:  # to the end, since the jobs of a group save one by one
            yield part, outcome
            interrupted = interrupted or (not isinstance(outcome, str) and outcome.interrupted)
        if interrupted:
            return


def _side_by_side(parts: list[PaperJob], out: Path, scale: float, options: TrainOptions) -> Ends:
    from mastery.paper.side_by_side import side_by_side

    with _several(parts, scale) as say:
        yield from side_by_side(parts, out, say, scale, options)


def _together(
    parts: list[PaperJob], out: Path, jobs: int, scale: float, options: TrainOptions
) -> Ends:
    from mastery.paper.processes import together

    with _several(parts, scale) as say:
        yield from together(parts, out, jobs, say, scale, options)


@contextmanager
def _several(
    parts: list[PaperJob], scale: float
) -> Iterator[Callable[[PaperJob, Progress | str], None]]:
    """Yield a function that shows the progress of several jobs, and lines for the user."""
    units = {part.name: part.job(scale).settings.unit for part in parts}
    with several_view(console) as show:

        def say(part: PaperJob, what: Progress | str) -> None:
            if isinstance(what, str):
                _note(f"{part.name}: {what}")
            else:
                show(part.name, units[part.name], what)

        yield say


def _on_cluster(
    parts: list[PaperJob], out: Path, address: str, scale: float, options: TrainOptions
) -> Ends:
    place_of(address)  # refuses if Ray is not installed
    from mastery.paper.cluster import on_cluster

    with _several(parts, scale) as say:
        yield from on_cluster(parts, out, address, say, scale, replace(options, note=_note))


def _note(text: str) -> None:
    typer.echo(f"note: {text}", err=True)
