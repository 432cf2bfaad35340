"""GRPO with a curriculum over prompts: a tiny transformer learns to add, from rewards alone.

    python examples/trl_grpo.py [--steps 8] [--program mr]

The model is made here, with random weights, and its tokens are the digits: nothing is downloaded.
The few steps it takes by default show that it runs; see docs/adapters/trl.md for how far
it gets with more. Needs `pip install 'mastery-curriculum[trl]'`.
"""

import argparse
import tempfile

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig

from mastery import Curriculum, Teacher
from mastery.adapters.trl import CurriculumGRPOTrainer

CURRICULUM = Curriculum.load("addition-3")


def make_tokenizer():
    """One token a character."""
    vocabulary = {token: i for i, token in enumerate(["<pad>", "<end>", *"0123456789+="])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()  # or there would be a space between any two
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>", padding_side="left"
    )


def make_model(tokenizer, width=64, layers=2):
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        max_position_embeddings=32,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config)


def make_prompts(number=3000, seed=0):
    """Sums of each task as text, with the answer that a completion is compared with."""
    random = np.random.default_rng(seed)
    rows = []
    for task in CURRICULUM:
        digits = task.settings["digits"]
        for a, b in random.integers(0, 10**digits, (number // len(CURRICULUM), 2)):
            prompt, answer = f"{a:0{digits}}+{b:0{digits}}=", f"{a + b:0{digits + 1}}"
            rows.append({"prompt": prompt, "answer": answer, "task": task.name})
    return Dataset.from_list(rows)


def right_digits(completions, answer, **_):
    """The share of the answer's digits that are right."""
    return [
        sum(x == y for x, y in zip(text, wanted, strict=False)) / len(wanted)
        for text, wanted in zip(completions, answer, strict=True)
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--program", default="mr")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--generations", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--entropy", type=float, default=0.05)
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    tokenizer = make_tokenizer()
    teacher = Teacher(CURRICULUM, given.program, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        trainer = CurriculumGRPOTrainer(
            model=make_model(tokenizer, given.width),
            processing_class=tokenizer,
            reward_funcs=right_digits,
            train_dataset=make_prompts(),
            teacher=teacher,
            args=GRPOConfig(
                folder,
                max_steps=given.steps,
                per_device_train_batch_size=given.prompts * given.generations,
                num_generations=given.generations,
                max_completion_length=4,
                learning_rate=given.rate,
                entropy_coef=given.entropy,
                lr_scheduler_type="constant",
                logging_steps=max(1, given.steps // 10),
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                use_cpu=not torch.cuda.is_available(),
                bf16=False,
            ),
        )
        trainer.train()
    for row in trainer.state.log_history:
        if "reward" in row:
            shares = [row[f"curriculum/probability/{name}"] for name in CURRICULUM.names]
            shown = "  ".join(
                f"{name} {p:.2f}" for name, p in zip(CURRICULUM.names, shares, strict=True)
            )
            print(f"step {row['step']:>5}  reward {row['reward']:.2f}  {shown}")
    print(teacher.explain())


if __name__ == "__main__":
    main()
