"""Where a command trains: on this machine, or on a Ray cluster."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mastery.errors import needs

if TYPE_CHECKING:
    from mastery.training.job import Job
    from mastery.training.train import Trained, TrainOptions

ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Train on a Ray cluster, into a folder on storage that all its machines share: "
        "[bold]HOST:PORT[/bold], as ray start --head prints it, or [bold]auto[/bold], the cluster "
        "that this machine belongs to. See docs/guides/clusters.md.",
    ),
]


def place_of(cluster: str | None, parts: int | None = None) -> Here | There:
    """Where to train: on a cluster, if there is an address."""
    if cluster is None:
        return Here()
    with needs("--cluster", "ray"):
        import ray  # noqa: F401
    return There(cluster, parts)


class Here:
    """Training on this machine."""

    option = ""  # that resumes a job here

    def check(self, job: Job) -> None:
        """Start JAX for a new job."""
        from mastery.training.devices import prepare

        prepare(job.devices)

    def check_resume(self, directory: Path, job: Job) -> None:
        """Start JAX for a job of a run directory."""
        from mastery.rundir.split import is_split
        from mastery.training.devices import prepare
        from mastery.training.parts import cores_for, parts_to_resume

        prepare(cores_for(parts_to_resume(directory)[1]) if is_split(directory) else job.devices)

    def train(self, job: Job, directory: Path, options: TrainOptions) -> Trained:
        from mastery.training.train import train

        return train(job, directory, options)

    def resume(self, directory: Path, options: TrainOptions, frames: int | None) -> Trained:
        from mastery.training.train import resume

        return resume(directory, options, frames=frames)


@dataclass(frozen=True)
class There:
    """Training on a cluster."""

    address: str
    parts: int | None

    @property
    def option(self) -> str:
        """What resumes a job there."""
        return f" --cluster {shlex.quote(self.address)}"

    def check(self, job: Job) -> None:
        """Refuse a job that cannot be split, or a wrong address, before anything is printed."""
        from mastery.cluster.connect import check_address
        from mastery.training.parts import split_job

        split_job(job, self.parts or 1)
        check_address(self.address)

    def check_resume(self, directory: Path, job: Job) -> None:
        """Refuse a job without parts, or a wrong address."""
        from mastery.cluster.connect import check_address
        from mastery.cluster.train import check_in_parts

        check_in_parts(directory)
        check_address(self.address)

    def train(self, job: Job, directory: Path, options: TrainOptions) -> Trained:
        from mastery.cluster.train import train

        return train(job, directory, self.address, options, parts=self.parts)

    def resume(self, directory: Path, options: TrainOptions, frames: int | None) -> Trained:
        from mastery.cluster.train import resume

        return resume(directory, self.address, options, frames=frames)
