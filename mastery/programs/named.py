"""The programs by name: the parts that each is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Named:
    """The parts of a named program."""

    progress: str
    attention: str
    distribution: str
    what: str
    settings: Mapping[str, float] = field(default_factory=dict)  # override the parts' defaults
    gate: str = "none"


PROGRAMS = {
    "mr": Named("linreg", "mastering-rate", "prop", "the mastering-rate algorithm"),
    "gprop-linreg": Named("linreg", "learning-progress", "gprop", "the paper's Teacher-Student"),
    "gamax-linreg": Named(
        "linreg", "learning-progress", "gamax", "Teacher-Student, simpler Window"
    ),
    "gamax-window": Named("window", "learning-progress", "gamax", "Window of Teacher-Student"),
    "gamax-online": Named("online", "learning-progress", "gamax", "Online of Teacher-Student"),
    "naive": Named("naive", "learning-progress", "gamax", "Naive of Teacher-Student"),
    "sampling": Named("sampling", "learning-progress", "amax", "Sampling of Teacher-Student"),
    "boltzmann-window": Named("window", "learning-progress", "boltzmann", "Window with Boltzmann"),
    "exp3s": Named("change", "exp3s", "gprop", "Graves et al. 2017", {"epsilon": 0.05}),
    "competence": Named("competence", "learning-progress", "prop", "Fournier et al. 2018"),
    "learnability": Named(
        "linreg",
        "learnability",
        "prop",
        "p (1 − p): SFL, LILO",
        {"window": 50, "reprobe": 0.05},
    ),
    "learnability-topk": Named(
        "linreg",
        "learnability",
        "topk",
        "p (1 − p), the best tasks equally",
        {"window": 50, "epsilon": 0.5},
    ),
    "plr": Named("linreg", "plr", "prop", "prioritised level replay"),
    "bidirectional": Named(
        "linreg", "bidirectional", "gprop", "Kanitscheider et al. 2021", {"epsilon": 0.25}
    ),
    "sec": Named("linreg", "sec", "boltzmann", "self-evolving curriculum", {"temperature": 1.0}),
    "dump": Named(
        "linreg",
        "dump",
        "boltzmann",
        "|advantage| and upper confidence bound",
        {"temperature": 0.1, "window": 40},
    ),
    "adarft": Named(
        "linreg",
        "adarft",
        "topk",
        "tasks near a moving difficulty",
        {"epsilon": 0.0, "reprobe": 0.05},
    ),
    "greso": Named("linreg", "uniform", "prop", "uniform behind GRESO's gate", gate="greso"),
    "mopps": Named(
        "linreg",
        "mopps",
        "topk",
        "posterior sampling near p = 1/2",
        {"epsilon": 0.0, "reprobe": 0.05},
    ),
    "odm": Named("linreg", "odm", "prop", "online data mixing: Exp3 on losses"),
    "ado": Named("linreg", "ado", "prop", "adaptive data optimisation: scaling laws"),
    "auto": Named("linreg", "auto", "gprop", "needs no order; takes one as a hint"),
    "uniform": Named("linreg", "uniform", "prop", "baseline: all tasks equally likely"),
    "target": Named("linreg", "target", "prop", "baseline: tasks without successors"),
    "sequential": Named("linreg", "sequential", "prop", "baseline: level by level"),
}
