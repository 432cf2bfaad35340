"""Learn to solve problems with verifiable rewards by GRPO: one run, from top to bottom.

    ReasoningSettings   how the transformer is built and trained
    advantages          rewards of a group, relative to the group
    loss                the clipped objective, per symbol
    learn               one update: draw problems, complete them in groups, check, learn
    evaluate            the share of held-out problems that are right, per task

Group relative policy optimisation (Shao et al. 2024, arXiv:2402.03300), with the loss per token of
DAPO (Yu et al. 2025, arXiv:2503.14476) and no term for the distance to the first model, as is usual
by now. A group is g completions of one prompt; a reward is 1 if the answer is right, else 0:

    A_i = (r_i − mean r) / (std r + 1e-6)        0 in a group without variance
    ρ = π(symbol) / π_old(symbol)
    loss = − Σ min(ρ A, clip(ρ, 1 − ε, 1 + ε_high) A) / (number of symbols)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from mastery.errors import MasteryError
from mastery.learners.adam import adam, new_adam
from mastery.learners.settings import LearnerKind, check_numbers, setting
from mastery.learners.transformer import Transformer, log_probability, sample, score
from mastery.programs.distribution import cumulative, draw
from mastery.random_numbers import uniform
from mastery.reasoning import problems
from mastery.reasoning.alphabet import ANSWER, PAD
from mastery.reasoning.problems import FamilyLevels

Array = Any  # a JAX array


@dataclass(frozen=True)
class ReasoningSettings:
    """How a transformer is built and trained. `float` settings may differ from run to run."""

    prompts: int = setting(64, "prompts per update, which is one time-step of the teacher")
    group: int = setting(8, "completions of each prompt")
    minibatches: int = setting(1, "minibatches of an update, each one step of Adam")
    epochs: int = setting(1, "times that an update learns from its completions")
    width: int = setting(192, "features of a symbol")
    layers: int = setting(4, "layers")
    heads: int = setting(6, "heads per layer")
    learning_rate: float = setting(3e-5, "of Adam")
    clip: float = setting(0.2, "ε: how far a probability may fall before its gradient stops")
    clip_high: float = setting(0.28, "ε_high: how far it may rise")
    drop: float = setting(0.0, "1: leave groups without variance out of the mean loss; 0: do not")
    gradient_norm: float = setting(1.0, "largest norm of the gradient")
    pretrain_steps: int = setting(3000, "minibatches of supervised training before GRPO")
    pretrain_batch: int = setting(1024, "problems in each")
    pretrain_rare: int = setting(16, "a level is so many times rarer in it than the one below")
    pretrain_rate: float = setting(1e-3, "the learning rate of it, at its highest")

    unit: ClassVar[str] = "completions"

    def __post_init__(self) -> None:
        positive = ("learning_rate", "clip", "clip_high", "gradient_norm", "pretrain_rate")
        check_numbers(self, positive=positive, shares=("drop",))
        if self.group < 2:
            raise MasteryError(
                "group is 1; it must be at least 2, since a completion is compared with the others "
                "of its group"
            )
        for whole, part in (("width", "heads"), ("prompts", "minibatches")):
            if getattr(self, whole) % getattr(self, part):
                raise MasteryError(
                    f"{whole} is {getattr(self, whole)}; it must be a multiple of {part}, "
                    f"{getattr(self, part)}"
                )
        if self.width // self.heads % 2:
            raise MasteryError(f"width / heads is {self.width // self.heads}; it must be even")

    @property
    def per_update(self) -> int:
        """Completions per update."""
        return self.prompts * self.group

    def parts(self, most: int) -> int:
        """Number of devices that can share one run: one."""
        return 1


class ReasoningHyper(NamedTuple):
    """The settings that may differ from run to run, as arrays."""

    learning_rate: Array
    clip: Array
    clip_high: Array
    drop: Array
    gradient_norm: Array

    @classmethod
    def of(cls, settings: ReasoningSettings) -> ReasoningHyper:
        return cls(*(jnp.float32(getattr(settings, name)) for name in cls._fields))


SMALL = ReasoningSettings(
    prompts=32,
    minibatches=2,
    width=64,
    layers=2,
    heads=4,
    learning_rate=5e-4,
    pretrain_steps=1000,
    pretrain_batch=128,
    pretrain_rare=8,
    pretrain_rate=3e-3,
)
REASONING = LearnerKind(
    ReasoningSettings, ReasoningHyper, presets={"default": ReasoningSettings(), "small": SMALL}
)


class ReasoningLearner(NamedTuple):
    """A run: the transformer, the optimiser's state and the random key."""

    model: Transformer
    optimiser: Any
    key: Array


class Sampled(NamedTuple):
    """Groups of completions."""

    prompt: Array  # int32 (n, PROMPT)
    completion: Array  # int32 (n, g, ANSWER)
    log_probability: Array  # (n, g, ANSWER): of each symbol when it was drawn
    advantage: Array  # (n, g)


class Counted(NamedTuple):
    """The results of an update, per task; each (tasks,)."""

    completions: Array  # int32
    right: Array  # float32
    tokens: Array  # int32: symbols that were generated, with END
    flat: Array  # int32: groups without variance
    trained: Array  # int32: symbols of the other groups


def new_model(key: Array, settings: ReasoningSettings) -> Transformer:
    return Transformer(key, settings.width, settings.layers, settings.heads)


def begin(key: Array, model: Transformer) -> ReasoningLearner:
    return ReasoningLearner(model, new_adam(model), key)


def advantages(reward: Array) -> Array:
    """How much better each completion is than its group, in standard deviations; (n, g)."""
    centred = reward - reward.mean(1, keepdims=True)
    deviation = jnp.sqrt((centred**2).mean(1, keepdims=True))
    # the mean of 41 ones is not 1: compiled, it is their sum times 1/41
    varies = reward.max(1, keepdims=True) > reward.min(1, keepdims=True)
    return jnp.where(varies, centred / (deviation + 1e-6), 0.0)


def loss(model: Transformer, seen: Sampled, h: ReasoningHyper) -> Array:
    """The clipped objective, to be minimised."""
    own = log_probability(score(model, seen.prompt, seen.completion), seen.completion)
    counts = seen.completion != PAD
    ratio = jnp.exp(jnp.where(counts, own - seen.log_probability, 0.0))
    a = seen.advantage[..., None]
    clipped = jnp.clip(ratio, 1 - h.clip, 1 + h.clip_high)
    gained = jnp.where(counts, jnp.minimum(ratio * a, clipped * a), 0.0)
    varies = (seen.advantage != 0).any(1)[:, None, None]
    symbols = jnp.where(varies, 1.0, 1.0 - h.drop) * counts
    return -gained.sum() / jnp.maximum(symbols.sum(), 1.0)


def descend(
    model: Transformer, optimiser: Any, gradient: Any, rate: Array, largest: Array
) -> tuple[Transformer, Any]:
    """One step of Adam, with the gradient's norm limited."""
    norm = jnp.sqrt(sum(jnp.square(g).sum() for g in jax.tree.leaves(gradient)))
    scale = jnp.minimum(1.0, largest / (norm + 1e-9))
    gradient = jax.tree.map(lambda g: g * scale, gradient)
    return adam(model, gradient, optimiser, rate)


def learn(
    learner: ReasoningLearner,
    probabilities: Array,
    tasks: FamilyLevels,
    settings: ReasoningSettings,
    h: ReasoningHyper,
) -> tuple[ReasoningLearner, Counted]:
    """One update.

    Args:
        learner: The run.
        probabilities: (tasks,), the probability of each task.
        tasks: The tasks.
        settings: How to train; static under `jit`.
        h: The settings that may differ from run to run.

    Returns:
        The run after the update, and what was found of each task.
    """
    n, g = settings.prompts, settings.group
    key, for_tasks, for_problems, for_symbols = jax.random.split(learner.key, 4)
    task = draw(cumulative(jnp.asarray(probabilities)), uniform(for_tasks, (n,)))
    drawn = FamilyLevels(jnp.asarray(tasks.family)[task], jnp.asarray(tasks.level)[task])
    prompt, answer = problems.draw(for_problems, drawn, held_out=False)
    completion, log_p = sample(learner.model, prompt, uniform(for_symbols, (ANSWER, n, g)))
    right = problems.is_right(completion, answer).astype(jnp.float32)
    seen = Sampled(prompt, completion, log_p, advantages(right))

    def one(carry: Any, minibatch: Sampled) -> Any:
        model, optimiser = carry
        gradient = eqx.filter_grad(loss)(model, minibatch, h)
        return descend(model, optimiser, gradient, h.learning_rate, h.gradient_norm), None

    # the problems were drawn independently, so their order is random already
    split = jax.tree.map(lambda x: x.reshape(settings.minibatches, -1, *x.shape[1:]), seen)
    model, optimiser = learner.model, learner.optimiser
    for _ in range(settings.epochs):
        (model, optimiser), _ = lax.scan(one, (model, optimiser), split)

    mine = (task[:, None] == jnp.arange(len(tasks.family))).astype(jnp.int32)  # (n, tasks)
    tokens = (completion != PAD).sum((1, 2))
    flat = (right.max(1) == right.min(1)).astype(jnp.int32)
    found = Counted(
        g * mine.sum(0),
        right.sum(1) @ mine.astype(jnp.float32),
        tokens @ mine,
        flat @ mine,
        (tokens * (1 - flat)) @ mine,
    )
    return ReasoningLearner(model, optimiser, key), found


def evaluate(model: Transformer, key: Array, tasks: FamilyLevels, each: int) -> tuple[Array, Array]:
    """Complete `each` held-out problems per task, greedily and by sampling.

    Returns:
        The share that is right and the mean number of symbols, each (2, tasks).
    """
    every = FamilyLevels(*(jnp.repeat(jnp.asarray(x), each) for x in tasks))
    for_problems, for_symbols = jax.random.split(key)
    prompt, answer = problems.draw(for_problems, every, held_out=True)
    uniforms = uniform(for_symbols, (ANSWER, len(prompt), 1))
    found = []
    for greedy in (True, False):
        completion, _ = sample(model, prompt, uniforms, greedy)
        right = problems.is_right(completion, answer)[:, 0].reshape(-1, each).mean(1)
        found.append((right, (completion != PAD).sum((1, 2)).reshape(-1, each).mean(1)))
    (right, long), (right_sampled, long_sampled) = found
    return jnp.stack([right, right_sampled]), jnp.stack([long, long_sampled])


def supervised(model: Transformer, prompt: Array, answer: Array) -> Array:
    """The mean cross-entropy of right answers."""
    own = log_probability(score(model, prompt, answer[:, None])[:, 0], answer)
    counts = answer != PAD
    return -jnp.where(counts, own, 0.0).sum() / counts.sum()


def pretrain(
    learner: ReasoningLearner, step: Array, tasks: FamilyLevels, settings: ReasoningSettings
) -> tuple[ReasoningLearner, Array]:
    """One minibatch of supervised training on problems of the given tasks; returns the loss too.

    Easy levels are frequent and hard ones rare, as in the texts that language models have read: a
    task of level l is drawn in proportion to `pretrain_rare` ** −l. The learning rate rises over
    the first twentieth of the steps and falls to 0 along a cosine.
    """
    key, for_tasks, for_problems = jax.random.split(learner.key, 3)
    weight = settings.pretrain_rare ** -jnp.asarray(tasks.level, jnp.float32)
    task = draw(cumulative(weight / weight.sum()), uniform(for_tasks, (settings.pretrain_batch,)))
    drawn = FamilyLevels(jnp.asarray(tasks.family)[task], jnp.asarray(tasks.level)[task])
    problem = problems.draw(for_problems, drawn, held_out=False)
    done = step / settings.pretrain_steps
    rate = settings.pretrain_rate * jnp.minimum(20 * done, 0.5 + 0.5 * jnp.cos(jnp.pi * done))
    lost, gradient = eqx.filter_value_and_grad(supervised)(learner.model, *problem)
    largest = jnp.float32(settings.gradient_norm)
    model, optimiser = descend(learner.model, learner.optimiser, gradient, rate, largest)
    return ReasoningLearner(model, optimiser, key), lost
