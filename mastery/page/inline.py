"""The page inside another one, such as a notebook's."""

from __future__ import annotations

from pathlib import Path

from mastery.errors import MasteryError
from mastery.page import assemble, data
from mastery.page.places import find_places

HEIGHT = 720  # pixels


def inline_page(folder: Path) -> str:
    """The page of the jobs in a folder as an element of HTML that loads nothing.

    Raises:
        MasteryError: If there is no job that can be shown.
    """
    places, problems = find_places([folder])
    entries, unread = data.read_entries(places)
    problems += unread
    if not entries:
        raise MasteryError(str(problems[0]))
    by_key = {place.key: place for place in places}
    curves = [data.job_curves(by_key[entry["key"]]) for entry in entries]
    page = "".join(assemble.pieces(f"Training {folder.name}", entries, curves, problems))
    inside = page.replace("&", "&amp;").replace('"', "&quot;")
    return (
        f'<iframe srcdoc="{inside}" sandbox="allow-scripts allow-downloads" '
        f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
    )
