"""Teacher, environments and agent as one compiled program, for all runs of a job at once.

Algorithm 2 of the paper: the teacher gives the probabilities of the tasks, each environment draws
its next task from them when an episode ends, and after each update of PPO (a time-step) the teacher
sees the mean return of each task whose episodes ended in it.

One run is written down; `jax.vmap` makes it many, `jax.shard_map` spreads them over all devices.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from mastery.learners import ppo
from mastery.learners.ppo import Agent, Hyper, Learner, Settings
from mastery.minigrid.levels import generate
from mastery.minigrid.rules import act
from mastery.minigrid.state import start
from mastery.minigrid.tasks import TASKS
from mastery.minigrid.vision import seen_cells
from mastery.recipe import Recipe
from mastery.runs.arrays import fitting, is_key, named
from mastery.runs.job import Job, minigrid_tasks
from mastery.runs.loop import EVALUATION_SEED, POLICIES, Evaluation, Metrics
from mastery.switch import Switch, stack

Array = Any  # a JAX array


class Plan(NamedTuple):
    """What does not change in a run."""

    program: Switch
    hyper: Hyper


class Carry(NamedTuple):
    """What changes in a run."""

    teacher: Any  # the program's state
    learner: Learner
    key: Array  # of the teacher


def begin(key: Array, plan: Plan, tasks: Array, settings: Settings, slots: int) -> Carry:
    key, first, for_learner = jax.random.split(key, 3)
    teacher = plan.program.init(jax.random.uniform(first, (3, len(tasks))), slots)
    learner = ppo.begin(for_learner, _spread(plan.program.distribution(teacher), tasks), settings)
    return Carry(teacher, learner, key)


def time_step(carry: Carry, plan: Plan, tasks: Array, settings: Settings) -> tuple[Carry, Metrics]:
    """One update of the agent, and what the teacher learns from it."""
    teacher, learner, key = carry
    program, hyper = plan
    probability = program.distribution(teacher)
    learner, played = ppo.update(learner, _spread(probability, tasks), settings, hyper)
    episodes, returns, frames = (x[tasks] for x in played)
    key, for_noise = jax.random.split(key)
    teacher = program.observe(
        teacher,
        returns / jnp.maximum(episodes, 1),
        episodes > 0,
        jax.random.uniform(for_noise, (3, len(tasks))),
    )
    metrics = Metrics(probability, program.mastery(teacher), episodes, returns, frames)
    return Carry(teacher, learner, key), metrics


def _spread(probability: Array, tasks: Array) -> Array:
    """The teacher's probabilities among those of all eighteen tasks."""
    return jnp.zeros(len(TASKS)).at[tasks].set(probability)


def evaluate(
    agents: Agent, key: Array, tasks: Array, minimum: Array, episodes: int, settings: Settings
) -> Evaluation:
    """Episodes of every task, by every run's agent, greedy and sampled; the levels are the same
    for all of them. Runs are the first axis of `agents`."""
    for_levels, for_actions = jax.random.split(key)
    once = jnp.repeat(jnp.asarray(tasks), episodes)
    first = start(generate(for_levels, once))
    runs = jax.tree.leaves(agents)[0].shape[0]
    count = len(POLICIES) * len(once)

    def for_all(x: Array) -> Array:  # of every run, by both policies
        return jnp.broadcast_to(jnp.concatenate([x] * len(POLICIES)), (runs, count, *x.shape[1:]))

    greedy = jnp.arange(count) < len(once)
    reward = ppo.REWARDS[settings.reward]

    def more(carry: Any) -> Array:
        return ~carry[2].all()

    def one(carry: Any) -> Any:
        state, memory, over, returns, length = carry
        t = length.max()
        uniforms = jax.random.uniform(jax.random.fold_in(for_actions, t), (count,))
        starts = jnp.broadcast_to(t == 0, (count,))

        def step(agent: Agent, state: Any, memory: Array) -> Any:
            memory, logits, _ = agent(memory, starts, seen_cells(state))
            action = jnp.where(greedy, logits.argmax(-1), ppo.choose(logits, uniforms))
            return (*act(state, action, reward), memory)

        state, outcome, memory = each_run(step, agents, state, memory)
        returns = returns + jnp.where(over, 0.0, outcome.reward)
        length = length + ~over
        return state, memory, over | outcome.terminated | outcome.truncated, returns, length

    memory = jnp.zeros((runs, agents.memory_size, count))
    nothing = jnp.zeros((runs, count))
    state = jax.tree.map(for_all, first)
    carry = (state, memory, nothing > 0, nothing, nothing.astype(jnp.int32))
    _, _, _, returns, length = lax.while_loop(more, one, carry)
    shape = (runs, len(POLICIES), len(tasks), episodes)
    returns, length = returns.reshape(shape), length.reshape(shape).astype(jnp.float32)
    success = returns > minimum[:, None]
    return Evaluation(returns.mean(-1), success.mean(-1), length.mean(-1))


def each_run(f: Any, *runs: Any) -> Any:
    """f for every run. One alone goes without the axis: on a CPU the product of a batch of one
    matrix is twice as slow as that of a matrix."""
    if jax.tree.leaves(runs[0])[0].shape[0] > 1:
        return jax.vmap(f)(*runs)
    found = f(*jax.tree.map(lambda x: x[0], runs))
    return jax.tree.map(lambda x: x[None], found)


class MiniGridLoop:
    """The loop of a job on our own MiniGrid; see `mastery.runs.loop.Loop`."""

    def __init__(self, job: Job, devices: list[Any] | None = None) -> None:
        self.job = job
        settings, runs = job.settings, job.runs
        devices = list(jax.devices() if devices is None else devices)[: len(runs)]
        # every device has the same number of runs; the last one may have some that nobody asked for
        self._runs = len(runs)
        padded = runs + [runs[-1]] * (-len(runs) % len(devices))
        tasks = np.array(minigrid_tasks(job.curriculum), np.int32)
        minimum = job.curriculum.minimum.astype(np.float32)
        recipes = [Recipe.parse(run.program) for run in padded]
        hypers = [Hyper.of(settings)._replace(**run.changes) for run in padded]
        plan = Plan(
            stack([recipe.build(job.curriculum) for recipe in recipes]),
            Hyper(*(np.array(values, np.float32) for values in zip(*hypers, strict=True))),
        )
        slots = max(int(recipe.settings["window"]) for recipe in recipes)
        mesh = Mesh(np.array(devices), ("runs",))
        spread, same = PartitionSpec("runs"), PartitionSpec()  # type: ignore[no-untyped-call]
        self._sharding = NamedSharding(mesh, spread)
        self._plan = jax.device_put(jax.tree.map(_single, plan), self._sharding)
        self._keys = jax.device_put(
            jnp.stack([jax.random.key(run.seed) for run in padded]), self._sharding
        )

        def all_begin(keys: Array, plan: Plan) -> Carry:
            found: Carry = each_run(
                lambda key, plan: begin(key, plan, tasks, settings, slots), keys, plan
            )
            return found

        def all_advance(carry: Carry, plan: Plan) -> tuple[Carry, Metrics]:
            def one(carry: Carry, plan: Plan) -> tuple[Carry, Metrics]:
                step = partial(time_step, plan=plan, tasks=tasks, settings=settings)
                return lax.scan(lambda c, _: step(c), carry, length=job.chunk)

            found: tuple[Carry, Metrics] = each_run(one, carry, plan)
            return found

        def all_evaluate(agents: Agent, key: Array) -> Evaluation:
            return evaluate(agents, key, tasks, minimum, job.episodes, settings)

        over = partial(jax.shard_map, mesh=mesh, out_specs=spread, check_vma=False)
        self._begin = jax.jit(over(all_begin, in_specs=(spread, spread)))
        self._advance = jax.jit(over(all_advance, in_specs=(spread, spread)), donate_argnums=0)
        self._evaluate = jax.jit(over(all_evaluate, in_specs=(spread, same)))

    def begin(self) -> Carry:
        carry: Carry = self._begin(self._keys, self._plan)
        return carry

    def advance(self, carry: Carry) -> tuple[Carry, Metrics]:
        carry, metrics = self._advance(carry, self._plan)
        return carry, Metrics(*(np.swapaxes(self._own(x), 0, 1) for x in metrics))

    def evaluate(self, carry: Carry, update: int) -> Evaluation:
        key = jax.random.fold_in(jax.random.key(EVALUATION_SEED), update)
        return Evaluation(*(self._own(x) for x in self._evaluate(carry.learner.agent, key)))

    def save(self, carry: Carry) -> dict[str, NDArray[Any]]:
        return {name: self._own(leaf) for name, leaf in named(carry)}

    def load(self, arrays: dict[str, NDArray[Any]]) -> Carry:
        like = jax.eval_shape(self._begin, self._keys, self._plan)
        wanted = [(name, (self._runs, *x.shape[1:]), x.dtype) for name, x in named(like)]
        padding = len(self._keys) - self._runs
        leaves, structure = jax.tree.flatten(like)
        found = []
        for array, leaf in zip(fitting(arrays, wanted), leaves, strict=True):
            padded = np.concatenate([array, *[array[-1:]] * padding])
            placed = jax.device_put(padded, self._sharding)
            found.append(jax.random.wrap_key_data(placed) if is_key(leaf) else placed)
        carry: Carry = jax.tree.unflatten(structure, found)
        return carry

    def close(self) -> None:
        pass

    def _own(self, x: Array) -> NDArray[Any]:
        """On the host, without the runs that only fill up the devices."""
        return np.asarray(x)[: self._runs]


def _single(x: Any) -> NDArray[Any]:
    array = np.asarray(x)
    return array.astype(np.float32) if array.dtype == np.float64 else array
