"""`mastery report` and `mastery watch`: a page about training jobs, as a file or live."""

from __future__ import annotations

import contextlib
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mastery.cli.arguments import check_place, console, quoted, this_command
from mastery.errors import MasteryError

if TYPE_CHECKING:
    from mastery.page.clips import Clips
    from mastery.page.data import Entry
    from mastery.page.places import Place

Directories = Annotated[
    list[Path], typer.Argument(metavar="DIR", help="Run directories, or folders of them.")
]
Show = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]


def report_command(
    directories: Directories,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The HTML file to write.",
            show_default="report.html in the directory",
        ),
    ] = None,
    clips: Annotated[
        bool,
        typer.Option(
            "--clips",
            help="Include clips of each program's agent on every task, from up to four moments "
            "of training.",
        ),
    ] = False,
    show: Show = False,
) -> None:
    """Write a report on training jobs, finished or not, as one HTML file that works offline.

    [dim]mastery report runs/key-corridor-mr[/dim]
    [dim]mastery report runs/a runs/b -o report.html --clips[/dim]
    """
    path = out or (directories[0] if len(directories) == 1 else Path()) / "report.html"
    write_report(directories, path, clips)
    if show:
        webbrowser.open(path.resolve().as_uri())


def write_report(directories: Sequence[Path], path: Path, clips: bool = False) -> None:
    """Write the report on these run directories; print its path and what it could not show."""
    from mastery.page import assemble, data
    from mastery.page.clips import check_clips
    from mastery.page.places import check_folders, find_places

    check_folders(directories)
    check_place(path)
    if clips:
        check_clips()
    places, problems = find_places(directories)
    entries, unread = data.read_entries(places)
    problems += unread
    if not entries:
        raise MasteryError(str(problems[0]))
    by_key = {place.key: place for place in places}
    curves = [data.job_curves(by_key[entry["key"]]) for entry in entries]
    again = f"{this_command()} report {' '.join(map(quoted, directories))} -o {quoted(path)}"
    made = _make_clips(entries, places, f"{again} --clips") if clips else {}
    title = ", ".join(dict.fromkeys(entry["curriculum"]["name"] for entry in entries))
    assemble.write(path, f"Training {title}", entries, curves, problems, made)
    for problem in problems:
        typer.echo(f"note: {problem}", err=True)
    typer.echo(f"Report: {path.resolve().as_uri()}")


def _make_clips(entries: Sequence[Entry], places: Sequence[Place], again: str) -> Clips:
    """Make the clips of a report, and show how far it is. Ctrl-C keeps those that are made; the
    command `again` makes them all."""
    from mastery.page.clips import BYTES, make_clips, plan_clips

    planned = plan_clips(entries, places)
    if not planned:
        typer.echo("note: there are no clips: no agent here can be played yet", err=True)
        return {}
    made: Clips = {}
    failed: dict[str, str] = {}  # the first plan that each error befell
    done = 0
    try:
        with console.status("clips: starting") as status:
            for plan, clip in make_clips(planned, made):
                done += 1
                status.update(f"clips: {done} of {len(planned)}, {plan.label}")
                if "error" in clip:
                    failed.setdefault(clip["error"], plan.label)
    except KeyboardInterrupt:
        typer.echo(
            f"note: stopped after {done} of {len(planned)} clips. To make all of them:\n  {again}",
            err=True,
        )
        return made
    for error, label in failed.items():
        typer.echo(f"note: there is no clip of {label}: {error}", err=True)
    if done < len(planned):
        typer.echo(
            f"note: {len(planned) - done} of {len(planned)} clips were left out, because a report "
            f"holds at most {BYTES / 1e6:g} MB of them; to see others, use mastery watch",
            err=True,
        )
    return made


def watch_command(
    directories: Directories,
    host: Annotated[
        str,
        typer.Option(
            help="The address to serve on. One that is not local is open to other machines; the "
            "page then asks for a token, which is in the printed address."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="The port to serve on.",
            show_default="8765, or the next free one",
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MASTERY_TOKEN",
            help="The token to ask for. The environment variable keeps it out of the process list.",
            show_default="random if other machines can reach the page, else none",
        ),
    ] = None,
    show: Show = False,
) -> None:
    """Serve a live page about training jobs until Ctrl-C.

    [dim]mastery watch runs[/dim]
    [dim]mastery watch runs/key-corridor-mr --open[/dim]
    [dim]mastery watch runs --host 0.0.0.0[/dim]
    """
    from mastery.page.places import check_folders
    from mastery.page.server import open_server

    check_folders(directories)
    with (
        open_server(directories, host, port, token) as server,
        contextlib.suppress(KeyboardInterrupt),
    ):
        if server.open:
            typer.echo(
                f"note: {host} is open to other machines. The page asks for the token in the "
                "address; the connection is not encrypted",
                err=True,
            )
        typer.echo(f"Page: {server.address}    (Ctrl-C stops the server)")
        if show:
            webbrowser.open(server.address)
        server.serve_forever()
