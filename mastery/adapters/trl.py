"""TRL: a curriculum over the prompts of `GRPOTrainer`.

    trainer = CurriculumGRPOTrainer(
        model=model, reward_funcs=reward, args=args, train_dataset=dataset, teacher=teacher
    )
    trainer.train()

The dataset has a column `task` beside `prompt`. The teacher allocates each generation batch to
tasks; a prompt and its completions stay one group, on any number of processes. The rewards from all
processes are the tasks' returns, and one generation batch is one time-step. The trainer fetches a
batch while it trains on the previous one, so rewards affect the batch after the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mastery import checkpoint
from mastery.errors import CheckpointError, MasteryError, did_you_mean, needs
from mastery.recording.adapters import Recording
from mastery.recording.recorder import Recorder
from mastery.teacher import Teacher

with needs("mastery.adapters.trl", "trl"):
    from trl.trainer.grpo_trainer import GRPOTrainer

from accelerate.utils import gather_object
from torch.utils.data import Sampler
from transformers import TrainerCallback

from mastery.adapters.torch import Examples, by_task, check_equal, mark

FILE = "curriculum.ckpt"
LOGGED = ("loss", "reward", "reward_std", "entropy", "kl", "grad_norm", "completions/mean_length")
FEW = 32  # up to this many tasks are logged individually


class PromptSampler(Sampler[int]):
    """Yields indexes in the order of TRL's `RepeatSampler`; the teacher draws the prompts.

    Prompts are drawn when a batch starts. Each comes `generations` times in a row, and the whole
    batch `repeats` times. `drawn` holds the prompts of this epoch so far: a trainer that resumes
    iterates from the start of the epoch and skips what it has seen, so it must get the same prompts
    again before new ones.
    """

    def __init__(
        self,
        dataset: Any,
        teacher: Teacher,
        labels: Any,
        *,
        prompts: int,
        generations: int,
        repeats: int,
        seed: int,
    ) -> None:
        self.teacher = teacher
        self.examples = Examples(dataset, labels, teacher, seed)
        self.drawn: list[int] = []
        self.resumed = False
        self._prompts, self._generations, self._repeats = prompts, generations, repeats
        self._batches = len(dataset) // prompts
        self.loads = self._batches * repeats  # batches that a loader takes per epoch
        self._seed = seed
        if not self._batches:
            raise MasteryError(
                f"the dataset has {len(dataset)} prompts, too few for one batch of {prompts}; add "
                "prompts, or reduce the generation batch size"
            )

    def __len__(self) -> int:
        return self._batches * self._prompts * self._generations * self._repeats

    def __iter__(self) -> Iterator[int]:
        if not self.resumed:
            self.drawn = []
        self.resumed = False
        for start in range(0, self._batches * self._prompts, self._prompts):
            if len(self.drawn) <= start:
                self.drawn += self._draw()
            batch = self.drawn[start : start + self._prompts]
            for _ in range(self._repeats):
                for index in batch:
                    yield from [index] * self._generations

    def _draw(self) -> list[int]:
        number = int(self.examples.taken.sum())
        rows = self.teacher.curriculum.positions
        tasks = self.teacher.allocate(self._prompts).elements()
        batch = np.array([self.examples.take(rows[task]) for task in tasks])
        mixed: list[int] = np.random.default_rng([self._seed, number]).permutation(batch).tolist()
        return mixed


class _Record(TrainerCallback):
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
    Checkpoints include the teacher, and `train(resume_from_checkpoint=…)` continues with the same
    prompts.

    Args:
        *args: Passed to `GRPOTrainer`.
        teacher: The teacher of the tasks that the dataset's prompts belong to.
        labels: The dataset column that holds each prompt's task.
        record: A folder to record into, as with `mastery.record`, or the Recorder that it returned.
            The unit is completion tokens. Process 0 records, also the losses and rewards that the
            trainer logs.
        score: The reward function whose rewards are the tasks' returns; by default the weighted sum
            of all, which is what the trainer optimises. Set the tasks' minimum and maximum on its
            scale.
        **kwargs: Passed to `GRPOTrainer`. Set `remove_unused_columns=False` in `GRPOConfig`.

    Raises:
        MasteryError: If an argument is invalid, there is no train dataset, a label is not a task,
            or a task has no prompt.

    Example:
        >>> trainer = CurriculumGRPOTrainer(
        ...     model=model, reward_funcs=reward, args=args, train_dataset=dataset, teacher=teacher
        ... )
        >>> trainer.train()
    """

    def __init__(
        self,
        *args: Any,
        teacher: Teacher,
        labels: str = "task",
        score: str | None = None,
        record: str | Path | Recorder | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(teacher, Teacher):
            raise MasteryError(f"CurriculumGRPOTrainer needs a Teacher, not {teacher!r}")
        if not isinstance(labels, str):
            raise MasteryError(
                f"labels is {labels!r:.80}; it must be the name of a column of the dataset, which "
                "holds each prompt's task, such as 'task'"
            )
        if not (score is None or isinstance(score, str)):
            raise MasteryError(f"score is {score!r:.80}; it must be a reward function's name")
        self.teacher = teacher
        self._labels, self._score = labels, score
        self._sampler: PromptSampler | None = None
        self._recording = Recording(teacher, record, "tokens")
        super().__init__(*args, **kwargs)
        if self.accelerator.is_main_process:
            self.add_callback(_Record(self._recording))
        if self.train_dataset is None:
            raise MasteryError("train_dataset is missing; the curriculum draws prompts from it")
        Examples(self.train_dataset, labels, teacher, 0)  # raise early if the labels are wrong
        if self.args.remove_unused_columns:
            raise MasteryError(
                f"remove_unused_columns would remove {labels!r}; set it to False in GRPOConfig"
            )
        if score is not None and score not in self.reward_func_names:
            hint = did_you_mean(score, self.reward_func_names)
            raise MasteryError(f"score is {score!r}, which is not a reward function{hint}")

    @property
    def recorder(self) -> Recorder | None:
        """The recorder, if `record` was given and this is process 0."""
        return self._recording.recorder if self.accelerator.is_main_process else None

    def _get_train_sampler(self, dataset: Any = None) -> PromptSampler:
        self._sampler = PromptSampler(
            self.train_dataset if dataset is None else dataset,
            self.teacher,
            self._labels,
            prompts=self.args.generation_batch_size // self.num_generations,
            generations=self.num_generations,
            repeats=self.num_iterations * self.args.steps_per_generation,
            seed=self.args.seed,
        )
        return self._sampler

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> Any:
        """Return the rewards of all processes, as TRL does; also update the teacher with them."""
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        if self.model.training:
            if self._score is None:
                scores = (rewards * self.reward_weights.to(rewards.device)).nansum(dim=1)
            else:
                scores = rewards[:, self.reward_func_names.index(self._score)]
            check_equal(gather_object([mark(self.teacher)]))
            tasks = gather_object([example[self._labels] for example in inputs])
            lengths = gather_object([len(ids) for ids in completion_ids_list])  # in tokens
            known = ~rewards.isnan().all(dim=1) & ~scores.isnan()
            every = zip(tasks, scores.tolist(), lengths, known.tolist(), strict=True)
            scored = [(task, score, n) for task, score, n, is_known in every if is_known]
            own = [task for task, _, _ in scored]
            self.teacher.update(
                by_task(own, (score for _, score, _ in scored)),
                cost=by_task(own, (n for _, _, n in scored)),
            )
            self._log_teacher()
        return rewards

    def _log_teacher(self) -> None:
        """Log mastery and probabilities with the trainer's metrics."""
        metrics, mastery = self._metrics["train"], self.teacher.mastery
        metrics["curriculum/mastery"].append(float(np.mean(list(mastery.values()))))
        if len(mastery) <= FEW:
            for task, probability in self.teacher.probabilities.items():
                metrics[f"curriculum/mastery/{task}"].append(mastery[task])
                metrics[f"curriculum/probability/{task}"].append(probability)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        if self.args.should_save and self._sampler is not None:
            folder = Path(self._get_output_dir(trial=trial), f"checkpoint-{self.state.global_step}")
            folder.mkdir(parents=True, exist_ok=True)
            state = self.teacher.state_dict()
            arrays = {f"teacher.{path}": leaf for path, leaf in state.pop("state").items()}
            arrays["taken"] = self._sampler.examples.taken
            arrays["drawn"] = np.array(self._sampler.drawn, np.int64)
            checkpoint.write(folder / FILE, "prompts", state, arrays)
        super()._save_checkpoint(model, trial)

    def _load_optimizer_and_scheduler(self, folder: Any) -> None:
        super()._load_optimizer_and_scheduler(folder)
        if folder is None or self._sampler is None:
            return
        path = Path(folder, FILE)
        if not path.exists():
            raise CheckpointError(
                f"{folder} has no {FILE}, so it was saved without a curriculum; to start from its "
                "model, pass it as model= instead of resuming"
            )
        meta, arrays = checkpoint.read(path, "prompts")
        state = {k.removeprefix("teacher."): v for k, v in arrays.items() if k.startswith("teach")}
        self.teacher.load_state_dict({**meta, "state": state})
        self._sampler.examples.taken = arrays["taken"].copy()
        self._sampler.drawn = arrays["drawn"].tolist()
        steps = math.ceil(self._sampler.loads / self.args.gradient_accumulation_steps)
        within = self.state.global_step % steps != 0  # else a new epoch starts
        self._sampler.resumed = within and not self.args.ignore_data_skip
