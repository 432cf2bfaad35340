"""The base of the loops that compile teacher and learner, for all runs of a job.

Algorithm 2 of the paper: the teacher gives the probabilities of the tasks, the learner trains on
tasks drawn from them, and the teacher sees the returns. The code describes one run, in pieces.

On a GPU they are compiled as one function for a chunk of updates, and `jax.vmap` trains all runs at
once, even those of several jobs (`shared`). On a CPU it is faster to train one run after the other,
and compiling takes longer than many jobs, so each piece is compiled by itself. The large pieces do
not depend on the teacher's program or, in MiniGrid, on the curriculum: they are compiled once for
all jobs with the same learner and number of devices. `jax.shard_map` spreads runs over devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from mastery.programs.evidence import Evidence
from mastery.programs.side_by_side import Switch, build_switch
from mastery.programs.step import teaching_step
from mastery.random_numbers import uniform
from mastery.rundir.metrics import Evaluation, Metrics
from mastery.training.devices import cores
from mastery.training.job import Job
from mastery.training.loops.early import Early, EarlyCompiler
from mastery.training.loops.loop import EVALUATION_SEED
from mastery.training.loops.named_arrays import named, restore
from mastery.training.loops.traced import Traced

Array = Any  # a JAX array
_AXIS = "run"


class Learned(NamedTuple):
    """The results of an update, for each task that the learner knows."""

    episodes: Array  # that ended, or test examples
    returns: Array  # their sum
    squares: Array  # the sum of their squares
    frames: Array
    solved: Array | None = None  # (): see `Metrics`
    cost: Array | None = None  # what the returns cost; by default the frames
    scalars: Mapping[str, Array] | None = None  # (): see `Metrics`


class Student(NamedTuple):
    """The learner of a run.

    Attributes:
        begin: Makes a learner from the run's key. The teacher uses the first two keys of its split.
        learn: One update, from the learner, the probabilities of all `known` tasks and the hyper.
        evaluate: Evaluates the learners of several runs, the first axis, with a key.
        tasks: The index of each of the curriculum's tasks among the `known` ones.
        known: The number of tasks that the learner knows.
        parts: Devices that share a run. Each must compute the same result.
        axis: The name of their axis.
    """

    begin: Callable[[Array], Any]
    learn: Callable[[Any, Array, Any], tuple[Any, Learned]]
    evaluate: Callable[[Any, Array], Evaluation]
    tasks: NDArray[np.int32]
    known: int
    parts: int = 1
    axis: str = "parts"


class Plan(NamedTuple):
    """What does not change in a run."""

    program: Switch
    hyper: Any  # the learner's settings that may differ from run to run


class Teaching(NamedTuple):
    """The teacher of a run."""

    state: Any  # the program's state
    key: Array
    probability: Array  # (known,): of each task, for the next update


class Carry(NamedTuple):
    """What changes in a run."""

    teacher: Teaching
    learner: Any


class Pieces(NamedTuple):
    """The functions that make up a run."""

    new_teacher: Callable[[Array, Switch], Teaching]
    new_learner: Callable[[Array], Any]
    learn: Callable[[Any, Array, Any], tuple[Any, Learned]]
    teach: Callable[[Teaching, Learned, Switch], tuple[Teaching, Metrics]]

    def begin(self, key: Array, plan: Plan) -> Carry:
        return Carry(self.new_teacher(key, plan.program), self.new_learner(key))

    def update(self, carry: Carry, plan: Plan) -> tuple[Carry, Metrics]:
        teacher, learner = carry
        learner, learned = self.learn(learner, teacher.probability, plan.hyper)
        teacher, metrics = self.teach(teacher, learned, plan.program)
        return Carry(teacher, learner), metrics


_DONATED = ((), (), (0,), (0,))  # arguments that each piece may overwrite


def pieces(student: Student, slots: int) -> Pieces:
    """The pieces of a run with this student; `slots` is the largest window K of its programs."""
    tasks, shape = student.tasks, (3, len(student.tasks))

    def teaching(state: Any, key: Array, distribution: Array) -> Teaching:
        return Teaching(state, key, jnp.zeros(student.known).at[tasks].set(distribution))

    def new_teacher(key: Array, program: Switch) -> Teaching:
        key, first = jax.random.split(key, 3)[:2]
        state = program.init(uniform(first, shape), slots)
        return teaching(state, key, program.distribution(state))

    def teach(teacher: Teaching, learned: Learned, program: Switch) -> tuple[Teaching, Metrics]:
        episodes, returns, squares, frames = (x[tasks] for x in learned[:4])
        key, for_noise = jax.random.split(teacher.key)
        cost = (frames if learned.cost is None else learned.cost[tasks]).astype(returns.dtype)
        evidence = Evidence.from_sums(episodes, returns, squares, cost)
        noise = uniform(for_noise, shape)
        state, following = teaching_step(program, teacher.state, evidence, noise)
        metrics = Metrics(
            teacher.probability[tasks],
            program.mastery(state),
            episodes,
            returns,
            frames,
            learned.solved,
            program.progress(state),
            learned.scalars,
        )
        return teaching(state, key, following), metrics

    return Pieces(new_teacher, student.begin, student.learn, teach)


class CompiledLoop:
    """The loop of a job; see `loop.Loop`. Its carry is a list with one item per turn: the runs
    that are trained at the same time."""

    def __init__(self, job: Job, student: Student, devices: list[Any] | None = None) -> None:
        self.job = job
        runs = job.runs
        devices = list(jax.devices() if devices is None else devices)
        self._runs, self._in_turn = len(runs), in_turn(devices)
        groups = min(len(runs), len(devices) // student.parts)
        at_once = groups if self._in_turn else -(-len(runs) // groups) * groups
        # repeat the last run so that every device has the same number of runs
        padding = -len(runs) % at_once
        padded = runs + [runs[-1]] * padding
        # a part of a job carries all its programs, so that it computes the same to the bit
        rows = [*job.rows, *[job.rows[-1]] * padding]
        every = build_switch([run.program for run in job.every_run], job.curriculum, compiled=True)
        shape = (groups, student.parts)
        used = np.array(devices[: groups * student.parts]).reshape(shape)
        self.mesh = Mesh(used, ("runs", student.axis))
        spread, same = PartitionSpec("runs"), PartitionSpec()  # type: ignore[no-untyped-call]
        self._at_once, self.sharding = at_once, NamedSharding(self.mesh, spread)

        hypers = [job.learner.hyper.of(job.settings)._replace(**run.changes) for run in padded]
        plan = Plan(
            jax.tree.map(lambda x: np.asarray(x)[rows], every),
            type(hypers[0])(
                *(np.array(values, np.float32) for values in zip(*hypers, strict=True))
            ),
        )
        self._plans = self._turns(jax.tree.map(_single, plan))
        self._new_keys = jax.jit(jax.vmap(jax.random.key), out_shardings=self.sharding)
        self.use_seeds([run.seed for run in padded])

        over = partial(jax.shard_map, mesh=self.mesh, out_specs=spread, check_vma=False)

        def compiled(f: Any, donated: Any = ()) -> Any:
            every = over(lambda *given: each_run(f, *given), in_specs=spread)
            # outputs get the sharding of loaded arrays, or JAX would compile a second time
            return jax.jit(every, donate_argnums=donated, out_shardings=self.sharding)

        self.pieces = pieces(student, plan.program.slots)
        self._begin: Callable[[Array, Plan], Carry]
        if self._in_turn:
            self.pieces = Pieces(*map(compiled, self.pieces, _DONATED))
            self._early = [Early(piece) for piece in self.pieces]
            run = Pieces(*self._early)
            self._begin = run.begin
            self._advance = partial(_updates, run, job.chunk)
        else:
            self._begin = self._early_begin = Early(compiled(self.pieces.begin))
            self._chunk = compile_chunk([self])

        def evaluate(learner: Any, update: Array) -> Evaluation:
            key = jax.random.fold_in(jax.random.key(EVALUATION_SEED), update)
            found: Evaluation = over(student.evaluate, in_specs=(spread, same))(learner, key)
            return found

        self._evaluate = Early(jax.jit(evaluate))
        self._compiler: EarlyCompiler | None = None

    def use_seeds(self, seeds: Sequence[int]) -> None:
        """Begin the runs from these seeds, with what is compiled already."""
        turns = self._turns(np.array(seeds, np.uint32))
        self._keys: list[Array] = list(map(self._new_keys, turns))

    @property
    def plan(self) -> Plan:
        """What does not change in the runs of the first turn; on a GPU these are all runs."""
        first: Plan = self._plans[0]
        return first

    def prepare(self, new: bool) -> None:
        compiler = self._compiler = EarlyCompiler(threads=cores())
        if not self._in_turn:
            self.prepare_chunk(compiler, self._chunk, [self])
            self.prepare_rest(compiler, new)
            return
        key, plan = self._keys[0], self.plan
        new_teacher, new_learner, learn, teach = self._early

        def learning() -> Any:
            teacher = new_teacher.shapes(key, plan.program)
            return new_learner.shapes(key), teacher.probability, plan.hyper

        def teaching() -> Any:
            learned = learn.shapes(*learning())[1]
            return new_teacher.shapes(key, plan.program), learned, plan.program

        compiler.start(learn, learning)  # first, since it takes longest
        if new:
            compiler.start(new_teacher, lambda: (key, plan.program))
            compiler.start(new_learner, lambda: (key,))
        compiler.start(teach, teaching)
        if self.job.evaluate_chunks:
            compiler.start(self._evaluate, lambda: (new_learner.shapes(key), np.uint32(0)))

    @staticmethod
    def prepare_chunk(compiler: EarlyCompiler, chunk: Early, loops: Sequence[CompiledLoop]) -> None:
        """Start compiling a chunk of updates of these loops, on a GPU."""
        plans = [loop.plan for loop in loops]
        compiler.start(chunk, lambda: ([loop.shapes() for loop in loops], plans))

    def prepare_rest(self, compiler: EarlyCompiler, new: bool) -> None:
        """Start compiling what else training needs, on a GPU."""
        if new:
            compiler.start(self._early_begin, lambda: (self._keys[0], self.plan))
        if self.job.evaluate_chunks:
            compiler.start(self._evaluate, lambda: (self.shapes().learner, np.uint32(0)))

    def shapes(self) -> Any:
        """The carry of all runs as shapes, on a GPU."""
        return self._early_begin.shapes(self._keys[0], self.plan)

    def begin(self) -> list[Carry]:
        return list(map(self._begin, self._keys, self._plans))

    def advance(self, carry: list[Carry]) -> tuple[list[Carry], Metrics]:
        if not self._in_turn:
            after, (metrics,) = self._chunk(carry, [self.plan])
            return after, self.own_metrics([metrics])
        turns = [self._advance(*turn) for turn in zip(carry, self._plans, strict=True)]
        # np.stack waits for results, after all turns were dispatched
        each = [jax.tree.map(lambda *x: np.stack(x, 1), *metrics) for _, metrics in turns]
        return [after for after, _ in turns], self.own_metrics(each)

    def own_metrics(self, turns: list[Any]) -> Metrics:
        """The metrics of all runs, from those of each turn with the runs first."""
        found: Metrics = jax.tree.map(lambda x: np.swapaxes(x, 0, 1), self._own(turns))
        return found

    def evaluate(self, carry: list[Carry], update: int) -> Evaluation:
        number = np.uint32(update)
        found: Evaluation = self._own([self._evaluate(turn.learner, number) for turn in carry])
        return found

    def save(self, carry: list[Carry], only: str = "") -> dict[str, NDArray[Any]]:
        # all copies from the device begin before the first is waited for
        turns = jax.device_get([dict(named(turn, only)) for turn in carry])
        return {name: self._own([turn[name] for turn in turns]) for name in turns[0]}

    def load(self, arrays: dict[str, NDArray[Any]]) -> list[Carry]:
        begin = self.pieces.begin if self._in_turn else self._early_begin.compiled
        like = jax.eval_shape(begin, self._keys[0], self.plan)
        one = jax.eval_shape(partial(jax.tree.map, lambda x: x[0]), like)
        padding = len(self._keys) * self._at_once - self._runs
        return self._turns(restore(arrays, one, self._runs, padding))

    def close(self) -> None:
        if self._compiler is not None:
            self._compiler.close()

    def _turns(self, runs: Any) -> list[Any]:
        """Split the runs into turns and put each on its devices."""
        count = jax.tree.leaves(runs)[0].shape[0]
        return [
            jax.device_put(
                jax.tree.map(lambda x, at=at: x[at : at + self._at_once], runs), self.sharding
            )
            for at in range(0, count, self._at_once)
        ]

    def _own(self, turns: Any) -> Any:
        """Join the turns on the host, without the runs that only fill up devices."""
        return jax.tree.map(lambda *x: np.concatenate(x)[: self._runs], *turns)


def _updates(run: Pieces, count: int, carry: Carry, plan: Plan) -> tuple[Carry, list[Metrics]]:
    """Dispatch `count` updates of one run per device, piece by piece, without waiting for them."""
    found = []
    for _ in range(count):
        carry, metrics = run.update(carry, plan)
        found.append(metrics)
    return carry, found


def compile_chunk(loops: Sequence[CompiledLoop]) -> Early:
    """A function from the carries and plans of loops to the carries after a chunk of updates and
    its metrics, with the runs first; to be compiled, for a GPU. The loops' learners must learn in
    the same way: they learn side by side, as one batch."""
    spread = loops[0].sharding.spec
    chunk = partial(_chunk, [loop.pieces for loop in loops], loops[0].job.chunk)
    every = jax.shard_map(
        chunk, mesh=loops[0].mesh, in_specs=spread, out_specs=spread, check_vma=False
    )
    return Traced(
        jax.jit(every, donate_argnums=(0,), out_shardings=loops[0].sharding),
        plain=lambda each: [metrics._asdict() for metrics in each],
        results=lambda each: [Metrics(**metrics) for metrics in each],
        jobs=[loop.job for loop in loops],
    )


def _chunk(
    groups: Sequence[Pieces], count: int, carries: Sequence[Carry], plans: Sequence[Plan]
) -> tuple[list[Carry], list[Metrics]]:
    """`count` updates of groups of runs that differ in their curriculum or teachers' programs."""
    hyper = _joined([plan.hyper for plan in plans])
    sizes = [carry.teacher.probability.shape[0] for carry in carries]

    def one(state: Any, _: None) -> Any:
        learners, teachers = state
        probability = _joined([teacher.probability for teacher in teachers])
        learners, learned = each_run(groups[0].learn, learners, probability, hyper)
        taught = [
            each_run(group.teach, teacher, own, plan.program)
            for group, teacher, own, plan in zip(
                groups, teachers, _split(learned, sizes), plans, strict=True
            )
        ]
        return (learners, [teacher for teacher, _ in taught]), [metrics for _, metrics in taught]

    state = _joined([carry.learner for carry in carries]), [carry.teacher for carry in carries]
    (learners, teachers), metrics = lax.scan(one, state, length=count)
    after = list(map(Carry, teachers, _split(learners, sizes)))
    return after, jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), metrics)


def _joined(groups: Sequence[Any]) -> Any:
    """The runs of all groups as one."""
    return jax.tree.map(lambda *x: jnp.concatenate(x) if len(x) > 1 else x[0], *groups)


def _split(runs: Any, sizes: Sequence[int]) -> list[Any]:
    """The runs of each group."""
    ends = np.cumsum(sizes)
    return [
        jax.tree.map(lambda x, a=end - size, b=end: x[a:b], runs)
        for size, end in zip(sizes, ends, strict=True)
    ]


def each_run(f: Any, *runs: Any) -> Any:
    """Apply f to every run, by `jax.vmap`; a single run needs no vmap."""
    if jax.tree.leaves(runs[0])[0].shape[0] == 1:
        found = f(*jax.tree.map(lambda x: x[0], runs))
        return jax.tree.map(lambda x: x[None], found)
    return jax.vmap(f, axis_name=_AXIS)(*runs)


def in_turn(devices: list[Any]) -> bool:
    """Whether a device trains one run after the other. A CPU core does: batched products of many
    small matrices are slower there, and a single run stays in the cache."""
    return bool(devices[0].platform == "cpu")


def in_any_run(condition: Array) -> Array:
    """Whether the condition holds in any run of this device, so that `lax.cond` can skip work that
    no run needs. Call it inside `each_run`."""
    try:
        return lax.pmax(condition.astype(jnp.int32), _AXIS) > 0  # type: ignore[no-untyped-call]
    except NameError:  # a single run has no axis
        return condition


def _single(x: Any) -> NDArray[Any]:
    array = np.asarray(x)
    return array.astype(np.float32) if array.dtype == np.float64 else array
