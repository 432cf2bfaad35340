"""A program that was given another order of the same tasks than the curriculum's."""

from __future__ import annotations

from mastery.curriculum import Curriculum
from mastery.programs.graph import Dense, make_graph
from mastery.programs.program import Program
from mastery.programs.recipe import Recipe
from mastery.simulation.order import true_order


def ordered(curriculum: Curriculum, program: str, order: str) -> Program:
    """Build a program with another order.

    Args:
        curriculum: The tasks, at most 48.
        program: The program's text.
        order: Such as `reversed` or `shuffled:1`; see `mastery.simulation.order`.
    """
    built = Recipe.parse(program).build(curriculum)
    other = true_order(order, curriculum)
    graph = make_graph(other, dense=True)
    assert isinstance(graph, Dense)
    at = [other.positions[name] for name in curriculum.names]  # its names are sorted anew
    graph = Dense(graph[0][:, at][:, :, at], graph[1][:, at])
    attention = built.attention
    if hasattr(attention, "solved"):
        attention = attention.solved(graph)
    return built._replace(graph=graph, attention=attention)


def text(program: str, order: str) -> str:
    """The text of a program with another order, for `--program`."""
    return f"{__name__}:{ordered.__name__}:program={program},order={order}"
