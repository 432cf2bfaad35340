"""The addition experiment by family, estimator and converter, with the examples each run took."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.drawing.colours import PROGRAM_COLOURS
from mastery.paper.curves import Found
from mastery.paper.experiments import CONVERTERS, ESTIMATORS, PAPER_JOBS
from mastery.programs.own import OwnRecipe, read_program
from mastery.statistics import upper_median

Floats = NDArray[np.float64]


class Bar(NamedTuple):
    """One configuration of the addition experiment."""

    group: str
    family: str
    name: str
    times: Floats  # examples until every task was learned; infinite if never
    budget: int  # examples per run

    @property
    def median(self) -> float:
        """The upper median of `times`."""
        return float(upper_median(self.times))


FAMILIES = {
    "MR": PROGRAM_COLOURS["mr"],
    "Teacher-Student": PROGRAM_COLOURS["gprop-linreg"],
    "baseline": "#666666",
}
CENSORED = "runs that had not learned it by then"
_FAMILY = {"mastering-rate": "MR", "learning-progress": "Teacher-Student"}  # by attention
_NICE = {"gamax": "gAmax", "gprop": "gProp"}


def configurations(found: Found) -> list[Bar]:
    """Every configuration of the addition experiment, the paper's and ours. If one was trained
    twice, the longer job counts."""
    bars: dict[tuple[str, str], Bar] = {}
    for part in PAPER_JOBS:
        if not part.startswith("addition-") or part not in found:
            continue
        batch = PAPER_JOBS[part].settings["batch"]
        curves = found[part]
        for program, runs in curves.runs.items():
            times = np.where(np.isnan(curves.solved[runs]), np.inf, curves.solved[runs])
            recipe = read_program(program)
            family, name = "baseline", program
            if not isinstance(recipe, OwnRecipe) and recipe.attention in _FAMILY:
                family = _FAMILY[recipe.attention]
                nice = _NICE.get(recipe.distribution, recipe.distribution.capitalize())
                name = f"{recipe.progress.capitalize()} {nice}"
            group = f"{family if family != 'baseline' else 'Baselines'}, batch {batch}"
            bar = Bar(group, family, name, times, int(curves.frames[-1]))
            if (group, name) not in bars or bars[group, name].budget < bar.budget:
                bars[group, name] = bar
    order = [
        f"{p.capitalize()} {_NICE.get(c, c.capitalize())}" for p in ESTIMATORS for c in CONVERTERS
    ]
    return sorted(
        bars.values(),
        key=lambda b: (
            list(FAMILIES).index(b.family),
            order.index(b.name) if b.name in order else 0,
        ),
    )
