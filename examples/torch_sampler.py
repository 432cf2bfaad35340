"""A teacher in a PyTorch training loop: a sampler that reacts within the epoch.

    python examples/torch_sampler.py

A small network learns to tell which of two numbers is larger; from task to task they differ by
less. The dataset says which task each example is of; the teacher hears which answers were right.
Needs `pip install 'mastery-curriculum[torch]'`.
"""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from mastery import Curriculum, Task, Teacher
from mastery.adapters.torch import CurriculumSampler, by_task

GAPS = {"far": 0.8, "near": 0.2, "close": 0.05}
CURRICULUM = Curriculum(
    [
        Task("far", minimum=0.5, maximum=0.95),
        Task("near", minimum=0.5, maximum=0.95, after=("far",)),
        Task("close", minimum=0.5, maximum=0.95, after=("near",)),
    ]
)


class Pairs(Dataset):
    """`task` has the task of each example: the sampler looks for it there."""

    def __init__(self, number=2000, seed=0):
        random = np.random.default_rng(seed)
        self.task = [name for name in GAPS for _ in range(number)]
        gap = np.repeat(list(GAPS.values()), number)
        a, larger = random.random(len(gap)), random.random(len(gap)) < 0.5
        self.x = torch.tensor(np.stack([a, np.where(larger, a - gap, a + gap)], 1)).float()
        self.y = torch.tensor(larger).float()

    def __len__(self):
        return len(self.task)

    def __getitem__(self, i):
        return self.x[i], self.y[i], self.task[i]


def train(program, seed=0):
    """Examples until every task is right 95 times in a hundred."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    dataset, test = Pairs(seed=seed), Pairs(200, seed=seed + 1000)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)
    sampler = CurriculumSampler(dataset, Teacher(CURRICULUM, program, seed=seed))
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    seen = 0
    for _ in range(10):  # epochs
        for x, y, tasks in loader:
            logits = model(x)[:, 0]
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(logits, y).backward()
            optimizer.step()
            sampler.update(by_task(tasks, (logits > 0) == (y > 0)))  # from the next batch on
            seen += len(x)
            if seen % 640 == 0:
                right = (model(test.x)[:, 0] > 0) == (test.y > 0)
                if right.reshape(len(GAPS), -1).float().mean(1).min() >= 0.95:
                    return seen
    return np.inf


if __name__ == "__main__":
    print("examples until every task is right 95 times in a hundred, median of 3 learners")
    for program in ("mr", "uniform"):
        print(f"  {program:<8} {np.median([train(program, seed) for seed in range(3)]):>6.0f}")
