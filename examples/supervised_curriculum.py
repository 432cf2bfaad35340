"""Supervised training in PyTorch: a recurrent network learns the parity of 24 bits.

    python examples/supervised_curriculum.py

`python examples/supervised_curriculum.py` is the same with a curriculum of shorter words.
"""

import torch
from torch import nn

from mastery import Curriculum, Task, Teacher

LENGTHS = {"2-bits": 2, "3-bits": 3, "5-bits": 5, "8-bits": 8, "14-bits": 14, "24-bits": 24}
STEPS, BATCH = 400, 128


class Parity(nn.Module):
    """Reads a word bit by bit; positive if the number of ones is odd."""

    def __init__(self, hidden=32):
        super().__init__()
        self.memory = nn.GRU(1, hidden, batch_first=True)
        self.answer = nn.Linear(hidden, 1)

    def forward(self, words):
        seen, _ = self.memory(words)
        return self.answer(seen[:, -1]).squeeze(1)


def examples(length, n):
    words = torch.randint(2, (n, length, 1)).float()
    return words, words.sum((1, 2)) % 2


def main(seed=0):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    names = list(LENGTHS)
    tasks = [Task(name, 0.5, 1.0, after=names[i - 1 : i]) for i, name in enumerate(names)]
    teacher = Teacher(Curriculum(tasks), seed=seed)
    network = Parity()
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    for step in range(1, STEPS + 1):
        task = teacher.sample()
        words, odd = examples(LENGTHS[task], BATCH)
        logits = network(words)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, odd)
        accuracy = ((logits > 0) == odd).float().mean().item()
        teacher.update({task: accuracy})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {accuracy:.2f} right of {task}")
    with torch.no_grad():
        words, odd = examples(24, 1000)
        print(f"24 bits: {((network(words) > 0) == odd).float().mean():.2f} right")


if __name__ == "__main__":
    main()
