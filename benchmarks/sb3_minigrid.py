"""What a curriculum does for Stable-Baselines3's PPO on the real MiniGrid (BlockedUnlockPickup).

    python benchmarks/sb3_minigrid.py --program mr --seed 0 --csv docs/data/sb3.csv

One run of `examples/sb3_minigrid.py`, with an evaluation of every task (50 fresh episodes each)
every 20,480 steps, whose rows are added to the file. `docs/pictures.py` draws the file.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
import torch

from mastery import Curriculum, Teacher
from mastery.adapters.stable_baselines3 import CurriculumCallback, CurriculumVecEnv
from mastery.minigrid import make_vec

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from sb3_minigrid import make_env, make_model

EVERY = 20_480  # steps: ten rollouts


def evaluate(model, task, episodes=50):
    """Mean return of fresh episodes of a task (on our own MiniGrid, which is faster)."""
    envs = make_vec(task, episodes, reward="minigrid", observation="image")
    seen, _ = envs.reset(seed=10**6)
    total, over = np.zeros(episodes), np.zeros(episodes, bool)
    while not over.all():
        actions, _ = model.predict(seen.reshape(episodes, -1))
        seen, rewards, terminated, truncated, _ = envs.step(actions)
        total += rewards * ~over
        over |= terminated | truncated
    return float(total.mean())


class Evaluate(CurriculumCallback):
    """Before every tenth rollout."""

    def __init__(self, teacher, rows):
        super().__init__(teacher)
        self.rows = rows

    def _on_rollout_start(self):
        super()._on_rollout_start()
        if self.num_timesteps % EVERY == 0:
            self.look()

    def look(self):
        names = self.teacher.curriculum.names
        found = {task: round(evaluate(self.model, task), 4) for task in names}
        self.rows += [(self.num_timesteps, task, value) for task, value in found.items()]
        print(self.num_timesteps, found, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="mr")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=348_160)
    parser.add_argument("--csv", required=True, type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    teacher = Teacher(Curriculum.load("blocked-unlock-pickup"), args.program, seed=args.seed)
    model = make_model(CurriculumVecEnv(make_env, teacher, num_envs=16), args.seed)
    rows: list[tuple[int, str, float]] = []
    callback = Evaluate(teacher, rows)
    model.learn(args.steps, callback=callback)
    callback.look()
    new = not args.csv.exists()
    with args.csv.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(("program", "seed", "steps", "task", "return"))
        writer.writerows((args.program, args.seed, *row) for row in rows)
