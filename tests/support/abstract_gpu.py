"""Lower a function for a GPU on a machine without one."""

import jax
from jax.sharding import AbstractDevice, AbstractMesh


def abstract_h200():
    """A context in which functions are traced for an NVIDIA H200."""
    device = AbstractDevice("NVIDIA H200", num_cores=None, platform="gpu")
    return jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=device))


def lowered_for_h200(f, *given):
    """The lowered text of f for an NVIDIA H200; nothing is compiled."""
    with abstract_h200():
        return jax.jit(f).trace(*given).lower(lowering_platforms=("cuda",)).as_text()
