"""Hypothesis draws the same examples in every run, so that a failure can be repeated; and what JAX
has compiled once, in whatever process, is not compiled again."""

import os
from pathlib import Path

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, print_blob=True)
settings.load_profile("repeatable")

_CACHE = Path(__file__).parent.parent / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
