"""RLlib's PPO with a curriculum: every environment runner plays the tasks of one teacher.

    python examples/rllib_ppo.py [--iterations 3]

The agent walks along a corridor that is longer from task to task. Needs
`pip install 'mastery-curriculum[rllib]'`.
"""

import argparse
import tempfile

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig

from mastery import Curriculum, Task, Teacher
from mastery.adapters.ray import RemoteTeacher
from mastery.adapters.rllib import CurriculumCallback

LENGTHS = {"short": 4, "middle": 8, "long": 16}
CURRICULUM = Curriculum(
    [Task("short"), Task("middle", after=("short",)), Task("long", after=("middle",))]
)


class Corridor(gym.Env):
    """`task` is set from outside before a reset; by itself the environment plays "long"."""

    observation_space = gym.spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, config=None):
        self.task = "long"

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.length, self.at, self.steps = LENGTHS[self.task], 0, 0
        return self._see(), {}

    def step(self, action):
        self.at = max(0, self.at + (1 if action else -1))
        self.steps += 1
        arrived, late = self.at >= self.length, self.steps >= 4 * self.length
        return self._see(), float(arrived), arrived, late, {}

    def _see(self):
        return np.array([self.at / 16, self.length / 16], np.float32)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=3)
    given = parser.parse_args()
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    with tempfile.TemporaryDirectory() as folder:
        teacher = RemoteTeacher.start(Teacher(CURRICULUM, "mr", seed=0), folder)
        config = (
            PPOConfig()
            .environment(Corridor)
            .env_runners(num_env_runners=1, num_envs_per_env_runner=4)
            .training(train_batch_size_per_learner=1000, minibatch_size=250, num_epochs=4)
            .callbacks(CurriculumCallback)
        )
        algorithm = config.build_algo()
        for iteration in range(given.iterations):
            mastery = algorithm.train()["curriculum"]["mastery"]
            shown = "  ".join(f"{task} {m:.2f}" for task, m in mastery.items())
            print(f"iteration {iteration + 1}: mastery  {shown}")
        print("episodes the teacher has:", teacher.time_step)
        algorithm.stop()
        teacher.stop()
    ray.shutdown()
