"""Stable-Baselines3's PPO on the real MiniGrid, with a curriculum.

    python examples/sb3_minigrid.py
    python examples/sb3_minigrid.py --program uniform --steps 400000 --save checkpoints

Needs `pip install 'mastery-curriculum[sb3]' minigrid`. The lines that are about the curriculum are
marked with (c). With --save and --resume it goes on from what was saved last.
"""

import argparse

import gymnasium as gym
import torch
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnvWrapper

from mastery import Curriculum, Teacher
from mastery.adapters.stable_baselines3 import (
    CurriculumCallback,
    CurriculumVecEnv,
    last_checkpoint,
)


class OneHot(BaseFeaturesExtractor):
    """A convolution over the 7 × 7 cells that are seen; each of a cell's three numbers one-hot."""

    def __init__(self, space):
        super().__init__(space, 128)
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(33, 32, 2),
            torch.nn.ReLU(),
            torch.nn.Conv2d(32, 64, 2),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(1600, 128),
            torch.nn.ReLU(),
        )

    def forward(self, seen):
        cells = torch.nn.functional.one_hot(seen.long(), 11).reshape(-1, 7, 7, 33)
        return self.net(cells.permute(0, 3, 1, 2).float())


class Shaped(VecEnvWrapper):
    """What the agent learns from: five times the reward, and a little for each view that is new in
    an episode. It goes around the curriculum, so that the teacher sees the real returns."""

    def reset(self):
        seen = self.venv.reset()
        self.shown = [{view.tobytes()} for view in seen]
        return seen

    def step_wait(self):
        seen, rewards, over, infos = self.venv.step_wait()
        rewards = 5 * rewards
        for n, (view, ended) in enumerate(zip(seen, over, strict=True)):
            if ended:
                self.shown[n] = {view.tobytes()}
            elif view.tobytes() not in self.shown[n]:
                self.shown[n].add(view.tobytes())
                rewards[n] += 0.015
        return seen, rewards, over, infos


def make_env(task):
    env = gym.wrappers.FlattenObservation(ImgObsWrapper(gym.make(f"MiniGrid-{task}-v0")))
    return gym.wrappers.TransformAction(env, int, gym.spaces.Discrete(6))  # "done" does nothing


def make_model(envs, seed):
    return PPO(
        "MlpPolicy", Shaped(envs), n_steps=128, batch_size=256, n_epochs=4, learning_rate=7e-4,
        ent_coef=0.0025, max_grad_norm=2, normalize_advantage=False, seed=seed,
        policy_kwargs={"features_extractor_class": OneHot, "net_arch": []},
    )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="mr")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=4096)
    parser.add_argument("--save", help="a folder for checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    args = parser.parse_args()
    torch.set_num_threads(1)  # more are slower with a network as small as this

    curriculum = Curriculum.load("blocked-unlock-pickup")  # (c)
    teacher = Teacher(curriculum, args.program, seed=args.seed)  # (c)
    if args.resume and not args.save:
        parser.error("--resume needs --save and the folder that was saved to")
    if args.resume:
        saved = last_checkpoint(args.save)  # (c)
        teacher = Teacher.load(saved.teacher)  # (c)
    envs = CurriculumVecEnv(make_env, teacher, num_envs=16)  # (c)
    model = PPO.load(saved.model, Shaped(envs)) if args.resume else make_model(envs, args.seed)
    callback = CurriculumCallback(teacher, save=args.save)  # (c)
    model.learn(args.steps, callback=callback, reset_num_timesteps=not args.resume)
    print(teacher.explain())  # (c)
