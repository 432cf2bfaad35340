"""`mastery play`: an episode, in words and as a GIF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mastery.cli.arguments import check_place, console
from mastery.errors import MasteryError


def play_command(
    task: Annotated[
        str, typer.Argument(help="A MiniGrid task, such as KeyCorridorS3R3; [bold]list[/bold].")
    ],
    gif: Annotated[Path | None, typer.Option(help="Write the episode as a GIF.")] = None,
    agent: Annotated[
        str, typer.Option(help="Who plays: [bold]random[/bold] or [bold]planner[/bold].")
    ] = "random",
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Of the level and of the random agent.")
    ] = 0,
    steps: Annotated[int, typer.Option(min=1, help="The most steps to play.")] = 300,
    fps: Annotated[float, typer.Option(help="Frames a second of the GIF.")] = 8.0,
    tile: Annotated[int, typer.Option(min=4, max=64, help="Pixels of a cell.")] = 32,
    view: Annotated[bool, typer.Option(help="Show what the agent sees beside the map.")] = True,
) -> None:
    """Play an episode of a MiniGrid task.

    [dim]mastery play list[/dim]
    [dim]mastery play ObstructedMaze-Full --agent planner --gif maze.gif[/dim]
    """
    from mastery.minigrid import NAMES, task_id

    if task == "list":
        typer.echo("\n".join(NAMES))
        return
    name = NAMES[task_id(task)]
    check_place(gif)
    try:
        from mastery.minigrid.play import check_gif, pictures, play, write_gif
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        raise MasteryError("MiniGrid needs JAX: pip install 'mastery[minigrid]'") from None
    if gif:
        check_gif(fps)
    episode = play(name, agent, seed, steps)
    if episode.terminated:
        end = f"reached the goal, return {episode.reward:.3f}"
    elif episode.truncated:
        end = "ran out of steps, return 0"
    else:
        end = "not over yet; --steps shows more"
    typer.echo(f"{name}: {episode.mission}. {len(episode.actions)} steps: {end}")
    if gif:
        with console.status("drawing"):
            write_gif(gif, pictures(episode.states, tile, view), fps)
        typer.echo(f"The GIF: {gif.resolve()}")
