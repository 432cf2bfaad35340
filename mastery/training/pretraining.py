"""Pre-train the transformer that every run of a reasoning job begins with, and keep it.

The model depends on nothing but its settings, the families of problems and the kind of device, so
it is made once and read from then on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mastery import checkpoint
from mastery.errors import CheckpointError
from mastery.learners import grpo
from mastery.learners.grpo import ReasoningSettings
from mastery.learners.transformer import Transformer
from mastery.reasoning.families import FAMILIES, LEVELS
from mastery.reasoning.problems import FamilyLevels
from mastery.training.devices import cache_folder
from mastery.training.job import Job, reasoning_tasks
from mastery.training.loops.named_arrays import named, restore

KIND = "mastery.transformer"
VERSION = 1  # of pre-training: a change makes models anew
SEED = 0
ON_A_GPU = 128  # features from which a model is meant for a GPU
_STEPS = 100  # per call of the compiled function

Report = Callable[[int, int, float], None]  # steps done, all steps, loss


def load_model(
    job: Job, note: Callable[[str], None] | None = None, report: Report | None = None
) -> Transformer:
    """The pre-trained transformer of a job: read, or made and kept for next time.

    Args:
        job: A reasoning job.
        note: Called with a line for the user.
        report: Called with the progress, if the model must be made.
    """
    try:
        path = model_path(job)
    except RuntimeError as error:  # there is no home directory
        if note is not None:
            note(f"the pre-trained model cannot be kept, and will be made again: {error}")
        return pretrain(job.settings, families_of(job), report)
    like = jax.eval_shape(partial(grpo.new_model, settings=job.settings), jax.random.key(0))
    if path.exists():
        try:
            arrays = checkpoint.read(path, KIND)[1]
            model = restore({name: x[None] for name, x in arrays.items()}, like, 1)
            return _with_arrays(model)
        except CheckpointError as error:
            if note is not None:
                note(f"{error}; making the pre-trained model again")
    if note is not None and report is None:
        slow = jax.devices()[0].platform == "cpu" and job.settings.width >= ON_A_GPU
        hint = "; on a CPU that takes hours, and --preset small a minute" if slow else ""
        note(f"pre-training the model once; it is kept in {path}{hint}")
    model = pretrain(job.settings, families_of(job), report)
    about = {"settings": _about(job)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.write(path, KIND, about, {name: np.asarray(x) for name, x in named(model)})
    except (OSError, CheckpointError) as error:
        if note is not None:
            note(f"the pre-trained model cannot be kept, and will be made again: {error}")
    return model


def _with_arrays(batch: Any) -> Transformer:
    """The only model of a batch of one."""
    model: Transformer = jax.tree.map(lambda x: jnp.asarray(x[0]), batch)
    return model


def model_path(job: Job) -> Path:
    """The file of a job's pre-trained model."""
    text = json.dumps(_about(job), sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return cache_folder() / "models" / f"reasoning-{name}.ckpt"


def _about(job: Job) -> dict[str, Any]:
    """All that a pre-trained model depends on."""
    names = ("width", "layers", "heads", "gradient_norm")
    settings = {
        name: value
        for name, value in vars(job.settings).items()
        if name in names or name.startswith("pretrain")
    }
    device = jax.devices()[0]
    families = [list(FAMILIES)[i] for i in families_of(job)]
    kind = f"{device.platform} {device.device_kind}"
    return {"version": VERSION, **settings, "families": families, "device": kind}


def families_of(job: Job) -> list[int]:
    """The numbers of the families that a job has tasks of."""
    return sorted(set(reasoning_tasks(job.curriculum)[0]))


def pretrain(
    settings: ReasoningSettings, families: list[int], report: Report | None = None
) -> Transformer:
    """Train a new model on right answers to problems of some families, mostly easy ones."""
    tasks, steps = every_level(families), settings.pretrain_steps

    @partial(jax.jit, donate_argnums=0)
    def some(learner: grpo.ReasoningLearner, first: Any) -> Any:
        def one(learner: grpo.ReasoningLearner, step: Any) -> Any:
            after, lost = grpo.pretrain(learner, step, tasks, settings)
            # the last call may go beyond the end
            return jax.tree.map(partial(_choose, step < steps), after, learner), lost

        return lax.scan(one, learner, first + jnp.arange(_STEPS))

    for_model, for_problems = jax.random.split(jax.random.key(SEED))
    learner = grpo.begin(for_problems, grpo.new_model(for_model, settings))
    for first in range(0, steps, _STEPS):
        learner, lost = some(learner, first)
        if report is not None:
            report(min(first + _STEPS, steps), steps, float(lost.mean()))
    return learner.model


def pass_rates(model: Transformer, job: Job, each: int = 200) -> dict[str, list[float]]:
    """The share of held-out problems that a model gets right by sampling, by family and level."""
    families = families_of(job)
    tasks = every_level(families)
    test = jax.jit(lambda model, key: grpo.evaluate(model, key, tasks, each)[0][1])
    found = np.asarray(test(model, jax.random.key(SEED))).reshape(len(families), LEVELS)
    return {list(FAMILIES)[i]: row.tolist() for i, row in zip(families, found, strict=True)}


def every_level(families: list[int]) -> FamilyLevels:
    """The tasks of some families, all levels."""
    return FamilyLevels(
        np.repeat(families, LEVELS).astype(np.int32),
        np.tile(np.arange(1, LEVELS + 1), len(families)).astype(np.int32),
    )


def _choose(which: Any, a: Any, b: Any) -> Any:
    return jnp.where(which, a, b)
