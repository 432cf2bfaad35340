"""What the paper trains, and what we add to it.

An experiment is one or more jobs (`mastery.training.job`). Figures and sections are the paper's;
its figures have no numbers, so they are named by what they show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mastery.curriculum import Curriculum
from mastery.errors import MasteryError, did_you_mean
from mastery.training.job import Job

POINTS = 10  # least points of a curve, roughly, however far a job is scaled down
SMALL = 0.1  # at this scale and below, a job is meant for a CPU: see `Part.small`
SEED = 3000  # the first seed of every experiment; no setting was tuned on these seeds
BASELINES = ("uniform", "target", "sequential")  # not in the paper
ESTIMATORS = ("online", "naive", "window", "sampling", "linreg")
CONVERTERS = ("gamax", "gprop", "prop", "boltzmann")


def family(name: str) -> tuple[str, ...]:
    """The program with every estimator of learning progress × every converter of attention."""
    return tuple(
        f"{name}:progress={progress},distribution={converter}"
        for progress in ESTIMATORS
        for converter in CONVERTERS
    )


MASTERING_RATE, TEACHER_STUDENT = family("mr"), family("gprop-linreg")
SOME_TEACHER_STUDENT = (
    "gprop-linreg",
    "gprop-linreg:distribution=gamax",
    "gprop-linreg:progress=sampling,distribution=gamax",
)


@dataclass(frozen=True)
class PaperJob:
    """A job of an experiment."""

    name: str
    curriculum: str
    programs: tuple[str, ...]
    preset: str = "default"
    settings: Mapping[str, Any] = field(default_factory=dict)  # that differ from the preset
    seeds: int = 10
    frames: int = 10_000_000  # or examples
    chunk: int = 10  # updates per point of the curves
    # fields to replace at scale SMALL and below; its settings are added to those above
    small: Mapping[str, Any] = field(default_factory=lambda: {"settings": {"width": 32}})

    def job(self, scale: float = 1.0) -> Job:
        """The job at full size or scaled down.

        Args:
            scale: Share of the frames, seeds and evaluation episodes, in (0, 1]. At 0.1 and
                below, the fields in `small` apply too.

        Raises:
            MasteryError: If the scale is not in (0, 1].
        """
        if not 0 < scale <= 1:
            raise MasteryError(f"the scale is {scale:g}; it must be more than 0, and at most 1")
        part = replace(self, **self.small) if scale <= SMALL else self
        curriculum = Curriculum.load(part.curriculum)
        presets = Job(curriculum).learner.presets
        settings = replace(presets[part.preset], **{**self.settings, **part.settings})
        frames = math.ceil(part.frames * scale)
        chunk = max(min(part.chunk, round(frames / settings.per_update / POINTS)), 1)
        return Job(
            curriculum,
            programs=part.programs,
            seeds=max(round(part.seeds * scale), 1),
            seed=SEED,
            frames=frames,
            settings=settings,
            chunk=chunk,
            evaluate_every=frames,  # once, at the end
            episodes=max(round((1000 if settings.unit == "examples" else 32) * scale), 4),
        )


@dataclass(frozen=True)
class Experiment:
    """Jobs that belong together."""

    name: str
    where: str  # in the paper
    parts: tuple[PaperJob, ...]
    extra: bool = False  # trained only if named
    beside: tuple[str, ...] = ()  # jobs of other experiments that its tables compare with


def _both_worlds(
    name: str, where: str, programs: tuple[str, ...], curriculum: str | None = None
) -> Experiment:
    """The paper's programs in its own world (MiniGrid and agent of September 2018, with
    `curriculum` if it was a different one) and in today's, with our agent. We add baselines."""
    return Experiment(
        name,
        where,
        (
            PaperJob(f"{name}-2018", curriculum or name, programs, preset="paper", seeds=30),
            PaperJob(f"{name}-2018-baselines", curriculum or name, ("uniform",), preset="paper"),
            PaperJob(f"{name}-today", name, programs, seeds=30),
            PaperJob(f"{name}-today-baselines", name, BASELINES),
        ),
    )


def _addition(
    name: str, programs: tuple[str, ...], batch: int, frames: int, chunk: int
) -> PaperJob:
    """A job on addition. Its small form has three digits, not nine, a small network and fewer
    examples."""
    return PaperJob(
        name,
        "addition-9",
        programs,
        settings={"batch": batch},
        seeds=4,
        frames=frames,
        chunk=chunk,
        small={
            "curriculum": "addition-3",
            "settings": {"width": 32},
            "frames": 4_000_000,
        },
    )


@dataclass(frozen=True)
class Difference:
    """A difference between the world of 2018 and that of the first reproduction, of 2019."""

    then: Mapping[str, Any]  # settings of 2018, to add to the world of 2019
    then_words: str
    later: Mapping[str, Any]  # settings of 2019, to replace those of 2018
    later_words: str
    two_ways: bool = True  # it can also be added to 2019
    curriculum: bool = False  # the curriculum differs


DIFFERENCES = {
    "rules": Difference(
        {"edition": "2018-rules"}, "rules and levels of 2018",
        {"edition": "2018-view"}, "today's rules and levels",
    ),
    "view": Difference(
        {"edition": "2018-view"}, "view of 2018", {"edition": "2018-rules"}, "today's view"
    ),
    "doors": Difference(
        {}, "", {"edition": "2018-plain-doors"}, "unlocked doors that look open", two_ways=False
    ),
    "memory": Difference(
        {"bptt": 1, "initial": "pytorch"}, "recurrence, initial values of 2018",
        {"bptt": 8, "initial": "scaled"}, "recurrence, initial values of 2019",
    ),
    "rate": Difference(
        {"learning_rate": 7e-4, "epsilon": 1e-5}, "learning rate, ε of 2018",
        {"learning_rate": 1e-3, "epsilon": 1e-8}, "learning rate, ε of 2019",
    ),
    "reward": Difference(
        {"reward": "minigrid"}, "reward of 2018", {"reward": "paper"}, "reward of the paper's text"
    ),
    "nine": Difference({}, "nine tasks", {}, "six tasks", curriculum=True),
}  # fmt: skip
PAIR = ("gprop-linreg", "mr")


def _apart(name: str, six: str, nine: str, frames: int) -> tuple[PaperJob, ...]:
    """The world of 2018 without each single difference, and that of 2019 with it. `six` and `nine`
    are the curricula of 2019 and 2018."""

    def part(rest: str, curriculum: str, preset: str, settings: Mapping[str, Any]) -> PaperJob:
        return PaperJob(
            f"{name}-{rest}", curriculum, PAIR, preset=preset, settings=settings, frames=frames
        )

    parts = [part("2019", six, "paper-2019", {})]
    for key, x in DIFFERENCES.items():
        if x.curriculum and six == nine:
            continue
        taken, added = (six, nine) if x.curriculum else (nine, six)
        parts.append(part(f"2018-without-{key}", taken, "paper", x.later))
        if x.two_ways:
            parts.append(part(f"2019-with-{key}", added, "paper-2019", x.then))
    return tuple(parts)


# a standard PPO agent: no memory, none of our additions
PLAIN = {
    "memory": "none",
    "normalise": True,
    "novelty": 0.0,
    "learning_rate": 3e-4,
    "entropy": 0.01,
    "reward_scale": 1.0,
}
WIDE = {"envs": 512, "batch": 8192, "learning_rate": 1e-3}
TITLES = {
    "blocked-unlock-pickup": "BlockedUnlockPickup",
    "key-corridor": "KeyCorridor",
    "obstructed-maze": "ObstructedMaze",
}
THREE = tuple(TITLES)


def _agents(name: str) -> tuple[PaperJob, PaperJob]:
    """Today's world with two other agents: plain and wide."""
    programs = (*PAIR, "uniform")
    return (
        PaperJob(f"{name}-plain", name, programs, settings=PLAIN),
        PaperJob(
            f"{name}-wide",
            name,
            programs,
            settings=WIDE,
            frames=12_000_000,
            chunk=2,
            small={"settings": {"width": 32, "envs": 64, "batch": 1024}},
        ),
    )


ALL = (
    _both_worlds(
        "blocked-unlock-pickup",
        "section 6.1, first figure; appendix D.1 and D.2",
        ("gamax-window", "gamax-linreg", "gprop-linreg", "mr"),
    ),
    _both_worlds(
        "key-corridor",
        "section 6.1, second figure; section 6.3, first figure",
        ("gamax-window", "gamax-linreg", "gprop-linreg", "mr"),
    ),
    _both_worlds(
        "obstructed-maze",
        "section 6.3, second figure",
        ("gprop-linreg", "mr"),
        "obstructed-maze-full",  # the authors trained on nine tasks, of which the paper shows six
    ),
    Experiment(
        "addition",
        "section 6.2",
        (
            # the paper uses minibatches of 128 for mr and 1024 for Teacher-Student; this alone may
            # decide, so some Teacher-Student programs, with the paper's two, also get 128
            _addition(
                "addition-128",
                MASTERING_RATE + SOME_TEACHER_STUDENT + BASELINES,
                batch=128,
                frames=40_000_000,
                chunk=20,
            ),
            _addition(
                "addition-1024",
                TEACHER_STUDENT + BASELINES,
                batch=1024,
                frames=40_000_000,
                chunk=10,
            ),
            _addition(
                "addition-64",
                ("mr:progress=linreg,distribution=gamax",),
                batch=64,
                frames=20_000_000,
                chunk=10,
            ),
        ),
    ),
    Experiment(
        "addition-long",
        "section 6.2: what 40M examples leave open",
        (
            # the paper's two Teacher-Student programs, and five of mr
            _addition(
                "addition-1024-long",
                SOME_TEACHER_STUDENT[1:],
                batch=1024,
                frames=200_000_000,
                chunk=20,
            ),
            _addition(
                "addition-128-long",
                (
                    "mr:progress=online,distribution=boltzmann",
                    "mr:progress=naive,distribution=gamax",
                    "mr:progress=naive,distribution=gprop",
                    "mr:progress=naive,distribution=prop",
                    "mr:progress=window,distribution=boltzmann",
                ),
                batch=128,
                frames=200_000_000,
                chunk=100,
            ),
        ),
        extra=True,
        beside=("addition-128", "addition-1024", "addition-64"),
    ),
    Experiment(
        "ablation",
        "appendix E, last paragraph: asserted there",
        (
            PaperJob(
                "ablation",
                "key-corridor",
                (
                    "mr",
                    "mr:power=0",
                    "mr:unlearned=0",
                    "mr:successors=0",
                    "mr:delta=0",
                    "mr:delta=0.3",
                    "mr:delta=1",
                    "mr:power=2",
                    "mr:power=12",
                    "mr:gamma_pred=0",
                    "mr:gamma_pred=0.5",
                    "mr:gamma_succ=0",
                    "mr:gamma_succ=0.2",
                    "mr:gamma_pred=0,gamma_succ=0",
                    "mr:window=5",
                    "mr:window=20",
                    "mr:window=50",
                ),
                seeds=5,
                frames=5_000_000,
            ),
        ),
    ),
    Experiment(
        "apart",
        "not in the paper: which difference between 2018 and 2019 counts",
        (
            *_apart("key-corridor", "key-corridor", "key-corridor", 8_000_000),
            *_apart("obstructed-maze", "obstructed-maze", "obstructed-maze-full", 5_000_000),
        ),
        extra=True,
        beside=("key-corridor-2018", "obstructed-maze-2018"),
    ),
    Experiment(
        "agents",
        "not in the paper: who needs a curriculum",
        tuple(part for name in THREE for part in _agents(name)),
        extra=True,
        beside=tuple(
            f"{name}-{world}{rest}"
            for name in THREE
            for world in ("2018", "today")
            for rest in ("", "-baselines")
        ),
    ),
)
EXPERIMENTS = {experiment.name: experiment for experiment in ALL}
PAPER_JOBS = {part.name: part for experiment in ALL for part in experiment.parts}


def shown_beside(names: list[str]) -> list[str]:
    """The jobs of other experiments that the tables of these compare with."""
    return [job for name in names if name in EXPERIMENTS for job in EXPERIMENTS[name].beside]


def chosen(names: list[str]) -> list[PaperJob]:
    """The parts named here, directly or by their experiment.

    Args:
        names: Names of experiments and parts; if empty, all of the paper's experiments.

    Raises:
        MasteryError: If a name is unknown.
    """
    known = [*EXPERIMENTS, *(name for name in PAPER_JOBS if name not in EXPERIMENTS)]
    for name in names:
        if name not in known:
            raise MasteryError(f"there is no experiment {name!r}{did_you_mean(name, known)}")
    return [
        part
        for experiment in ALL
        for part in experiment.parts
        if experiment.name in names or part.name in names or not (names or experiment.extra)
    ]
