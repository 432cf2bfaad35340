"""Curricula as text: TOML (read and write), and the JSON of the paper's authors (read)."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from mastery.curriculum.task import Task
from mastery.errors import CurriculumError, did_you_mean


def read_toml(text: str) -> tuple[str | None, list[Task]]:
    """Parse TOML text: the curriculum's name, if given, and its tasks."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise CurriculumError(f"not valid TOML: {_first_line(error)}") from None
    _known_keys(document, ("name", "description", "defaults", "tasks"), "the file")
    defaults = _table(document.get("defaults", {}), "[defaults]")
    _known_keys(defaults, ("minimum", "maximum"), "[defaults]")
    tasks = []
    for name, entry in _table(document.get("tasks", {}), "[tasks]").items():
        where = f"task {name!r}"
        entry = {**defaults, **_table(entry, where)}
        _known_keys(entry, ("minimum", "maximum", "after", "settings"), where)
        tasks.append(Task(name, **{**entry, "after": _names(entry, where)}))
    return document.get("name") and str(document["name"]), tasks


def read_json(text: str) -> list[Task]:
    """Parse the JSON of the paper's authors; `id` becomes the setting `env`.

    {"nodes": {name: {"id", "min", "max"}}, "edges": [[before, after], …]}
    """
    try:
        document = json.loads(text, object_pairs_hook=_no_duplicates)
    except CurriculumError:
        raise
    except (ValueError, RecursionError) as error:
        raise CurriculumError(f"not valid JSON: {_first_line(error)}") from None
    _known_keys(_table(document, "the file"), ("nodes", "edges"), "the file")
    nodes = _table(document.get("nodes", {}), "nodes")
    after: dict[str, list[str]] = {name: [] for name in nodes}
    edges = document.get("edges", [])
    if not isinstance(edges, list):
        raise CurriculumError("edges must be a list of pairs [before, after]")
    for edge in edges:
        if not (isinstance(edge, list) and len(edge) == 2 and all(type(e) is str for e in edge)):
            raise CurriculumError(f"edge {edge!r} is not a pair of names [before, after]")
        if edge[1] not in after:
            raise CurriculumError(
                f"edge {edge!r} names {edge[1]!r}, and there is no such node"
                f"{did_you_mean(edge[1], nodes)}"
            )
        after[edge[1]].append(edge[0])
    tasks = []
    for name, entry in nodes.items():
        _known_keys(_table(entry, f"node {name!r}"), ("id", "min", "max"), f"node {name!r}")
        settings = {"env": entry["id"]} if "id" in entry else {}
        low, high = entry.get("min", 0.0), entry.get("max", 1.0)
        tasks.append(Task(name, low, high, tuple(after[name]), settings))
    return tasks


def write_toml(name: str, tasks: Iterable[Task]) -> str:
    """Write a curriculum as TOML text; `read_toml` reads it back."""
    lines = [f"name = {_toml(name)}"]
    for task in tasks:
        lines += ["", f"[tasks.{_toml_key(task.name)}]"]
        lines += [f"minimum = {_toml(task.minimum)}", f"maximum = {_toml(task.maximum)}"]
        if task.after:
            lines.append(f"after = {_toml(list(task.after))}")
        if task.settings:
            lines.append(f"settings = {_toml(dict(task.settings))}")
    return "\n".join(lines) + "\n"


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CurriculumError(f"{where} is {value!r}; it must be a table")
    return value


def _names(entry: dict[str, Any], where: str) -> tuple[str, ...]:
    after = entry.get("after", [])
    if not isinstance(after, list) or not all(isinstance(name, str) for name in after):
        raise CurriculumError(f"{where}: after is {after!r}; it must be a list of names")
    return tuple(after)


def _known_keys(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            hint = did_you_mean(key, known)
            extra = " (put your own keys under settings)" if "settings" in known else ""
            raise CurriculumError(f"{where} has an unknown key {key!r}{hint}{extra}")


def _first_line(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error).splitlines()[0]


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise CurriculumError(f"the key {key!r} appears twice; remove or rename one of them")
        table[key] = value
    return table


def _toml(value: Any) -> str:
    """A value as TOML. JSON strings and numbers are valid TOML; tables are not."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_toml_key(k)} = {_toml(v)}" for k, v in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(v) for v in value)}]"
    if value is None:
        raise CurriculumError("a setting is None, which TOML cannot represent; remove it")
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)
