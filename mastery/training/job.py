"""A job: what is to be trained, as data that goes into a file and comes back the same."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mastery.curriculum import Curriculum
from mastery.errors import MasteryError, did_you_mean
from mastery.learners import addition, ppo
from mastery.minigrid.tasks import NAMES, task_id
from mastery.programs.catalogue import Recipe
from mastery.rundir.database import open_database, read_description

# what a curriculum's tasks are, and the module that learns them
LEARNERS: dict[str, Any] = {"minigrid": ppo, "gymnasium": ppo, "addition": addition}


@dataclass(frozen=True)
class Run:
    """One agent under one program."""

    program: str
    seed: int
    changes: Mapping[str, float]  # settings in which it differs from the job's

    @property
    def label(self) -> str:
        """What it has in common with the runs of other seeds."""
        return " ".join([self.program, *(f"{k}={v!r}" for k, v in self.changes.items())])


@dataclass(frozen=True)
class Job:
    """What is to be trained: every program with every variant, every point of the grid and every
    seed."""

    curriculum: Curriculum
    programs: tuple[str, ...] = ("mr",)
    seeds: int = 1
    seed: int = 0  # the first
    frames: int = 2_000_000  # of each run, rounded up to whole chunks
    settings: Any = None  # the learner's Settings; None: as they are by default
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # settings of several runs
    variants: tuple[Mapping[str, float], ...] = ({},)  # changes of settings, each for some runs
    environments: str = "auto"  # minigrid (our own, compiled), gymnasium, or addition
    chunk: int = 10  # updates between two points of the curves
    evaluate_every: int = 250_000  # frames, rounded to whole chunks; 0: never
    episodes: int = 32  # of each task in an evaluation, by each policy
    stop_mastered: float | None = None  # end when every task's mastery is that in every run
    stop_return: float | None = None  # end when every task's mean return is that in every run

    def __post_init__(self) -> None:
        for name, least in (
            ("seeds", 1), ("seed", 0), ("frames", 1), ("chunk", 1), ("evaluate_every", 0),
            ("episodes", 1),
        ):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value < 2**62:
                raise MasteryError(f"{name} is {value!r}; it must be a whole number from {least}")
        if self.stop_mastered is not None and not 0 < self.stop_mastered <= 1:
            raise MasteryError(f"mastery is in [0, 1]: it cannot stop at {self.stop_mastered:g}")
        if self.stop_return is not None and not math.isfinite(self.stop_return):
            raise MasteryError(f"a mean return cannot be {self.stop_return}; give a number")
        if self.seed + self.seeds > 2**32:
            raise MasteryError(f"seed is {self.seed}; seeds go up to 2³² − 1")
        if not self.programs:
            raise MasteryError("there is no program: give one, such as mr")
        recipes = [str(Recipe.parse(program)) for program in self.programs]
        object.__setattr__(self, "programs", tuple(dict.fromkeys(recipes)))
        if self.environments == "auto":
            object.__setattr__(self, "environments", _environments(self.curriculum))
        if self.environments not in LEARNERS:
            raise MasteryError(
                f"environments is {self.environments!r}; there is {', '.join(LEARNERS)}"
            )
        if self.settings is None:
            object.__setattr__(self, "settings", self.learner.Settings())
        if not isinstance(self.settings, self.learner.Settings):
            raise MasteryError(f"these are not the settings of a learner of {self.environments}")
        varying = self.learner.Hyper._fields
        for name in itertools.chain(self.grid, *self.variants):
            if name not in varying:
                raise MasteryError(
                    f"{name!r} cannot differ from run to run{did_you_mean(name, varying)}"
                )
            if name in self.grid and any(name in variant for variant in self.variants):
                raise MasteryError(f"{name!r} has several values, and variants change it: do one")
        for name, values in self.grid.items():
            if not values or len(set(values)) < len(values) or not all(map(math.isfinite, values)):
                raise MasteryError(f"{name} needs several numbers, each once: {values}")
        if not self.variants or len(set(map(repr, self.variants))) < len(self.variants):
            raise MasteryError("there must be a variant at least, and each of them once")
        for changes in self.points:
            replace(self.settings, **changes)  # refuses what makes no sense

    @property
    def learner(self) -> Any:
        """The module of what is trained: its Settings, Hyper, …"""
        return LEARNERS[self.environments]

    @property
    def points(self) -> list[dict[str, float]]:
        """How settings are changed, variant by variant and point by point of the grid."""
        values = list(itertools.product(*self.grid.values()))
        return [
            {**variant, **dict(zip(self.grid, point, strict=True))}
            for variant in self.variants
            for point in values
        ]

    @property
    def runs(self) -> list[Run]:
        seeds = range(self.seed, self.seed + self.seeds)
        return [
            Run(program, seed, point)
            for program in self.programs
            for point in self.points
            for seed in seeds
        ]

    @property
    def frames_of_update(self) -> int:
        return int(self.settings.per_update)

    @property
    def chunks(self) -> int:
        return math.ceil(self.frames / (self.frames_of_update * self.chunk))

    @property
    def devices(self) -> int:
        """That it can use, if there are so many: one for each run, or for a part of its work."""
        return len(self.runs) * int(self.settings.parts(2**20))

    def parts(self, devices: int) -> int:
        """How many share a run, where there are so many of them."""
        return int(self.settings.parts(devices // len(self.runs)))

    @property
    def updates(self) -> int:
        return self.chunks * self.chunk

    @property
    def evaluate_chunks(self) -> int:
        """Chunks between two evaluations; 0: there are none."""
        each = self.frames_of_update * self.chunk
        return max(round(self.evaluate_every / each), 1) if self.evaluate_every else 0

    def to_dict(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain |= {"per_update": self.frames_of_update, "unit": self.settings.unit}  # to be read
        full = [Recipe.parse(program).full for program in self.programs]
        return plain | {
            "curriculum": self.curriculum.to_dict(),
            "programs": full,  # as they are now, should a default change
            "settings": asdict(self.settings),
            "grid": {name: list(values) for name, values in self.grid.items()},
            "variants": [dict(variant) for variant in self.variants],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Job:
        known = {f.name for f in fields(cls)}
        return cls(
            **{
                **{name: value for name, value in data.items() if name in known},
                "curriculum": Curriculum.from_dict(data["curriculum"]),
                "programs": tuple(data["programs"]),
                "settings": LEARNERS[data["environments"]].Settings(**data["settings"]),
                "grid": {name: tuple(values) for name, values in data["grid"].items()},
                "variants": tuple(data["variants"]),
            }
        )


def read_job(directory: str | Path) -> Job:
    """The job of a run directory."""
    with open_database(Path(directory)) as db:
        return Job.from_dict(read_description(Path(directory), db)[0])


def _environments(curriculum: Curriculum) -> str:
    """Addition if every task says its digits; our own MiniGrid if it has every task; or else
    Gymnasium."""
    if all("digits" in curriculum.settings.get(name, {}) for name in curriculum.names):
        return "addition"
    for name in curriculum.names:
        env = curriculum.settings.get(name, {}).get("env")
        if env is None:
            raise MasteryError(
                f"task {name!r} of {curriculum.name!r} does not say its environment; write "
                'settings = { env = "MiniGrid-Unlock-v0" }, or any other id of Gymnasium; or '
                "settings = { digits = 3 } in every task, for addition"
            )
    ours = {f"MiniGrid-{name}" for name in NAMES}
    short = [str(curriculum.settings[name]["env"]).rpartition("-v")[0] for name in curriculum.names]
    plain = all(set(curriculum.settings[name]) <= {"env", "effort"} for name in curriculum.names)
    return "minigrid" if plain and all(name in ours for name in short) else "gymnasium"


def minigrid_tasks(curriculum: Curriculum) -> list[int]:
    """The number of each task's environment in our own MiniGrid."""
    found: dict[int, str] = {}
    for name in curriculum.names:
        number = task_id(str(curriculum.settings.get(name, {}).get("env")))
        if number in found:
            raise MasteryError(
                f"tasks {found[number]!r} and {name!r} are the same environment, {NAMES[number]}; "
                "keep one of them"
            )
        found[number] = name
    return list(found)


def digits_of(curriculum: Curriculum) -> list[int]:
    """The digits of each task's numbers."""
    found = []
    for name in curriculum.names:
        digits = curriculum.settings.get(name, {}).get("digits")
        if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= 100:
            raise MasteryError(
                f"task {name!r}: digits is {digits!r}; it must be a whole number from 1 to 100"
            )
        found.append(digits)
    return found
