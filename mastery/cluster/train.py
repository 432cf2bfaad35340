"""Train a job on a Ray cluster: submit its parts, show their progress, forward Ctrl-C."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mastery.cluster.connect import connected, reason_of
from mastery.cluster.messages import Messages
from mastery.cluster.nodes import Node, Room, check_nodes, find_nodes, find_room
from mastery.cluster.work import Order, train_part
from mastery.errors import MasteryError
from mastery.rundir.machine import versions
from mastery.rundir.split import is_split
from mastery.rundir.store import check_new
from mastery.training.job import Job
from mastery.training.parts import (
    JobPart,
    Together,
    cores_for,
    create_parts,
    is_finished,
    outcome_of,
    parts_to_resume,
    split_job,
)
from mastery.training.signals import interrupts
from mastery.training.train import Means, Progress, Trained, TrainOptions, until_gone

RETRIES = 20  # times that Ray runs a part again after its node or process died
WAIT_SECONDS = 0.5  # between two looks at the parts
QUIET_SECONDS = 30.0  # without a part that runs, until the user hears that they wait
_DEFAULT = TrainOptions()


class Cluster(NamedTuple):
    """A cluster that this process is connected to."""

    ray: Any
    nodes: Sequence[Node]
    room: Room

    @classmethod
    def of(cls, ray: Any) -> Cluster:
        nodes = find_nodes(ray)
        return cls(ray, nodes, find_room(nodes))


class Work(NamedTuple):
    """A job whose parts are to be trained."""

    directory: Path
    job: Job
    parts: Sequence[JobPart]

    @property
    def unfinished(self) -> list[JobPart]:
        """The parts that are still to be trained."""
        return [part for part in self.parts if is_finished(part) is None]


def train(
    job: Job,
    directory: str | Path,
    address: str,
    options: TrainOptions = _DEFAULT,
    *,
    parts: int | None = None,
) -> Trained:
    """Train a new job in parts on a Ray cluster.

    Args:
        job: What to train.
        directory: The folder of the job, new or empty, on storage that all nodes share.
        address: `HOST:PORT` of the cluster, or `auto` for that of this machine.
        options: When to stop and to save, and whom to tell.
        parts: The number of parts; by default one for each GPU of the cluster, or, without GPUs,
            as many as its cores have room for. At most one for each run.

    Returns:
        Where the job was saved, how far it got and why it stopped.

    Raises:
        MasteryError: If there is no such cluster, a node is not fit to train, the job cannot be
            split, or a part failed. What was trained is saved.
        CheckpointError: If the directory cannot be written.

    Example:
        >>> from mastery.cluster.train import train
        >>> train(job, "/shared/runs/first", "auto")
    """
    directory = Path(directory).absolute()
    check_new(directory)
    split_job(job, parts or 1)
    with connected(address) as ray:
        cluster = Cluster.of(ray)
        wanted = split_job(job, parts or min(cluster.room.parts, len(job.runs)))
        check_nodes(ray, cluster.nodes, directory, options.note)
        made = create_parts(job, directory, len(wanted))
        return _one(cluster, Work(directory, job, made), options)


def resume(
    directory: str | Path,
    address: str,
    options: TrainOptions = _DEFAULT,
    *,
    frames: int | None = None,
) -> Trained:
    """Resume a job in parts on a Ray cluster; the result is as if it had not been stopped.

    Args:
        directory: The folder of the job.
        address: `HOST:PORT` of the cluster, or `auto` for that of this machine.
        options: When to stop and to save, and whom to tell.
        frames: A new number of frames per run, at least those already trained.

    Returns:
        Where the job was saved, how far it got and why it stopped.

    Raises:
        MasteryError: As `train`, or if the job was not begun in parts.
        CheckpointError: If the folder cannot be read or written.
    """
    directory = Path(directory).absolute()
    check_in_parts(directory)
    with connected(address) as ray:
        cluster = Cluster.of(ray)
        check_nodes(ray, cluster.nodes, directory, options.note)
        job, parts = parts_to_resume(directory, frames)
        return _one(cluster, Work(directory, job, parts), options)


def check_in_parts(directory: Path) -> None:
    """Raise MasteryError unless a directory holds a job in parts."""
    if not is_split(directory):
        raise MasteryError(
            f"{directory} was not begun on a cluster, so it has no parts; resume it without "
            "--cluster"
        )


def _one(cluster: Cluster, work: Work, options: TrainOptions) -> Trained:
    """Train the parts of one job; MasteryError if one of them failed."""
    together, failed = Together(work.job, work.parts), {}
    report, interrupted = until_gone(options.report), False
    numbers = {part.directory: number for number, part in enumerate(work.parts)}
    for part, what in train_parts(cluster, [work], options):
        number = numbers[part.directory]
        if isinstance(what, Progress):
            report(together.show(number, what))
            continue
        together.stopped(number)
        if isinstance(what, str):
            failed[part.name] = what
        else:
            interrupted = interrupted or what.interrupted
    if failed:
        where = shlex.quote(str(work.directory))
        raise MasteryError(told_failed(failed, f"mastery train --resume {where} --cluster ADDRESS"))
    return outcome_of(*work, interrupted)


def told_failed(failed: Mapping[str, str], again: str) -> str:
    """The error text of parts that failed: each reason once, and what resumes them."""
    reasons: dict[str, list[str]] = {}
    for name, reason in failed.items():
        reasons.setdefault(reason, []).append(name)
    each = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    return f"{each}. What was trained is saved; resume with: {again}"


def train_parts(
    cluster: Cluster, works: Sequence[Work], options: TrainOptions
) -> Iterator[tuple[JobPart, Progress | Trained | str]]:
    """Train the unfinished parts of some jobs, and yield their progress and what became of each.

    Ctrl-C, `options.stop` and the end of `options.minutes` let each part finish its chunk and save.

    Args:
        cluster: Where.
        works: The jobs, in the order in which to begin them.
        options: When to stop and to save; `note` gets what parts say.

    Yields:
        A part with its progress; with its outcome, once; or with why it failed.
    """
    ray = cluster.ray
    parts = [(work, part) for work in works for part in work.unfinished]
    messages = _start_messages(ray)
    began = time.monotonic()
    with interrupts(lambda times: _interrupt(options, times)) as interrupted:
        running = {
            _submit(cluster, messages, number, work, part, options): number
            for number, (work, part) in enumerate(parts)
        }
        hear = _Hear([part for _, part in parts], options)
        stopping = False
        while running:
            done, _ = ray.wait(list(running), timeout=WAIT_SECONDS)
            late = options.minutes is not None and time.monotonic() - began > 60 * options.minutes
            asked = options.stop is not None and options.stop()
            if (interrupted or late or asked) and not stopping:
                stopping = True
                ray.get(messages.stop.remote())
                for task in running:  # Ray gives those that run a Ctrl-C; others do not begin
                    ray.cancel(task)
            yield from hear.take(ray.get(messages.take.remote()))
            for task in done:
                part = parts[running.pop(task)][1]
                yield part, _outcome(ray, task, part, bool(interrupted))
            hear.say_if_waiting(stopping)


def _start_messages(ray: Any) -> Any:
    """The actor of messages, on this machine, so that no other node can take it down."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = ray.get_runtime_context().get_node_id()
    place = NodeAffinitySchedulingStrategy(here, soft=True)
    return (
        ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Messages)
        .options(scheduling_strategy=place)
        .remote()
    )


def _submit(
    cluster: Cluster, messages: Any, number: int, work: Work, part: JobPart, options: TrainOptions
) -> Any:
    """Give a part to Ray, which runs it when there is room, and again if its node dies."""
    room = cluster.room
    cores = max(min(room.cpus, cores_for(work.parts)), 1)
    order = Order(
        part=number,
        directory=str(part.directory),
        whole=str(work.directory),
        frames=work.job.frames,
        cores=cores,
        gpus=room.gpus,
        options={
            "checkpoint_seconds": options.checkpoint_seconds,
            "elsewhere": options.elsewhere,
            "command": options.command,
        },
        versions=versions(),
        here=str(Path.cwd()),
    )
    # a process trains one part: JAX's devices cannot be chosen again
    task = cluster.ray.remote(
        num_cpus=room.cpus if room.gpus else cores,
        num_gpus=room.gpus,
        max_calls=1,
        max_retries=RETRIES,
        scheduling_strategy="SPREAD",
    )(train_part)
    return task.options(name=part.name).remote(order, messages)


class _Hear:
    """Turns the messages of parts into progress, and into notes for the user."""

    def __init__(self, parts: Sequence[JobPart], options: TrainOptions) -> None:
        self._parts, self._note = parts, options.note
        self._begun: dict[int, str] = {}  # the node of each part
        self._quiet: float | None = time.monotonic()  # since when no part has begun

    def take(self, taken: Any) -> Iterator[tuple[JobPart, Progress]]:
        told, shown = taken
        for number, kind, text in told:
            part = self._parts[number]
            if kind == "begun":
                if number in self._begun:
                    self._say(
                        f"{part.name}: its process on {self._begun[number]} ended; resuming on "
                        f"{text}"
                    )
                self._begun[number], self._quiet = text, None
            else:
                self._say(f"{part.name}: {text}")
        for number, plain in shown.items():
            progress = Progress(*plain)
            programs = {label: Means(*means) for label, means in progress.programs.items()}
            yield self._parts[number], progress._replace(programs=programs)

    def say_if_waiting(self, stopping: bool) -> None:
        """A line, once, if Ray has begun no part for a while."""
        if self._quiet is None or stopping:
            return
        if time.monotonic() - self._quiet > QUIET_SECONDS:
            self._quiet = None
            self._say("no part has begun yet: Ray waits for free cores or GPUs (see ray status)")

    def _say(self, text: str) -> None:
        if self._note is not None:
            self._note(text)


def _outcome(ray: Any, task: Any, part: JobPart, interrupted: bool) -> Trained | str:
    """What became of a part whose task is done."""
    try:
        found = ray.get(task)
    except ray.exceptions.TaskCancelledError:  # before it had begun, or before its first chunk
        return Trained(part.directory, 0, None, interrupted)
    except ray.exceptions.RayError as error:
        return f"it failed on its node: {reason_of(error)}"
    if "error" in found:
        return str(found["error"])
    return Trained(part.directory, found["update"], is_finished(part), interrupted)


def _interrupt(options: TrainOptions, times: int) -> None:
    """The first interrupt lets the parts save; the second stops at once."""
    if times > 1:
        raise KeyboardInterrupt
    if options.note is not None:
        options.note("stopping: parts finish their chunk and save; again to stop at once")
