"""The command line. It only parses and prints; Python code can call everything else."""

from __future__ import annotations

from typing import Annotated

import typer

import mastery
from mastery.cli.arguments import split_programs
from mastery.cli.curricula import programs, show
from mastery.cli.jobs import export_command, runs_command
from mastery.cli.page import report_command, watch_command
from mastery.cli.paper import paper_command
from mastery.cli.play import play_command
from mastery.cli.simulate import simulate_command
from mastery.cli.train import train_command

__all__ = ["app", "split_programs"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Automatic curriculum learning: choose what a learner trains on next.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mastery {mastery.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


app.command("train")(train_command)
app.command("watch")(watch_command)
app.command("report")(report_command)
app.command("runs")(runs_command)
app.command("export")(export_command)
app.command("paper")(paper_command)
app.command("play")(play_command)
app.command("simulate")(simulate_command)
app.command("show")(show)
app.command("programs")(programs)
