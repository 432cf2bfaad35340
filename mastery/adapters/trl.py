"""TRL: a curriculum over the prompts of `GRPOTrainer`.

    trainer = CurriculumGRPOTrainer(
        model=model, reward_funcs=reward, args=args, train_dataset=dataset, teacher=teacher
    )
    trainer.train()

The dataset has a column `task` beside `prompt`, or `labels` gives the tasks. `Prompts` chooses the
prompts of each generation batch; a prompt and its completions stay one group, on any number of
processes. The rewards of all processes are reported, and one generation batch is one time-step of
the teacher. The trainer fetches a batch while it trains on the previous one, so rewards affect the
batch after the next. The asynchronous trainer is in `trl_async`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mastery.errors import CheckpointError, MasteryError, did_you_mean, needs
from mastery.prompts.prompts import Prompts
from mastery.prompts.saving import read_state, write_state
from mastery.recording.adapters import Recording
from mastery.recording.recorder import Recorder
from mastery.teacher import Teacher

with needs("mastery.adapters.trl", "trl"):
    from trl.trainer.grpo_trainer import GRPOTrainer

from accelerate.utils import gather_object
from torch.utils.data import Sampler
from transformers import TrainerCallback

from mastery.adapters.torch import check_equal, mark

FILE = "curriculum.ckpt"
COLUMN = "mastery_prompt"  # added to the dataset: each prompt's id
LOGGED = ("loss", "reward", "reward_std", "entropy", "kl", "grad_norm", "completions/mean_length")
FEW = 32  # up to this many tasks are logged individually


class PromptSampler(Sampler[int]):
    """Yields indexes in the order of TRL's `RepeatSampler`; `Prompts` chooses the prompts.

    Prompts are drawn when a batch starts. Each comes `generations` times in a row, and the whole
    batch `repeats` times. `drawn` holds the prompts of this epoch so far: a trainer that resumes
    iterates from the start of the epoch and skips what it has seen, so it must get the same prompts
    again before new ones.
    """

    def __init__(self, prompts: Prompts, *, batch: int, generations: int, repeats: int) -> None:
        self.prompts = prompts
        self.drawn: list[int] = []
        self.resumed = False
        self._batch, self._generations, self._repeats = batch, generations, repeats
        self._batches = len(prompts) // batch
        self.loads = self._batches * repeats  # batches that a loader takes per epoch
        if not self._batches:
            raise MasteryError(
                f"the dataset has {len(prompts)} prompts, too few for one batch of {batch}; add "
                "prompts, or reduce the generation batch size"
            )

    def __len__(self) -> int:
        return self._batches * self._batch * self._generations * self._repeats

    def __iter__(self) -> Iterator[int]:
        if not self.resumed:
            self.drawn = []
        self.resumed = False
        for start in range(0, self._batches * self._batch, self._batch):
            if len(self.drawn) <= start:
                self.drawn += self.prompts.next(self._batch).ids.tolist()
            batch = self.drawn[start : start + self._batch]
            for _ in range(self._repeats):
                for index in batch:
                    yield from [index] * self._generations


class RecordTraining(TrainerCallback):
    """Records from the beginning of training, when a checkpoint has been loaded, to its end."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
        _ = self._recording.recorder

    def on_log(self, *args: Any, logs: Any = None, **kwargs: Any) -> None:
        if (recorder := self._recording.recorder) is not None:
            recorder.log(**{name: logs[name] for name in LOGGED if name in (logs or {})})

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        self._recording.close()


_Trainer: Any = GRPOTrainer  # its type annotations are incomplete


class CurriculumGRPOTrainer(_Trainer):  # type: ignore[misc]
    """A `GRPOTrainer` whose prompts a teacher chooses.

    With several processes, make the same teacher with the same seed in each; they stay equal.
    Checkpoints include teacher and prompts, and `train(resume_from_checkpoint=…)` continues with
    the same prompts.

    Args:
        *args: Passed to `GRPOTrainer`.
        teacher: The teacher of the tasks that the dataset's prompts belong to.
        labels: Each prompt's task: a list, or the name of a column of the dataset.
        within: How prompts of a task are chosen, as in `mastery.Prompts`.
        record: A folder to record into, as with `mastery.record`, or the Recorder that it returned.
            The unit is completion tokens. Process 0 records, also the losses and rewards that the
            trainer logs.
        score: The reward function whose rewards are the tasks' returns; by default the weighted sum
            of all, which is what the trainer optimises. Set the tasks' minimum and maximum on its
            scale.
        **kwargs: Passed to `GRPOTrainer`.

    Attributes:
        teacher: The teacher.
        prompts: The `mastery.Prompts`, for `explain` and `retire`.

    Raises:
        MasteryError: If an argument is invalid, there is no train dataset, a label is not a task,
            or a task has no prompt.

    Example:
        >>> trainer = CurriculumGRPOTrainer(
        ...     model=model, reward_funcs=reward, args=args, train_dataset=dataset, teacher=teacher
        ... )
        >>> trainer.train()
    """

    train_dataset: Any
    _signature_columns: Any

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
            raise MasteryError(f"CurriculumGRPOTrainer needs a Teacher, not {teacher!r:.80}")
        if not (score is None or isinstance(score, str)):
            raise MasteryError(f"score is {score!r:.80}; it must be a reward function's name")
        self.teacher = teacher
        self._score = score
        self._sampler: PromptSampler | None = None
        self._recording = Recording(teacher, record, "tokens")
        super().__init__(*args, **kwargs)
        if self.accelerator.is_main_process:
            self.add_callback(RecordTraining(self._recording))
        self.prompts = Prompts(
            self.train_dataset,
            teacher,
            labels,
            within=within,
            completions=self.num_generations,
            update_every=None,
            seed=self.args.seed,
        )
        numbers = list(range(len(self.train_dataset)))
        self.train_dataset = self.train_dataset.add_column(COLUMN, numbers)
        if score is not None and score not in self.reward_func_names:
            hint = did_you_mean(score, self.reward_func_names)
            raise MasteryError(f"score is {score!r}, which is not a reward function{hint}")

    @property
    def recorder(self) -> Recorder | None:
        """The recorder, if `record` was given and this is process 0."""
        return self._recording.recorder if self.accelerator.is_main_process else None

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        if COLUMN not in self._signature_columns:
            self._signature_columns = [*self._signature_columns, COLUMN]

    def _get_train_sampler(self, dataset: Any = None) -> PromptSampler:
        self._sampler = PromptSampler(
            self.prompts,
            batch=self.args.generation_batch_size // self.num_generations,
            generations=self.num_generations,
            repeats=self.num_iterations * self.args.steps_per_generation,
        )
        return self._sampler

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> Any:
        """Return the rewards of all processes, as TRL does; also report them."""
        numbers = [example.get(COLUMN) for example in inputs]
        inputs = [{k: v for k, v in example.items() if k != COLUMN} for example in inputs]
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        if self.model.training:
            self._report(rewards, numbers, [len(ids) for ids in completion_ids_list])
            log_teacher(self.teacher, self._metrics["train"])
        return rewards

    def _report(self, rewards: Any, numbers: list[int], lengths: list[int]) -> None:
        """Report the groups of all processes; each process has its own part of the batch."""
        if self._score is None:
            scores = (rewards * self.reward_weights.to(rewards.device)).nansum(dim=1)
        else:
            scores = rewards[:, self.reward_func_names.index(self._score)]
        check_equal(gather_object([(mark(self.teacher), self.prompts.mark)]))
        known = (~rewards.isnan().all(dim=1) & ~scores.isnan()).tolist()
        ids, tokens = gather_object(numbers), gather_object(lengths)
        size, values = self.num_generations, scores.tolist()
        starts = range(0, len(ids), size)
        self.prompts.report(
            ids[::size],
            [[values[i] for i in range(at, at + size) if known[i]] for at in starts],
            tokens=[sum(tokens[at : at + size]) for at in starts],
        )
        self.prompts.update()

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if self.args.should_save and self._sampler is not None:
            folder = Path(self._get_output_dir(trial=trial), f"checkpoint-{self.state.global_step}")
            folder.mkdir(parents=True, exist_ok=True)
            drawn = np.array(self._sampler.drawn, np.int64)
            write_state(folder / FILE, self.prompts.state_dict(), {"drawn": drawn})
        super()._save_checkpoint(model, trial)

    def _load_optimizer_and_scheduler(self, folder: Any) -> None:
        super()._load_optimizer_and_scheduler(folder)
        if folder is None or self._sampler is None:
            return
        state = load_checkpoint(folder)
        self.prompts.load_state_dict(state)
        self._sampler.drawn = state["more"]["drawn"].tolist()
        steps = math.ceil(self._sampler.loads / self.args.gradient_accumulation_steps)
        within = self.state.global_step % steps != 0  # else a new epoch starts
        self._sampler.resumed = within and not self.args.ignore_data_skip


def log_teacher(teacher: Teacher, metrics: Any) -> None:
    """Add mastery and probabilities to a trainer's metrics."""
    mastery = teacher.mastery
    metrics["curriculum/mastery"].append(float(np.mean(list(mastery.values()))))
    if len(mastery) <= FEW:
        for task, probability in teacher.probabilities.items():
            metrics[f"curriculum/mastery/{task}"].append(mastery[task])
            metrics[f"curriculum/probability/{task}"].append(probability)


def load_checkpoint(folder: Any) -> dict[str, Any]:
    """The state of the prompts in a checkpoint of the trainer."""
    path = Path(folder, FILE)
    if not path.exists():
        raise CheckpointError(
            f"{folder} has no {FILE}, so it was saved without a curriculum; to start from its "
            "model, pass it as model= instead of resuming"
        )
    return read_state(path)
