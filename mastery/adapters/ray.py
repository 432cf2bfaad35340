"""Ray: one teacher for many rollout workers, on any number of machines.

    teacher = RemoteTeacher.start(Teacher(curriculum, "mr", seed=0), folder)  # in the driver

    teacher = RemoteTeacher()  # in each worker
    task = teacher.sample()
    teacher.update({task: 0.4})
    teacher.flush()  # at the end: wait until every update is acknowledged

The teacher runs in a named actor. `sample` and `update` do not wait for it: a worker draws tasks
from the latest probabilities it has, and sends its updates in batches, one message at a time, in
the background. The actor acknowledges an update once it is on disk in `folder`. If the actor dies,
Ray restarts it, it reads the folder, and the workers resend what was not acknowledged. To survive
the loss of the actor's machine, `folder` must be on storage that all machines share.
"""

from __future__ import annotations

import copy
import os
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from mastery.adapters.durable import DurableTeacher, Update
from mastery.errors import MasteryError, needs
from mastery.programs.distribution import cumulative, draw
from mastery.programs.explanation import Explanation
from mastery.programs.program import ProgramLike
from mastery.teacher import Teacher

with needs("mastery.adapters.ray", "ray"):
    import ray

NAMESPACE = "mastery"
FRESH = 1.0  # seconds after which an idle worker asks for new probabilities
LIMIT = 10_000  # updates waiting in a worker; from here on `update` waits for the teacher


class _Actor:
    """The teacher's process.

    Ray restarts it with the same arguments. The rest of its state is in the folder, which is read
    at the first call, so that errors reach the caller.
    """

    def __init__(
        self, folder: str, program: ProgramLike | None, every: int, record: str | None
    ) -> None:
        self._folder, self._program = folder, program
        self._settings: dict[str, Any] = {"every": every, "record": record}
        self._open: DurableTeacher | None = None

    def begin(self, folder: str, teacher: Teacher) -> None:
        """Start with this teacher, or check that the running one matches it."""
        if folder != self._folder:
            raise MasteryError(
                f"a teacher of this name is already running in {self._folder}; choose another name"
            )
        teacher = copy.deepcopy(teacher)  # arrays that come through Ray are read-only
        if self._open is None:
            self._open = DurableTeacher(self._folder, teacher, **self._settings)
        else:
            teacher.load_state_dict(self._open.teacher.state_dict())

    @property
    def _shared(self) -> DurableTeacher:
        if self._open is None:
            self._open = DurableTeacher(self._folder, program=self._program, **self._settings)
        return self._open

    def take(
        self, client: str, first: int, updates: list[Update], time_step: int
    ) -> tuple[int, str, int, NDArray[np.float64] | None]:
        """Apply updates; return the acknowledgement, and the probabilities if they have changed."""
        acknowledged, wrong = self._shared.take(client, first, updates)
        teacher = self._shared.teacher
        news = teacher.distribution if teacher.time_step != time_step else None
        return acknowledged, wrong, teacher.time_step, news

    def blank(self) -> Teacher:
        """A new teacher of the same curriculum; workers use it to check returns."""
        teacher = self._shared.teacher
        return Teacher(teacher.curriculum, "uniform", per_episode=teacher.per_episode)

    def ask(self, name: str) -> Any:
        """The teacher's `probabilities`, `mastery`, `time_step`, `explain` or `state_dict`."""
        value = getattr(self._shared.teacher, name)
        return value() if callable(value) else value

    def clients(self) -> dict[str, int]:
        return dict(self._shared.clients)

    def working(self) -> bool:
        return self._open is not None

    def where(self) -> tuple[int, str]:
        """The id of this process and of its node."""
        return os.getpid(), ray.get_runtime_context().get_node_id()

    def close(self) -> None:
        self._shared.close()


class RemoteTeacher:
    """A worker's connection to the shared teacher, with the methods of `Teacher` that a loop needs.

    You can pass it to Ray tasks and actors as an argument; each copy is a separate client. Do not
    use one object from several threads at once.

    Args:
        name: The teacher's name, if there are several.
        seed: The seed of this worker's draws.

    Raises:
        MasteryError: If no teacher of this name is running.

    Example:
        >>> RemoteTeacher.start(Teacher(curriculum, "mr", seed=0), "shared/teacher")
        >>> with RemoteTeacher() as teacher:  # in a worker; leaving the block flushes
        ...     task = teacher.sample()
        ...     teacher.update({task: play(task)})
    """

    def __init__(
        self, name: str = "teacher", *, seed: int | None = None, _now: bool = True
    ) -> None:
        self.name = name
        self.client = uuid.uuid4().hex
        self.acknowledged = 0  # number of this client's updates that are on disk
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._waiting: list[Update] = []  # not yet acknowledged, oldest first
        self._answer: Any = None  # the future of the message in flight
        self._asked = 0.0  # when the last message was sent
        self._heard = 0  # number of answers received
        self._time_step = -1  # time-step of the probabilities held here
        self.actor: Any = None  # Ray's handle to the teacher's actor
        self._teacher: Teacher  # same curriculum; only checks returns
        self._sums: NDArray[np.float64]
        if _now:
            self._connect()

    def _connect(self) -> None:
        if self.actor is None:
            self.actor = _find(self.name)
            try:
                self._teacher = self._call(lambda actor: actor.blank.remote())
                self.refresh()
            except BaseException:
                self.actor = None
                raise

    @classmethod
    def start(
        cls,
        teacher: Teacher,
        folder: str | Path,
        name: str = "teacher",
        *,
        every: int = 10_000,
        record: str | Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> RemoteTeacher:
        """Start the teacher's actor, or connect to the running one of this name.

        If the folder holds a teacher, the actor continues from it.

        Args:
            teacher: The initial teacher. A teacher in the folder, or already running, must have the
                same curriculum and program.
            folder: Where updates and checkpoints are written.
            name: The actor's name, by which workers find it.
            every: Updates between checkpoints; the journal holds those in between.
            record: A folder in which the actor records the teacher, as with `mastery.record`. If
                the actor dies, nothing that was acknowledged is missing from it.
            options: Options of the Ray actor, e.g. `{"resources": {"head": 1}}`.

        Returns:
            A connection to the teacher.

        Raises:
            MasteryError: If `teacher` is not a Teacher, the folder cannot be used or holds a
                different teacher, or a teacher of this name is running in another folder.
        """
        if not isinstance(teacher, Teacher):
            raise MasteryError(f"start needs a Teacher, not {teacher!r}")
        if not (record is None or isinstance(record, str | Path)):
            raise MasteryError(
                f"record is {record!r:.80}; it must be a folder, as the teacher's actor writes it"
            )
        if not ray.is_initialized():
            ray.init()
        settings: dict[str, Any] = {
            "num_cpus": 0,
            "max_restarts": -1,
            "lifetime": "detached",
            **(options or {}),
        }
        kind: Any = ray.remote(_Actor)
        place = str(Path(folder).absolute())
        own = None if teacher.recipe else teacher.program
        remote = _unconnected(name)
        remote.actor = kind.options(
            name=name, namespace=NAMESPACE, get_if_exists=True, **settings
        ).remote(place, own, every, None if record is None else str(Path(record).absolute()))
        try:
            remote._call(lambda actor: actor.begin.remote(place, teacher))
        except MasteryError:
            if not remote._call(lambda actor: actor.working.remote()):
                _end(name, remote.actor)
            raise
        remote.actor = None
        remote._connect()
        return remote

    @overload
    def sample(self) -> str: ...
    @overload
    def sample(self, k: int) -> list[str]: ...

    def sample(self, k: int | None = None) -> str | list[str]:
        """Draw the task to train on next, or a list of k tasks, from the latest probabilities."""
        self._pump()
        names = self._teacher.curriculum.names
        drawn = draw(self._sums, self._random.random(1 if k is None else k))
        return names[drawn[0]] if k is None else [names[i] for i in drawn]

    def update(self, returns: Mapping[str, Any], *, cost: Mapping[str, Any] | None = None) -> None:
        """Queue the returns of one time-step for the next message to the teacher.

        Blocks only while 10,000 updates or more are queued.

        Args:
            returns: `{task: return or returns}`, as in `Teacher.update`.
            cost: `{task: cost or costs}`, as in `Teacher.update`.

        Raises:
            ReturnsError: If a return or a task is invalid. Nothing is queued.
        """
        self._connect()
        self._teacher._reader.read(returns, cost, per_episode=False)
        if returns:
            update = {k: np.atleast_1d(v).tolist() for k, v in returns.items()}
            costs = {k: np.atleast_1d(v).tolist() for k, v in (cost or {}).items()}
            self._waiting.append([update, costs] if costs else update)
        self._pump()
        while len(self._waiting) >= LIMIT:
            self._wait()

    def flush(self, timeout: float | None = None) -> None:
        """Wait until every update is acknowledged.

        Args:
            timeout: The maximum number of seconds to wait; None waits without limit.

        Raises:
            MasteryError: If the timeout has passed, or the teacher failed on an update.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self._waiting:
            self._pump()
            if self._waiting:
                self._wait(end)
            if end is not None and time.monotonic() > end and self._waiting:
                raise self._late()

    def refresh(self) -> None:
        """Wait for the latest probabilities, which include all updates of this worker."""
        self.flush()
        while self._answer is not None:
            self._wait()
        while not self._ask_newest():
            time.sleep(0.05)  # Ray is restarting the actor

    def _ask_newest(self) -> bool:
        """Ask for the latest probabilities; return whether an answer came."""
        self._send()
        heard = self._heard
        while self._answer is not None:
            self._wait()
        return self._heard > heard

    @property
    def probabilities(self) -> dict[str, float]:
        """The current probability of each task. Waits for the teacher."""
        found: dict[str, float] = self._ask("probabilities")
        return found

    @property
    def mastery(self) -> dict[str, float]:
        """The mastering rate of each task. Waits for the teacher."""
        found: dict[str, float] = self._ask("mastery")
        return found

    @property
    def time_step(self) -> int:
        """The number of updates the teacher has from all workers. Waits for the teacher."""
        found: int = self._ask("time_step")
        return found

    @property
    def clients(self) -> dict[str, int]:
        """The number of updates on disk by client id. Waits for the teacher."""
        found: dict[str, int] = self._call(lambda actor: actor.clients.remote())
        return found

    def explain(self) -> Explanation:
        """Explain why each task has its probability. Waits for the teacher."""
        found: Explanation = self._ask("explain")
        return found

    def state_dict(self) -> dict[str, Any]:
        """The teacher's state, for `Teacher.load_state_dict`. Waits for the teacher."""
        found: dict[str, Any] = self._ask("state_dict")
        return found

    def stop(self) -> None:
        """Write everything and end the actor; `start` with the same folder continues from it."""
        self.flush()
        self._call(lambda actor: actor.close.remote())
        _end(self.name, self.actor)

    def __enter__(self) -> RemoteTeacher:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unconnected, (self.name,)

    def _pump(self) -> None:
        """Process an answer if there is one; send queued updates if no message is in flight."""
        self._connect()
        if self._answer is not None and self._answer.done():
            self._receive()
        stale = time.monotonic() - self._asked > FRESH
        if self._answer is None and (self._waiting or stale):
            self._send()

    def _send(self) -> None:
        self._asked = time.monotonic()
        message = self.actor.take.remote(
            self.client, self.acknowledged, self._waiting, self._time_step
        )
        self._answer = message.future()

    def _receive(self) -> None:
        answer, self._answer = self._answer, None
        try:
            acknowledged, wrong, time_step, news = answer.result()
        except ray.exceptions.RayActorError:  # dead or restarting: the next message shows which
            self.actor = _find(self.name)
            return
        except ray.exceptions.RayTaskError as error:
            raise _plain(error) from None
        self._heard += 1
        del self._waiting[: acknowledged - self.acknowledged]
        self.acknowledged = acknowledged
        self._time_step = time_step
        if news is not None:
            self._sums = cumulative(np.array(news))
        if wrong:
            raise MasteryError(f"the teacher failed on an update: {wrong}")

    def _wait(self, end: float | None = None) -> None:
        if self._answer is None:
            self._send()
        try:
            left = None if end is None else max(0.0, end - time.monotonic())
            self._answer.exception(left)
        except TimeoutError:
            raise self._late() from None
        before = self.actor, self.acknowledged
        self._receive()
        if before == (self.actor, self.acknowledged) and self._waiting:
            time.sleep(0.05)  # Ray is restarting the actor

    def _late(self) -> MasteryError:
        return MasteryError(
            f"the teacher {self.name!r} has not answered; {len(self._waiting)} updates are queued"
        )

    def _ask(self, what: str) -> Any:
        self.flush()
        return self._call(lambda actor: actor.ask.remote(what))

    def _call(self, method: Callable[[Any], Any]) -> Any:
        """Call the actor, and again if it dies meanwhile; these calls can safely be repeated."""
        self._connect()
        while True:
            try:
                return ray.get(method(self.actor))
            except ray.exceptions.RayActorError:
                self.actor = _find(self.name)
                time.sleep(0.05)
            except ray.exceptions.RayTaskError as error:
                raise _plain(error) from None


def _unconnected(name: str) -> RemoteTeacher:
    """A connection that is made at first use, because Ray cannot be called while it unpacks
    arguments."""
    return RemoteTeacher(name, _now=False)


def _find(name: str) -> Any:
    """Find the teacher's actor."""
    if not ray.is_initialized():
        ray.init()
    try:
        return ray.get_actor(name, NAMESPACE)
    except ValueError:
        raise MasteryError(
            f"no teacher named {name!r} is running; start it with "
            "RemoteTeacher.start(teacher, folder)"
        ) from None


def _end(name: str, actor: Any) -> None:
    """Kill the actor and wait until it is gone. `ray.kill` returns early: for a while the actor
    still answers and can still be found by its name."""
    ray.kill(actor)
    try:
        while True:
            ray.get(actor.working.remote())
            time.sleep(0.01)
    except ray.exceptions.RayActorError:
        pass
    try:
        while ray.get_actor(name, NAMESPACE) == actor:
            time.sleep(0.01)
    except ValueError:
        pass


def _plain(error: Any) -> Exception:
    """The MasteryError that the actor raised, without Ray's traceback; else the error itself."""
    cause = getattr(error, "cause", None)
    found: Exception = cause if isinstance(cause, MasteryError) else error
    return found
