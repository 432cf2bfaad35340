"""All runs of a job as one compiled program: what every such loop has in common.

One run is written down, as two functions; `each_run` makes it many, `jax.shard_map` spreads them
over all devices.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from mastery.learners.addition import PARTS
from mastery.recipe import Recipe
from mastery.runs.arrays import fitting, is_key, named
from mastery.runs.job import Job
from mastery.runs.loop import EVALUATION_SEED, Evaluation, Metrics
from mastery.switch import Switch, stack

Array = Any  # a JAX array
_AXIS = "run"


class Plan(NamedTuple):
    """What does not change in a run."""

    program: Switch
    hyper: Any  # the learner's settings that may differ from run to run


class CompiledLoop:
    """The loop of a job; see `mastery.runs.loop.Loop`.

    begin: the carry of a run, from a key and its plan; its `learner` is what `evaluate` gets.
    step: one update of a run, from its carry and its plan.
    evaluate: of the learners of all runs, which are the first axis, and a key.
    parts: devices that share a run, on the axis PARTS; what they do must come out the same on each.
    """

    def __init__(
        self,
        job: Job,
        begin: Callable[[Array, Plan], Any],
        step: Callable[[Any, Plan], tuple[Any, Metrics]],
        evaluate: Callable[[Any, Array], Evaluation],
        devices: list[Any] | None = None,
        parts: int = 1,
    ) -> None:
        self.job = job
        runs = job.runs
        devices = list(jax.devices() if devices is None else devices)
        groups = min(len(runs), len(devices) // parts)
        # every device has the same number of runs; the last one may have some that nobody asked for
        self._runs = len(runs)
        padded = runs + [runs[-1]] * (-len(runs) % groups)
        recipes = [Recipe.parse(run.program) for run in padded]
        hypers = [job.learner.Hyper.of(job.settings)._replace(**run.changes) for run in padded]
        plan = Plan(
            stack([recipe.build(job.curriculum) for recipe in recipes]),
            type(hypers[0])(
                *(np.array(values, np.float32) for values in zip(*hypers, strict=True))
            ),
        )
        mesh = Mesh(np.array(devices[: groups * parts]).reshape(groups, parts), ("runs", PARTS))
        spread, same = PartitionSpec("runs"), PartitionSpec()  # type: ignore[no-untyped-call]
        self._sharding = NamedSharding(mesh, spread)
        self._plan = jax.device_put(jax.tree.map(_single, plan), self._sharding)
        self._keys = jax.device_put(
            jnp.stack([jax.random.key(run.seed) for run in padded]), self._sharding
        )

        def all_begin(keys: Array, plan: Plan) -> Any:
            return each_run(begin, keys, plan)

        def all_advance(carry: Any, plan: Plan) -> tuple[Any, Metrics]:
            def one(carry: Any, plan: Plan) -> tuple[Any, Metrics]:
                return lax.scan(lambda c, _: step(c, plan), carry, length=job.chunk)

            found: tuple[Any, Metrics] = each_run(one, carry, plan)
            return found

        over = partial(jax.shard_map, mesh=mesh, out_specs=spread, check_vma=False)
        self._begin = jax.jit(over(all_begin, in_specs=(spread, spread)))
        self._advance = jax.jit(over(all_advance, in_specs=(spread, spread)), donate_argnums=0)
        self._evaluate = jax.jit(over(evaluate, in_specs=(spread, same)))

    def begin(self) -> Any:
        return self._begin(self._keys, self._plan)

    def advance(self, carry: Any) -> tuple[Any, Metrics]:
        carry, metrics = self._advance(carry, self._plan)
        return carry, jax.tree.map(lambda x: np.swapaxes(self._own(x), 0, 1), metrics)

    def evaluate(self, carry: Any, update: int) -> Evaluation:
        key = jax.random.fold_in(jax.random.key(EVALUATION_SEED), update)
        return Evaluation(*(self._own(x) for x in self._evaluate(carry.learner, key)))

    def save(self, carry: Any) -> dict[str, NDArray[Any]]:
        return {name: self._own(leaf) for name, leaf in named(carry)}

    def load(self, arrays: dict[str, NDArray[Any]]) -> Any:
        like = jax.eval_shape(self._begin, self._keys, self._plan)
        wanted = [(name, (self._runs, *x.shape[1:]), x.dtype) for name, x in named(like)]
        padding = len(self._keys) - self._runs
        leaves, structure = jax.tree.flatten(like)
        found = []
        for array, leaf in zip(fitting(arrays, wanted), leaves, strict=True):
            padded = np.concatenate([array, *[array[-1:]] * padding])
            placed = jax.device_put(padded, self._sharding)
            found.append(jax.random.wrap_key_data(placed) if is_key(leaf) else placed)
        return jax.tree.unflatten(structure, found)

    def close(self) -> None:
        pass

    def _own(self, x: Array) -> NDArray[Any]:
        """On the host, without the runs that only fill up the devices."""
        return np.asarray(x)[: self._runs]


def each_run(f: Any, *runs: Any) -> Any:
    """f for every run; one alone goes without an axis of runs."""
    if jax.tree.leaves(runs[0])[0].shape[0] == 1:
        found = f(*jax.tree.map(lambda x: x[0], runs))
        return jax.tree.map(lambda x: x[None], found)
    if in_turn():
        return lax.map(lambda run: f(*run), runs)
    return jax.vmap(f, axis_name=_AXIS)(*runs)


def in_turn() -> bool:
    """Whether a device takes one run after the other. A core does: there the products of many small
    matrices at once are slower, and a run by itself stays in the cache."""
    return jax.default_backend() == "cpu"


def in_any_run(condition: Array) -> Array:
    """Whether it holds in one of the runs of this device, so that `lax.cond` can leave out what
    none of them needs. Within `each_run`."""
    try:
        return lax.pmax(condition.astype(jnp.int32), _AXIS) > 0  # type: ignore[no-untyped-call]
    except NameError:  # by itself
        return condition


def slots(job: Job) -> int:
    """Of the windows that the job's programs keep."""
    return max(int(Recipe.parse(program).settings["window"]) for program in job.programs)


def _single(x: Any) -> NDArray[Any]:
    array = np.asarray(x)
    return array.astype(np.float32) if array.dtype == np.float64 else array
