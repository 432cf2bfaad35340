"""A program inside a compiled training step: many runs, many settings, one `vmap`, one `scan`.

python examples/inside_jax.py
"""

import jax
import jax.numpy as jnp

import mastery
from mastery.programs.distribution import cumulative, draw
from mastery.programs.evidence import Evidence

curriculum = mastery.Curriculum.load("key-corridor")
n = len(curriculum)
programs = [mastery.Recipe.parse(f"mr:delta={d}").build(curriculum) for d in (0.2, 0.6, 1.0)]
stacked = jax.tree.map(lambda *x: jnp.stack([jnp.asarray(i) for i in x]), *programs)


def run(program, key):
    """200 time-steps of a stand-in for a learner, whose skill grows with practice."""

    def step(carry, key):
        state, skill = carry
        draws, noise = jax.random.split(key)
        tasks = draw(cumulative(program.distribution(state)), jax.random.uniform(draws, (16,)))
        practice = (tasks[:, None] == jnp.arange(n)).sum(axis=0)
        skill = 1 - (1 - skill) * 0.998**practice
        noise = jax.random.uniform(noise, (3, n))
        state = program.observe(state, Evidence.single(0.5 * skill, practice > 0), noise)
        return (state, skill), program.distribution(state)

    start, loop = jax.random.split(key)
    state = program.init(jax.random.uniform(start, (3, n)), slots=10)
    return jax.lax.scan(step, (state, jnp.zeros(n)), jax.random.split(loop, 200))


if __name__ == "__main__":
    (_, skill), probabilities = jax.jit(jax.vmap(run))(
        stacked, jax.random.split(jax.random.key(0), 3)
    )
    for delta, row in zip((0.2, 0.6, 1.0), skill, strict=True):
        print(f"delta {delta}: skill after 200 time-steps", " ".join(f"{x:.2f}" for x in row))
