"""A synthetic language model that is trained on prompts with verifiable rewards.

The model was written down before any two programs were compared on it, and has not been changed
since. There are categories k with equally many prompts i. At each time-step a program chooses a
batch of prompts; each gets a group of completions that pass or fail:

    ability of k            θ_k, 0 at first
    difficulty of i         b_i = β_k + spread · z_i,   z_i from a normal distribution
    pass rate of i          p_i = sigmoid(θ_k + m_i − b_i), or 0 if the prompt is broken
    signal of a group       g = 4 p̂ (1 − p̂), with p̂ the share of its completions that pass
    learning                θ_k ← θ_k + rate · ρ_k · (1 − common) · g
                            θ_j ← θ_j + rate · ρ_k · common · g / K   for all K categories j
    memorising              m_i ← m_i + memorised · g
    readiness of k          ρ_k = 1, or, in a chain, 0.05 + 0.95 · (pass rate of its predecessor)

The difficulties β_k of the categories are spread evenly from `easiest` to `hardest`, in an order
that the tasks' names do not show. A group that all pass or all fail teaches nothing, as in GRPO.
What counts is the pass rate on prompts that are not trained on: the mean of sigmoid(θ_k − b) over
the difficulties of category k, without anything memorised and without broken prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum, Task
from mastery.errors import MasteryError, check_whole
from mastery.prompts.prompts import Prompts
from mastery.teacher import Teacher

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
ChosenFrom = Literal["prompts", "categories", "both"]
KnownOrder = Literal["none", "true", "shuffled"]
# means over a normal distribution: off by at most 1e-14 at a spread of 1, and 1e-4 at 5
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(63)


@dataclass(frozen=True)
class PromptWorld:
    """The settings of the world; see the equations in the module's docstring."""

    categories: int = 20
    prompts: int = 100  # per category
    batch: int = 64  # prompts per time-step, drawn with replacement
    group: int = 8  # completions per prompt
    easiest: float = -1.0  # β of the easiest category: a pass rate of about 0.7 at first
    hardest: float = 5.0  # β of the hardest: about 0.01 at first
    spread: float = 1.0  # of difficulties within a category
    rate: float = 0.02
    common: float = 0.0  # the share of learning that goes to all categories
    memorised: float = 0.0
    broken: float = 0.0  # the share of prompts that never pass
    chain: bool = False  # whether each category needs the next easier one

    def __post_init__(self) -> None:
        for name in ("categories", "prompts", "batch", "group"):
            check_whole(name, getattr(self, name))
        for name, low, high in (
            ("easiest", -100, 100),
            ("hardest", -100, 100),
            ("spread", 0, 5),
            ("rate", 0, 10),
            ("common", 0, 1),
            ("memorised", 0, 100),
            ("broken", 0, 1),
        ):
            value = getattr(self, name)
            if not isinstance(value, int | float | np.number) or not low <= value <= high:
                raise MasteryError(f"{name} is {value!r}; it must be from {low} to {high}")
        if self.easiest > self.hardest:
            raise MasteryError(
                f"easiest is {self.easiest} and hardest {self.hardest}; easiest must not be greater"
            )


@dataclass(frozen=True)
class PromptOutcome:
    """The result of one program over all seeds."""

    program: str
    passed: Floats  # (seeds, time-steps + 1): mean pass rate on held-out prompts of all categories
    last: Floats  # (seeds, categories): pass rates at the end, from the easiest to the hardest
    wasted: Floats  # (seeds,): the share of groups that all passed or all failed
    unseen: Floats  # (seeds,): the share of prompts that were never drawn

    @property
    def area(self) -> Floats:
        """(seeds,): the mean pass rate over training."""
        found: Floats = self.passed.mean(axis=1)
        return found


class _Model(NamedTuple):
    """A language model and the prompts that it is trained on, at a time-step."""

    category: Whole  # (n,): k of each prompt
    rank: Whole  # (K,): 0 for the easiest category
    beta: Floats  # (K,): β_k
    difficulty: Floats  # (n,): b_i
    broken: NDArray[np.bool_]  # (n,)
    theta: Floats  # (K,): θ_k
    memorised: Floats  # (n,): m_i


def simulate_prompts(
    programs: Sequence[str],
    world: PromptWorld | None = None,
    *,
    tasks: ChosenFrom = "prompts",
    order: KnownOrder = "none",
    steps: int = 200,
    seeds: int = 10,
    seed: int = 0,
) -> list[PromptOutcome]:
    """Train synthetic language models under programs; equal seeds have equal worlds.

    Args:
        programs: The programs' texts.
        world: The settings.
        tasks: What a teacher chooses among: `"prompts"`, or `"categories"`, from which prompts are
            drawn evenly; or `"both"`: it chooses categories, and `mastery.Prompts` the prompts in
            them. All completions of a task in a time-step are its returns.
        order: With categories, the order that the program is given: `"none"`; `"true"`, their
            chain, easiest first; or `"shuffled"`, a chain in random order.
        steps: The number of time-steps.
        seeds: The number of models per program.
        seed: The first seed.

    Returns:
        One outcome per program, in the given order.

    Raises:
        MasteryError: If an argument is invalid.

    Example:
        >>> simulate_prompts(["auto", "uniform"], PromptWorld(broken=0.2), seeds=3)
    """
    if isinstance(programs, str):
        programs = [programs]
    for name, value, choices in (("tasks", tasks, ChosenFrom), ("order", order, KnownOrder)):
        if value not in get_args(choices):
            raise MasteryError(f"{name} is {value!r}; choose from {', '.join(get_args(choices))}")
    if order != "none" and tasks == "prompts":
        raise MasteryError(f"order is {order!r}, but prompts have none; set tasks='categories'")
    check_whole("steps", steps)
    check_whole("seeds", seeds)
    check_whole("seed", seed, 0)
    world = world or PromptWorld()
    outcomes = []
    for program in programs:
        runs = [
            _run(program, world, tasks, order, steps, number)
            for number in range(seed, seed + seeds)
        ]
        outcomes.append(PromptOutcome(program, *(np.array(x) for x in zip(*runs, strict=True))))
    return outcomes


def _run(
    program: str, world: PromptWorld, tasks: ChosenFrom, order: KnownOrder, steps: int, seed: int
) -> tuple[Floats, Floats, float, float]:
    """One model under one program: the fields of `PromptOutcome` for one seed."""
    random = _random(seed)
    model = _start(world, random)
    names = _names(world, tasks)
    teacher = Teacher(_curriculum(names, _chain(order, model.rank, seed)), program, seed=seed)
    choose: _Evenly | _Within = (_Within if tasks == "both" else _Evenly)(
        world, teacher, names, model.category, tasks, seed
    )
    seen, flat = np.zeros(len(model.category), bool), 0
    passed = [_held_out(world, model)]
    for _ in range(steps):
        chosen = choose.next(random)
        passes = random.random((world.batch, world.group)) < _pass_rate(model, chosen)[:, None]
        share = passes.mean(axis=1)
        model = _train(world, model, chosen, share)
        seen[chosen] = True
        flat += int(((share == 0) | (share == 1)).sum())
        choose.report(passes.astype(float).tolist())
        passed.append(_held_out(world, model))
    curve = np.array([x.mean() for x in passed])
    last = passed[-1][np.argsort(model.rank)]
    return curve, last, flat / (steps * world.batch), float(1 - seen.mean())


class _Evenly:
    """Prompts of a batch: those that the teacher draws, or any of the categories that it draws."""

    def __init__(
        self,
        world: PromptWorld,
        teacher: Teacher,
        names: list[str],
        _: Whole,
        tasks: str,
        seed: int,
    ) -> None:
        self._world, self._teacher = world, teacher
        self._places = {name: i for i, name in enumerate(names)}
        self._inside = tasks == "categories"
        self._drawn: list[str] = []

    def next(self, random: np.random.Generator) -> Whole:
        world, self._drawn = self._world, self._teacher.sample(self._world.batch)
        chosen = np.array([self._places[name] for name in self._drawn])
        if self._inside:
            chosen = chosen * world.prompts + random.integers(world.prompts, size=world.batch)
        return chosen

    def report(self, passes: list[list[float]]) -> None:
        returns: dict[str, list[float]] = {}
        for name, group in zip(self._drawn, passes, strict=True):
            returns.setdefault(name, []).extend(group)
        self._teacher.update(returns)


class _Within:
    """Prompts of a batch that `mastery.Prompts` chooses."""

    def __init__(
        self, world: PromptWorld, teacher: Teacher, names: list[str], k: Whole, _: str, seed: int
    ) -> None:
        self._world = world
        labels = [names[i] for i in k.tolist()]
        self._prompts = Prompts(range(len(k)), teacher, labels, update_every=None, seed=seed)

    def next(self, random: np.random.Generator) -> Whole:
        self._batch = self._prompts.next(self._world.batch)
        return self._batch.ids

    def report(self, passes: list[list[float]]) -> None:
        self._prompts.report(self._batch, passes)
        self._prompts.update()


def _random(seed: int, which: int = 1) -> np.random.Generator:
    """Random numbers of a run: its world (1), a shuffled chain (2).

    0 would be those of the teacher: NumPy's `default_rng([seed, 0])` equals `default_rng(seed)`.
    """
    return np.random.default_rng([seed, which])


def _start(world: PromptWorld, random: np.random.Generator) -> _Model:
    """The model and its prompts before the first time-step."""
    K, n = world.categories, world.categories * world.prompts
    category = np.repeat(np.arange(K), world.prompts)
    rank = random.permutation(K)
    beta = world.easiest + (world.hardest - world.easiest) * rank / max(K - 1, 1)
    return _Model(
        category,
        rank,
        beta,
        beta[category] + world.spread * random.normal(size=n),
        random.random(n) < world.broken,
        np.zeros(K),
        np.zeros(n),
    )


def _pass_rate(model: _Model, chosen: Whole) -> Floats:
    """p_i of the chosen prompts."""
    theta = model.theta[model.category[chosen]]
    p = _sigmoid(theta + model.memorised[chosen] - model.difficulty[chosen])
    return np.where(model.broken[chosen], 0.0, p)


def _train(world: PromptWorld, model: _Model, chosen: Whole, share: Floats) -> _Model:
    """The model after one time-step on the chosen prompts, given the share of each that passed."""
    K, k = world.categories, model.category[chosen]
    g = 4 * share * (1 - share)
    gained = np.bincount(k, world.rate * _readiness(world, model)[k] * g, K)
    theta = model.theta + (1 - world.common) * gained + world.common * gained.sum() / K
    memorised = model.memorised + world.memorised * np.bincount(chosen, g, len(model.memorised))
    return model._replace(theta=theta, memorised=memorised)


def _readiness(world: PromptWorld, model: _Model) -> Floats:
    """(K,): ρ_k."""
    if not world.chain:
        return np.ones(world.categories)
    before = np.argsort(model.rank)[model.rank - 1]  # the next easier; of the easiest any
    return np.where(model.rank == 0, 1.0, 0.05 + 0.95 * _held_out(world, model)[before])


def _held_out(world: PromptWorld, model: _Model) -> Floats:
    """(K,): the mean pass rate of each category over its difficulties."""
    x = (model.theta - model.beta)[:, None] - world.spread * _NODES
    found: Floats = _sigmoid(x) @ _WEIGHTS / _WEIGHTS.sum()
    return found


def _sigmoid(x: Floats) -> Floats:
    found: Floats = 1 / (1 + np.exp(-x))
    return found


def _names(world: PromptWorld, tasks: ChosenFrom) -> list[str]:
    categories = [f"category-{k}" for k in range(world.categories)]
    if tasks != "prompts":
        return categories
    return [f"{name}/{i}" for name in categories for i in range(world.prompts)]


def _chain(order: KnownOrder, rank: Whole, seed: int) -> Whole | None:
    """The categories in the order that the program is given, if any."""
    if order == "none":
        return None
    return np.argsort(rank) if order == "true" else _random(seed, 2).permutation(len(rank))


def _curriculum(names: Sequence[str], chain: Whole | None) -> Curriculum:
    if chain is None:
        return Curriculum([Task(name) for name in names])
    inside = [names[k] for k in chain]
    before = [(), *((name,) for name in inside)]
    return Curriculum(
        [Task(name, after=after) for name, after in zip(inside, before, strict=False)]
    )
