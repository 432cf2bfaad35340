"""Choose prompts for any trainer: by task, and within the task by what can be learned.

    python examples/prompts.py

The learner here is made up: it has a skill per task, each prompt has a difficulty, and a group of
completions teaches as much as its rewards differ. Your own trainer takes its place: it asks for
prompts, and reports the rewards of each, also late and out of order.
"""

import numpy as np

from mastery import Curriculum, Prompts, Task, Teacher


def main():
    random = np.random.default_rng(0)
    curriculum = Curriculum([Task("sums"), Task("proofs")])
    tasks = ["sums"] * 300 + ["proofs"] * 300
    difficulty = np.array([0.0] * 300 + [2.5] * 300) + random.normal(size=600)
    skill = {"sums": 0.0, "proofs": 0.0, "code": 0.0}

    prompts = Prompts(range(600), Teacher(curriculum, seed=0), tasks, update_every=32, seed=0)
    late = []
    for step in range(150):
        for draw in prompts.next(32):
            p = 1 / (1 + np.exp(difficulty[draw.id] - skill[draw.task]))
            rewards = (random.random(draw.completions) < p).astype(float)
            skill[draw.task] += 0.1 * rewards.var()
            late.append((draw.id, draw.ticket, rewards))
        random.shuffle(late)  # groups end out of order, and some after the next step
        while len(late) > 8:
            i, ticket, rewards = late.pop()
            prompts.report([i], [rewards], tickets=[ticket], tokens=[50 * len(rewards)])
        if step == 75:  # a new task, and prompts that turned out to be wrong
            prompts.teacher.change(Curriculum([*curriculum, Task("code")]))
            prompts.add(["code"] * 100)
            difficulty = np.concatenate([difficulty, 1 + random.normal(size=100)])
            prompts.retire(range(300, 310))
        if step % 50 == 49:
            print(
                f"step {step + 1}: skill", {name: round(float(x), 1) for name, x in skill.items()}
            )
    print(prompts.explain().tasks)
    print(prompts.explain([0, 1, 400, 650]))


if __name__ == "__main__":
    main()
