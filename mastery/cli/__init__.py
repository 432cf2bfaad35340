"""The command line. It only parses and prints; Python code can call everything else."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import mastery
from mastery.cli.arguments import split_programs
from mastery.cli.benchmark import benchmark_command
from mastery.cli.curricula import programs, show
from mastery.cli.jobs import export_command, runs_command
from mastery.cli.page import report_command, watch_command
from mastery.cli.paper import paper_command
from mastery.cli.play import play_command
from mastery.cli.simulate import simulate_command
from mastery.cli.train import train_command

__all__ = ["app", "split_programs"]


class _PlainFlags:
    """Shows flags in the help without a type: `--open`, not `--open <bool>`."""

    def get_params(self, context: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(context)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""
        return parameters


class _Command(_PlainFlags, TyperCommand):
    pass


class _Group(_PlainFlags, TyperGroup):
    pass


app = typer.Typer(
    cls=_Group,
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


app.command("train", cls=_Command)(train_command)
app.command("watch", cls=_Command)(watch_command)
app.command("report", cls=_Command)(report_command)
app.command("runs", cls=_Command)(runs_command)
app.command("export", cls=_Command)(export_command)
app.command("paper", cls=_Command)(paper_command)
app.command("benchmark", cls=_Command)(benchmark_command)
app.command("play", cls=_Command)(play_command)
app.command("simulate", cls=_Command)(simulate_command)
app.command("show", cls=_Command)(show)
app.command("programs", cls=_Command)(programs)
