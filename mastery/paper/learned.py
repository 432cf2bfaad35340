"""Shares of runs that learned: for the world of 2018 taken apart, and for agents compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mastery.paper.claims import FIVE, HARD, SIX
from mastery.paper.curves import Found, PaperCurves
from mastery.paper.experiments import DIFFERENCES, PAIR, PAPER_JOBS
from mastery.statistics import Estimate, first_time, median_time, share

LEARNED = 0.5  # a task is learned above this return
GOOD = 0.8  # a curriculum is learned at this mean return over tasks


class Cell(NamedTuple):
    """The runs of one program on some tasks."""

    learned: int  # runs with more than LEARNED on each of the tasks at the end
    runs: int
    frames: int  # per run, at the end
    stopped: bool  # before the planned end
    good: Estimate  # frames until the mean over tasks reaches GOOD; median over runs

    @property
    def share(self) -> Estimate:
        """The share of runs that learned, with its interval."""
        return share(self.learned, self.runs)


Row = dict[str, Cell]  # by program


def measure(
    curves: PaperCurves, tasks: Sequence[str], programs: Sequence[str], frames: float = np.inf
) -> Row:
    """Each program's runs on these tasks (all if empty) after `frames` frames."""
    own = curves.of_tasks(tasks or curves.tasks.tolist())
    end = own.at(frames) + 1
    shown, x = own.smooth()[:end], own.frames[:end]
    found = {}
    for program in programs:
        if program in own.runs:
            runs = own.runs[program]
            good = median_time(first_time(x, shown[:, runs].mean(2), GOOD))
            learned = int((shown[-1, runs].min(1) > LEARNED).sum())
            stopped = own.about["ended"] is None
            found[program] = Cell(learned, len(runs), int(x[-1]), stopped, good)
    return found


# the tasks that count where the world of 2018 is taken apart, by curriculum
APART = {
    "key-corridor": ("KeyCorridor: S4R3, S5R3, S6R3", HARD),
    "obstructed-maze": ("ObstructedMaze: all but 2Dlhb", FIVE),
}


def apart(found: Found) -> dict[str, dict[str, Row]]:
    """Rows by curriculum and world: 2018, 2018 without each difference, 2019, 2019 with each. A
    world that was not trained has an empty row."""
    without = {
        f"-2018-without-{key}": f"2018 with {d.later_words}" for key, d in DIFFERENCES.items()
    }
    added = {f"-2019-with-{key}": f"2019 with {d.then_words}" for key, d in DIFFERENCES.items()}
    names = {"-2018": "2018", **without, "-2019": "2019", **added}
    curricula = [curriculum for curriculum in APART if f"{curriculum}-2019" in found]
    endings = [ending for ending in names if any(c + ending in found for c in curricula)]
    tables: dict[str, dict[str, Row]] = {}
    for curriculum in curricula:
        title, tasks = APART[curriculum]
        frames = PAPER_JOBS[f"{curriculum}-2019"].frames
        rows: dict[str, Row] = {names[ending]: {} for ending in endings}
        for ending in endings:
            if curriculum + ending in found:
                rows[names[ending]] = measure(found[curriculum + ending], tasks, PAIR, frames)
        tables[title] = rows
    return tables


AGENTS = {
    "-2018": "of 2018, in its MiniGrid",
    "-plain": "plain",
    "-today": "our default",
    "-wide": "our default, 512 environments",
}
SETS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "BlockedUnlockPickup": ("blocked-unlock-pickup", ()),
    "KeyCorridor": ("key-corridor", ()),
    "ObstructedMaze without 2Dlhb": ("obstructed-maze", FIVE),
    "ObstructedMaze": ("obstructed-maze", SIX),
}


def agents(found: Found) -> dict[str, dict[str, Row]]:
    """Rows by set of tasks and agent."""
    tables: dict[str, dict[str, Row]] = {}
    for title, (curriculum, tasks) in SETS.items():
        rows = {}
        for ending, agent in AGENTS.items():
            row: Row = {}
            for part in (curriculum + ending, f"{curriculum}{ending}-baselines"):
                if part in found:
                    row |= measure(found[part], tasks, (*PAIR, "uniform"))
            if row:
                rows[agent] = row
        if "plain" in rows:
            tables[title] = rows
    return tables
