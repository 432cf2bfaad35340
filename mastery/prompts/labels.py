"""Labels: the task that each example of a dataset belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.errors import MasteryError, did_you_mean


def read_labels(dataset: Any, labels: Any) -> Any:
    """The label of each example: as given, or from a column or an attribute of the dataset.

    Raises:
        MasteryError: If the dataset has no length, or no such column or attribute.
    """
    if not hasattr(dataset, "__len__"):
        raise MasteryError(
            f"the dataset ({type(dataset).__name__}) has no length; a curriculum chooses examples "
            "by index, so it needs a map-style dataset"
        )
    if labels is None or isinstance(labels, str):
        name = labels or "task"
        if name in (getattr(dataset, "column_names", None) or ()):
            return dataset[name]
        if isinstance(dataset, list) and dataset and isinstance(dataset[0], Mapping):
            missing = next((i for i, row in enumerate(dataset) if name not in row), None)
            if missing is None:
                return [row[name] for row in dataset]
            raise MasteryError(f"example {missing} of the dataset has no {name!r}")
        if hasattr(dataset, name):
            return getattr(dataset, name)
        raise MasteryError(
            f"the dataset has no column or attribute {name!r}; give labels=[…], one task name per "
            "example"
        )
    return labels


def task_positions(labels: Any, examples: int | None, curriculum: Curriculum) -> NDArray[np.int64]:
    """(examples,): the position of each example's task in the curriculum.

    Args:
        labels: One task name per example.
        examples: How many there must be; None for any number.
        curriculum: The curriculum.

    Raises:
        MasteryError: If a label is not a task, or their number is wrong.
    """
    ordered = isinstance(labels, Iterable) and not isinstance(labels, str | Mapping | AbstractSet)
    if not ordered:
        raise MasteryError(f"labels is {labels!r:.80}; it must be one task name per example")
    labels = list(labels)
    if examples is not None and len(labels) != examples:
        raise MasteryError(
            f"there are {len(labels)} labels for {examples} examples; give one per example"
        )
    positions = curriculum.positions
    named = (positions.get(label, -1) if isinstance(label, str) else -1 for label in labels)
    rows = np.fromiter(named, np.int64, len(labels))
    if rows.size and rows.min() < 0:
        at = int(rows.argmin())
        hint = did_you_mean(str(labels[at]), positions)
        raise MasteryError(f"example {at} has the label {labels[at]!r}, which is not a task{hint}")
    return rows
