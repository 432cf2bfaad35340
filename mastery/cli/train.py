"""`mastery train`: train or resume a job from the command line, with a live view."""

from __future__ import annotations

import itertools
import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mastery.cli.arguments import (
    OWN_PROGRAM,
    check_folder,
    check_place,
    console,
    find_preset,
    quoted,
    read_count,
    read_setting,
    split_programs,
    split_settings,
    this_command,
)
from mastery.cli.live import progress_view
from mastery.cli.places import ClusterOption, place_of
from mastery.curriculum import Curriculum, shipped
from mastery.errors import MasteryError, needs
from mastery.programs.own import read_program

if TYPE_CHECKING:
    from mastery.training.job import Job
    from mastery.training.train import Trained


def train_command(
    context: typer.Context,
    curriculum: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE",
            help="A curriculum whose tasks name an environment: a .toml or .json file, or one "
            f"of {', '.join(shipped())}.",
        ),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(
            help=f"Programs, separated by commas, e.g. [bold]mr,uniform[/bold]. {OWN_PROGRAM}",
            show_default="mr if the curriculum has an order, else auto",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Runs per program, each with its own seed.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="The first run's seed.")] = 0,
    frames: Annotated[
        str | None,
        typer.Option(help="Frames per run, e.g. 2M or 500k.", show_default="2M (fast: 20M)"),
    ] = None,
    examples: Annotated[
        str | None,
        typer.Option(
            help="In supervised learning: the maximum number of examples per run.",
            show_default="20M",
        ),
    ] = None,
    completions: Annotated[
        str | None,
        typer.Option(help="In reasoning: completions per run, e.g. 200k.", show_default="200k"),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="The agent's settings: [bold]default[/bold]; [bold]fast[/bold], the same agent "
            "with 512 environments, for a GPU; [bold]light[/bold], the same agent learning half as "
            "often from each frame, for a CPU; [bold]paper[/bold], the agent and MiniGrid of "
            "the paper's runs; [bold]paper-2019[/bold], the authors' later agent. In reasoning "
            "[bold]small[/bold], a model for a CPU.",
            show_default="fast for up to 16 runs in the built-in MiniGrid on a GPU, else default",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change a setting of the agent, e.g. [bold]memory=none[/bold]. Several values "
            "train runs with each: [bold]learning_rate=1e-3,5e-4[/bold]. Repeatable. "
            "[bold]--set list[/bold] prints all settings.",
        ),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,…",
            help="Train runs with these settings changed together, e.g. "
            "[bold]novelty=0,entropy=0.01[/bold]. Repeat to compare variants; an empty one "
            "([bold]--variant ''[/bold]) changes nothing.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The run directory.", show_default="a new folder in runs/"
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Resume the job in this run directory. Of its settings, only --frames, --examples "
            "or --completions can change."
        ),
    ] = None,
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="Allow resuming on a different device.")
    ] = False,
    stop_when_mastered: Annotated[
        float | None,
        typer.Option(help="Stop once every task's mastery reaches this in every run, e.g. 0.9."),
    ] = None,
    stop_when_return: Annotated[
        float | None,
        typer.Option(help="Stop once every task's mean return reaches this in every run."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Stop after this many minutes; --resume continues the job."),
    ] = None,
    save_every: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 30.0,
    chunk: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Updates per point of the curves.",
            show_default="10, or as many as have 131,072 frames if that is fewer",
        ),
    ] = None,
    evaluate_every: Annotated[
        str | None,
        typer.Option(
            help="Frames, examples or completions between evaluations; 0 for none.",
            show_default="250k frames (fast: 2M), 100k examples or 20k completions",
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Per evaluation and task: episodes played by each policy, examples tested, or "
            "held-out problems completed.",
            show_default="32 episodes, 1000 examples or 64 problems",
        ),
    ] = None,
    environments: Annotated[
        str,
        typer.Option(
            help="[bold]minigrid[/bold]: the built-in, compiled MiniGrid; [bold]gymnasium[/bold]: "
            "any Gymnasium environment, slower; [bold]auto[/bold]: the built-in one if it has all "
            "tasks."
        ),
    ] = "auto",
    report: Annotated[
        Path | None, typer.Option(help="Write a report to this HTML file at the end.")
    ] = None,
    clips: Annotated[
        bool, typer.Option("--clips", help="With --report: include clips of the agents.")
    ] = False,
    cluster: ClusterOption = None,
    parts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --cluster: the number of groups of runs, each of which is trained by itself "
            "and resumed by itself if its machine dies.",
            show_default="one for each GPU, else as many as the cores have room for",
        ),
    ] = None,
) -> None:
    """Train agents on a curriculum; a program chooses their tasks.

    All runs (programs × seeds × settings) train in parallel on all devices that JAX sees. Ctrl-C
    saves the job and prints the command that resumes it.

    [dim]mastery train blocked-unlock-pickup[/dim]
    [dim]mastery train key-corridor --program mr,gprop-linreg,uniform --seeds 10 --frames 10M[/dim]
    [dim]mastery train addition-9 --program mr,gprop-linreg --seeds 4[/dim]
    [dim]mastery train reasoning --program auto,uniform --seeds 10[/dim]
    [dim]mastery train --resume runs/key-corridor-mr[/dim]
    [dim]mastery train key-corridor --seeds 100 --out /shared/run --cluster auto[/dim]
    """
    if set_ and "list" in set_:
        _list_settings(preset or "default", curriculum, environments)
        return
    if out is not None:
        check_folder(out)
    check_place(report, new=out)
    if parts is not None and cluster is None:
        raise MasteryError("--parts is for training on a cluster; give --cluster ADDRESS as well")
    if clips and report is None:
        raise MasteryError("--clips are part of a report; give --report FILE as well")
    if clips:
        from mastery.page.clips import check_clips

        check_clips()
    if resume is not None:
        _check_resume(context)
    elif curriculum is None:
        raise MasteryError(
            "no curriculum given; name one, such as blocked-unlock-pickup, or give --resume DIR"
        )
    tasks = None if curriculum is None else Curriculum.load(curriculum)
    with needs("mastery train", "train"):
        from mastery.training import devices

        if cluster is None:
            devices.start_early()  # from here on an error waits for it
        from mastery.rundir.store import check_new
        from mastery.training.train import TrainOptions, job_to_resume
    options = TrainOptions(
        minutes=minutes,
        checkpoint_seconds=save_every,
        elsewhere=elsewhere,
        command=shlex.join(["mastery", *sys.argv[1:]]),
        note=lambda text: typer.echo(f"note: {text}", err=True),
    )
    if resume is not None:
        budgets = {"frames": frames, "examples": examples, "completions": completions}
        budget = _budget(job_to_resume(resume).settings.unit, budgets)
        more = None if budget is None else read_count(budget)
        job = job_to_resume(resume, more)
        where = place_of(cluster, parts)
        where.check_resume(resume, job)
        _say_directory(resume)
        with job_progress(job) as show:
            outcome = where.resume(resume, replace(options, report=show), more)
    else:
        assert tasks is not None
        job = _job(
            tasks,
            programs=tuple(split_programs(program)) if program is not None else None,
            seeds=seeds,
            seed=seed,
            budgets={"frames": frames, "examples": examples, "completions": completions},
            environments=environments,
            chunk=chunk,
            evaluate_every=evaluate_every,
            episodes=episodes,
            stop_mastered=stop_when_mastered,
            stop_return=stop_when_return,
            preset=preset or ("default" if cluster is not None else None),
            changes=split_settings(set_ or []),
            variants=variant or [],
        )
        directory = out or _new_directory(job)
        check_folder(directory)
        check_new(directory)
        where = place_of(cluster, parts)
        where.check(job)
        _say_directory(directory)
        with job_progress(job) as show:
            outcome = where.train(job, directory, replace(options, report=show))
    _say_end(outcome, job, report, clips, where.option)


# defaults by unit: length of a run, evaluation interval, episodes or examples per task evaluated
USUAL = {
    "frames": ("2M", "250k", 32),
    "examples": ("20M", "100k", 1000),
    "completions": ("200k", "20k", 64),
}
USUAL_FAST = ("20M", "2M", 32)  # with the preset fast
CHUNK = 10  # updates
CHUNK_FRAMES = 131_072  # the most, unless an update has more


def _job(
    curriculum: Curriculum,
    environments: str,
    preset: str | None,
    changes: dict[str, list[str]],
    variants: list[str],
    budgets: dict[str, str | None],
    evaluate_every: str | None,
    episodes: int | None,
    chunk: int | None = None,
    **rest: Any,
) -> Job:
    from mastery.training.job import Job

    learner = Job(curriculum, environments=environments).learner
    chosen: dict[str, Any] = {}
    grid: dict[str, tuple[float, ...]] = {}
    for name, texts in changes.items():
        values = tuple(read_setting(learner, name, text) for text in texts)
        if len(values) == 1:
            chosen[name] = values[0]
        else:
            grid[name] = values
    each = [split_settings(filter(None, variant.split(","))) for variant in variants] or [{}]
    unit = learner.settings.unit
    job = Job(
        curriculum,
        environments=environments,
        grid=grid,
        variants=tuple(
            {name: read_setting(learner, name, texts[0]) for name, texts in v.items()} for v in each
        ),
        **rest,
    )
    preset = preset or usual_preset(job)
    settings = replace(find_preset(learner, preset), **chosen)
    long, often, many = USUAL_FAST if preset == "fast" else USUAL[unit]
    return replace(
        job,
        settings=settings,
        frames=read_count(_budget(unit, budgets) or long),
        chunk=chunk or max(1, min(CHUNK, round(CHUNK_FRAMES / settings.per_update))),
        evaluate_every=read_count(evaluate_every or often),
        episodes=episodes or many,
    )


def usual_preset(job: Job) -> str:
    """The preset for a job on this machine, if the user gives none."""
    from mastery.learners.ppo import FAST_RUNS
    from mastery.training.devices import accelerated

    few = len(job.runs) <= FAST_RUNS
    return "fast" if few and job.environments == "minigrid" and accelerated() else "default"


def _budget(unit: str, given: dict[str, str | None]) -> str | None:
    """The given budget in the job's unit, or None; MasteryError if given in another unit."""
    for name, value in given.items():
        if value is not None and name != unit:
            raise MasteryError(f"this curriculum counts {unit}; use --{unit}, not --{name}")
    return given[unit]


def _check_resume(context: typer.Context) -> None:
    """Refuse options that --resume does not accept: a job resumes with its own settings."""
    may = {"resume", *USUAL, "elsewhere", "minutes", "save_every", "report", "clips", "cluster"}
    for parameter in context.command.params:
        name = str(parameter.name)
        given = context.get_parameter_source(name)
        if name not in may and given is not None and given.name == "COMMANDLINE":
            what = parameter.opts[0] if parameter.opts[0].startswith("-") else "a curriculum"
            raise MasteryError(
                f"--resume keeps the job's settings; omit {what}, or train a new job"
            )


def _list_settings(preset: str, curriculum: str | None, environments: str) -> None:
    with needs("mastery train", "train"):
        from mastery.learners.ppo import PPO
        from mastery.training.job import Job
    learner = PPO
    if curriculum is not None:
        learner = Job(Curriculum.load(curriculum), environments=environments).learner
    chosen = find_preset(learner, preset)
    for f in fields(learner.settings):
        several = " (can differ between runs)" if f.name in learner.hyper._fields else ""
        value = f"{f.name}={getattr(chosen, f.name)}"
        typer.echo(f"{value:<24} {f.metadata['help']}{several}")


def _new_directory(job: Job) -> Path:
    names = "+".join(read_program(program).name for program in job.programs)
    name = re.sub(r"[^\w.+-]+", "_", f"{job.curriculum.name}-{names[:40]}")
    base = Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    others = (base.with_name(f"{base.name}-{i}") for i in itertools.count(2))
    return next(path for path in itertools.chain([base], others) if not path.exists())


@contextmanager
def job_progress(job: Job) -> Iterator[Any]:
    """Print a summary of the job, and yield a function that shows its progress."""
    runs = len(job.runs)
    presets = job.learner.presets.items()
    known = [name for name, settings in presets if settings == job.settings]
    typer.echo(
        f"{job.curriculum.name}: {len(job.curriculum)} tasks, {', '.join(job.programs)}, "
        f"{runs} {'run' if runs == 1 else 'runs'}, "
        f"{job.updates * job.frames_of_update:,} {job.settings.unit} each, "
        f"learner: {known[0] if known else 'custom settings'}"
    )
    with progress_view(console, job.curriculum.names, job.settings.unit) as show:
        yield show


def _say_directory(directory: Path) -> None:
    """Print the run directory on a line of its own, to be copied."""
    typer.echo(f"Run directory:\n  {quoted(directory)}")


def _say_end(
    outcome: Trained, job: Job, report: Path | None, clips: bool, option: str = ""
) -> None:
    from mastery.cli.summary import print_summary

    where, mastery = quoted(outcome.directory), this_command()
    if outcome.ended:
        typer.echo(f"Done: {outcome.ended}.")
    else:
        frames = outcome.update * job.frames_of_update
        written = f" --report {quoted(report)}" + " --clips" * clips if report else ""
        typer.echo(
            f"Stopped after {frames:,} of {job.updates * job.frames_of_update:,} "
            f"{job.settings.unit} per run; progress is saved. Resume with\n"
            f"  {mastery} train --resume {where}{option}{written}"
        )
    print_summary(console, outcome.directory)
    typer.echo()
    _say_directory(outcome.directory)
    if report is None or outcome.interrupted:  # who interrupts does not want to wait for a report
        typer.echo(f"View the results with\n  {mastery} watch {where}")
    else:
        from mastery.cli.page import write_report

        write_report([outcome.directory], report, clips)
    if outcome.interrupted:
        raise typer.Exit(130)
