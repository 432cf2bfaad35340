"""Train the paper's jobs on a Ray cluster, all at the same time, each in parts.

A job gets a share of the cluster's parts by its length, and at least one. Ray begins them in order,
the longest jobs first, as there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from mastery.cluster.connect import connected
from mastery.cluster.nodes import check_nodes
from mastery.cluster.train import Cluster, Work, check_in_parts, told_failed, train_parts
from mastery.errors import MasteryError
from mastery.paper.experiments import PaperJob
from mastery.paper.processes import effort
from mastery.paper.run import check_same, keep_curves
from mastery.rundir.parts import holds_job
from mastery.rundir.results import load_results
from mastery.rundir.split import is_split
from mastery.training.job import Job
from mastery.training.parts import Together, create_parts, outcome_of, parts_to_resume
from mastery.training.train import Progress, Trained, TrainOptions, until_gone

Say = Callable[[PaperJob, Progress], None]


def on_cluster(
    jobs: Iterable[PaperJob],
    folder: Path,
    address: str,
    say: Say,
    scale: float = 1.0,
    options: TrainOptions = TrainOptions(),  # noqa: B008 (it cannot change)
) -> Iterator[tuple[PaperJob, Trained | str]]:
    """Train or resume jobs on a cluster, and yield each outcome, or why it failed, as it stops.

    Args:
        jobs: The jobs.
        folder: Holds the run directories; on storage that all nodes share.
        address: The cluster's address.
        say: Called with the progress of a job.
        scale: See `PaperJob.job`.
        options: When to stop and to save; the minutes are those of all jobs together.

    Raises:
        MasteryError: If there is no such cluster, a node is not fit to train, or the folder holds
            other jobs.
    """
    folder = folder.absolute()
    by_name = {part.name: part for part in jobs}
    wanted = {name: part.job(scale) for name, part in by_name.items()}
    for name, job in wanted.items():
        check_same(folder / name, job)
        if holds_job(folder / name):
            check_in_parts(folder / name)
    with connected(address) as ray:
        cluster = Cluster.of(ray)
        check_nodes(ray, cluster.nodes, folder, options.note)
        longest = sorted(wanted, key=lambda name: effort(wanted[name]), reverse=True)
        shares = parts_each(wanted, cluster.room.parts)
        works = {name: _begun(folder / name, wanted[name], shares[name]) for name in longest}

        report = until_gone(say)

        def show(name: str, progress: Progress) -> None:
            report(by_name[name], progress)

        for name, what in _all(cluster, works, show, options):
            yield by_name[name], _kept(folder / name, folder, scale, what)


def parts_each(jobs: Mapping[str, Job], room: int) -> dict[str, int]:
    """The number of parts of each job: its share of the room by its length, at least one."""
    total = sum(map(effort, jobs.values()))
    return {
        name: min(max(round(room * effort(job) / total), 1), len(job.runs))
        for name, job in jobs.items()
    }


def _begun(directory: Path, job: Job, parts: int) -> Work:
    if is_split(directory):
        return Work(directory, *parts_to_resume(directory))
    return Work(directory, job, create_parts(job, directory, parts))


def _kept(directory: Path, folder: Path, scale: float, what: Trained | str) -> Trained | str:
    """Save the curves of a job, if it has some; what became of it, or why they are not saved."""
    try:
        if len(load_results(directory).frames):
            keep_curves(directory, folder, scale)
    except MasteryError as error:  # the other jobs go on
        return what if isinstance(what, str) else str(error)
    return what


def _all(
    cluster: Cluster,
    works: Mapping[str, Work],
    show: Callable[[str, Progress], None],
    options: TrainOptions,
) -> Iterator[tuple[str, Trained | str]]:
    """Train all jobs; yield what became of each when its last part stops."""
    together = {name: Together(work.job, work.parts) for name, work in works.items()}
    left = {name: len(work.unfinished) for name, work in works.items()}
    failed: dict[str, dict[str, str]] = {name: {} for name in works}
    interrupted = False

    def end(name: str) -> tuple[str, Trained | str]:
        if failed[name]:
            return name, told_failed(failed[name], "the same command")
        return name, outcome_of(*works[name], interrupted)

    yield from (end(name) for name in works if not left[name])
    for part, what in train_parts(cluster, list(works.values()), options):
        name = part.whole.name
        number = list(works[name].parts).index(part)
        if isinstance(what, Progress):
            show(name, together[name].show(number, what))
            continue
        together[name].stopped(number)
        left[name] -= 1
        if isinstance(what, str):
            failed[name][part.name] = what
        else:
            interrupted = interrupted or what.interrupted
        if not left[name]:
            yield end(name)
