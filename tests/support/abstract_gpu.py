"""Lower a function for a GPU on a machine without one."""

import jax
from jax.sharding import AbstractDevice, AbstractMesh


def lowered_for_h200(f, *given):
    """The lowered text of f for an NVIDIA H200; nothing is compiled."""
    device = AbstractDevice("NVIDIA H200", num_cores=None, platform="gpu")
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=device)):
        return jax.jit(f).trace(*given).lower(lowering_platforms=("cuda",)).as_text()
