"""The nodes of a cluster: how many parts they can train, and whether they are fit to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mastery.cluster.connect import reason_of
from mastery.cluster.place import Look, Probe, check_versions, comes_back, offer
from mastery.errors import MasteryError, install
from mastery.rundir.machine import versions

ANSWER_SECONDS = 60.0  # for a node to start a process and look


class Node(NamedTuple):
    """A node that can train."""

    id: str
    name: str  # for people
    cpus: int
    gpus: int


class Room(NamedTuple):
    """What the cluster has room for.

    Attributes:
        parts: The number of parts at the same time.
        cpus: Cores of each.
        gpus: GPUs of each: 1, or 0 if the cluster has none.
    """

    parts: int
    cpus: int
    gpus: int


def find_nodes(ray: Any) -> list[Node]:
    """The nodes that are alive and have cores or GPUs for tasks.

    Raises:
        MasteryError: If there are none.
    """
    found = []
    for about in ray.nodes():
        has = about["Resources"]
        cpus, gpus = int(has.get("CPU", 0)), int(has.get("GPU", 0))
        if about["Alive"] and (cpus or gpus):
            host, address = about["NodeManagerHostname"], about["NodeManagerAddress"]
            name = address if host in ("", address) else f"{host} ({address})"
            found.append(Node(about["NodeID"], name, cpus, gpus))
    if not found:
        raise MasteryError(
            "the Ray cluster has no node with cores or GPUs; start some with ray start --address"
        )
    return found


def find_room(nodes: Sequence[Node]) -> Room:
    """One part for each GPU. Without GPUs, a part has as many cores as the smallest node, so that
    all nodes can be filled with parts."""
    gpus = sum(node.gpus for node in nodes)
    if gpus:
        some = [node for node in nodes if node.gpus]
        return Room(gpus, 1 if all(node.cpus >= node.gpus for node in some) else 0, 1)
    share = min(node.cpus for node in nodes)
    return Room(sum(node.cpus // share for node in nodes), share, 0)


def check_nodes(
    ray: Any, nodes: Sequence[Node], directory: Path, note: Callable[[str], None] | None = None
) -> None:
    """Check that each node has the same versions as this machine, and the job's folder.

    Raises:
        MasteryError: If one does not.
        CheckpointError: If the folder cannot be written from here.
    """

    # Ray sends a nested function as it is, so that a node without mastery can say so
    def from_node(folder: str, token: str, node: str) -> dict[str, Any]:
        try:
            from mastery.cluster.place import look
        except ImportError as error:
            return {"missing": f"{type(error).__name__}: {error}"}
        return look(folder, token, node)

    with offer(directory) as probe:
        asked = {node: _ask(ray, from_node, probe, node) for node in nodes}
        ready, _ = ray.wait(list(asked.values()), num_returns=len(asked), timeout=ANSWER_SECONDS)
        looks = {}
        for node, answer in asked.items():
            if answer not in ready:
                ray.cancel(answer, force=True)
                raise MasteryError(
                    f"node {node.name} has not answered for {ANSWER_SECONDS:.0f} seconds; see its "
                    "logs in /tmp/ray/session_latest/logs, or stop it with ray stop"
                )
            looks[node] = _check(ray, node, answer, probe)
    kinds = {look.processor for look in looks.values()}
    if len(kinds) > 1 and note is not None:
        note(
            f"the nodes have {len(kinds)} kinds of processors; digits may differ between them, and "
            "a part whose node dies resumes on the same kind only, or with --elsewhere"
        )


def _ask(ray: Any, function: Callable[..., Any], probe: Probe, node: Node) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(node.id, soft=False)
    task = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=there)(function)
    return task.remote(str(probe.folder), probe.token, node.id)


def _check(ray: Any, node: Node, answer: Any, probe: Probe) -> Look:
    who = f"node {node.name}"
    try:
        found: Mapping[str, Any] = ray.get(answer)
    except ray.exceptions.RayError as error:
        raise MasteryError(
            f"{who} cannot be used: {reason_of(error)}; see its logs, or stop it with ray stop"
        ) from None
    if "missing" in found:
        raise MasteryError(
            f"{who} cannot import this version of mastery ({found['missing']}); install the same "
            f"one on all nodes: {install('ray,train')}"
        )
    look = Look(**found)
    check_versions(who, look.versions, versions())
    if look.problem is not None:
        raise MasteryError(f"{who} {look.problem}: {probe.folder.parent}")
    if not comes_back(probe, node.id):
        raise MasteryError(
            f"what {who} writes to {probe.folder.parent} is not seen on this machine; give a "
            "folder on storage that all nodes share (--out)"
        )
    return look
