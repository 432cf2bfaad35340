"""The rule by which a run directory keeps agents from several moments of training.

    agents/000000000000.agent   the untrained agents
    agents/000000000040.agent   those after 40 updates, a file of `mastery.checkpoint`

After n chunks, agents are kept at every multiple of a stride: the smallest power of two that gives
at most twelve. When the stride doubles, every second one is dropped. So there are 6 to 12 of them,
evenly spaced, however long the job gets; and which they are depends on n alone, not on when the job
was stopped or killed.

Only some runs are kept, and of these only what plays: no optimiser, no environments.
"""

from __future__ import annotations

from collections.abc import Sequence

KIND = "mastery.agents"  # kind of the files; a change would make old ones unreadable
MOST = 12  # moments, besides the untrained agents
FEW_PROGRAMS = 8  # up to which two seeds of each are kept
MOST_RUNS = 32


def kept_chunks(chunks: int) -> list[int]:
    """The chunks after which agents are kept, once this many are trained; 0 is the untrained.

    Example:
        >>> kept_chunks(30)
        [0, 4, 8, 12, 16, 20, 24, 28]
    """
    stride = 1
    while chunks // stride > MOST:
        stride *= 2
    return list(range(0, chunks + 1, stride))


def is_milestone(chunk: int) -> bool:
    """Whether the agents after this chunk are kept when it is trained."""
    return chunk in kept_chunks(chunk)


def kept_runs(labels: Sequence[str]) -> list[int]:
    """The runs whose agents are kept: the first two seeds of each label.

    With many programs it is the first seed of each, and of the first 32 labels only.

    Args:
        labels: The label of each run; runs of one label differ only in the seed.
    """
    of: dict[str, list[int]] = {}
    for run, label in enumerate(labels):
        of.setdefault(label, []).append(run)
    seeds = 2 if len(of) <= FEW_PROGRAMS else 1
    return sorted(run for runs in of.values() for run in runs[:seeds])[:MOST_RUNS]


def agent_name(step: int) -> str:
    """The file name of the agents after an update."""
    return f"{step:012d}.agent"
