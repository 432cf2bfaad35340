"""The order that a synthetic learner needs. It may differ from the curriculum's.

    given           the curriculum's edges
    none            no prerequisites
    reversed        every edge of the curriculum the other way round
    half:SEED       half of the curriculum's edges, drawn at random, the other way round
    one:SEED        one edge of the curriculum, drawn at random, the other way round
    shuffled:SEED   the curriculum's edges with the tasks permuted at random
    hidden:SEED     prerequisites drawn at random; the curriculum's edges play no part
    a curriculum    the edges of another curriculum with the same tasks: a Curriculum, the path of a
                    .toml or .json file, or the name of one that ships with mastery

Without `:SEED` the seed is 0. All learners of a simulation need the same order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from mastery.curriculum import Curriculum, shipped
from mastery.errors import MasteryError, did_you_mean

Order = str | Path | Curriculum

_WORD = re.compile(r"(given|none|reversed)|(half|one|shuffled|hidden)(?::(\d{1,18}))?")


def check_order(order: Order) -> None:
    """Raise `MasteryError` if the order is not of a known form; files are not read yet."""
    if isinstance(order, Curriculum | Path):
        return
    known = isinstance(order, str) and (
        _WORD.fullmatch(order) or order in shipped() or Path(order).suffix in (".toml", ".json")
    )
    if not known:
        raise MasteryError(
            f"the learner's order is {order!r}; choose from given, none, reversed, half:SEED, "
            "one:SEED, shuffled:SEED, hidden:SEED, or give a curriculum: a .toml or .json file, "
            "or a name"
        )


def true_order(order: Order, curriculum: Curriculum) -> Curriculum:
    """The curriculum's tasks with the edges that the learner needs.

    `half` (rounded up) and `one` turn edges round, one after another: b → a replaces a → b, so
    every turned edge contradicts the curriculum, and the number of edges stays the same. Each edge
    is drawn from those that are not turned yet and that can be turned without making a cycle, all
    equally likely. There is always one, so both work on every curriculum that has edges.

    `shuffled` draws a permutation π of the tasks, every one equally likely; each edge a → b of the
    curriculum becomes π(a) → π(b). The result may by chance equal the given order.

    `hidden` puts the tasks into a random sequence, every one equally likely. The first fifth of
    them (rounded up) need nothing. Each later task needs one or two of the tasks before it: one or
    two with equal chance, then which ones, all equally likely.

    Args:
        order: One of the choices in the module's docstring.
        curriculum: The curriculum as given, with its tasks and edges.

    Returns:
        A curriculum with the same tasks, named after the order.

    Raises:
        MasteryError: If the order is unknown, cannot be read, does not have the curriculum's tasks,
            or rearranges edges where there are none.

    Example:
        >>> true_order("reversed", Curriculum([Task("a"), Task("b", after=("a",))]))["a"].after
        ('b',)
    """
    check_order(order)
    word = _WORD.fullmatch(order) if isinstance(order, str) else None
    if word is None:
        return _of_curriculum(order, curriculum)
    kind, seed = word[1] or word[2], int(word[3] or 0)
    if kind in ("reversed", "half", "one", "shuffled") and not len(curriculum.edges):
        raise MasteryError(
            f"the learner's order is {kind!r}, and {curriculum.name!r} has no edges; "
            "hidden:SEED draws prerequisites at random"
        )
    random = np.random.default_rng(seed)
    edges = curriculum.edges.tolist()
    if kind == "none":
        edges = []
    elif kind == "reversed":
        edges = [[after, before] for before, after in edges]
    elif kind in ("half", "one"):
        edges = _turned(edges, math.ceil(len(edges) / 2) if kind == "half" else 1, random)
    elif kind == "shuffled":
        edges = random.permutation(len(curriculum))[curriculum.edges].tolist()
    elif kind == "hidden":
        edges = _hidden(len(curriculum), random)
    return _with_edges(curriculum, edges, f"{kind}:{seed}" if word[2] else kind)


def without_order(curriculum: Curriculum) -> Curriculum:
    """The same tasks without edges, to simulate a program that knows no order.

    Example:
        >>> known = Curriculum.load("key-corridor")
        >>> simulate(without_order(known), ["mr", "uniform"], learner=Learner(order=known))
    """
    return _with_edges(curriculum, [], f"{curriculum.name} (no order)")


def order_note(order: Curriculum, curriculum: Curriculum) -> str:
    """One sentence on how the learner's order differs from the curriculum's; empty if equal."""
    needed, given = ({(a, t.name) for t in c for a in t.after} for c in (order, curriculum))
    if needed == given:
        return ""
    if not given:
        return f"The programs know no order. The learner's: {order.name} ({len(needed)} edges)."
    return (
        f"The learner's order differs from the curriculum's: {order.name} ({len(needed)} edges, "
        f"{len(needed & given)} of them among the curriculum's {len(given)})."
    )


def _of_curriculum(order: Order, curriculum: Curriculum) -> Curriculum:
    """The edges of another curriculum with the same tasks."""
    other = order if isinstance(order, Curriculum) else Curriculum.load(order)
    name = other.name if isinstance(order, Curriculum) else str(order)
    for task in curriculum.names:
        if task not in other:
            raise MasteryError(
                f"the learner's order {name!r} has no task {task!r}, which {curriculum.name!r} has"
                f"{did_you_mean(task, other.names)}"
            )
    for task in other.names:
        if task not in curriculum:
            raise MasteryError(
                f"the learner's order {name!r} has the task {task!r}, which {curriculum.name!r} "
                f"does not have{did_you_mean(task, curriculum.names)}"
            )
    at = np.array([curriculum.positions[task] for task in other.names])
    return _with_edges(curriculum, at[other.edges].tolist(), name)


def _turned(edges: list[list[int]], number: int, random: np.random.Generator) -> list[list[int]]:
    """Turn `number` edges round without making a cycle; see `true_order`.

    `next` always finds an edge: an edge a → b cannot be turned if there is another path from a to
    b. If that held for all edges that are left, the longest of these paths would consist of turned
    edges only. Then the given edges would have a path from b to a, and a cycle with a → b.
    """
    edges = list(edges)
    successors: dict[int, set[int]] = {}
    for before, after in edges:
        successors.setdefault(before, set()).add(after)
    left = list(range(len(edges)))  # the edges that have not been turned
    for _ in range(number):
        at = next(
            int(i)
            for i in random.permutation(len(left))
            if not _other_path(successors, *edges[left[i]])
        )
        turned = left.pop(at)
        before, after = edges[turned]
        edges[turned] = [after, before]
        successors[before].remove(after)
        successors.setdefault(after, set()).add(before)
    return edges


def _other_path(successors: dict[int, set[int]], start: int, end: int) -> bool:
    """Whether there is a path from start to end besides the edge between them."""
    reached = successors[start] - {end}
    waiting = list(reached)
    while waiting:
        following = successors.get(waiting.pop(), set()) - reached
        if end in following:
            return True
        reached |= following
        waiting += following
    return False


def _hidden(n: int, random: np.random.Generator) -> list[list[int]]:
    """Random prerequisites; see `true_order`."""
    sequence = random.permutation(n)
    edges = []
    for i in range(math.ceil(n / 5), n):
        number = min(int(random.integers(1, 3)), i)
        for before in random.choice(i, number, replace=False):
            edges.append([int(sequence[before]), int(sequence[i])])
    return edges


def _with_edges(curriculum: Curriculum, edges: Iterable[list[int]], name: str) -> Curriculum:
    after: list[list[str]] = [[] for _ in curriculum.names]
    for before, end in edges:
        after[end].append(curriculum.names[before])
    tasks = (
        replace(task, after=tuple(names)) for task, names in zip(curriculum, after, strict=True)
    )
    return Curriculum(tasks, name=name)
