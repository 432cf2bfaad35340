"""The samplers for PyTorch: reacting within an epoch, resumed exactly, equal on all ranks."""

import io
import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset
from torchdata.stateful_dataloader import StatefulDataLoader

from mastery import CheckpointError, Curriculum, MasteryError, ReturnsError, Task, Teacher
from mastery.adapters.torch import CurriculumBatchSampler, CurriculumSampler, by_task

TASKS = Curriculum([Task("easy"), Task("middle", after=("easy",)), Task("hard", after=("middle",))])
LABELS = ["easy"] * 20 + ["middle"] * 12 + ["hard"] * 8


class Numbers(Dataset):
    """Example i is i; `task` has the labels."""

    def __init__(self, labels=LABELS):
        self.task = labels

    def __len__(self):
        return len(self.task)

    def __getitem__(self, i):
        return i, self.task[i]


def learn(sampler, tasks):
    """A learner that does better the more it has seen of a task."""
    for task in tasks:
        learn.seen[task] += 1
    scores = [min(1.0, learn.seen[task] / 40) for task in tasks]
    sampler.update(by_task(tasks, scores))


@pytest.fixture(autouse=True)
def beginner():
    learn.seen = Counter()


def make(kind, program="mr", seed=3):
    """A sampler of this kind, and what a loader takes for it."""
    dataset, teacher = Numbers(), Teacher(TASKS, program, seed=seed)
    if kind == "sampler":
        sampler = CurriculumSampler(dataset, teacher, length=96, seed=1)
        return sampler, {"sampler": sampler, "batch_size": 4}
    sampler = CurriculumBatchSampler(dataset, teacher, 4, length=96, seed=1)
    return sampler, {"batch_sampler": sampler}


KINDS = ["sampler", "batch_sampler"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_counts_from_the_next_batch_on(kind):
    """The task that is mastered is left at once, in the middle of an epoch."""
    sampler, arguments = make(kind, "gprop-linreg:window=2,epsilon=0")
    loader = iter(DataLoader(Numbers(), **arguments))
    next(loader)
    for t in range(2):  # only `hard` makes progress, and this program wants nothing else
        sampler.update({"easy": 0.5, "middle": 0.5, "hard": t / 2})
    _, tasks = next(loader)
    assert set(tasks) == {"hard"}
    for t in range(2):
        sampler.update({"easy": t / 2, "middle": 0.5, "hard": 0.5})
    _, tasks = next(loader)
    assert set(tasks) == {"easy"}


@given(
    numbers=st.lists(st.integers(1, 6), min_size=3, max_size=3),
    size=st.integers(1, 5),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_all_examples_of_a_task_come_before_any_comes_again(numbers, size, seed):
    labels = [name for name, n in zip(TASKS.names, numbers, strict=True) for _ in range(n)]
    order = np.random.default_rng(seed).permutation(len(labels))
    labels = [labels[i] for i in order]
    sampler = CurriculumBatchSampler(
        Numbers(labels), Teacher(TASKS, "uniform", seed=seed), size, length=60, seed=seed
    )
    drawn = [index for batch in sampler for index in batch]
    assert len(drawn) == 60 // size * size
    for name, n in zip(TASKS.names, numbers, strict=True):
        mine = [index for index in drawn if labels[index] == name]
        for start in range(0, len(mine) - n + 1, n):
            assert len(set(mine[start : start + n])) == n


def test_a_minibatch_has_the_numbers_that_the_teacher_says():
    teacher, twin = (Teacher(TASKS, "mr", seed=5) for _ in range(2))
    sampler = CurriculumBatchSampler(Numbers(), teacher, 10, length=100)
    for batch in sampler:
        tasks = [LABELS[i] for i in batch]
        assert Counter(tasks) == twin.allocate(10)
        returns = {task: [0.1 * len(tasks)] * 2 for task in set(tasks)}
        sampler.update(returns)
        twin.update(returns)


def test_tensors_are_taken_as_returns():
    teacher, twin = (Teacher(TASKS, "mr", seed=5) for _ in range(2))
    sampler = CurriculumSampler(Numbers(), teacher, LABELS)
    sampler.update({"easy": torch.tensor([0.25, 0.75]), "hard": torch.tensor(0.5)})
    twin.update({"easy": [0.25, 0.75], "hard": 0.5})
    assert teacher.probabilities == twin.probabilities


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata 0.11 calls it
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", [1, 7, 23, 24])
def test_a_stateful_loader_goes_on_exactly(kind, stop):
    """24 batches an epoch, two epochs; stopped after some, saved, and taken up by a new process's
    objects."""

    def run(loader, sampler, state=None):
        seen = []
        if state is not None:
            loader.load_state_dict(state)
        while True:
            for index, tasks in loader:
                seen.append(index.tolist())
                learn(sampler, tasks)
                yield seen
            ends.append(len(seen))

    ends = []
    sampler, arguments = make(kind)
    whole = run(StatefulDataLoader(Numbers(), **arguments), sampler)
    for _ in range(48):
        expected = next(whole)

    learn.seen = Counter()
    sampler, arguments = make(kind)
    loader = StatefulDataLoader(Numbers(), **arguments)
    part = run(loader, sampler)
    for _ in range(stop):
        first = next(part)
    file = io.BytesIO()
    torch.save(loader.state_dict(), file)
    file.seek(0)
    state = torch.load(file)  # weights_only: no object of ours is in it

    ends.clear()
    sampler, arguments = make(kind, seed=99)
    rest = run(StatefulDataLoader(Numbers(), **arguments), sampler, state)
    for _ in range(48 - stop):
        second = next(rest)
    assert first + second == expected
    assert ends[0] == 24 - stop  # the epoch that was begun is not made longer


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("kind", KINDS)
def test_a_state_taken_between_two_epochs_begins_the_next(kind):
    _, arguments = make(kind)
    loader = StatefulDataLoader(Numbers(), **arguments)
    list(loader)
    state = loader.state_dict()
    expected = [index.tolist() for index, _ in loader]
    _, arguments = make(kind, seed=99)
    loader = StatefulDataLoader(Numbers(), **arguments)
    loader.load_state_dict(state)
    assert [index.tolist() for index, _ in loader] == expected
    assert len(list(loader)) == 24


RANK = """
import json, sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from mastery import MasteryError, Teacher
from mastery.adapters.torch import CurriculumBatchSampler, CurriculumSampler, by_task
from test_torch import LABELS, TASKS, Numbers

rank, store = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
model = DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
found = {}
for kind in ("sampler", "batch_sampler"):
    teacher = Teacher(TASKS, "mr", seed=7)
    if kind == "sampler":
        sampler = CurriculumSampler(Numbers(), teacher, length=160)
        loader = DataLoader(Numbers(), 4, sampler=sampler)
    else:
        sampler = CurriculumBatchSampler(Numbers(), teacher, 4, length=160)
        loader = DataLoader(Numbers(), batch_sampler=sampler)
    drawn, returns = [], []
    for index, tasks in loader:
        x = torch.nn.functional.one_hot(
            torch.tensor([TASKS.names.index(task) for task in tasks]), 3).float()
        loss = (model(x) - 1).pow(2)
        optimizer.zero_grad(); loss.mean().backward(); optimizer.step()
        scores = (1 - loss.detach()).clamp(0, 1)[:, 0].tolist()
        sampler.update(by_task(tasks, scores))
        drawn.append(index.tolist()); returns.append(list(zip(tasks, scores)))
    state = teacher.state_dict()
    found[kind] = dict(drawn=drawn, returns=returns, probabilities=teacher.probabilities,
                       random=state["random"], time_step=state["time_step"],
                       state={k: v.tolist() for k, v in state["state"].items()})
try:
    CurriculumSampler(Numbers(), Teacher(TASKS, "mr", seed=rank)).update({})
except MasteryError as error:
    found["error"] = str(error)
print(json.dumps(found))
dist.destroy_process_group()
"""


def test_two_ranks_draw_alike_and_stay_equal(tmp_path):
    """Under DistributedDataParallel: two processes, each with its own loader and teacher."""
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    path = [str(p) for p in (sys.path[0], *sys.path)]
    here = __file__.rsplit("/", 1)[0]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", script, str(rank), tmp_path / "store"],
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": ":".join([here, *path]), "PATH": "", "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    a, b = (json.loads(process.communicate(timeout=120)[0]) for process in ranks)
    for kind in KINDS:
        x, y = a[kind], b[kind]
        for what in ("probabilities", "random", "time_step", "state"):
            assert x[what] == y[what]
        assert x["time_step"] == len(x["drawn"]) == 20
        # a teacher that saw both ranks' returns, as one learner would have
        twin = Teacher(TASKS, "mr", seed=7)
        for mine, yours in zip(x["returns"], y["returns"], strict=True):
            together = {}
            if kind == "batch_sampler":
                drawn = Counter(task for task, _ in [*mine, *yours])
                assert drawn == twin.allocate(8)
            else:
                drawn = [task for pair in zip(mine, yours, strict=True) for task, _ in pair]
                assert drawn == twin.sample(8)
            for task, score in [*mine, *yours]:
                together.setdefault(task, []).append(score)
            twin.update(together)
        assert twin.probabilities == x["probabilities"]
        # no example on both ranks before its task's others have come
        both = [i for pair in zip(x["drawn"], y["drawn"], strict=True) for row in pair for i in row]
        for task in TASKS.names:
            n = LABELS.count(task)
            counts = Counter(i for i in both if LABELS[i] == task)
            assert max(counts.values()) - min(counts.values()) <= 1 or len(counts) < n
    message = "the teachers of ranks 0 and 1 differ"
    assert message in a["error"]
    assert message in b["error"]


class Unlabelled(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return i


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda t: CurriculumSampler(Unlabelled(), t),
            "the dataset has no column or attribute 'task'",
        ),
        (lambda t: CurriculumSampler(Numbers(), t, "level"), "no column or attribute 'level'"),
        (lambda t: CurriculumSampler(Numbers(), t, LABELS[1:]), "39 labels for 40 examples"),
        (
            lambda t: CurriculumSampler(Numbers(["hard", "easier", "middle"]), t),
            "example 1 has the label 'easier', which is not a task; did you mean 'easy'?",
        ),
        (lambda t: CurriculumSampler(Numbers([1, 2]), t), "the label 1, which is not a task"),
        (lambda t: CurriculumSampler(Numbers(["easy"] * 3), t), "no example of task 'middle'"),
        (lambda t: CurriculumSampler(Numbers(), "mr"), "needs a Teacher"),
        (lambda t: CurriculumSampler(iter([1]), t, ["easy"]), "map-style"),
        (lambda t: CurriculumSampler(Numbers(), t, 3), "one task name per example"),
        (lambda t: CurriculumBatchSampler(Numbers(), t, 0), "batch_size is 0"),
        (lambda t: CurriculumBatchSampler(Numbers(), t, 64), "too short"),
        (lambda t: CurriculumSampler(Numbers(), t, num_replicas=2, rank=2), "rank is 2"),
    ],
)
def test_wrong_use_is_refused(make, message):
    with pytest.raises(MasteryError, match=message.replace("?", r"\?")):
        make(Teacher(TASKS, "mr", seed=0))


def test_wrong_returns_and_states_change_nothing():
    sampler = CurriculumSampler(Numbers(), Teacher(TASKS, "mr", seed=0))
    next(iter(sampler))
    before = sampler.state_dict()
    with pytest.raises(ReturnsError, match="did you mean 'easy'"):
        sampler.update({"eazy": 1.0})
    with pytest.raises(CheckpointError, match="not from a curriculum sampler"):
        sampler.load_state_dict({"at": 1})
    with pytest.raises(MasteryError, match="init_process_group"):
        CurriculumSampler(Numbers(), sampler.teacher, num_replicas=2, rank=0).update({"easy": 1.0})
    assert repr(sampler.state_dict()) == repr(before)


@pytest.mark.parametrize("library", ["torch", "ray", "trl"])
def test_a_missing_library_is_one_line_that_names_the_extra(library):
    code = f"import sys; sys.modules[{library!r}] = None; import mastery.adapters.{library}"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert f"MasteryError: mastery.adapters.{library} needs {library}: pip" in done.stderr
    assert done.stderr.strip().endswith(f"pip install 'mastery-curriculum[{library}]'")
