"""What a program is made of: its parts, and their settings with the paper's defaults.

The command line and `Teacher` read a program with `Recipe.parse("mr:delta=0.8,window=20")`;
`Recipe.build` makes the program for a curriculum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mastery.curriculum import Curriculum
from mastery.errors import ProgramError, did_you_mean
from mastery.programs.attention import Constant, Exp3S, LearningProgress, MasteringRate, Sequential
from mastery.programs.distribution import Amax, Boltzmann, Prop
from mastery.programs.graph import make_graph
from mastery.programs.named import PROGRAMS
from mastery.programs.program import Program
from mastery.programs.progress import Change, Competence, Naive, Online, Sampling, Window


@dataclass(frozen=True)
class Setting:
    """A numeric setting and its allowed values."""

    what: str
    low: float
    high: float = math.inf
    whole: bool = False

    def check(self, name: str, value: Any) -> float:
        """Return the value as a number, or raise `ProgramError` if it is not allowed."""
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise ProgramError(f"{name}={value} must be a number ({self.what})") from None
        if not self.low <= number <= self.high or number == math.inf:
            limit = (
                f"at least {self.low:g}"
                if self.high == math.inf
                else f"in [{self.low:g}, {self.high:g}]"
            )
            raise ProgramError(f"{name}={value} must be {limit} ({self.what})")
        if self.whole and number != int(number):
            raise ProgramError(f"{name}={value} must be a whole number ({self.what})")
        return int(number) if self.whole else number


TINY = 1e-12  # lower limit of settings that must be greater than 0

SETTINGS = {
    "window": Setting(
        "K, the number of most recent returns used per task", 2, 1_000_000, whole=True
    ),
    "alpha": Setting("α, the weight of the newest estimate in the moving average", TINY, 1),
    "delta": Setting("δ, the weight of missing mastery against learning progress", 0, 1),
    "power": Setting("p, how strongly attention depends on learnability", 0, 1000),
    "unlearned": Setting("the weight of equation 1's second factor; 0 disables it", 0, 1),
    "successors": Setting("the weight of equation 1's third factor; 0 disables it", 0, 1),
    "gamma_pred": Setting("γ_pred, the share of attention a task gives to predecessors", 0, 1),
    "gamma_succ": Setting("γ_succ, the share of attention a task gives to successors", 0, 1),
    "epsilon": Setting("ε, the share of training spread evenly over all tasks", 0, 1),
    "temperature": Setting("τ, the temperature; higher spreads training more evenly", TINY),
    "exponent": Setting("the power to which |β| is raised", 0, 8),
    "eta": Setting("η, the step size of Exp3.S", 0, 1000),
    "threshold": Setting("the mastery required to move to the next level", TINY, 1),
}


@dataclass(frozen=True)
class Part:
    """A choice for one part of a program: its constructor, default settings and description."""

    make: Callable[..., Any]
    settings: Mapping[str, float]
    what: str


def _sinks(curriculum: Curriculum) -> np.ndarray:
    weights = np.ones(len(curriculum))
    weights[curriculum.edges[:, 0]] = 0.0
    return weights


PARTS: dict[str, dict[str, Part]] = {
    "progress": {
        "linreg": Part(lambda c: Window(1.0), {}, "slope of the last K returns"),
        "window": Part(lambda c, **s: Window(**s), {"alpha": 0.1}, "moving average of that slope"),
        "online": Part(lambda c, **s: Online(**s), {"alpha": 0.1}, "moving average of changes"),
        "naive": Part(
            lambda c, **s: Naive(**s),
            {"alpha": 0.1},
            "slope while training on one task for K steps",
        ),
        "sampling": Part(lambda c: Sampling(), {}, "a random one of the last K changes"),
        "competence": Part(
            lambda c: Competence(), {}, "mean of the newer half of K returns minus the older"
        ),
        "change": Part(lambda c: Change(), {}, "the last change"),
    },
    "attention": {
        "mastering-rate": Part(
            lambda c, **s: MasteringRate(**s),
            {
                "delta": 0.6,
                "power": 6.0,
                "unlearned": 1.0,
                "successors": 1.0,
                "gamma_pred": 0.2,
                "gamma_succ": 0.05,
            },
            "learnable but not learned yet (equations 1-3)",
        ),
        "learning-progress": Part(
            lambda c, **s: LearningProgress(**s), {"exponent": 1.0}, "|β|, the speed of change"
        ),
        "exp3s": Part(lambda c, **s: Exp3S(**s), {"eta": 0.001}, "weights of the bandit Exp3.S"),
        "uniform": Part(lambda c: Constant(np.ones(len(c))), {}, "equal for all tasks"),
        "target": Part(lambda c: Constant(_sinks(c)), {}, "tasks without successors"),
        "sequential": Part(
            lambda c, **s: Sequential(**s, level=c.level), {"threshold": 0.9}, "level by level"
        ),
    },
    "distribution": {
        "prop": Part(lambda c: Prop(0.0), {}, "proportional to attention"),
        "gprop": Part(lambda c, **s: Prop(**s), {"epsilon": 0.1}, "prop, with ε spread evenly"),
        "amax": Part(lambda c: Amax(0.0), {}, "only the task with the most attention"),
        "gamax": Part(lambda c, **s: Amax(**s), {"epsilon": 0.1}, "amax, with ε spread evenly"),
        "boltzmann": Part(
            lambda c, **s: Boltzmann(**s), {"temperature": 4e-4}, "softmax of attention / τ"
        ),
    },
}


@dataclass(frozen=True)
class Recipe:
    """A program's parts and settings, independent of a curriculum.

    Make one with `parse`, or with a function of `mastery.programs`, such as `mr(delta=0.8)`.
    """

    name: str  # the named program that gives the defaults
    progress: str
    attention: str
    distribution: str
    settings: Mapping[str, float]

    @classmethod
    def parse(cls, text: str, **changes: Any) -> Recipe:
        """Read a recipe from text.

        Args:
            text: A program's name, with optional parts and settings: `"mr"` or
                `"mr:delta=0.8,progress=online"`.
            **changes: Parts and settings as arguments instead of text.

        Returns:
            The recipe.

        Raises:
            ProgramError: If a name is unknown or a value is not allowed.

        Example:
            >>> Recipe.parse("mr:delta=0.8") == Recipe.parse("mr", delta=0.8)
            True
        """
        if not isinstance(text, str):
            raise ProgramError(f"a program's text must be a string such as 'mr', not {text!r}")
        name, _, rest = text.strip().partition(":")
        if name not in PROGRAMS:
            raise ProgramError(f"there is no program {name!r}{did_you_mean(name, PROGRAMS)}")
        for item in filter(None, (item.strip() for item in rest.split(","))):
            key, equals, value = item.partition("=")
            if not equals:
                raise ProgramError(f"{item!r} in {text!r} does not have the form setting=value")
            if key.strip() in changes:
                raise ProgramError(f"{key.strip()!r} is set twice in {text!r}")
            changes[key.strip()] = value.strip()

        base = PROGRAMS[name]
        chosen = {kind: str(changes.pop(kind, getattr(base, kind))) for kind in PARTS}
        settings: dict[str, float] = {"window": 10}
        for kind, choice in chosen.items():
            if choice not in PARTS[kind]:
                raise ProgramError(
                    f"there is no {kind} {choice!r}{did_you_mean(choice, PARTS[kind])}"
                )
            settings.update(PARTS[kind][choice].settings)
        settings.update({k: v for k, v in base.settings.items() if k in settings})
        for key, value in changes.items():
            if key not in settings:
                hint = did_you_mean(key, [*settings, *PARTS])
                raise ProgramError(f"the program {text!r} has no setting {key!r}{hint}")
            settings[key] = SETTINGS[key].check(key, value)
        if chosen["attention"] == "exp3s" and chosen["progress"] != "change":
            raise ProgramError("attention=exp3s learns from changes; set progress=change")
        return cls(name, **chosen, settings=settings)

    @property
    def full(self) -> str:
        """The text with all parts and settings; it keeps its meaning if a default changes."""
        parts = {kind: getattr(self, kind) for kind in PARTS}
        return f"{self.name}:" + ",".join(f"{k}={v}" for k, v in {**parts, **self.settings}.items())

    def build(self, curriculum: Curriculum) -> Program:
        """Build the program for a curriculum."""

        def part(kind: str) -> Any:
            choice = PARTS[kind][getattr(self, kind)]
            return choice.make(
                curriculum, **{name: self.settings[name] for name in choice.settings}
            )

        graph, attention = make_graph(curriculum), part("attention")
        return Program(
            part("progress"),
            attention.solved(graph) if isinstance(attention, MasteringRate) else attention,
            part("distribution"),
            int(self.settings["window"]),
            curriculum.minimum,
            curriculum.maximum,
            graph,
        )

    def __str__(self) -> str:
        """The shortest text that `parse` reads as this recipe."""
        parts = {
            k: getattr(self, k)
            for k in PARTS
            if getattr(self, k) != getattr(PROGRAMS[self.name], k)
        }
        plain = Recipe.parse(self.name, **parts).settings
        numbers = {k: f"{v!r}" for k, v in self.settings.items() if v != plain[k]}
        return (
            self.name
            + ":" * bool(parts or numbers)
            + ",".join(f"{k}={v}" for k, v in {**parts, **numbers}.items())
        )

    def __hash__(self) -> int:
        return hash(str(self))
