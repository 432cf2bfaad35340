"""How long a task that has become learnable waits to be trained on again, one table.

    python benchmarks/starvation.py

Five tasks without an order; 16 episodes a time-step. Half of the episodes of four tasks succeed.
All of the fifth fail for 1,000 time-steps, then half of them succeed. Counted are the time-steps
from then until an episode of it is played, over 20 seeds.
"""

from __future__ import annotations

import warnings

import numpy as np

from mastery import Curriculum, Task, Teacher
from mastery.programs.named import PROGRAMS

MORE = (
    "mr:gate=zero-variance",
    "mr:gate=retire",
    "mr:gate=greso",
    "uniform:gate=zero-variance",
    "competence:reprobe=0.05",
    "sampling:reprobe=0.05",
    "boltzmann-window:reprobe=0.05",
)
HELD = 1000  # time-steps at 0
TASKS = Curriculum(Task(f"t{i}", settings={"difficulty": 20.0 * i}) for i in range(5))


def wait(program: str, seed: int = 0, most: int = 2000) -> int:
    """The time-steps until the task is played again; `most` if it is not by then."""
    teacher = Teacher(TASKS, program, seed=seed)
    random = np.random.default_rng(seed)
    for t in range(HELD + most):
        returns: dict[str, list[float]] = {}
        for task in teacher.sample(16):
            chance = 0.5 if task != "t4" or t >= HELD else 0.0
            returns.setdefault(task, []).append(float(random.random() < chance))
        if t >= HELD and "t4" in returns:
            return t - HELD + 1
        teacher.update(returns)
    return most


def main() -> None:
    warnings.simplefilter("ignore")
    print("| program | median | longest |\n| --- | --- | --- |")
    for program in (*PROGRAMS, *MORE):
        found = sorted(wait(program, seed) for seed in range(20))
        longest = f"> {found[-1]:,}" if found[-1] == 2000 else f"{found[-1]:,}"
        print(f"| `{program}` | {found[len(found) // 2]:,} | {longest} |", flush=True)


if __name__ == "__main__":
    main()
