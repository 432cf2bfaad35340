"""A job: what to train, as data that can be saved and read back unchanged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mastery.curriculum import Curriculum
from mastery.errors import MasteryError, check_distinct, check_whole, did_you_mean
from mastery.learners.addition import ADDITION
from mastery.learners.grpo import REASONING
from mastery.learners.ppo import PPO
from mastery.learners.settings import LearnerKind
from mastery.minigrid.tasks import NAMES, task_id
from mastery.programs.own import OwnRecipe, read_program
from mastery.programs.recipe import default_program
from mastery.reasoning.families import FAMILIES, LEVELS
from mastery.rundir.database import open_database, read_description, reading
from mastery.rundir.metrics import SCORES
from mastery.rundir.milestones import kept_runs
from mastery.rundir.split import is_split, read_split

# by the kind of environments
LEARNERS = {"minigrid": PPO, "gymnasium": PPO, "addition": ADDITION, "reasoning": REASONING}
MOST_UPDATES = 2**31 - 1  # per run
MOST_FRAMES = 2**63 - 1  # what run.db can count


@dataclass(frozen=True)
class Run:
    """One agent under one program."""

    program: str
    seed: int
    changes: Mapping[str, float]  # settings that differ from the job's

    @property
    def label(self) -> str:
        """The program and the changed settings; equal for runs that differ only in the seed."""
        return " ".join([self.program, *(f"{k}={v!r}" for k, v in self.changes.items())])


@dataclass(frozen=True)
class Job:
    """What to train: one run for each program × variant × grid point × seed.

    Args:
        curriculum: The tasks and their order.
        programs: Programs, each a name with optional settings: `"mr"`, `"mr:delta=0.8"`; or your
            own: `"package.module:Class"`, `"file.py:Class:sharpness=2"`. By default `"mr"` if the
            curriculum has an order, else `"auto"`.
        seeds: Number of seeds.
        seed: The first seed; the others follow it.
        frames: Frames (examples in addition, completions in reasoning) per run, rounded up to whole
            chunks.
        settings: The learner's: `PPOSettings`, `AdditionSettings` or `ReasoningSettings`.
        grid: Several values for each of some settings; every combination is trained.
        variants: Changes of settings, `{}` for none; every variant is trained.
        environments: `"minigrid"` (our own, compiled), `"gymnasium"`, `"addition"` or
            `"reasoning"`; `"auto"` chooses by the curriculum's tasks.
        chunk: Updates per chunk. A chunk is one point of the curves.
        evaluate_every: Frames between evaluations, rounded to whole chunks; 0 for none.
        episodes: Episodes per task and policy in an evaluation.
        stop_mastered: Stop once every task's mastery reaches this in every run, e.g. 0.9.
        stop_return: Stop once every task's mean return over the last chunks reaches this in
            every run.
        only: Train only some of the runs, as a part of this job: the first, and one more than the
            last. By default all.

    Raises:
        MasteryError: If a value is invalid.

    Example:
        >>> curriculum = Curriculum.load("key-corridor")
        >>> job = Job(curriculum, programs=("mr", "uniform"), seeds=5, frames=10_000_000)
    """

    curriculum: Curriculum
    programs: tuple[str, ...] = None  # type: ignore[assignment]  # set below
    seeds: int = 1
    seed: int = 0
    frames: int = 2_000_000
    settings: Any = None
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    variants: tuple[Mapping[str, float], ...] = ({},)
    environments: str = "auto"
    chunk: int = 10
    evaluate_every: int = 250_000
    episodes: int = 32
    stop_mastered: float | None = None
    stop_return: float | None = None
    only: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name, least in (
            ("seeds", 1), ("seed", 0), ("frames", 1), ("chunk", 1), ("evaluate_every", 0),
            ("episodes", 1),
        ):  # fmt: skip
            check_whole(name, getattr(self, name), least)
        check_whole("evaluate_every", self.evaluate_every, 0, MOST_FRAMES)
        if self.stop_mastered is not None and not 0 < self.stop_mastered <= 1:
            raise MasteryError(f"mastery is in [0, 1]: it cannot stop at {self.stop_mastered:g}")
        if self.stop_return is not None and not math.isfinite(self.stop_return):
            raise MasteryError(f"a mean return cannot be {self.stop_return}; give a number")
        if self.seed + self.seeds > 2**32:
            last = "" if self.seeds == 1 else f" and seeds is {self.seeds:,}"
            raise MasteryError(f"seed is {self.seed:,}{last}; seeds go up to {2**32 - 1:,}")
        if self.programs is None:
            object.__setattr__(self, "programs", (default_program(self.curriculum),))
        if not self.programs:
            raise MasteryError("there is no program: give one, such as mr")
        recipes = [str(read_program(program)) for program in self.programs]
        check_distinct("program", self.programs, recipes)
        object.__setattr__(self, "programs", tuple(recipes))
        if self.environments == "auto":
            object.__setattr__(self, "environments", _environments(self.curriculum))
        if self.environments not in LEARNERS:
            raise MasteryError(
                f"environments is {self.environments!r}; choose from {', '.join(LEARNERS)}"
            )
        if self.settings is None:
            object.__setattr__(self, "settings", self.learner.settings())
        if not isinstance(self.settings, self.learner.settings):
            raise MasteryError(f"these are not the settings of a learner of {self.environments}")
        self._check_length()
        varying = self.learner.hyper._fields
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
            replace(self.settings, **changes)  # raises if a value is invalid
        first, end = self.rows.start, self.rows.stop
        if not 0 <= first < end <= len(self.every_run):
            raise MasteryError(
                f"only is {self.only}; the job has runs 0 to {len(self.every_run) - 1}, and a part "
                "has some of them: give its first, and one more than its last"
            )

    def _check_length(self) -> None:
        """The loops count updates in 32 bits."""
        check_whole("chunk", self.chunk, 1, MOST_UPDATES)
        if self.updates > MOST_UPDATES:
            unit = self.settings.unit
            most = MOST_UPDATES // self.chunk * self.chunk  # whole chunks
            raise MasteryError(
                f"{unit} is {self.frames:,}; the most is {most * self.frames_of_update:,}, which "
                f"is {most:,} updates of {self.frames_of_update:,} {unit}"
            )

    @property
    def learner(self) -> LearnerKind:
        """The kind of learner that the environments need."""
        return LEARNERS[self.environments]

    @property
    def points(self) -> list[dict[str, float]]:
        """The changed settings of each variant × grid point."""
        values = list(itertools.product(*self.grid.values()))
        return [
            {**variant, **dict(zip(self.grid, point, strict=True))}
            for variant in self.variants
            for point in values
        ]

    @property
    def runs(self) -> list[Run]:
        """The runs to train, ordered by program, then by point, then by seed."""
        return self.every_run[self.rows.start : self.rows.stop]

    @property
    def rows(self) -> range:
        """The places of `runs` in `every_run`."""
        programs, points = len(self.programs), len(self.points)
        return range(programs * points * self.seeds) if self.only is None else range(*self.only)

    @property
    def every_run(self) -> list[Run]:
        """The runs of the whole job, also of those parts of it that are trained apart."""
        seeds = range(self.seed, self.seed + self.seeds)
        return [
            Run(program, seed, point)
            for program in self.programs
            for point in self.points
            for seed in seeds
        ]

    @property
    def kept(self) -> list[int]:
        """The runs whose agents are kept from several moments of training."""
        whole = kept_runs([run.label for run in self.every_run])
        return [run - self.rows.start for run in whole if run in self.rows]

    @property
    def own(self) -> dict[str, OwnRecipe]:
        """The programs that are the user's own, by their text."""
        read = {text: read_program(text) for text in self.programs}
        return {text: recipe for text, recipe in read.items() if isinstance(recipe, OwnRecipe)}

    @property
    def frames_of_update(self) -> int:
        """Frames per update of one run."""
        return int(self.settings.per_update)

    @property
    def chunks(self) -> int:
        """Chunks per run."""
        return -(-self.frames // (self.frames_of_update * self.chunk))

    @property
    def devices(self) -> int:
        """The most devices this job can use: one per run, or several that share a run."""
        return len(self.runs) * int(self.settings.parts(2**20))

    def parts(self, devices: int) -> int:
        """Devices per run, given the total."""
        return int(self.settings.parts(devices // len(self.runs)))

    @property
    def updates(self) -> int:
        """Updates per run."""
        return self.chunks * self.chunk

    @property
    def evaluate_chunks(self) -> int:
        """Chunks between evaluations; 0 for none."""
        each = self.frames_of_update * self.chunk
        return max(round(self.evaluate_every / each), 1) if self.evaluate_every else 0

    def to_dict(self) -> dict[str, Any]:
        """The job as plain data for JSON; `from_dict` reads it."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.only is None:
            del plain["only"]
        unit = self.settings.unit
        plain |= {"per_update": self.frames_of_update, "unit": unit}  # for readers
        plain["score"] = SCORES[unit]
        full = [read_program(program).full for program in self.programs]
        sources = {text: source for text, own in self.own.items() if (source := own.source())}
        plain |= {"sources": sources} if sources else {}  # of own programs, as they are now
        return plain | {
            "curriculum": self.curriculum.to_dict(),
            "programs": full,  # every setting, in case a default changes
            "settings": asdict(self.settings),
            "grid": {name: list(values) for name, values in self.grid.items()},
            "variants": [dict(variant) for variant in self.variants],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Job:
        """The job that `to_dict` wrote; unknown keys are ignored."""
        known = {f.name for f in fields(cls)}
        return cls(
            **{
                **{name: value for name, value in data.items() if name in known},
                "curriculum": Curriculum.from_dict(data["curriculum"]),
                "programs": tuple(data["programs"]),
                "settings": LEARNERS[data["environments"]].settings(**data["settings"]),
                "grid": {name: tuple(values) for name, values in data["grid"].items()},
                "variants": tuple(data["variants"]),
                "only": tuple(data["only"]) if data.get("only") is not None else None,
            }
        )


def read_job(directory: str | Path) -> Job:
    """Read the job of a run directory; the whole job if it is trained in parts."""
    if is_split(Path(directory)):
        return parse_job(directory, read_split(Path(directory)).job)
    with open_database(Path(directory)) as db:
        description = read_description(Path(directory), db)[0]
    if description.get("kind") == "recorded":
        raise MasteryError(
            f"{directory} was recorded from a loop of your own, so there is nothing to resume or "
            "play; see it with mastery watch or mastery report"
        )
    return parse_job(directory, description)


def parse_job(directory: str | Path, description: Mapping[str, Any]) -> Job:
    """The job of a run directory; CheckpointError, with the file's name, if it is invalid."""
    with reading(Path(directory), parsing=True):
        return Job.from_dict(description)


def _environments(curriculum: Curriculum) -> str:
    """Addition if every task sets `digits`; reasoning if every task sets `family`; our MiniGrid if
    it has every task; else Gymnasium."""
    for setting, found in (("digits", "addition"), ("family", "reasoning")):
        if all(setting in curriculum.settings.get(name, {}) for name in curriculum.names):
            return found
    for name in curriculum.names:
        env = curriculum.settings.get(name, {}).get("env")
        if env is None:
            raise MasteryError(
                f"task {name!r} of {curriculum.name!r} has no environment; write "
                'settings = { env = "MiniGrid-Unlock-v0" }, or any other id of Gymnasium; or '
                "settings = { digits = 3 } in every task, for addition; or "
                'settings = { family = "sum", level = 1 } in every task, for reasoning'
            )
    ours = {f"MiniGrid-{name}" for name in NAMES}
    short = [str(curriculum.settings[name]["env"]).rpartition("-v")[0] for name in curriculum.names]
    plain = all(set(curriculum.settings[name]) <= {"env", "effort"} for name in curriculum.names)
    return "minigrid" if plain and all(name in ours for name in short) else "gymnasium"


def minigrid_tasks(curriculum: Curriculum) -> list[int]:
    """The index of each task's environment in our MiniGrid."""
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


def reasoning_tasks(curriculum: Curriculum) -> tuple[list[int], list[int]]:
    """The number of the family and the level of each task."""
    families, levels = [], []
    for name in curriculum.names:
        settings = curriculum.settings.get(name, {})
        family = str(settings.get("family"))
        if family not in FAMILIES:
            hint = did_you_mean(family, FAMILIES)
            raise MasteryError(f"task {name!r}: there is no family {family!r} of problems{hint}")
        families.append(list(FAMILIES).index(family))
        levels.append(check_whole(f"task {name!r}: level", settings.get("level"), 1, LEVELS))
    return families, levels


def digits_of(curriculum: Curriculum) -> list[int]:
    """The number of digits in each task."""
    found = []
    for name in curriculum.names:
        digits = curriculum.settings.get(name, {}).get("digits")
        found.append(check_whole(f"task {name!r}: digits", digits, 1, 100))
    return found
