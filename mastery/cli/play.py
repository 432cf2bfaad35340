"""`mastery play`: play one episode; print its outcome and write it as a GIF."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mastery.cli.arguments import check_place, console, read_count
from mastery.errors import MasteryError, needs


def play_command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="TASK|DIR",
            help="A MiniGrid task, such as KeyCorridorS3R3 ([bold]list[/bold] prints all), or a "
            "run directory, whose trained agent plays.",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(help="With a run directory: the task to play.", show_default="the last one"),
    ] = None,
    gif: Annotated[Path | None, typer.Option(help="Write the episode to this GIF file.")] = None,
    agent: Annotated[
        str,
        typer.Option(help="With a task: the agent, [bold]random[/bold] or [bold]planner[/bold]."),
    ] = "random",
    run: Annotated[
        int | None,
        typer.Option(
            help="With a run directory: the number of the run whose agent plays.",
            show_default="the best",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            help="With a run directory: play the agent as it was after this many frames, e.g. "
            "500k; 0 is untrained. Takes the last one that was kept until then.",
            show_default="the last checkpoint",
        ),
    ] = None,
    greedy: Annotated[
        bool,
        typer.Option("--greedy", help="With a run directory: always take the likeliest action."),
    ] = False,
    edition: Annotated[
        str | None,
        typer.Option(
            help="The version of MiniGrid: [bold]3.2.0[/bold], the current package, or "
            "[bold]2018[/bold], the paper's.",
            show_default="3.2.0, or the trained agent's",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="The seed of the level and the actions.")
    ] = 0,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The maximum number of steps.",
            show_default="300, or 10000 for a trained agent",
        ),
    ] = None,
    fps: Annotated[float, typer.Option(help="Frames per second of the GIF.")] = 8.0,
    tile: Annotated[int, typer.Option(min=4, max=64, help="Pixels per cell.")] = 32,
    view: Annotated[bool, typer.Option(help="Show the agent's view beside the map.")] = True,
) -> None:
    """Play one episode of a MiniGrid task, or let a job's trained agent play.

    [dim]mastery play list[/dim]
    [dim]mastery play ObstructedMaze-Full --agent planner --gif maze.gif[/dim]
    [dim]mastery play ObstructedMaze-1Dlhb --edition 2018 --agent planner[/dim]
    [dim]mastery play runs/key-corridor-mr --task S6R3 --gif out.gif[/dim]
    [dim]mastery play runs/key-corridor-mr --task S6R3 --at 500k[/dim]
    """
    from mastery.minigrid import NAMES, task_id
    from mastery.minigrid.editions import TODAY, find_edition

    if what == "list":
        typer.echo("\n".join(NAMES))
        return
    check_place(gif)
    if at is not None and not Path(what).is_dir():
        raise MasteryError(f"--at needs a run directory, and {what} is not one; omit --at")
    trained: Any = None
    player: Any = agent
    with needs("mastery play", "train" if Path(what).is_dir() else "minigrid"):
        from mastery.minigrid.play import check_gif, pictures, play, write_gif

        if Path(what).is_dir():
            from mastery.training.agent import TrainedAdder, TrainedAgent, load_agent

            trained = load_agent(what, run, seed, None if at is None else read_count(at))
            if not isinstance(trained, TrainedAgent):
                call = "add(12, 34)" if isinstance(trained, TrainedAdder) else "answer('12+34=')"
                raise MasteryError(
                    f"{what} holds a learner of {trained.job.environments}, which cannot play; use "
                    f"it from Python: mastery.load_agent(DIR).{call}"
                )
            player = partial(trained.act, greedy=greedy)
    if gif:
        check_gif(fps)
    if trained is not None and edition not in (None, trained.job.settings.edition):
        raise MasteryError(
            f"the agent in {what} was trained on MiniGrid {trained.job.settings.edition}; "
            "omit --edition"
        )
    if trained is None:
        name = NAMES[task_id(what)]
    else:
        curriculum = trained.job.curriculum
        task = task or curriculum.names[-1]
        name = str(curriculum[task].settings["env"])
        trained_for = f"after {trained.frames:,} frames"
        typer.echo(f"{trained.run.label}, seed {trained.run.seed}, {trained_for}:")
        if trained.job.environments != "minigrid":
            _play_gymnasium(trained, task, seed, steps or 10_000, greedy, gif, fps)
            return
        name = NAMES[task_id(name)]
    limit = steps or (300 if trained is None else 10_000)
    own = None if trained is None else trained.job.settings
    reward = "paper" if own is None else own.reward
    played = find_edition(edition or (TODAY.name if own is None else own.edition))
    episode = play(name, player, seed, limit, reward, played)
    if episode.terminated:
        end = f"reached the goal, return {episode.reward:.3f}"
    elif episode.truncated:
        end = "ran out of steps, return 0"
    else:
        end = "stopped at the step limit; set --steps to play longer"
    typer.echo(f"{name}: {episode.mission}. {len(episode.actions)} steps: {end}")
    if gif:
        with console.status("drawing"):
            write_gif(gif, pictures(episode.states, tile, view, played), fps)
        typer.echo(f"GIF: {gif.resolve()}")


def _play_gymnasium(
    trained: Any, task: str, seed: int, steps: int, greedy: bool, gif: Path | None, fps: float
) -> None:
    """Play an episode in a Gymnasium environment, which renders its own frames."""
    from mastery.minigrid.play import write_gif
    from mastery.training.playing import play_gymnasium

    frames, count, total, ended = play_gymnasium(
        trained, task, seed, steps, greedy, draw=gif is not None
    )
    end = "ended" if ended else "stopped at the step limit; set --steps to play longer"
    typer.echo(f"{task}: {count} steps, return {total:.3f}, {end}")
    if gif:
        write_gif(gif, frames, fps)
        typer.echo(f"GIF: {gif.resolve()}")
