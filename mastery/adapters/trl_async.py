"""TRL's asynchronous trainer, `AsyncGRPOTrainer`, with a curriculum over its prompts.

    trainer = CurriculumAsyncGRPOTrainer(
        model=name, reward_funcs=reward, args=args, train_dataset=dataset, teacher=teacher
    )
    trainer.train()

TRL generates and scores in another process, while the main process trains. `Prompts` stays in the
main process: the other one asks it for each prompt when it needs one, and reports each group when
it is scored. So a prompt is chosen with all that is known at that moment, and groups are reported
late and out of order, as they end.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np

from mastery.errors import MasteryError, did_you_mean, needs
from mastery.prompts.prompts import Prompts
from mastery.prompts.saving import write_state
from mastery.recording.adapters import Recording
from mastery.recording.recorder import Recorder
from mastery.teacher import Teacher

with needs("mastery.adapters.trl_async", "trl"):
    from trl.experimental.async_grpo.async_grpo_trainer import AsyncGRPOTrainer
    from trl.experimental.async_grpo.async_rollout_worker import _AsyncRolloutLoop
    from trl.trainer.utils import get_callable_name

from mastery.adapters.trl import FILE, RecordTraining, load_checkpoint, log_teacher

_PRUNE = 1000  # groups after which those that are done with are forgotten


class Desk:
    """Answers the process that generates: which prompt next, and thanks for this group.

    Groups are numbered as TRL numbers them: from 0, in the order in which they are asked for.

    Args:
        prompts: The prompts.
        done: The numbers of groups that were trained on; the trainer adds to it.

    Attributes:
        groups: The prompt and the ticket of each group that is not done with, by number.
        again: Prompts and tickets to hand out first: those of a run that ended before their groups
            were trained on.
        dropped: The numbers of groups that were too old to train on.
    """

    def __init__(self, prompts: Prompts, done: set[int]) -> None:
        self.prompts = prompts
        self.groups: dict[int, tuple[int, int]] = {}
        self.again: deque[tuple[int, int]] = deque()
        self.dropped: set[int] = set()
        self.lock = threading.Lock()
        self._done, self._number = done, 0
        self._key = os.urandom(32)
        self._listener: Listener | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> tuple[Any, bytes]:
        """Begin to answer a new process; returns the address and the key to knock with.

        It counts anew, and gets first what the last one left.
        """
        self.again = deque(self.pending())
        self.groups, self._number = {}, 0
        self._done.clear()
        self.dropped.clear()
        self._listener = Listener(("127.0.0.1", 0), authkey=self._key)
        self._thread = threading.Thread(target=self._serve, args=(self._listener,), daemon=True)
        self._thread.start()
        return self._listener.address, self._key

    def close(self) -> None:
        """Stop answering."""
        listener, self._listener = self._listener, None
        if listener is not None and self._thread is not None:
            with contextlib.suppress(OSError):  # wake the thread, if it waits for somebody
                socket.create_connection(listener.address, timeout=1).close()
            self._thread.join(timeout=5)
            listener.close()

    def pending(self) -> list[tuple[int, int]]:
        """The prompts and tickets of groups that were not trained on, oldest first."""
        self._prune()
        return [*self.groups.values(), *self.again]

    def _serve(self, listener: Listener) -> None:
        while self._listener is not None:
            try:
                with listener.accept() as caller:
                    self._answer(caller)
            except (OSError, EOFError):  # it has ended
                continue

    def _answer(self, caller: Connection) -> None:
        while self._listener is not None:
            asked = json.loads(caller.recv_bytes())
            try:
                answer = self._next() if asked["what"] == "next" else self._report(asked)
            except Exception as error:  # the process that asked raises it
                answer = {"error": f"{type(error).__name__}: {error}"}
            caller.send_bytes(json.dumps(answer).encode())

    def _next(self) -> dict[str, Any]:
        with self.lock:
            if self.again:
                row, ticket = self.again.popleft()
            else:
                (draw,) = self.prompts.next(1)
                row, ticket = draw.id, draw.ticket
            self.groups[self._number] = row, ticket
            self._number += 1
            if self._number % _PRUNE == 0:
                self._prune()
            return {"id": row}

    def _report(self, asked: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            row, ticket = self.groups[asked["group"]]
            counted = self.prompts.report(
                [row], [asked["rewards"]], tokens=[asked["tokens"]], tickets=[ticket]
            )
            return {"counted": counted}

    def _prune(self) -> None:
        gone = self._done | self.dropped
        self.groups = {number: draw for number, draw in self.groups.items() if number not in gone}


class Feed:
    """The dataset as the generating process sees it: endless, in the order that the desk says."""

    def __init__(self, dataset: Any, score: str, address: Any, key: bytes) -> None:
        self._dataset, self.score = dataset, score
        self._address, self._key = address, key
        self._line: Connection | None = None

    def __len__(self) -> int:
        return len(self._dataset)

    def select(self, rows: Any) -> Feed:
        """TRL begins at another row when it resumes; here the desk knows what comes next."""
        return self

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while True:
            yield self._dataset[self._ask({"what": "next"})["id"]]

    def report(self, group: int, rewards: list[float], tokens: int) -> None:
        """Report the group of a number."""
        self._ask({"what": "report", "group": group, "rewards": rewards, "tokens": tokens})

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._line is None:
            self._line = Client(self._address, authkey=self._key)
        self._line.send_bytes(json.dumps(question).encode())
        answer: dict[str, Any] = json.loads(self._line.recv_bytes())
        if "error" in answer:
            raise MasteryError(f"the curriculum failed in the main process: {answer['error']}")
        return answer


_Loop: Any = _AsyncRolloutLoop
_Trainer: Any = AsyncGRPOTrainer  # their type annotations are incomplete


class CurriculumLoop(_Loop):  # type: ignore[misc]
    """TRL's loop that generates and scores; it reports each group that is scored."""

    async def _score_group(self, group: Any) -> Any:
        samples = await super()._score_group(group)
        rewards, at = [], 0
        for rows in group.completions_sequences:  # one completion, as one or more rows to train on
            if rows:
                rewards.append(float(samples[at].metrics[self.dataset.score]))
            at += len(rows)
        known = [reward for reward in rewards if math.isfinite(reward)]
        self.dataset.report(group.group_id, known, sum(map(len, group.completions_ids)))
        return samples


class _Watched:
    """TRL's queue of samples; it notes groups that the trainer will drop, as too old."""

    def __init__(self, queue: Any, trainer: Any) -> None:
        self._queue, self._trainer = queue, trainer

    def get(self, *args: Any, **kwargs: Any) -> Any:
        sample = self._queue.get(*args, **kwargs)
        age = self._trainer.model_version - sample.model_version
        if age > self._trainer.args.max_staleness:
            with self._trainer.desk.lock:
                self._trainer.desk.dropped.add(sample.group_id)
        return sample

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class CurriculumAsyncGRPOTrainer(_Trainer):  # type: ignore[misc]
    """An `AsyncGRPOTrainer` whose prompts a teacher chooses.

    The main process holds teacher and prompts. Checkpoints include both, and
    `train(resume_from_checkpoint=…)` continues with them: no reward is lost or counted twice, and
    prompts whose groups were not trained on are handed out again first.

    Args:
        *args: Passed to `AsyncGRPOTrainer`.
        teacher: The teacher of the tasks that the dataset's prompts belong to.
        labels: Each prompt's task: a list, or the name of a column of the dataset.
        within: How prompts of a task are chosen, as in `mastery.Prompts`.
        score: The reward function whose rewards are the tasks' returns; by default the sum of all.
        record: A folder to record into, or a Recorder; as with `CurriculumGRPOTrainer`.
        **kwargs: Passed to `AsyncGRPOTrainer`, but `rollout_worker` must be TRL's own.

    Attributes:
        teacher: The teacher.
        prompts: The `mastery.Prompts`, on the main process.

    Raises:
        MasteryError: If an argument is invalid, a label is not a task, or a task has no prompt.
    """

    rollout_queue: Any

    def __init__(
        self,
        *args: Any,
        teacher: Teacher,
        labels: str | Sequence[str] = "task",
        within: str = "learnability",
        score: str | None = None,
        record: str | Path | Recorder | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(teacher, Teacher):
            raise MasteryError(f"CurriculumAsyncGRPOTrainer needs a Teacher, not {teacher!r:.80}")
        if kwargs.get("rollout_worker") is not None:
            raise MasteryError(
                "rollout_worker was given; the curriculum needs TRL's own, which asks it for "
                "prompts. For your own, use mastery.Prompts directly"
            )
        self.teacher = teacher
        self._recording = Recording(teacher, record, "tokens")
        super().__init__(*args, **kwargs)
        if not self.accelerator.is_main_process:
            return
        self.add_callback(RecordTraining(self._recording))
        per_step = self.args.per_device_train_batch_size * self.args.gradient_accumulation_steps
        per_step *= self.accelerator.num_processes
        self.prompts = Prompts(
            self.train_dataset,
            teacher,
            labels,
            within=within,
            completions=self.args.num_generations,
            update_every=max(1, per_step // self.args.num_generations),
            seed=self.args.seed,
        )
        self.desk = Desk(self.prompts, self._trained_groups)
        self.rollout_queue = _Watched(self.rollout_queue, self)
        self.rollout_worker._loop_cls = CurriculumLoop
        self._score = "reward"
        if score is not None:
            rewards = self.rollout_worker._loop_kwargs["reward_funcs"]
            names = [get_callable_name(reward) for reward in rewards]
            if score not in names:
                hint = did_you_mean(str(score), names)
                raise MasteryError(f"score is {score!r:.80}, which is not a reward function{hint}")
            self._score = f"rewards/{score}"

    @property
    def recorder(self) -> Recorder | None:
        """The recorder, if `record` was given and this is the main process."""
        return self._recording.recorder if self.accelerator.is_main_process else None

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Log mastery and probabilities with the trainer's metrics."""
        if self.accelerator.is_main_process:
            log_teacher(self.teacher, self._metrics["train"])
        super().log(logs, *args, **kwargs)

    def _inner_training_loop(self, *args: Any, **kwargs: Any) -> Any:
        if not self.accelerator.is_main_process:
            return super()._inner_training_loop(*args, **kwargs)
        if (folder := kwargs.get("resume_from_checkpoint")) is not None:
            state = load_checkpoint(folder)
            self.prompts.load_state_dict(state)
            self.desk.groups = {}
            self.desk.again = deque(map(tuple, state["more"]["pending"].tolist()))
        feed = Feed(self.train_dataset, self._score, *self.desk.open())
        self.rollout_worker._loop_kwargs["dataset"] = feed
        try:
            return super()._inner_training_loop(*args, **kwargs)
        finally:
            self.desk.close()

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if self.accelerator.is_main_process:
            folder = Path(self._get_output_dir(trial=trial), f"checkpoint-{self.state.global_step}")
            folder.mkdir(parents=True, exist_ok=True)
            with self.desk.lock:
                pending = np.array(self.desk.pending(), np.int64).reshape(-1, 2)
                state = self.prompts.state_dict()
            write_state(folder / FILE, state, {"pending": pending})
        super()._save_checkpoint(model, trial)
