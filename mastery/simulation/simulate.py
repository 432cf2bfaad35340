"""Synthetic learners: try a curriculum and a program in seconds, without training anything.

The learner (docs/simulator.md gives the reasons) has a skill x_c in [0, 1] for each task, initially
0. At each time-step it practises `episodes` tasks, drawn from the program's distribution. Then

    score of an episode of c    noise · (1 with probability x_c, else 0) + (1 − noise) · x_c
    readiness of c              ρ_c = leak + (1 − leak) Π x_p   over the direct predecessors p of c
    practice of c               e_c = (episodes of c) + rehearsal · Σ_{c→c'} e_c' / n_{→c'}
    learning                    x_c ← x_c + e_c · rate_c · ρ_c · (x_c + start) · (1 − x_c)
    forgetting                  x_c ← (1 − forgetting) · x_c

with rate_c such that a ready learner goes from 0 to 0.9 in `effort` episodes. A curriculum is
mastered at the first time-step when every skill is at least `mastered`. Predecessors and edges are
those of the learner's `order`: the curriculum's, unless the settings say otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mastery.curriculum import Curriculum
from mastery.errors import MasteryError, ProgramError, check_whole, install
from mastery.programs.check import check_fits
from mastery.programs.distribution import cumulative, draw
from mastery.programs.evidence import Evidence
from mastery.programs.own import OwnRecipe, check_own, read_program
from mastery.programs.program import ProgramLike
from mastery.programs.recipe import Recipe
from mastery.programs.step import teaching_step
from mastery.simulation.order import Order, check_order, true_order
from mastery.statistics import median_time

Array = Any  # a NumPy or a JAX array


@dataclass(frozen=True)
class Learner:
    """The settings of the synthetic learner; see the equations in the module's docstring.

    A task's `settings.effort` overrides `effort`. `order` is `"given"` (the curriculum's edges),
    `"none"`, `"reversed"`, `"half:SEED"`, `"one:SEED"`, `"shuffled:SEED"`, `"hidden:SEED"` (random
    prerequisites), or another curriculum with the same tasks: a `Curriculum`, a file or a name; see
    `order.true_order`. The programs still see the curriculum as given.

    Example:
        >>> Learner(noise=0.5, order="shuffled:3")
    """

    episodes: int = 16  # episodes per time-step
    effort: float = 1000.0  # episodes a ready learner needs from skill 0 to 0.9
    start: float = 0.01  # chance of success by luck; learning starts from it
    leak: float = 0.01  # readiness without any skill in the predecessors
    rehearsal: float = 0.5  # practice that an episode also gives to all predecessors together
    forgetting: float = 2e-5  # share of a skill lost per time-step
    noise: float = 1.0  # 1: an episode succeeds or fails; 0: its score is the skill
    ceiling: float = 1.0  # the best mean return; 1 is the curriculum's maximum
    mastered: float = 0.9  # the skill that counts as mastered
    order: Order = "given"  # which tasks are the prerequisites of which

    def __post_init__(self) -> None:
        check_order(self.order)
        if not isinstance(self.episodes, int | np.integer):
            raise MasteryError(f"the learner's episodes is {self.episodes!r}; it must be whole")
        for name, low, high in (
            ("episodes", 1, 1e6),
            ("effort", 1, 1e9),
            ("start", 1e-9, 1),
            ("leak", 0, 1),
            ("rehearsal", 0, 1),
            ("forgetting", 0, 1),
            ("noise", 0, 1),
            ("ceiling", 1e-9, 1e9),
            ("mastered", 1e-9, 1),
        ):
            value = getattr(self, name)
            if not isinstance(value, int | float | np.number) or not low <= value <= high:
                raise MasteryError(
                    f"the learner's {name} is {value!r}; it must be in [{low:g}, {high:g}]"
                )


class _World(NamedTuple):
    """The learner's constants as arrays."""

    before: Array  # (N, N): [c, p] is 1 where p → c in the learner's order
    rehearse: Array  # (N, N): episodes of each task -> practice of each task
    rate: Array  # (N,)
    start: float
    leak: float
    forgetting: float
    noise: float
    mastered: float
    low: Array  # (N,): the return of a failure
    span: Array  # (N,): the return of a success minus that of a failure


class _Carry(NamedTuple):
    """The state of one run at a time-step."""

    state: Any  # the program's state
    probabilities: Array  # (N,): the distribution over tasks in this time-step
    skill: Array  # (N,)
    t: Array  # () int32
    mastered_at: Array  # () int32: 0 until every task is mastered
    spent: Array  # (3,): episodes until then on tasks mastered, learnable, not yet learnable


@dataclass(frozen=True)
class Outcome:
    """The result of one program over all seeds."""

    program: str
    steps: NDArray[np.float64]  # (seeds,): time-steps until every task is mastered; inf if never
    budget: int  # the maximum number of time-steps
    times: NDArray[np.int64]  # (points,): the time-steps at which skill was recorded
    skill: NDArray[np.float64]  # (points, seeds, tasks)
    spent: NDArray[np.float64]  # (3,): share on tasks mastered, learnable, not yet learnable

    @property
    def median(self) -> float:
        """The median of `steps`; of an even number of runs the higher of the middle two."""
        return median_time(self.steps).value

    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the median; inf where runs did not master all tasks."""
        _, low, high = median_time(self.steps)
        return low, high


Report = Callable[[str, int, int, NDArray[np.float64]], None]  # program, step, budget, mean skill


def simulate(
    curriculum: Curriculum,
    programs: Sequence[str | Recipe | ProgramLike],
    *,
    seeds: int = 20,
    seed: int = 0,
    steps: int | None = None,
    learner: Learner | None = None,
    backend: str = "auto",
    report: Report | None = None,
) -> list[Outcome]:
    """Compare programs on synthetic learners.

    Each program teaches `seeds` learners until all have mastered every task or the budget is
    spent. Learners with the same seed get the same random numbers under every program.

    Args:
        curriculum: The curriculum.
        programs: The programs to compare: texts (`"mr:delta=0.8"`, `"file.py:Class"`), recipes, or
            your own objects.
        seeds: The number of learners per program.
        seed: The first seed; the learners use `seed`, `seed + 1`, ….
        steps: The budget in time-steps, by default 10 · Σ effort / episodes.
        learner: The synthetic learner's settings.
        backend: `jax` runs all seeds at once, `numpy` runs them one after another, `auto` uses
            JAX if it is installed.
        report: Called regularly with the program's name, the time-step, the budget and the mean
            skill of each task.

    Returns:
        One outcome per program, in the given order.

    Raises:
        MasteryError: If an argument is invalid.
        ProgramError: If a program of yours does not run under JAX.

    Example:
        >>> simulate(Curriculum.load("key-corridor"), ["mr", "gprop-linreg"], seeds=5)
    """
    if not isinstance(curriculum, Curriculum):
        raise MasteryError(f"simulate needs a Curriculum, not {curriculum!r}")
    if isinstance(programs, str | Recipe) or hasattr(programs, "init"):
        programs = [programs]  # type: ignore[list-item]
    check_whole("seeds", seeds)
    check_whole("seed", seed, 0)
    if steps is not None:
        check_whole("steps", steps)
    chunks = _chunks(backend)
    learner = learner or Learner()
    efforts = _efforts(curriculum, learner)
    budget = steps or math.ceil(10 * efforts.sum() / learner.episodes)
    if not 1 <= budget <= 10**7:
        raise MasteryError(f"{budget:,} time-steps are not between 1 and 10,000,000; give steps")
    world = _world(curriculum, learner, efforts)
    outcomes: list[Outcome] = []
    for given in programs:
        name, program = _built(given, curriculum)
        same = sum(o.program.partition(" #")[0] == name for o in outcomes)
        name += f" #{same + 1}" if same else ""
        if report:  # before the first chunk, which may take a while to compile
            report(name, 0, budget, np.zeros(len(curriculum)))
        carries = chunks(program, world, learner.episodes, seeds, seed, budget)
        outcomes.append(_outcome(name, budget, carries, report))
    return outcomes


def _built(
    given: str | Recipe | OwnRecipe | ProgramLike, curriculum: Curriculum
) -> tuple[str, ProgramLike]:
    """A program's name, and the program itself."""
    if isinstance(given, str):
        given = read_program(given)
    if isinstance(given, OwnRecipe):
        program = given.build(curriculum)
        check_own(str(given), program, curriculum, compiled=False)
        return str(given), program
    if isinstance(given, Recipe):
        return str(given), given.build(curriculum)
    check_fits(given, curriculum)
    return type(given).__name__, given


def _chunks(backend: str) -> Callable[..., Iterator[_Carry]]:
    """The function that runs the learners chunk by chunk."""
    if backend not in ("auto", "jax", "numpy"):
        raise MasteryError(f"backend is {backend!r}; choose from auto, jax, numpy")
    if backend == "jax" and not find_spec("jax"):
        raise MasteryError(f"backend jax needs jax: {install('train')}")
    return _numpy_chunks if backend == "numpy" or not find_spec("jax") else _jax_chunks


def _outcome(name: str, budget: int, carries: Iterable[_Carry], report: Report | None) -> Outcome:
    """Run a program's learners to the end, and report on the way."""
    times, skills = [0], []
    for carry in carries:
        times.append(int(carry.t[0]))
        skills.append(np.asarray(carry.skill, np.float64))
        if report:
            report(name, times[-1], budget, skills[-1].mean(axis=0))
    at = np.asarray(carry.mastered_at, np.float64)
    spent = np.asarray(carry.spent, np.float64).sum(axis=0)
    return Outcome(
        name,
        np.where(at > 0, at, np.inf),
        budget,
        np.array(times),
        np.stack([np.zeros_like(skills[0]), *skills]),
        spent / spent.sum(),
    )


def _efforts(curriculum: Curriculum, learner: Learner) -> NDArray[np.float64]:
    efforts = [
        curriculum.settings.get(n, {}).get("effort", learner.effort) for n in curriculum.names
    ]
    for name, effort in zip(curriculum.names, efforts, strict=True):
        if not isinstance(effort, int | float) or not 1 <= effort <= 1e9:
            raise MasteryError(
                f"task {name!r}: settings.effort is {effort!r}; it must be from 1 to 1,000,000,000"
            )
    return np.array(efforts, float)


def _world(curriculum: Curriculum, learner: Learner, efforts: NDArray[np.float64]) -> _World:
    n = len(curriculum)
    if n > 5000:
        raise MasteryError(f"the simulator takes at most 5000 tasks, and this curriculum has {n}")
    order = true_order(learner.order, curriculum)
    at = np.array([curriculum.positions[name] for name in order.names])  # its names are resorted
    before = np.zeros((n, n))
    before[at[order.edges[:, 1]], at[order.edges[:, 0]]] = 1.0
    share = (before / np.maximum(before.sum(axis=1, keepdims=True), 1)).T
    to_mastered = math.log((0.9 + learner.start) / (1 - 0.9) / learner.start)
    return _World(
        before=before,
        rehearse=np.linalg.inv(np.eye(n) - learner.rehearsal * share),
        rate=to_mastered / (1 + learner.start) / efforts,  # solves dx/de = rate (x + start)(1 − x)
        start=learner.start,
        leak=learner.leak,
        forgetting=learner.forgetting,
        noise=learner.noise,
        mastered=learner.mastered,
        low=curriculum.minimum,
        span=(curriculum.maximum - curriculum.minimum) * learner.ceiling,
    )


def _step(program: Any, world: _World, carry: _Carry, luck: Array, noise: Array) -> _Carry:
    """One time-step of one run. `luck` (2, episodes) decides the tasks and the successes."""
    state, probabilities, x, t, mastered_at, spent = carry
    xp = x.__array_namespace__()
    drawn = draw(cumulative(probabilities), luck[0])
    picked = (drawn[:, None] == xp.arange(x.shape[0])).astype(x.dtype)  # (episodes, N)
    episodes = picked.sum(axis=0)

    success = (luck[1] < x[drawn]).astype(x.dtype)
    score = world.noise * success + (1 - world.noise) * x[drawn]
    returns = picked * (world.low + world.span * score[:, None])
    evidence = Evidence.from_sums(
        episodes, returns.sum(axis=0), (returns * returns).sum(axis=0), episodes
    )
    state, following = teaching_step(program, state, evidence, noise)

    through = xp.exp(world.before @ xp.log(xp.maximum(x, 1e-30)))  # Π x_p
    ready = world.leak + (1 - world.leak) * through
    known = x >= world.mastered
    kind = xp.stack([known, ~known & (ready >= 0.5), ~known & (ready < 0.5)])
    busy = mastered_at == 0  # training after everything is mastered is not counted
    practice = world.rehearse @ episodes
    x = x + practice * world.rate * ready * (x + world.start) * (1 - x)
    x = (1 - world.forgetting) * xp.minimum(x, 1.0)
    t = t + 1
    now = busy & (x >= world.mastered).all()
    spent = spent + (kind * episodes).sum(axis=-1) * busy
    following = following.astype(probabilities.dtype)
    return _Carry(state, following, x, t, xp.where(now, t, mastered_at), spent)


def _start(program: Any, noise: Array) -> _Carry:
    xp = noise.__array_namespace__()
    zero = xp.zeros((), dtype=xp.int32)
    nothing = xp.zeros_like(noise[0])
    state = program.init(noise)
    probabilities = xp.asarray(program.distribution(state)).astype(nothing.dtype)
    spent = xp.zeros(3, dtype=nothing.dtype)
    return _Carry(state, probabilities, nothing, zero, zero + 0, spent)


class _Luck:
    """The random numbers of one run; the learner's are the same under every program."""

    def __init__(self, program: Any, n: int, episodes: int, seed: int) -> None:
        self.learner, self.program = (np.random.default_rng([seed, i]) for i in (0, 1))
        self.shape, self.n = (2, episodes), n
        self.needs_noise = getattr(program, "uses_noise", True)

    def noise(self, *shape: int) -> NDArray[np.float32]:
        return self.program.random((*shape, 3, self.n), np.float32)

    def chunk(self, length: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        luck = self.learner.random((length, *self.shape), np.float32)
        return luck, self.noise(length) if self.needs_noise else np.zeros((length, 3, 0), "f4")


def _plan(budget: int) -> list[int]:
    """The lengths of the chunks: about 200 of equal length."""
    each = min(max(budget // 200, 1), 2000)
    return [min(each, budget - done) for done in range(0, budget, each)]


def _numpy_chunks(
    program: ProgramLike, world: _World, episodes: int, seeds: int, seed: int, budget: int
) -> Iterator[_Carry]:
    n = len(world.rate)
    lucks = [_Luck(program, n, episodes, seed + i) for i in range(seeds)]
    carries = [_start(program, luck.noise().astype(float)) for luck in lucks]
    for length in _plan(budget):
        for i, luck in enumerate(lucks):
            for u, noise in zip(*luck.chunk(length), strict=True):
                carries[i] = _step(program, world, carries[i], u, noise)
        last: list[Any] = [np.stack(x) for x in list(zip(*carries, strict=True))[1:]]
        carry = _Carry(None, *last)
        yield carry
        if carry.mastered_at.all():
            return


@contextmanager
def _under_jax(program: ProgramLike) -> Iterator[None]:
    """Explain the errors of a program that JAX cannot compile."""
    import jax

    try:
        yield
    except (TypeError, jax.errors.JAXIndexError) as error:
        first = str(error).strip().partition("\n")[0]
        raise ProgramError(
            f"the program {type(program).__name__} does not run under JAX; take the namespace "
            "from its inputs (xp = x.__array_namespace__()) and do not call NumPy itself, or "
            f'simulate with --backend numpy, in Python backend="numpy" ({first})'
        ) from error


def _jax_chunks(
    program: ProgramLike, world: _World, episodes: int, seeds: int, seed: int, budget: int
) -> Iterator[_Carry]:
    import jax
    import jax.numpy as jnp

    @partial(jax.jit, donate_argnums=0)
    def run(carries: _Carry, luck: Array, noise: Array) -> _Carry:
        def one(carry: _Carry, luck: Array, noise: Array) -> _Carry:
            step = lambda c, u: (_step(program, world, c, *u), None)  # noqa: E731
            return jax.lax.scan(step, carry, (luck, noise))[0]

        return jax.vmap(one)(carries, luck, noise)

    n = len(world.rate)
    lucks = [_Luck(program, n, episodes, seed + i) for i in range(seeds)]

    def stack(arrays: Sequence[Any]) -> Array:
        return jnp.asarray(np.stack(arrays), dtype=float)  # float32, unless JAX has x64 enabled

    with _under_jax(program):
        carry = jax.jit(jax.vmap(partial(_start, program)))(stack([luck.noise() for luck in lucks]))
    for length in _plan(budget):
        chunks = (stack(u) for u in zip(*(x.chunk(length) for x in lucks), strict=True))
        with jax.default_matmul_precision("highest"), _under_jax(program):
            carry = run(carry, *chunks)
        yield carry._replace(state=None)
        if np.asarray(carry.mastered_at).all():
            return
