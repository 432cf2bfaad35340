"""Many problems of given tasks, some of them held out; and which completions are right.

One problem in five is held out for evaluation, by a hash of its prompt. Training never draws these,
and evaluation draws nothing else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from mastery.random_numbers import uniform
from mastery.reasoning.alphabet import ANSWER, PROMPT
from mastery.reasoning.families import FAMILIES, NEEDED, Question

Array = Any  # a JAX array
FIFTH = 5  # one problem in so many is held out


class FamilyLevels(NamedTuple):
    """The tasks that problems are drawn of, as arrays."""

    family: Array  # int32 (tasks,): index in FAMILIES
    level: Array  # int32 (tasks,): from 1 to LEVELS


def make(tasks: FamilyLevels, u: Array) -> Question:
    """One problem per task, from uniforms (n, NEEDED): prompts (n, PROMPT), answers (n, ANSWER)."""

    def one(family: Array, level: Array, u: Array) -> Question:
        found: Question = lax.switch(family, list(FAMILIES.values()), level, u)
        return found

    made: Question = jax.vmap(one)(*tasks, u)
    return made


def is_held_out(prompt: Array) -> Array:
    """Whether problems are held out, by their prompts (n, PROMPT)."""
    h = jnp.zeros(prompt.shape[:-1], jnp.uint32)
    for i in range(prompt.shape[-1]):
        h = h * jnp.uint32(33) + prompt[..., i].astype(jnp.uint32)
    h = (h ^ (h >> 15)) * jnp.uint32(0x2C1B3C6D)
    return (h ^ (h >> 12)) % FIFTH == 0


def draw(key: Array, tasks: FamilyLevels, held_out: bool) -> Question:
    """New problems, one per task.

    Args:
        key: A JAX random key.
        tasks: The task of each problem; arrays (n,).
        held_out: Draw from those that are held out, or from the others.

    Returns:
        Prompts (n, PROMPT) and answers (n, ANSWER).
    """
    n = len(tasks.family)

    def again(carry: tuple[Array, Array, Question]) -> tuple[Array, Array, Question]:
        """Draw all anew, and keep those that were good."""
        round_, wrong, before = carry
        new = make(tasks, uniform(jax.random.fold_in(key, round_), (n, NEEDED)))
        problem = Question(
            *(jnp.where(wrong[:, None], x, y) for x, y in zip(new, before, strict=True))
        )
        return round_ + 1, is_held_out(problem.prompt) != held_out, problem

    none = Question(jnp.zeros((n, PROMPT), jnp.int32), jnp.zeros((n, ANSWER), jnp.int32))
    start = jnp.int32(0), jnp.ones(n, bool), none
    found: Question = lax.while_loop(lambda carry: carry[1].any(), again, start)[2]
    return found


def is_right(completion: Array, answer: Array) -> Array:
    """Whether completions (n, g, ANSWER) equal their answers (n, ANSWER), with END; bool (n, g).

    What follows a completion's END must be padding.
    """
    return (completion == answer[:, None]).all(-1)
