"""A curriculum for GRPO: groups kept whole, rewards of all processes, resumed exactly."""

import json
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mastery import CheckpointError, Curriculum, MasteryError, Prompts, Task, Teacher
from mastery.rundir.results import load_results

with warnings.catch_warnings():  # what TRL does when it is imported is its own affair
    warnings.simplefilter("ignore")
    from trl import GRPOConfig
    from trl.trainer.utils import RepeatSampler

    from mastery.adapters.trl import FILE, CurriculumGRPOTrainer, PromptSampler

    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    try:
        import trl_grpo as example
    finally:
        sys.path.pop(0)

pytestmark = pytest.mark.filterwarnings("ignore")
CURRICULUM = example.CURRICULUM
LETTERS = Curriculum([Task("a"), Task("b")])


def letters(labels, **settings):
    teacher = Teacher(LETTERS, "mr", seed=1)
    return Prompts(range(len(labels)), teacher, labels, seed=3, update_every=None, **settings)


@given(
    prompts=st.integers(1, 5),
    generations=st.integers(1, 4),
    repeats=st.integers(1, 3),
    size=st.integers(5, 30),
    stop=st.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_indexes_are_grouped_as_by_trl_and_replayed(prompts, generations, repeats, size, stop):
    labels = ["ab"[i % 2] for i in range(size)]
    arguments = {"batch": prompts, "generations": generations, "repeats": repeats}
    sampler = PromptSampler(letters(labels), **arguments)
    theirs = RepeatSampler(range(size), generations, prompts, repeats)
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == len(theirs)
    # the same pattern as TRL's own sampler: which places of a batch hold the same prompt
    batch = prompts * generations
    for mine, other in zip(_split(drawn, batch), _split(list(theirs), batch), strict=True):
        groups = [mine[i : i + generations] for i in range(0, batch, generations)]
        assert all(len(set(group)) == 1 for group in groups)
        same = {(x, y) for x, y in zip(mine, other, strict=True)}
        assert len({y for _, y in same}) == len(same)
    for start in range(0, len(drawn), batch * repeats):
        block = _split(drawn[start : start + batch * repeats], batch)
        assert all(part == block[0] for part in block)
    # a sampler that is given what was drawn goes on as this one did
    again = PromptSampler(letters(labels), **arguments)
    half, number = [], int(stop * (len(drawn) - 1))
    for index in again:
        half.append(index)
        if len(half) > number:
            break
    again.resumed = True
    assert list(again) == drawn
    assert len(list(again)) == len(drawn)  # and a new epoch after it


def _split(items, size):
    return [items[i : i + size] for i in range(0, len(items), size)]


def trainer(
    folder,
    teacher,
    dataset=None,
    *,
    score=None,
    rewards=None,
    labels="task",
    within="learnability",
    record=None,
    **changes,
):
    torch.manual_seed(0)
    tokenizer = example.make_tokenizer()
    settings = {
        "max_steps": 6,
        "save_steps": 3,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 4,
        "learning_rate": 1e-2,
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "save_only_model": False,
        "bf16": False,
    }
    return CurriculumGRPOTrainer(
        model=example.make_model(tokenizer, width=16, layers=1),
        processing_class=tokenizer,
        reward_funcs=rewards or example.right_digits,
        train_dataset=example.make_prompts(60) if dataset is None else dataset,
        teacher=teacher,
        score=score,
        labels=labels,
        within=within,
        record=record,
        args=GRPOConfig(str(folder), **(settings | changes)),
    )


def test_the_example_reads_and_rewards_digits():
    tokenizer = example.make_tokenizer()
    assert tokenizer.decode(tokenizer("12+34=")["input_ids"]) == "12+34="
    wanted = ["046"] * 4
    assert example.right_digits(["046", "0467", "04", "1"], wanted) == [1, 1, 2 / 3, 0]


def seen_by(rewards):
    """A reward function that writes down what it gives: (task, prompt, reward)."""
    record = []

    def reward(prompts, completions, answer, task, **rest):
        given = rewards(completions, answer)
        record.append(list(zip(task, prompts, given, strict=True)))
        return given

    return reward, record


def test_training_resumes_exactly_and_the_teacher_hears_every_reward(tmp_path):
    torch.set_num_threads(1)
    reward, record = seen_by(example.right_digits)
    whole = trainer(tmp_path, Teacher(CURRICULUM, "mr", seed=1), rewards=reward)
    whole.train()
    weights = {name: value.clone() for name, value in whole.model.state_dict().items()}

    # an independent teacher that is told the same rewards
    twin = Teacher(CURRICULUM, "mr", seed=1)
    for batch in record:
        told = {}
        groups = Counter(prompt for _, prompt, _ in batch)
        assert all(n % 4 == 0 for n in groups.values())
        for task, _, value in batch:
            told.setdefault(task, []).append(value)
        twin.update(told)
    assert len(record) == whole.teacher.time_step == 6
    assert whole.teacher.mastery == pytest.approx(twin.mastery, abs=1e-6)  # rewards are float32
    row = whole.state.log_history[-2]
    assert row["curriculum/mastery/1-digit"] == pytest.approx(twin.mastery["1-digit"], abs=1e-3)

    reward, rest = seen_by(example.right_digits)
    resumed = trainer(tmp_path, Teacher(CURRICULUM, "mr", seed=99), rewards=reward)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert rest == record[3:]
    assert repr(resumed.prompts.state_dict()) == repr(whole.prompts.state_dict())
    for name, value in resumed.model.state_dict().items():
        assert torch.equal(value, weights[name])

    (tmp_path / "checkpoint-3" / FILE).unlink()
    with pytest.raises(CheckpointError, match="saved without a curriculum"):
        resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))


def test_resuming_at_and_before_the_end_of_an_epoch(tmp_path):
    """Two epochs of three steps; the third batch is drawn before the second step ends."""
    torch.set_num_threads(1)
    dataset = example.make_prompts(6)
    records = {}
    for step in (0, 2, 3):
        reward, records[step] = seen_by(example.right_digits)
        player = trainer(
            tmp_path, Teacher(CURRICULUM, "mr", seed=1), dataset, rewards=reward, save_steps=1
        )
        player.train(resume_from_checkpoint=f"{tmp_path}/checkpoint-{step}" if step else None)
        assert records[step] == records[0][step:]


def test_one_of_several_rewards_can_be_the_score(tmp_path):
    def length(completions, **_):
        return [float(len(text)) for text in completions]

    player = trainer(
        tmp_path,
        Teacher(CURRICULUM, "mr", seed=1),
        rewards=[example.right_digits, length],
        score="right_digits",
        max_steps=2,
        save_strategy="no",
    )
    player.train()
    assert max(player.teacher.mastery.values()) <= 1
    rewards = [row["rewards/length/mean"] for row in player.state.log_history if "reward" in row]
    assert min(rewards) > 1


def test_labels_can_be_a_list_and_rewards_see_the_datasets_own_columns(tmp_path):
    dataset = example.make_prompts(60)
    labels, seen = list(dataset["task"]), []

    def reward(prompts, completions, answer, log_extra, log_metric, trainer_state, completion_ids):
        seen.append(len(prompts))  # and no other column
        return example.right_digits(completions, answer)

    player = trainer(
        tmp_path,
        Teacher(CURRICULUM, "uniform", seed=1),
        dataset.remove_columns("task"),
        rewards=reward,
        labels=labels,
        max_steps=3,
        save_strategy="no",
    )
    player.train()
    found = player.prompts.explain()
    assert found.task == tuple(labels)
    # the last batch was drawn ahead, and waits
    assert round(found.returns.sum()) == sum(seen) == 24
    assert player.prompts.ignored == 0


def test_columns_that_are_not_needed_may_be_removed(tmp_path):
    def length(completions, **_):
        return [len(text) / 4 for text in completions]

    player = trainer(
        tmp_path,
        Teacher(CURRICULUM, "uniform", seed=1),
        rewards=length,
        remove_unused_columns=True,
        max_steps=2,
        save_strategy="no",
    )
    player.train()
    assert player.teacher.time_step == 2


def test_a_generation_batch_that_is_half_used_is_not_counted_twice(tmp_path):
    """Two steps share a batch; resumed between them, TRL generates it again."""
    torch.set_num_threads(1)
    changes = {"steps_per_generation": 2, "per_device_train_batch_size": 4, "save_steps": 1}
    whole = trainer(tmp_path, Teacher(CURRICULUM, "mr", seed=1), max_steps=4, **changes)
    whole.train()
    assert whole.teacher.time_step == 2
    resumed = trainer(tmp_path, Teacher(CURRICULUM, "mr", seed=1), max_steps=4, **changes)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    assert resumed.teacher.time_step == 2
    assert resumed.prompts.ignored == 2  # groups


RANK = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
sys.path[:0] = sys.argv[1:3]
import torch
torch.set_num_threads(1)
from test_trl import CURRICULUM, Teacher, example, seen_by, trainer
reward, record = seen_by(example.right_digits)
player = trainer(sys.argv[3], Teacher(CURRICULUM, "mr", seed=1), rewards=reward, max_steps=3,
                 save_steps=2, per_device_train_batch_size=6, ddp_backend="gloo")
player.train()
print(json.dumps(dict(record=record, state=repr(player.prompts.state_dict()),
                      mastery=player.teacher.mastery)))
"""


@pytest.mark.slow
def test_two_processes_share_groups_and_stay_equal(tmp_path):
    """6 completions each, in groups of 4: the middle group is on both processes."""
    (tmp_path / "rank.py").write_text(RANK)
    here = Path(__file__).parent
    port = 29500 + (hash(tmp_path) % 2000)
    ranks = [
        subprocess.Popen(
            [sys.executable, tmp_path / "rank.py", here, here.parents[1], tmp_path / "out"],
            stdout=subprocess.PIPE,
            text=True,
            env={
                "PATH": "",
                "HOME": str(tmp_path),
                "PYTHONPATH": ":".join(sys.path),
                "OMP_NUM_THREADS": "1",
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": "2",
                "LOCAL_WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            },
        )
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=200)[0] for process in ranks]
    a, b = (json.loads(output.splitlines()[-1]) for output in outputs)
    assert a["state"] == b["state"]
    twin = Teacher(CURRICULUM, "mr", seed=1)
    for mine, yours in zip(a["record"], b["record"], strict=True):
        together = mine + yours
        assert [len(mine), len(yours)] == [6, 6]
        groups = _split([prompt for _, prompt, _ in together], 4)
        assert all(len(set(group)) == 1 for group in groups)
        told = {}
        for task, _, value in together:
            told.setdefault(task, []).append(value)
        twin.update(told)
    assert a["mastery"] == pytest.approx(twin.mastery, abs=1e-6)
    assert (tmp_path / "out" / "checkpoint-2" / FILE).exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teacher": "mr"}, "needs a Teacher"),
        ({"labels": {"1-digit": 60}}, r"labels is \{'1-digit': 60\}; it must be one task name"),
        ({"labels": 3}, "labels is 3; it must be one task name per example"),
        ({"labels": ["1-digit"] * 3}, "3 labels for 60 examples"),
        ({"labels": ["1-digit"] * 59 + ["9"]}, "example 59 has the label '9', which is not a task"),
        ({"labels": "kind"}, "the dataset has no column or attribute 'kind'"),
        ({"within": "best"}, "within is 'best'"),
        ({"score": ["right_digits"]}, "score is .* a reward function's name"),
        ({"drop": "task"}, "the dataset has no column or attribute 'task'"),
        ({"teacher": Teacher(LETTERS)}, "has the label '1-digit', which is not a task"),
        ({"score": "right_digit"}, "not a reward function; did you mean 'right_digits'"),
    ],
)
def test_wrong_use_is_refused(tmp_path, change, message):
    dataset = example.make_prompts(60)
    if column := change.pop("drop", None):
        dataset = dataset.remove_columns(column)
    teacher = change.pop("teacher", None) or Teacher(CURRICULUM)
    with pytest.raises(MasteryError, match=message):
        trainer(tmp_path, teacher, dataset, **change)


def test_too_few_prompts_for_a_batch_are_refused():
    with pytest.raises(MasteryError, match="2 prompts, too few for one batch of 3"):
        PromptSampler(letters(["a", "b"]), batch=3, generations=1, repeats=1)


def test_what_is_recorded_is_what_the_trainer_saw_and_resumes(tmp_path):
    torch.set_num_threads(1)
    reward, seen = seen_by(example.right_digits)
    runs = tmp_path / "runs"
    whole = trainer(tmp_path, Teacher(CURRICULUM, "mr", seed=1), rewards=reward, record=runs)
    whole.train()
    straight = load_results(runs)
    losses = [entry["loss"] for entry in whole.state.log_history if "loss" in entry]
    assert (straight.unit, straight.ended) == ("tokens", "the loop ended")
    assert straight.scalars["loss"].values[:, 0].tolist() == pytest.approx(losses, abs=1e-12)
    for point, batch in enumerate(seen):
        for place, name in enumerate(CURRICULUM.names):
            own = [score for task, _, score in batch if task == name]
            assert straight.episodes[point, 0, place] == len(own)
            if own:
                assert straight.returns[point, 0, place] == pytest.approx(sum(own) / len(own))
    again = trainer(tmp_path, Teacher(CURRICULUM, "mr", seed=1), record=runs)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    found = load_results(runs)
    assert len(found.seeds) == 1
    assert found.steps.tolist() == straight.steps.tolist()
    assert np.allclose(found.returns, straight.returns, equal_nan=True)


def test_the_script_of_the_page_runs_as_it_is_pasted(tmp_path, monkeypatch, capsys):
    """With a small model of the example's in place of the one that it would download."""
    page = (Path(__file__).parents[2] / "docs" / "adapters" / "trl.md").read_text()
    script = page.partition("```python\n")[2].partition("```\n")[0]
    tokenizer = example.make_tokenizer()
    example.make_model(tokenizer).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    for written, here in {
        '"Qwen/Qwen2.5-0.5B-Instruct"': repr(str(tmp_path / "model")),
        "max_steps=100": "max_steps=2, use_cpu=True, bf16=False, report_to='none'",
    }.items():
        assert script.count(written) == 1
        script = script.replace(written, here)
    monkeypatch.chdir(tmp_path)
    exec(compile(script, "trl.md", "exec"), {"__name__": "__main__"})
    assert "two digits" in capsys.readouterr().out
