"""The order of a curriculum as arrays, for three tasks or a million.

`Dense` holds matrices: few array operations, all of which can be batched (one `vmap` covers runs
with and without edges). `Layered` holds lists of neighbours, level by level: its cost is linear in
tasks and edges. Both are plain data; `make_graph` chooses one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum

Array = Any  # a NumPy or a JAX array


class Dense(NamedTuple):
    """The order of a small curriculum as matrices."""

    near: Array  # (2, N, N) bool: [0, c, c'] when c' is an ancestor of c, [1, c, c'] when c → c'
    none: Array  # (2, N, 1) float: the value of other tasks: 1; in [1], 0 if c has no successor

    def anc_succ(self, mastery: Array) -> tuple[Array, Array]:
        """M_{Anc c}, the minimum of M_c' over the ancestors c' of c; 1 if c has none (section 4.1).
        M_{Succ c}, the minimum of M_c' over the successors c' of c; 0 if c has none (eq. 1).
        """
        least = mastery.__array_namespace__().where(self.near, mastery, self.none).min(axis=-1)
        return least[0], least[1]


class Neighbours(NamedTuple):
    """Some tasks, each with its neighbours in a column, padded with N."""

    tasks: Array  # (n,) int64
    neighbours: Array  # (d, n) int64


class Layered(NamedTuple):
    """The order of a large curriculum as lists of neighbours."""

    predecessors: tuple[Neighbours, ...]  # from the second level to the last
    successors: tuple[Neighbours, ...]  # from the last level but one to the first
    before: Array  # (N,): max(n_{→c}, 1)
    after: Array  # (N,): max(n_{c→}, 1)

    def anc_succ(self, mastery: Array) -> tuple[Array, Array]:
        xp = mastery.__array_namespace__()
        least = xp.concat([mastery, xp.ones_like(mastery[:1])])
        m_succ = xp.zeros_like(mastery)
        for tasks, successors in self.successors:
            m_succ = put(m_succ, tasks, least[successors].min(axis=0))
        m_anc = xp.ones_like(mastery)
        for tasks, predecessors in self.predecessors:
            found = least[predecessors].min(axis=0)
            m_anc = put(m_anc, tasks, found)
            # now the minimum over the task and its ancestors, for the following levels
            least = put(least, tasks, xp.minimum(mastery[tasks], found))
        return m_anc, m_succ


Graph = Dense | Layered


def make_graph(curriculum: Curriculum, dense: bool | None = None) -> Graph:
    """Make the graph of a curriculum: matrices where they are faster, else lists.

    Matrices cost about n² elements, lists about 4000 per level. Up to 48 tasks the default is
    always matrices, so that small curricula with different orders can be batched.

    Args:
        curriculum: The curriculum.
        dense: True for matrices, False for lists; by default the faster.
    """
    if dense is None:
        n, levels = len(curriculum), int(curriculum.level[-1]) + 1
        dense = n <= 48 or (n <= 2000 and n * n <= 4000 * levels)
    return _dense(curriculum) if dense else _layered(curriculum)


def _dense(curriculum: Curriculum) -> Dense:
    n = len(curriculum)
    before, after = curriculum.edges.T
    successors = np.zeros((n, n), bool)
    successors[before, after] = True
    ancestors = np.zeros((n, n), bool)
    for c in range(n):  # in topological order, so the predecessors' rows are complete
        for p in curriculum.predecessors(c):
            ancestors[c] |= ancestors[p]
            ancestors[c, p] = True
    has_successor = successors.any(axis=1, keepdims=True)
    return Dense(
        near=np.stack([ancestors, successors]),
        none=np.stack([np.ones((n, 1)), has_successor.astype(float)]),
    )


def _layered(curriculum: Curriculum) -> Layered:
    n, level = len(curriculum), curriculum.level
    before, after = curriculum.edges.T
    starts = np.searchsorted(level, np.arange(level[-1] + 2))
    spans = list(pairwise(starts))
    predecessors, successors = _Lists(after, before, n), _Lists(before, after, n)
    return Layered(
        predecessors=tuple(g for span in spans for g in predecessors.groups(*span)),
        successors=tuple(g for span in reversed(spans) for g in successors.groups(*span)),
        before=np.maximum(predecessors.degree, 1).astype(float),
        after=np.maximum(successors.degree, 1).astype(float),
    )


class _Lists:
    """The neighbours of every task, from pairs (task, neighbour)."""

    def __init__(self, tasks: NDArray[Any], neighbours: NDArray[Any], n: int) -> None:
        self.sorted = neighbours[np.argsort(tasks, kind="stable")]
        self.degree = np.bincount(tasks, minlength=n)
        self.first = np.cumsum(self.degree) - self.degree
        self.pad = n

    def groups(self, start: int, stop: int) -> list[Neighbours]:
        """Group tasks of similar degree, so that padding at most about doubles the work."""
        groups: list[NDArray[np.int64]] = []
        overhead = 1000  # the cost of one more group, in elements
        degree = self.degree[start:stop]
        for bits in range(int(degree.max(initial=0)).bit_length()):  # degrees 2^bits … 2^(bits+1)−1
            inside = start + np.flatnonzero((degree >> bits) == 1)
            if not len(inside):
                continue
            if groups and len(groups[-1]) * (2 << bits) < overhead:
                groups[-1] = np.concatenate([groups[-1], inside])
            else:
                groups.append(inside)
        return [self._columns(np.sort(tasks)) for tasks in groups]

    def _columns(self, tasks: NDArray[np.int64]) -> Neighbours:
        degree = self.degree[tasks]
        row = np.arange(degree.max())[:, None]
        at = np.minimum(self.first[tasks] + row, len(self.sorted) - 1)
        return Neighbours(tasks, np.where(row < degree, self.sorted[at], self.pad))


def put(x: Array, index: Array, values: Array) -> Array:
    """x with x[index] = values; in place under NumPy, so the caller must own x."""
    if hasattr(x, "at"):  # JAX
        return x.at[index].set(values)
    x[index] = values
    return x
