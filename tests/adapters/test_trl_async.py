"""TRL's asynchronous trainer with a curriculum: its own processes, queue and HTTP traffic.

Real here: `AsyncGRPOTrainer`, its rollout worker in a process of its own, its requests, rewards,
losses, weight updates and checkpoints. Stand-ins: the server (tests/support/completion_server.py
instead of vLLM), the transfer of weights to it, and the attention kernel, which needs a GPU.
"""

import sys
import threading
import warnings
from pathlib import Path

import pytest
import torch
from completion_server import KERNELS, CompletionServer

from mastery import CheckpointError, Curriculum, MasteryError, Prompts, Task, Teacher
from mastery.prompts.saving import read_state
from mastery.rundir.results import load_results

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from trl.experimental.async_grpo import (
        AsyncGRPOConfig,
        async_grpo_trainer,
        async_rollout_worker,
        packing,
    )

    from mastery.adapters.trl import FILE
    from mastery.adapters.trl_async import CurriculumAsyncGRPOTrainer, Desk, Feed

    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    try:
        import trl_grpo as example
    finally:
        sys.path.pop(0)

pytestmark = pytest.mark.filterwarnings("ignore")
CURRICULUM = example.CURRICULUM


def right_digits(completions, answer, **_):
    """At the top of a module, since it travels to another process."""
    texts = [messages[-1]["content"] for messages in completions]
    return [
        sum(x == y for x, y in zip(text, wanted, strict=False)) / len(wanted)
        for text, wanted in zip(texts, answer, strict=True)
    ]


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A tiny model in a folder, a server that has it, and what TRL looks for on a GPU machine."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = example.make_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    tokenizer.response_template = {  # all of a completion is its content
        "defaults": {"role": "assistant"},
        "start_anchor": "=",
        "fields": {"content": {"close_pattern": "<end>", "content": "text"}},
    }
    model = example.make_model(tokenizer, width=16, layers=1)
    model.save_pretrained(tmp_path / "model")
    server = CompletionServer(example.make_model(tokenizer, width=16, layers=1))
    monkeypatch.setattr(async_rollout_worker, "is_vllm_available", lambda *_: True)
    monkeypatch.setattr(packing, "_flash_attn", lambda: KERNELS)
    monkeypatch.setattr(async_grpo_trainer, "get_peak_flops_per_device", lambda *_: 1e12)
    yield tmp_path, tokenizer, server
    server.close()


def trainer(world, teacher=None, **changes):
    folder, tokenizer, server = world
    rows = example.make_prompts(60).map(
        lambda row: {"prompt": [{"role": "user", "content": row["prompt"]}]}
    )
    own = ("labels", "score", "record", "within", "rollout_worker")
    mine = {name: changes.pop(name) for name in own if name in changes}
    settings = {
        "max_steps": 4,
        "save_steps": 2,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 4,
        "learning_rate": 1e-2,
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "bf16": False,
        "dtype": "float32",
        "gradient_checkpointing": False,
        "vllm_server_base_url": server.url,
        "max_inflight_tasks": 16,
        "token_budget": -1,  # a step has as many samples as the batch size says
    }
    return CurriculumAsyncGRPOTrainer(
        model=str(folder / "model"),
        processing_class=tokenizer,
        reward_funcs=right_digits,
        train_dataset=rows,
        teacher=teacher or Teacher(CURRICULUM, "uniform", seed=1),
        weight_transfer=server,
        args=AsyncGRPOConfig(str(folder / "out"), **(settings | changes)),
        **mine,
    )


def counted(player):
    """How many groups count: grows while the trainer runs."""
    found, report = [], player.prompts.report

    def noted(*args, **kwargs):
        found.append(report(*args, **kwargs))
        return found[-1]

    player.prompts.report = noted
    return found


def handed_out(player):
    """The prompts that the desk hands out: grows while the trainer runs."""
    found, hand = [], player.desk._next

    def noted():
        answer = hand()
        found.append(answer["id"])
        return answer

    player.desk._next = noted
    return found


def test_it_trains_reports_every_group_once_and_resumes(world):
    folder, tokenizer, server = world
    whole = trainer(world, record=folder / "runs")
    before = {name: value.clone() for name, value in whole.model.state_dict().items()}
    reports = counted(whole)
    whole.train()
    assert any(not torch.equal(v, before[n]) for n, v in whole.model.state_dict().items())
    assert server.syncs == 5  # before the first step, and after each
    groups = len(reports)
    assert groups >= 8  # four steps of two groups, and what was generated ahead
    assert set(reports) == {1}
    assert whole.prompts._tickets.next == groups + whole.prompts.waiting
    assert whole.teacher.time_step == groups // 2
    chosen = {tuple(ids(tokenizer, whole, row)) for row in range(60)}
    assert set(server.requests) <= chosen
    assert "curriculum/probability/1-digit" in whole.state.log_history[-2]
    recorded = load_results(folder / "runs")
    assert (recorded.unit, recorded.ended) == ("tokens", "the loop ended")
    returns = recorded.episodes.sum()  # the worker may report more after the recording's end
    assert returns % 4 == 0  # groups are whole
    assert 16 <= returns <= 4 * groups

    checkpoint = folder / "out" / "checkpoint-2"
    state = read_state(checkpoint / FILE)
    pending = state["more"]["pending"].tolist()
    reported = [ticket for _, ticket in pending if ticket not in state["arrays"]["tickets.number"]]
    again = trainer(world, Teacher(CURRICULUM, "uniform", seed=9))
    server.requests.clear()
    reports, handed = counted(again), handed_out(again)
    again.train(resume_from_checkpoint=str(checkpoint))
    assert again.state.global_step == 4
    rows = [row for row, _ in pending]
    assert len(rows) >= 2
    assert len(handed) >= 4  # two steps of two groups
    assert handed[: len(rows)] == rows[: len(handed)]  # first, and in their order
    assert tuple(ids(tokenizer, again, rows[0])) in server.requests
    assert again.prompts.ignored == reports.count(0) <= len(reported)
    closed = state["next"] - len(state["arrays"]["tickets.number"])  # before the checkpoint
    assert again.prompts._tickets.next == closed + sum(reports) + again.prompts.waiting

    (checkpoint / FILE).unlink()
    with pytest.raises(CheckpointError, match="saved without a curriculum"):
        again.train(resume_from_checkpoint=str(checkpoint))


def ids(tokenizer, player, row):
    """The tokens of a prompt."""
    return tokenizer(player.train_dataset[row]["prompt"][0]["content"])["input_ids"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teacher": "mr"}, "needs a Teacher"),
        ({"labels": 3}, "labels is 3; it must be one task name per example"),
        ({"labels": ["1-digit"] * 3}, "3 labels for 60 examples"),
        ({"score": "right_digit"}, "not a reward function; did you mean 'right_digits'"),
        ({"rollout_worker": object()}, "rollout_worker was given"),
    ],
)
def test_wrong_use_is_refused(world, change, message):
    with pytest.raises(MasteryError, match=message):
        trainer(world, **change)


LETTERS = Curriculum([Task("a"), Task("b")])


def desk(done):
    labels = ["a", "b"] * 20
    teacher = Teacher(LETTERS, "uniform", seed=1)
    return Desk(Prompts(range(40), teacher, labels, update_every=4, seed=2), done)


def test_the_desk_hands_out_again_what_was_not_trained_on():
    done = set()
    own = desk(done)
    rows = [{"row": i} for i in range(40)]
    feed = Feed(rows, "reward", *own.open())
    lines = iter(feed)
    drawn = [next(lines)["row"] for _ in range(6)]
    for group in (4, 0, 2):  # out of order
        feed.report(group, [1.0, 0.0], 7)
    done.update({0, 4})
    own.dropped.add(1)
    assert [row for row, _ in own.pending()] == [drawn[2], drawn[3], drawn[5]]
    feed._line.close()  # its process has ended
    own.close()
    feed = Feed(rows, "reward", *own.open())  # a new process
    lines = iter(feed)
    assert [next(lines)["row"] for _ in range(3)] == [drawn[2], drawn[3], drawn[5]]
    feed.report(0, [1.0, 1.0], 7)  # its group was reported before: ignored
    assert own.prompts.ignored == 1
    feed.report(1, [1.0, 1.0], 7)
    assert own.prompts.teacher.time_step == 1
    with pytest.raises(MasteryError, match="failed in the main process: KeyError"):
        feed.report(99, [1.0], 1)
    assert next(lines)["row"] not in drawn[2:]
    feed._line.close()
    own.close()
    assert threading.active_count() < 20
