"""What a program is made of: its parts, and their settings with the paper's defaults.

The command line and `Teacher` read a program with `Recipe.parse("mr:delta=0.8,window=20")`;
`Recipe.build` makes the program for a curriculum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from mastery.curriculum import Curriculum
from mastery.errors import ProgramError, did_you_mean
from mastery.programs.attention import Constant, Exp3S, LearningProgress, MasteringRate, Sequential
from mastery.programs.automatic import Auto
from mastery.programs.distribution import Amax, Boltzmann, Prop, TopK
from mastery.programs.graph import make_graph
from mastery.programs.named import PROGRAMS
from mastery.programs.program import Program
from mastery.programs.progress import Change, Competence, Naive, Online, Sampling, Window
from mastery.programs.rules.adarft import AdaRFT
from mastery.programs.rules.ado import ADO
from mastery.programs.rules.bidirectional import Bidirectional
from mastery.programs.rules.dump import DUMP
from mastery.programs.rules.gates import GRESO, Retire, ZeroVariance
from mastery.programs.rules.learnability import Learnability
from mastery.programs.rules.mopps import MoPPS
from mastery.programs.rules.odm import ODM
from mastery.programs.rules.plr import PLR
from mastery.programs.rules.sec import SEC
from mastery.programs.sharing import Sharing


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
    "window": Setting("K, how many of a task's last time-steps count", 2, 1_000_000, whole=True),
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
    "eta": Setting("η, the step size of Exp3.S or of AdaRFT's target", 0, 1000),
    "threshold": Setting("the mastery required to move to the next level", TINY, 1),
    "top": Setting("k, how many tasks are drawn from; less than 1: which share of them", TINY),
    "beta": Setting("β, the temperature of PLR's ranks; lower prefers the first ranks", 1e-3, 1000),
    "staleness": Setting("ρ, the share of PLR's replays by the time since the last", 0, 1),
    "nu": Setting("ν, the largest share of replays while tasks are unseen", 0, 1),
    "fill": Setting("the share of tasks to see before PLR's first replay", 0, 1),
    "theta": Setting("θ, how strongly low rates are magnified; 0.5 does not", 1e-6, 0.5),
    "sensitivity": Setting("α, how sharply AdaRFT's target answers to the rate", 0, 1000),
    "goal": Setting("the rate of success that AdaRFT aims at", 0, 1),
    "decay": Setting("λ, how much a posterior keeps when its task is seen", 0, 1),
    "start": Setting("the first time-step that uses ADO's fits", 0, 2**30, whole=True),
    "pass_rate": Setting("the rate of success at which a task is retired", TINY, 1),
    "target": Setting("GRESO's tolerated share of groups that are all right or wrong", 0, 1),
    "block": Setting(
        "the most time-steps that a block on one task lasts", 1, 1_000_000, whole=True
    ),
    "dark": Setting("the signal below which there are blocks on one task; 0 for none", 0, 1),
    "hint": Setting("how much a given order counts in the choice of a block; 0 ignores it", 0, 100),
    "cheap": Setting("how much short episodes count in the choice of a block", 0, 10),
    "pool": Setting("returns that the mean signal of all tasks counts for", 0, 1e6),
    "memory": Setting("returns that a task's rate is the mean of", 2, 1e9),
    "fade": Setting("time-steps in which what was seen of a task is forgotten", 2, 1e9),
    "patience": Setting("time-steps without a rise that halve what a task can still gain", 1, 1e9),
    "sigma": Setting("standard errors that make a change", 0, 1e9),
    "by_cost": Setting("0 shares episodes, 1 shares their cost: frames, tokens, seconds", 0, 1),
    "reprobe": Setting("the share of training spread evenly over all tasks at the end", 0, 1),
}


class Common(TypedDict, total=False):
    """Settings that every program takes, besides its own."""

    gate: str  # none, zero-variance, retire or greso: which tasks are skipped for a while
    pass_rate: float  # with the gate retire: the rate of success at which a task is retired
    target: float  # with the gate greso: the tolerated share of groups all right or all wrong
    by_cost: float  # 1 shares frames, tokens or seconds instead of episodes
    reprobe: float  # the share of training spread evenly over all tasks at the end


# what every program has besides its parts' settings
BASE_SETTINGS: Mapping[str, float] = {"window": 10, "by_cost": 0.0, "reprobe": 0.0}


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


def _difficulty(curriculum: Curriculum) -> Any:
    """Each task's difficulty, from 0 to 100: as its settings say, or by its level in the order."""
    given = [curriculum.settings.get(name, {}).get("difficulty") for name in curriculum.names]
    levels = np.asarray(curriculum.level, float)
    if all(value is None for value in given):
        if len(curriculum) > 1 and not levels.max():
            raise ProgramError(
                "adarft needs to know how difficult tasks are: give each of them "
                "settings.difficulty, from 0 to 100, or give the curriculum an order"
            )
        return 100 * levels / max(levels.max(), 1)
    for name, value in zip(curriculum.names, given, strict=True):
        if type(value) not in (int, float) or not 0 <= value <= 100:  # type: ignore[operator]
            raise ProgramError(
                f"task {name!r}: settings.difficulty is {value!r}; adarft needs a number from 0 "
                "to 100 for every task"
            )
    return np.array(given, float)


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
        "learnability": Part(lambda c: Learnability(), {}, "M (1 − M), most at one half"),
        "plr": Part(
            lambda c, **s: PLR(**s),
            {"alpha": 1.0, "beta": 0.1, "staleness": 0.1, "nu": 0.5, "fill": 1.0},
            "prioritised level replay by regret",
        ),
        "bidirectional": Part(
            lambda c, **s: Bidirectional(**s),
            {"alpha": 0.1, "theta": 0.1},
            "change of the success rate, low rates magnified",
        ),
        "sec": Part(lambda c, **s: SEC(**s), {"alpha": 0.5}, "average of mean |advantage|"),
        "dump": Part(lambda c: DUMP(), {}, "mean |advantage| with a bonus for rarely seen tasks"),
        "adarft": Part(
            lambda c, **s: AdaRFT(**s, difficulty=_difficulty(c)),
            {"eta": 50.0, "sensitivity": 2.0, "goal": 0.5},
            "nearness to a target difficulty",
        ),
        "mopps": Part(
            lambda c, **s: MoPPS(**s), {"decay": 0.5}, "x (1 − x) of a sampled success rate x"
        ),
        "auto": Part(
            lambda c, **s: Auto(**s, minimum=c.minimum, maximum=c.maximum),
            {
                "block": 200,
                "dark": 0.1,
                "hint": 4.0,
                "cheap": 2.0,
                "pool": 4.0,
                "memory": 200.0,
                "fade": 100.0,
                "patience": 30.0,
                "sigma": 3.0,
            },
            "what answers to training; blocks while nothing does",
        ),
        "odm": Part(lambda c: ODM(), {}, "Exp3, with the loss as reward"),
        "ado": Part(lambda c, **s: ADO(**s), {"start": 100}, "how fast a fitted loss falls"),
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
        "topk": Part(
            lambda c, **s: TopK(**s),
            {"top": 0.2, "epsilon": 0.1},
            "the k tasks with the most attention, with ε spread evenly",
        ),
    },
    "gate": {
        "none": Part(lambda c: (), {}, "every task is open"),
        "zero-variance": Part(
            lambda c, **s: ZeroVariance(),
            {"reprobe": 0.05},
            "skip a task whose last returns were all equal",
        ),
        "retire": Part(
            lambda c, **s: Retire(s["pass_rate"]),
            {"pass_rate": 0.95, "reprobe": 0.05},
            "skip a task that has reached a rate of success",
        ),
        "greso": Part(
            lambda c, **s: GRESO(**s),
            {"target": 0.25},
            "skip tasks that were all right or all wrong, several times running",
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
    gate: str = "none"

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
        settings: dict[str, float] = dict(BASE_SETTINGS)
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
        """The text with all parts and settings; it keeps its meaning if a default changes.

        No gate, `by_cost` and `reprobe` of 0 are left out: there were none in earlier versions.
        """
        parts = {kind: getattr(self, kind) for kind in PARTS}
        every = {**parts, **self.settings}
        absent = {"gate": "none", "by_cost": 0.0, "reprobe": 0.0}
        said = (f"{k}={v}" for k, v in every.items() if k not in absent or v != absent[k])
        return f"{self.name}:" + ",".join(said)

    def build(self, curriculum: Curriculum) -> Program:
        """Build the program for a curriculum."""

        def part(kind: str) -> Any:
            choice = PARTS[kind][getattr(self, kind)]
            return choice.make(
                curriculum, **{name: self.settings[name] for name in choice.settings}
            )

        graph, attention, gate = make_graph(curriculum), part("attention"), part("gate")
        by_cost, reprobe = self.settings["by_cost"], self.settings["reprobe"]
        needed = self.gate != "none" or by_cost or reprobe
        sharing = Sharing(gate, by_cost, reprobe) if needed else ()
        return Program(
            part("progress"),
            attention.solved(graph) if isinstance(attention, MasteringRate) else attention,
            part("distribution"),
            int(self.settings["window"]),
            curriculum.minimum,
            curriculum.maximum,
            graph,
            sharing,
        )

    def without_order(self, curriculum: Curriculum) -> str | None:
        """A warning, if the program follows an order and the curriculum has none."""
        if len(curriculum.edges) or len(curriculum) < 2 or self.attention != "mastering-rate":
            return None
        return (
            f"the program {self.name!r} follows the order of the tasks, and the curriculum "
            f"{curriculum.name!r} has none, so every task counts as learnable from the start; give "
            "tasks `after`, or choose 'auto', which needs none"
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


def default_program(curriculum: Curriculum) -> str:
    """The program for a curriculum if none is given: `mr` follows an order, `auto` needs none."""
    return "mr" if len(curriculum.edges) else "auto"
