"""The recipes of docs/adapters/recipes.md run: with the packages if they are here, or with stubs.

verl and prime-rl are not among the test requirements: their tests are skipped unless they can be
imported, as with PYTHONPATH set to where they are unpacked.
"""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from torchdata.stateful_dataloader import StatefulDataLoader

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "prompts.md").read_text() + (DOCS / "adapters" / "recipes.md").read_text()
pytestmark = pytest.mark.filterwarnings("ignore")


def blocks(heading):
    """The Python below a heading."""
    part = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", PAGE, re.S | re.M)[1]
    return re.findall(r"```python\n(.*?)```", part, re.S)


def names_of(heading):
    (block,) = blocks(heading)
    found = {}
    exec(compile(block, heading, "exec"), found)
    return found


def test_the_pages_own_examples_run():
    found = {}
    first = re.findall(r"```python\n(.*?)```", PAGE.partition("\n## ")[0], re.S)
    for block in [*first, *blocks("Synchronous and asynchronous")]:
        exec(compile(block, "prompts.md", "exec"), found)
    for block in blocks("Prompts and tasks come and go"):
        exec(compile(block, "prompts.md", "exec"), found)
    assert found["ids"].tolist() == list(range(1000, 1020))
    assert len(found["prompts"]) == 1068


def test_verl(tmp_path):
    pytest.importorskip("verl")
    from datasets import Dataset
    from omegaconf import OmegaConf
    from verl import DataProto
    from verl.utils.dataset.rl_dataset import collate_fn

    rows = [
        {
            "data_source": "ab"[i % 2],
            "prompt": [{"role": "user", "content": f"{i}"}],
            "extra_info": {"index": i},
        }
        for i in range(40)
    ]
    path = str(tmp_path / "rows.parquet")
    Dataset.from_list(rows).to_parquet(path)
    config = OmegaConf.create(
        {"train_files": path, "val_files": "other", "filter_overlong_prompts": False}
    )
    make = names_of("verl")["CurriculumDataset"]
    dataset = make(data_files=path, tokenizer=None, config=config, processor=None, max_samples=-1)
    loader = StatefulDataLoader(dataset, batch_size=4, num_workers=0, collate_fn=collate_fn)
    batches = iter(loader)

    def step(batches, dataset):
        batch = DataProto.from_single_dict(next(batches)).repeat(3, interleave=True)
        scores = torch.zeros(12, 5)
        scores[::2, -1] = 1.0
        batch.batch["token_level_scores"] = scores
        dataset.on_batch_end(batch=batch)
        return [info["draw"] for info in batch.non_tensor_batch["extra_info"]]

    drawn = [step(batches, dataset) for _ in range(3)]
    assert (dataset.prompts.teacher.time_step, dataset.prompts.waiting) == (3, 0)
    assert len({tuple(draw) for batch in drawn for draw in batch}) == 12
    state = loader.state_dict()
    after = [step(batches, dataset) for _ in range(2)]
    again = make(data_files=path, tokenizer=None, config=config, processor=None, max_samples=-1)
    resumed = StatefulDataLoader(again, batch_size=4, num_workers=0, collate_fn=collate_fn)
    resumed.load_state_dict(state)
    batches = iter(resumed)
    assert [step(batches, again) for _ in range(2)] == after


def test_prime_rl():
    pytest.importorskip("verifiers.v1")
    pytest.importorskip("prime_rl")
    from prime_rl.orchestrator.curriculum import Curriculum

    make = names_of("prime-rl")["MasterySampler"]
    tasks = [types.SimpleNamespace(key=f"k{i}", kind="ab"[i % 2]) for i in range(30)]

    def episodes(task, rewards):
        agent = types.SimpleNamespace(trainable=True)
        return [
            types.SimpleNamespace(
                task=task,
                traces=[types.SimpleNamespace(reward=r, has_error=False, agent=agent)],
            )
            for r in rewards
        ]

    sampler = make(tasks, lambda task: task.kind)
    curriculum = Curriculum.__new__(Curriculum)  # its configuration knows two samplers only
    curriculum.sampler, curriculum.gates = sampler, {}
    drawn = [next(sampler) for _ in range(70)]
    for task in reversed(drawn):
        assert curriculum.on_result(episodes(task, [1.0, 0.0]))
    assert (sampler.prompts.teacher.time_step, sampler.prompts.waiting) == (1, 0)
    other = make(tasks, lambda task: task.kind)
    resumed = Curriculum.__new__(Curriculum)
    resumed.sampler, resumed.gates = other, {}
    resumed.load_state_dict(curriculum.state_dict())
    assert [next(other).key for _ in range(9)] == [next(sampler).key for _ in range(9)]
    assert set(sampler.metrics()) == {"mastery/a", "mastery/b"}


def test_nemo_rl():
    """The function needs nothing of NeMo-RL; the loaders here have what it reads of theirs."""
    found = names_of("NeMo-RL")
    loaders = {
        name: types.SimpleNamespace(dataset=[f"{name}{i}" for i in range(50)], collate_fn=list)
        for name in ("sums", "proofs")
    }
    first, _ = found["choose"]({}, loaders)
    assert len(first) == found["STEP"]
    rewards = torch.tensor([1.0, 0.0] * found["STEP"])
    second, _ = found["choose"]({}, loaders, rewards=rewards)
    assert len(second) == found["STEP"]
    prompts = found["held"]["prompts"]
    assert (prompts.teacher.time_step, prompts.waiting) == (1, found["STEP"])
    assert np.all(prompts.explain(prompts.explain().returns.nonzero()[0]).own == 0.5)


def test_openrlhf(monkeypatch):
    """With classes that have the signatures of those that the recipe replaces."""

    class PromptDataset:
        def __init__(self):
            self.prompts = [f"p{i}" for i in range(20)]
            self.datasources = ["ab"[i % 2] for i in range(20)]

        def __getitem__(self, idx):
            return self.datasources[idx], self.prompts[idx], "", None

    class SamplesGenerator:
        def __init__(self, dataset):
            self.prompts_dataloader = types.SimpleNamespace(dataset=dataset)
            rollout = types.SimpleNamespace(n_samples_per_prompt=2)
            self.args = types.SimpleNamespace(rollout=rollout)

        def _process_response_into_experience(self, response, **kwargs):
            return response

    for name, attribute in (
        ("openrlhf.datasets", PromptDataset),
        ("openrlhf.trainer.ppo_utils.samples_generator", SamplesGenerator),
    ):
        for i in range(name.count(".") + 1):
            part = ".".join(name.split(".")[: i + 1])
            monkeypatch.setitem(sys.modules, part, sys.modules.get(part, types.ModuleType(part)))
        setattr(sys.modules[name], attribute.__name__, attribute)
    found = names_of("OpenRLHF")
    dataset = found["CurriculumDataset"]()
    generator = found["CurriculumGenerator"](dataset)
    for _ in range(64):
        _, prompt, _, _ = dataset[0]
        for reward in (1.0, 0.0):
            generator._process_response_into_experience({"prompt": prompt, "reward": reward})
    generator._process_response_into_experience({"prompt": "of the evaluation", "reward": 1.0})
    assert (dataset.curriculum.teacher.time_step, dataset.curriculum.waiting) == (1, 0)
