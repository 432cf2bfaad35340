"""`mastery pretrain`: make the model that the runs of a reasoning job begin with."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from mastery.cli.arguments import console, find_preset, read_setting, split_settings
from mastery.curriculum import Curriculum
from mastery.errors import MasteryError, needs


def pretrain_command(
    curriculum: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A curriculum of problems: its families.")
    ] = "reasoning",
    preset: Annotated[
        str,
        typer.Option(help="The model's settings: [bold]default[/bold], or [bold]small[/bold]."),
    ] = "default",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Change a setting, e.g. [bold]width=256[/bold]."
        ),
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Make it again even if it exists.")] = False,
) -> None:
    """Pre-train a transformer on mostly easy problems, and show what it can do.

    Every job with the same settings uses the stored model; `mastery train` makes it if it does not
    exist. The same settings give the same model, on the same kind of device.

    [dim]mastery pretrain reasoning                 a minute on a GPU[/dim]
    [dim]mastery pretrain reasoning-reverse --preset small[/dim]
    """
    with needs("mastery pretrain", "train"):
        from rich.progress import Progress
        from rich.table import Table

        from mastery.training.devices import prepare
        from mastery.training.job import Job
        from mastery.training.pretraining import load_model, model_path, pass_rates
    tasks = Curriculum.load(curriculum)
    learner = Job(tasks).learner
    if learner.settings.unit != "completions":
        raise MasteryError(
            f"the tasks of {tasks.name!r} are not problems with a family; only reasoning has a "
            "pre-trained model"
        )
    changes = {
        name: read_setting(learner, name, texts[0])
        for name, texts in split_settings(set_ or []).items()
    }
    job = Job(tasks, settings=replace(find_preset(learner, preset), **changes))
    prepare(1)
    path = model_path(job)
    if anew:
        path.unlink(missing_ok=True)
    there = path.exists()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("pre-training", total=job.settings.pretrain_steps)
        model = load_model(job, report=lambda done, steps, loss: bar.update(task, completed=done))
    table = Table("family", *(f"level {i}" for i in range(1, 5)), title="pass rate, held out")
    for family, rates in pass_rates(model, job).items():
        table.add_row(family, *(f"{rate:.2f}" for rate in rates))
    console.print(table)
    typer.echo(f"{'Read' if there else 'Made'}: {path}")
