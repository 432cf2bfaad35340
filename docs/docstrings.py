"""What the reference needs beside docstrings: examples as code, fields, and no private names."""

from __future__ import annotations

import re
from typing import Any

import griffe

FIELDS = {"NamedTuple", "TypedDict"}  # bases that give a class fields, as @dataclass does
COMMENT = re.compile(r"^\s*# ?(.*)$")  # a line of comment, above its field


class Docstrings(griffe.Extension):
    """Changes what was read from the source before it is shown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if isinstance(obj, griffe.Function):
            for name in [p.name for p in obj.parameters if p.name.startswith("_")]:
                del obj.parameters[name]
        if isinstance(obj, griffe.Class):
            obj.bases = [base for base in obj.bases if not str(base).startswith("_")]
            describe_fields(obj)
        if obj.docstring:  # griffe reads >>> as code in `Examples`, and as quotes in `Example`
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.M)


def describe_fields(found: griffe.Class) -> None:
    """Add the fields of a named tuple, a dataclass or a typed dictionary, with their comments."""
    bases = {str(base).rpartition(".")[2] for base in found.bases}
    if not (bases & FIELDS or "dataclass" in found.labels) or not found.docstring:
        return
    if re.search(r"^(Args|Attributes):$", found.docstring.value, flags=re.M):
        return
    comments = {
        name: comment_of(field)
        for name, field in found.attributes.items()
        if "instance-attribute" in field.labels or "class-attribute" in field.labels
        if field.annotation is not None and not name.startswith("_")
    }
    if any(comments.values()):
        lines = [f"    {name}: {text}" for name, text in comments.items() if text]
        found.docstring.value += "\n".join(["\n\nAttributes:", *lines])


def comment_of(field: griffe.Attribute) -> str:
    """The comment behind a field, or else in the lines above it."""
    lines = field.lines_collection[field.filepath]
    first, last = (field.lineno or 1) - 1, (field.endlineno or 1) - 1
    behind = lines[last].partition("  # ")[2]
    above: list[str] = []
    while not behind and first and (match := COMMENT.match(lines[first - 1])):
        above.insert(0, match[1])
        first -= 1
    return behind or " ".join(above)
