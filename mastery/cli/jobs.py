"""`mastery runs` and `mastery export`: list training jobs and export their curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from mastery.cli.arguments import check_folder, check_place, console, print_indented
from mastery.cli.live import short
from mastery.errors import MasteryError

if TYPE_CHECKING:
    from mastery.rundir.results import Summary

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.")]


def runs_command(
    folder: Annotated[Path, typer.Argument(help="The folder of run directories.")] = Path("runs"),
) -> None:
    """List the training jobs in a folder.

    [dim]mastery runs[/dim]
    """
    from mastery.rundir.results import list_jobs

    if not folder.is_dir():
        raise MasteryError(f"there is no folder {folder}; mastery train creates it")
    jobs = list_jobs(folder)
    if not jobs:
        typer.echo(f"no training jobs in {folder}")
        return
    table = _table(jobs)
    if (
        Measurement.get(console, console.options.update(width=10_000), table).maximum
        <= console.width
    ):
        console.print(table)
        return
    for job in jobs:  # a table would cut names and values here
        console.print(f"[bold]{escape(str(job.path))}", soft_wrap=True, highlight=False)
        print_indented("", *_lines(job), column=0)


def _table(jobs: Sequence[Summary]) -> Table:
    table = Table(box=None, header_style="dim")
    for name in ("directory", "curriculum", "programs"):
        table.add_column(name, no_wrap=True)
    for name in ("seeds", "trained per run", "returns"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for job in jobs:
        table.add_row(
            escape(str(job.path)),
            escape(job.curriculum),
            escape(", ".join(job.programs)),
            str(job.seeds) if job.curriculum else "",
            _trained(job),
            _returns(job),
            escape(_state(job)),
        )
    return table


def _lines(job: Summary) -> list[str]:
    """The same as a row of the table, as text."""
    if not job.curriculum:
        return [_state(job)]
    seeds = "1 seed" if job.seeds == 1 else f"{job.seeds} seeds"
    returns = f"returns {_returns(job)}" if _returns(job) else ""
    return [
        f"{job.curriculum}: {', '.join(job.programs)}; {seeds}",
        ", ".join(filter(None, [f"{_trained(job)} per run", returns, _state(job)])),
    ]


def _trained(job: Summary) -> str:
    """How far a job is; nothing if it cannot be read."""
    if not job.curriculum:
        return ""
    done = f"{short(job.frames)} of {short(job.total)}" if job.total else short(job.frames)
    return f"{done} {job.unit}"


def _returns(job: Summary) -> str:
    return "" if job.worst is None else f"{job.worst:.2f} … {job.best:.2f}"


def _state(job: Summary) -> str:
    return job.state.partition(":")[0] if job.curriculum else job.state


def export_command(
    directory: Directory,
    csv: Annotated[Path | None, typer.Option(help="Write the curves to this CSV file.")] = None,
    parquet: Annotated[
        Path | None, typer.Option(help="Write the curves to this Parquet file.")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="Write TensorBoard event files to this folder.")
    ] = None,
) -> None:
    """Export the curves of a training job to other tools.

    [dim]mastery export runs/key-corridor-mr --csv curves.csv[/dim]
    [dim]mastery export runs/key-corridor-mr --tensorboard logs[/dim]
    """
    from mastery.rundir import export
    from mastery.rundir.results import load_results

    wanted = (
        (export.export_csv, csv),
        (export.export_parquet, parquet),
        (export.export_tensorboard, tensorboard),
    )
    if not any(path for _, path in wanted):
        raise MasteryError(
            "nothing to write: give --csv FILE, --parquet FILE or --tensorboard FOLDER"
        )
    for path in (csv, parquet):
        check_place(path)
    if tensorboard is not None:
        check_folder(tensorboard)
    results = load_results(directory)
    for write, path in wanted:
        if path is not None:
            for written in write(results, path):
                typer.echo(f"wrote {written}")
