"""Ray: one teacher for many rollout workers, on any number of machines.

teacher = RemoteTeacher.start(Teacher(curriculum, "mr", seed=0), folder)  # in the driver

teacher = RemoteTeacher()  # in each worker
task = teacher.sample()
teacher.update({task: 0.4})
teacher.flush()  # at the end: everything is acknowledged

The teacher lives in a named actor. Neither `sample` nor `update` waits for it: tasks are drawn in
the worker from the newest probabilities, and updates go out together, one message at a time, while
the worker goes on. An update is acknowledged once it is on disk in `folder`; an actor that dies is
started again by Ray, reads the folder, and the workers send it what was not acknowledged. To
outlive the machine it runs on, `folder` must be one that all machines share.
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
from mastery.errors import MasteryError
from mastery.explanation import Explanation
from mastery.programs.distribution import cumulative, draw
from mastery.programs.program import ProgramLike
from mastery.teacher import Teacher

try:
    import ray
except ModuleNotFoundError as error:
    if error.name != "ray":
        raise
    raise MasteryError("this needs Ray: pip install 'mastery[ray]'") from None

NAMESPACE = "mastery"
FRESH = 1.0  # seconds after which a worker that has nothing to send asks for the probabilities
LIMIT = 10_000  # updates that may wait in a worker; more, and `update` waits for the teacher


class _Actor:
    """The teacher's process. It is started again with these few arguments alone: all else is in
    the folder. An error there is told to who asks."""

    def __init__(self, folder: str, program: ProgramLike | None, every: int) -> None:
        self._folder, self._program, self._every = folder, program, every
        self._open: DurableTeacher | None = None

    def begin(self, folder: str, teacher: Teacher) -> None:
        """Begin with this teacher, or make sure that the one that is there is such a one."""
        if folder != self._folder:
            raise MasteryError(
                f"a teacher of this name is running, in {self._folder}; choose another name"
            )
        teacher = copy.deepcopy(teacher)  # what comes through Ray cannot be written to
        if self._open is None:
            self._open = DurableTeacher(self._folder, teacher, every=self._every)
        else:
            teacher.load_state_dict(self._open.teacher.state_dict())

    @property
    def _shared(self) -> DurableTeacher:
        if self._open is None:
            self._open = DurableTeacher(self._folder, program=self._program, every=self._every)
        return self._open

    def take(
        self, client: str, first: int, updates: list[Update], time_step: int
    ) -> tuple[int, str, int, NDArray[np.float64] | None]:
        """Acknowledges updates; and the probabilities, if they are newer than at this time-step."""
        acknowledged, wrong = self._shared.take(client, first, updates)
        teacher = self._shared.teacher
        news = teacher.distribution if teacher.time_step != time_step else None
        return acknowledged, wrong, teacher.time_step, news

    def blank(self) -> Teacher:
        """A teacher of the same curriculum, to check returns with."""
        teacher = self._shared.teacher
        return Teacher(teacher.curriculum, "uniform", per_episode=teacher.per_episode)

    def ask(self, name: str) -> Any:
        """`probabilities`, `mastery`, `time_step`, `explain` or `state_dict` of the teacher."""
        value = getattr(self._shared.teacher, name)
        return value() if callable(value) else value

    def clients(self) -> dict[str, int]:
        return dict(self._shared.clients)

    def working(self) -> bool:
        return self._open is not None

    def where(self) -> tuple[int, str]:
        """The process and the node it runs on."""
        return os.getpid(), ray.get_runtime_context().get_node_id()

    def close(self) -> None:
        self._shared.close()


class RemoteTeacher:
    """A worker's end of the shared teacher; has the methods of `Teacher` that a loop needs.

    name: of the teacher, if there are several. seed: of this worker's draws.
    Can be given to tasks and actors as an argument; each copy is a client of its own. Not for use
    by several threads at once.
    """

    def __init__(
        self, name: str = "teacher", *, seed: int | None = None, _now: bool = True
    ) -> None:
        self.name = name
        self.client = uuid.uuid4().hex
        self.acknowledged = 0  # updates of this client that are safe
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._waiting: list[Update] = []  # not acknowledged, the oldest first
        self._answer: Any = None  # the future of the message under way
        self._asked = 0.0  # when the last message went out
        self._heard = 0  # answers that came
        self._time_step = -1  # of the probabilities that are here
        self.actor: Any = None  # Ray's handle of the teacher's process
        self._teacher: Teacher  # of the same curriculum, to check returns with
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
        options: Mapping[str, Any] | None = None,
    ) -> RemoteTeacher:
        """Start the teacher's actor, from what the folder holds if there was one before; or join
        the one of this name that is running.

        every: updates between two checkpoints; those since are in the journal.
        options: of the Ray actor, such as `{"resources": {"head": 1}}`.
        """
        if not isinstance(teacher, Teacher):
            raise MasteryError(f"start needs a Teacher, not {teacher!r}")
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
        remote = _arrived(name)
        remote.actor = kind.options(
            name=name, namespace=NAMESPACE, get_if_exists=True, **settings
        ).remote(place, own, every)
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
        """Draw the task to train on next, or a list of k tasks, from the newest probabilities."""
        self._pump()
        names = self._teacher.curriculum.names
        drawn = draw(self._sums, self._random.random(1 if k is None else k))
        return names[drawn[0]] if k is None else [names[i] for i in drawn]

    def update(self, returns: Mapping[str, Any]) -> None:
        """What came of it, one time-step: goes to the teacher with the next message.

        A wrong return raises `ReturnsError` here, and nothing has changed.
        """
        self._connect()
        self._teacher._checked(returns)
        if returns:
            self._waiting.append({k: np.atleast_1d(v).tolist() for k, v in returns.items()})
        self._pump()
        while len(self._waiting) >= LIMIT:
            self._wait()

    def flush(self, timeout: float | None = None) -> None:
        """Wait until every update is acknowledged."""
        end = None if timeout is None else time.monotonic() + timeout
        while self._waiting:
            self._pump()
            if self._waiting:
                self._wait(end)
            if end is not None and time.monotonic() > end and self._waiting:
                raise self._late()

    def refresh(self) -> None:
        """Wait for the newest probabilities, with all the updates of this worker in them."""
        self.flush()
        while self._answer is not None:
            self._wait()
        while not self._told():
            time.sleep(0.05)  # it is being started again

    def _told(self) -> bool:
        """Ask for the newest probabilities; whether there was an answer."""
        self._send()
        heard = self._heard
        while self._answer is not None:
            self._wait()
        return self._heard > heard

    @property
    def probabilities(self) -> dict[str, float]:
        """The probability of each task, now; asks the teacher."""
        found: dict[str, float] = self._ask("probabilities")
        return found

    @property
    def mastery(self) -> dict[str, float]:
        """The mastering rate of each task; asks the teacher."""
        found: dict[str, float] = self._ask("mastery")
        return found

    @property
    def time_step(self) -> int:
        """How many updates of all workers the teacher has; asks the teacher."""
        found: int = self._ask("time_step")
        return found

    @property
    def clients(self) -> dict[str, int]:
        """How many updates of each client the teacher has acknowledged, or could have."""
        found: dict[str, int] = self._call(lambda actor: actor.clients.remote())
        return found

    def explain(self) -> Explanation:
        """Why each task has its probability; asks the teacher."""
        found: Explanation = self._ask("explain")
        return found

    def state_dict(self) -> dict[str, Any]:
        """The teacher's state, as `Teacher.load_state_dict` takes it; asks the teacher."""
        found: dict[str, Any] = self._ask("state_dict")
        return found

    def stop(self) -> None:
        """End the actor, with everything written; `start` goes on from the folder."""
        self.flush()
        self._call(lambda actor: actor.close.remote())
        _end(self.name, self.actor)

    def __enter__(self) -> RemoteTeacher:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.name,)

    def _pump(self) -> None:
        """Take an answer that is there, and send what waits if nothing is under way."""
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
        except ray.exceptions.RayActorError:  # dead, or about to be back: the next message tells
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
            raise MasteryError(f"the teacher could not take an update: {wrong}")

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
            time.sleep(0.05)  # it is being started again

    def _late(self) -> MasteryError:
        return MasteryError(
            f"the teacher {self.name!r} has not answered; {len(self._waiting)} updates wait"
        )

    def _ask(self, what: str) -> Any:
        self.flush()
        return self._call(lambda actor: actor.ask.remote(what))

    def _call(self, method: Callable[[Any], Any]) -> Any:
        """An answer of the actor, even if it dies meanwhile: these calls can be made twice."""
        self._connect()
        while True:
            try:
                return ray.get(method(self.actor))
            except ray.exceptions.RayActorError:
                self.actor = _find(self.name)
                time.sleep(0.05)
            except ray.exceptions.RayTaskError as error:
                raise _plain(error) from None


def _arrived(name: str) -> RemoteTeacher:
    """A copy in another process. It looks for the teacher when it is first used: Ray cannot be
    asked anything while it unpacks arguments."""
    return RemoteTeacher(name, _now=False)


def _find(name: str) -> Any:
    """The teacher's actor."""
    if not ray.is_initialized():
        ray.init()
    try:
        return ray.get_actor(name, NAMESPACE)
    except ValueError:
        raise MasteryError(
            f"there is no teacher named {name!r}, or it was stopped: start it with "
            "RemoteTeacher.start(teacher, folder)"
        ) from None


def _end(name: str, actor: Any) -> None:
    """Kill the actor and wait until it is gone: Ray only sends word, and until that has come the
    actor answers still, and its name finds it."""
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
    """An error of ours as it was raised in the actor, without Ray's pages around it."""
    cause = getattr(error, "cause", None)
    found: Exception = cause if isinstance(cause, MasteryError) else error
    return found
