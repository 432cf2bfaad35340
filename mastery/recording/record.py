"""`record`: record any loop that has a teacher.

    recorder = mastery.record(teacher, "runs/mine")

From then on each `teacher.update` is recorded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mastery.errors import MasteryError, check_whole
from mastery.programs.texts import OBJECT, same
from mastery.recording.recorder import Recorder
from mastery.rundir.part import PartWriter, create_part, look_at
from mastery.rundir.parts import mark_folder, parts_of
from mastery.teacher import Teacher


def record(
    teacher: Teacher,
    directory: str | Path,
    *,
    seed: int | None = None,
    label: str | None = None,
    unit: str | None = None,
    score: str = "return",
    total: int | None = None,
    _again: bool = False,
) -> Recorder:
    """Record a teacher's updates, for `mastery watch`, `report`, `runs`, `export` and notebooks.

    Several processes can record into the same folder: each becomes one run, with its own
    sub-folder. A teacher that was saved continues its own run: load it, then record into the same
    folder.

    Args:
        teacher: The teacher of your loop.
        directory: The folder to write to, such as `"runs/mine"`.
        seed: The number of this run among those of its program; by default the next free one, or,
            for a teacher that was loaded, the run that it began.
        label: The name of the run's program on the page; by default the program's text.
        unit: What `cost` counts, such as `"frames"`, `"tokens"` or `"examples"`: the x axis. By
            default `"frames"` if the first update has costs; otherwise `"returns"`, one each.
        score: The name of what the loop gives to the teacher, such as `"accuracy"`.
        total: How many of the unit there will be, if known.

    Returns:
        The recorder. Nothing needs to be done with it; close it when the loop ends, or use it in
        a `with` statement. As the last expression of a notebook's cell, it shows the page.

    Raises:
        MasteryError: If an argument is invalid, the folder holds something else, the run exists
            already, or several runs could be the teacher's own.
        CheckpointError: If the folder cannot be read or written.

    Example:
        >>> recorder = mastery.record(teacher, "runs/mine")
        >>> teacher.update({task: 0.4})  # as before
        >>> recorder.evaluate({"easy": 0.9, "hard": 0.1})
    """
    if not isinstance(teacher, Teacher):
        raise MasteryError(f"record needs a Teacher, not {teacher!r:.80}")
    if seed is not None:
        seed = check_whole("seed", seed, 0, 2**50)
    if total is not None:
        total = check_whole("total", total)
    for name, value in (("label", label), ("unit", unit), ("score", score)):
        if not (value is None or (isinstance(value, str) and value.strip())):
            raise MasteryError(f"{name} is {value!r:.80}; it must be a text")
    folder = Path(directory)
    with teacher._lock:
        other = teacher._observer
        if isinstance(other, Recorder):
            if other.folder.resolve() == folder.resolve() and seed in (None, other.seed):
                return other
            raise MasteryError(
                f"the teacher is recorded in {other.directory} already; close that recorder first"
            )
        mark_folder(folder, teacher.curriculum)
        # a shared teacher that was killed early is back at time-step 0, and has a run
        found = _own_part(teacher, folder, seed, label) if teacher.time_step or _again else None
        if found is None:
            part = _new_part(teacher, folder, seed, label, unit, score, total)
        else:
            part = PartWriter(found)
            if total is not None:
                part.describe(total=total)
        return Recorder(teacher, folder, part, unit)


def _own_part(teacher: Teacher, folder: Path, seed: int | None, label: str | None) -> Path | None:
    """The part that the teacher began, if it is there."""
    text = teacher._program_text()
    found = [look_at(path) for path in parts_of(folder)]
    own = [p for p in found if same(p.job["programs"][0], text) and label in (None, p.label)]
    if seed is None:
        own = [part for part in own if part.job["stream"] == _stream(teacher)]
    else:
        own = [part for part in own if part.seed == seed]
    if len(own) > 1:
        raise MasteryError(
            f"{' and '.join(str(part.directory) for part in own)} could both be continued by "
            "this teacher; give seed=, the number at the end of the name"
        )
    return own[0].directory if own else None


def _new_part(
    teacher: Teacher,
    folder: Path,
    seed: int | None,
    label: str | None,
    unit: str | None,
    score: str,
    total: int | None,
) -> PartWriter:
    text = teacher._program_text()
    program = text.removeprefix(OBJECT) if teacher.recipe is None else str(teacher.recipe)
    name = label or program
    description = {
        "kind": "recorded",
        "curriculum": teacher.curriculum.to_dict(),
        "programs": [text],
        "seeds": 1,
        "unit": unit or "returns",
        "score": score,
        "total": total,
        "settings": {},
        "stream": _stream(teacher),
    }
    slug = re.sub(r"[^A-Za-z0-9.,=-]+", "_", name)[:80].strip("_.") or "run"
    return create_part(folder, slug, seed, description, name, program)


def _stream(teacher: Teacher) -> str:
    """Identifies a teacher by its random numbers, also after it was saved and loaded."""
    state: Any = teacher._random.bit_generator.state
    return format(state["state"]["inc"], "x")
