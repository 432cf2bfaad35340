"""MiniGrid as a Gymnasium vector environment, with a teacher that says which tasks to play.

    python examples/minigrid_vector.py

The agent here acts at random, so it learns nothing; put yours in its place. Needs
`pip install 'mastery-curriculum[minigrid]'`.
"""

import numpy as np

from mastery import Curriculum, Teacher
from mastery.minigrid import make_vec

curriculum = Curriculum.load("blocked-unlock-pickup")
teacher = Teacher(curriculum, program="mr", seed=0)
envs = make_vec(curriculum, num_envs=64, probabilities=teacher.distribution)

observations, infos = envs.reset(seed=0)
played = dict.fromkeys(envs.tasks, 0)
for _ in range(8):  # a time-step of the teacher is one update of the agent
    returns = {}
    for _ in range(128):
        actions = envs.action_space.sample()  # your agent: observations["image"] is (64, 7, 7, 3)
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        if "episode" in infos:
            for n in np.flatnonzero(infos["_episode"]):
                task = envs.tasks[infos["task"][n]]
                returns.setdefault(task, []).append(float(infos["episode"]["r"][n]))
                played[task] += 1
    teacher.update(returns)
    envs.probabilities = teacher.distribution  # of the episodes that begin from now on

print("episodes played:", ", ".join(f"{task} {n}" for task, n in played.items()))
print(teacher.explain())
