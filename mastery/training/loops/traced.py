"""Keep on disk what was traced for a GPU, so that the next such job starts sooner.

Tracing and lowering a chunk of updates is Python, and takes as long as one agent then needs to
learn a curriculum. What it makes depends on the job, on the code of mastery and of JAX, and on
JAX's configuration; the name of a file is a digest of all of them. It would also depend on what a
script has replaced in its process, so it is kept only where `devices.prepare` was called: by the
command `mastery`, and by benchmarks, which replace nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export

import mastery
from mastery import checkpoint
from mastery.errors import MasteryError
from mastery.rundir.machine import versions
from mastery.training import devices
from mastery.training.job import Job
from mastery.training.loops.early import Early

KIND = "traced"
DAYS = 30.0  # a file that was not used for so long is deleted
# JAX promises nothing of the kernels' calls beyond its own version; another has another digest
KERNELS = "__gpu$xla.gpu.triton"
ALLOWED = [export.DisabledSafetyCheck.custom_call(KERNELS)]
_IGNORED = ("seed", "frames", "evaluate_every", "stop_mastered", "stop_return")  # of a job


class Traced(Early):
    """A function of a job, compiled on one device, whose tracing is kept.

    Args:
        compiled: From `jax.jit`. It returns its first argument changed, and results.
        plain: Makes built-in containers of the results, for the file.
        results: Makes the results again.
        jobs: The jobs that the function trains.
    """

    def __init__(
        self,
        compiled: Any,
        plain: Callable[[Any], Any],
        results: Callable[[Any], Any],
        jobs: Sequence[Job],
    ) -> None:
        super().__init__(compiled)
        self._plain, self._results, self._jobs = plain, results, jobs

    def lower(self, given: Iterable[Any]) -> tuple[Any, Callable[[Any], Callable[..., Any]]]:
        given = tuple(given)
        folder = devices.traced_folder
        leaves, tree = jax.tree.flatten(given)
        if folder is None or not self._may_keep(leaves) or source() != SOURCE:
            return super().lower(given)
        after, donated = jax.tree.structure(given[0]), range(len(jax.tree.leaves(given[0])))
        path = folder / f"{self._digest(leaves, tree)}.traced"
        try:
            exported = self._exported(path, leaves, tree)
        except (NotImplementedError, ValueError):  # JAX does not export all that it compiles
            return super().lower(given)
        again = jax.jit(
            exported.call, donate_argnums=tuple(donated), out_shardings=leaves[0].sharding
        )

        def call(compiled: Any) -> Callable[..., Any]:
            def called(*given: Any) -> Any:
                changed, found = compiled(*jax.tree.leaves(given))
                return jax.tree.unflatten(after, changed), self._results(found)

            return called

        return again.lower(*leaves), call

    def _may_keep(self, leaves: Sequence[Any]) -> bool:
        own = any(job.own for job in self._jobs)  # whose code may be anywhere
        return not own and all(len(x.sharding.device_set) == 1 for x in leaves) and _can_export()

    def _exported(self, path: Path, leaves: Sequence[Any], tree: Any) -> Any:
        """From the file, or traced and kept there."""
        # if there is none, or none that can be read, it is made anew
        with contextlib.suppress(MasteryError, OSError, ValueError):
            _, arrays = checkpoint.read(path, KIND)
            exported = export.deserialize(bytearray(arrays["exported"].tobytes()))
            with contextlib.suppress(OSError):  # it may be another user's
                os.utime(path)
            return exported

        def flat(*leaves: Any) -> Any:
            changed, found = self.compiled(*jax.tree.unflatten(tree, leaves))
            return jax.tree.leaves(changed), self._plain(found)

        exported = export.export(jax.jit(flat), disabled_checks=ALLOWED)(*leaves)
        data = exported.serialize()
        with contextlib.suppress(MasteryError, OSError):  # then the next job traces it again
            path.parent.mkdir(parents=True, exist_ok=True)
            _delete_old(path.parent)
            checkpoint.write(path, KIND, {}, {"exported": np.frombuffer(data, np.uint8)})
        return export.deserialize(data)

    def _digest(self, leaves: Sequence[Any], tree: Any) -> str:
        """A digest of all that decides what is traced."""
        jobs = [{k: v for k, v in job.to_dict().items() if k not in _IGNORED} for job in self._jobs]
        device = jax.devices()[0]
        what = [
            SOURCE,
            versions(),
            jobs,
            str(tree),
            [(x.shape, str(x.dtype), str(x.sharding)) for x in leaves],
            [device.platform, device.device_kind, getattr(device, "compute_capability", "")],
            len(jax.devices()),
            sorted((name, str(value)) for name, value in jax.config.values.items()),
        ]
        return hashlib.sha256(json.dumps(what, default=str).encode()).hexdigest()


def _can_export() -> bool:
    return importlib.util.find_spec("flatbuffers") is not None  # which JAX then needs


def source() -> str:
    """A digest of the files of mastery's code."""
    root = Path(mastery.__file__).parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(f"{path.relative_to(root)}\n{len(content := path.read_bytes())}\n".encode())
        found.update(content)
    return found.hexdigest()


SOURCE = source()  # of the code that was imported; the files may change later


def _delete_old(folder: Path) -> None:
    """Delete the files that were not used for long."""
    for path in folder.glob("*.traced"):
        with contextlib.suppress(OSError):  # another process may have deleted it
            if path.stat().st_mtime < time.time() - DAYS * 86400:
                path.unlink()
