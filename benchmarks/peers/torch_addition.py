"""Plain PyTorch on the addition curriculum: the same network, the same work, as one would write it.

Uniform over the tasks; an epoch is ten minibatches, and then two tests of every task, as many
examples as `mastery train` takes for its teacher and its validation.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


class Adder(nn.Module):
    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.encoder = nn.LSTM(11, width, batch_first=True)
        self.decoder = nn.LSTM(width, width, batch_first=True)
        self.out, self.length = nn.Linear(width, 10), length

    def forward(self, symbols: torch.Tensor) -> torch.Tensor:
        _, (code, _) = self.encoder(nn.functional.one_hot(symbols, 11).float())
        repeated = code[0].unsqueeze(1).expand(-1, self.length + 1, -1)
        return self.out(self.decoder(repeated)[0])


def examples(digits: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    low = torch.where(digits > 1, 10 ** (digits - 1), 0)
    high = 10**digits
    a, b = (low + (torch.rand(len(digits), dtype=torch.float64, device=digits.device)
                   * (high - low)).long() for _ in range(2))  # fmt: skip
    powers = 10 ** torch.arange(length, -1, -1, device=digits.device)
    a_digits, b_digits, total = (x[:, None] // powers % 10 for x in (a, b, a + b))
    plus = torch.full_like(a_digits[:, :1], 10)
    return torch.cat([a_digits[:, 1:], plus, b_digits[:, 1:]], 1), total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--digits", type=int, default=9)
    parser.add_argument("--batch", type=int, default=128)
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Adder(128, given.digits).to(device)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    tests = torch.arange(1, given.digits + 1, device=device).repeat_interleave(100)

    def epoch() -> None:
        for _ in range(10):
            digits = torch.randint(1, given.digits + 1, (given.batch,), device=device)
            symbols, target = examples(digits, given.digits)
            loss = nn.functional.cross_entropy(model(symbols).transpose(1, 2), target)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            for _ in range(2):
                symbols, target = examples(tests, given.digits)
                right = (model(symbols).argmax(-1) == target).all(1).float()
                right.reshape(given.digits, -1).mean(1).tolist()

    epoch()
    began, epochs = time.perf_counter(), 0
    while time.perf_counter() - began < given.seconds:
        epoch()
        epochs += 1
    print(10 * given.batch * epochs / (time.perf_counter() - began))


if __name__ == "__main__":
    main()
