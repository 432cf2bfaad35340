"""The state of `Prompts`: as plain data and arrays, and as one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mastery import checkpoint
from mastery.curriculum import Curriculum
from mastery.errors import CheckpointError, MasteryError
from mastery.prompts.pool import PromptPool
from mastery.prompts.tickets import Tickets
from mastery.teacher import Teacher

if TYPE_CHECKING:
    from mastery.prompts.prompts import Prompts

_DECIDE = ("within", "even", "strength")  # settings that must be those of the state


def settings_of(prompts: Prompts) -> dict[str, Any]:
    """The arguments that an equal object is made with."""
    choice = prompts._choice
    return {
        "within": choice.rule,
        "even": choice.even,
        "strength": choice.strength,
        "completions": list(prompts.completions),
        "update_every": prompts.update_every,
    }


def to_state(prompts: Prompts) -> dict[str, Any]:
    """The full state of both levels."""
    returns, tokens = prompts._returns, prompts._tokens
    arrays = {f"pool.{name}": array for name, array in prompts._pool.state().items()}
    arrays |= {f"tickets.{name}": array for name, array in prompts._tickets.state().items()}
    arrays["step.task"] = np.array(list(returns), np.int64)
    arrays["step.number"] = np.array([len(group) for group in returns.values()], np.int64)
    arrays["step.returns"] = np.array([r for group in returns.values() for r in group], np.float64)
    arrays["step.tokens"] = np.array([tokens[k] for k in returns], np.float64)
    return {
        "settings": settings_of(prompts),
        "tasks": list(prompts._pool.names),
        "random": prompts._random.bit_generator.state,
        "next": prompts._tickets.next,
        "groups": prompts._groups,
        "tokens": prompts._counts_tokens,
        "ignored": prompts._ignored,
        "curriculum": prompts.teacher.curriculum.to_dict(),
        "teacher": prompts.teacher.state_dict(),
        "arrays": arrays,
    }


def from_state(prompts: Prompts, state: Mapping[str, Any]) -> None:
    """Set both levels to a state; on an error nothing has changed."""
    if not isinstance(state, Mapping) or "arrays" not in state or "teacher" not in state:
        raise CheckpointError("the state is not from Prompts; give the result of state_dict()")
    mine, theirs = settings_of(prompts), state["settings"]
    for name in _DECIDE:
        if theirs[name] != mine[name]:
            raise CheckpointError(
                f"the state has {name}={theirs[name]!r}, but this object has {mine[name]!r}; make "
                "it with the same"
            )
    pool, random = PromptPool(), np.random.PCG64()
    try:
        arrays = state["arrays"]
        pool.load(state["tasks"], _below(arrays, "pool."))
        tickets = Tickets.load(state["next"], _below(arrays, "tickets."), len(pool))
        np.add.at(pool.flying, [waiting.row for waiting in tickets.waiting.values()], 1)
        random.state = state["random"]
        ends = np.cumsum(arrays["step.number"])
        groups = np.split(arrays["step.returns"], ends[:-1]) if len(ends) else []
        tasks = arrays["step.task"].tolist()
        returns = {k: group.tolist() for k, group in zip(tasks, groups, strict=True)}
        tokens = dict(zip(tasks, arrays["step.tokens"].tolist(), strict=True))
        number, ignored = int(state["groups"]), int(state["ignored"])
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError) as error:
        raise CheckpointError(f"the state is damaged: {error}") from None
    _check_same_prompts(prompts._pool, pool)
    _load_teacher(prompts.teacher, state)
    prompts._pool, prompts._tickets = pool, tickets
    prompts._random = np.random.Generator(random)
    prompts._returns, prompts._tokens, prompts._groups = returns, tokens, number
    prompts._counts_tokens, prompts._ignored = state["tokens"], ignored


def write_state(
    path: str | Path, state: dict[str, Any], more: Mapping[str, Any] | None = None
) -> None:
    """Write a state to one file, atomically, with arrays of an adapter's own."""
    teacher = dict(state["teacher"])
    arrays = {f"prompts.{name}": array for name, array in state["arrays"].items()}
    arrays |= {f"teacher.{name}": array for name, array in teacher.pop("state").items()}
    arrays |= {f"more.{name}": array for name, array in (more or {}).items()}
    plain = {name: value for name, value in state.items() if name not in ("arrays", "teacher")}
    checkpoint.write(path, "prompts", {**plain, "teacher": teacher}, arrays)


def read_state(path: str | Path) -> dict[str, Any]:
    """Read the state that `write_state` wrote, and under `more` an adapter's own arrays."""
    meta, arrays = checkpoint.read(path, "prompts")
    with saved_as(path):
        teacher = {**meta["teacher"], "state": _below(arrays, "teacher.")}
        own = {"arrays": _below(arrays, "prompts."), "more": _below(arrays, "more.")}
        return {**meta, "teacher": teacher, **own}


def make_teacher(state: Mapping[str, Any], program: Any) -> Teacher:
    """A teacher as that of the state, still without its memory."""
    text = state["teacher"]["program"]
    if program is None and text.startswith("own "):
        raise CheckpointError(
            f"the teacher has a custom program ({text[4:]}); pass it: Prompts.load(path, program=…)"
        )
    return Teacher(
        Curriculum.from_dict(state["curriculum"]),
        text if program is None else program,
        per_episode=state["teacher"]["per_episode"],
    )


@contextmanager
def saved_as(path: str | Path) -> Iterator[None]:
    """Name the file in errors about what it holds."""
    try:
        yield
    except MasteryError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} does not hold prompts: {error!r}") from None


def _below(arrays: Mapping[str, Any], start: str) -> dict[str, Any]:
    return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}


def _check_same_prompts(mine: PromptPool, theirs: PromptPool) -> None:
    """The prompts of this object must be the first of the state's: prompts are only added."""
    if len(mine) > len(theirs):
        raise CheckpointError(
            f"the state has {len(theirs)} prompts, and this object {len(mine)}; make it with the "
            "dataset of that time, load, then add the new prompts"
        )
    ours = np.array(mine.names, dtype=object)[mine.task]
    saved = np.array(theirs.names, dtype=object)[theirs.task[: len(mine)]]
    if len(different := np.flatnonzero(ours != saved)):
        at = int(different[0])
        raise CheckpointError(
            f"prompt {at} is of task {ours[at]!r}, and in the state of {saved[at]!r}; give the "
            "same dataset in the same order"
        )


def _load_teacher(teacher: Teacher, state: Mapping[str, Any]) -> None:
    try:
        curriculum = Curriculum.from_dict(state["curriculum"])
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"the state is damaged: {error!r}") from None
    if curriculum.fingerprint != teacher.curriculum.fingerprint:  # its tasks were changed
        if teacher.recipe is not None:  # fails before anything has changed
            Teacher(curriculum, teacher.recipe, per_episode=teacher.per_episode).load_state_dict(
                state["teacher"]
            )
        teacher.change(curriculum)
    teacher.load_state_dict(state["teacher"])
