"""Training speed of torch-ac 1.4.0's PPO on MiniGrid-Unlock-v0, in frames per second.

The peer is set up as rl-starter-files runs it without memory and text: 16 environments in
torch-ac's ParallelEnv, 128 frames each per update, rl-starter-files' default settings. The reward
is multiplied by 20 through torch-ac's own reshape_reward.

Environment: pip install torch==2.13.0 (the CPU build), then torch-ac==1.4.0 and minigrid==3.2.0.
No adapter is needed: torch-ac 1.4.0 speaks gymnasium's API (reset gives a pair, step five values).
Its ParallelEnv has no close(), so the workers are ended here. PyTorch's threads are left at its
default, as rl-starter-files leaves them; OMP_NUM_THREADS=1 in the environment changes that.
"""

import argparse
import multiprocessing
import time

import gymnasium
import minigrid  # noqa: F401  (registers the environments)
import numpy as np
import torch
import torch_ac  # sets multiprocessing's start method to fork when imported
from torch import nn

ENVIRONMENT = "MiniGrid-Unlock-v0"
PROCESSES = 16
WARM_UP_UPDATES = 2
ROLLOUT = {"num_frames_per_proc": 128, "discount": 0.99, "gae_lambda": 0.95, "recurrence": 1}
LOSS = {"clip_eps": 0.2, "entropy_coef": 0.01, "value_loss_coef": 0.5}
OPTIMISER = {"epochs": 4, "batch_size": 256, "lr": 1e-3, "adam_eps": 1e-8, "max_grad_norm": 0.5}


class Model(nn.Module, torch_ac.RecurrentACModel):
    """The network of rl-starter-files: there too a RecurrentACModel whose memory goes unused."""

    memory_size = 128

    def __init__(self, actions: int):
        super().__init__()
        self.image = nn.Sequential(
            nn.Conv2d(3, 16, 2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 2),
            nn.ReLU(),
            nn.Conv2d(32, 64, 2),
            nn.ReLU(),
        )
        self.actor = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, actions))
        self.critic = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        for layer in (*self.actor, *self.critic):
            if isinstance(layer, nn.Linear):  # the convolutions keep PyTorch's initialisation
                weight = torch.randn_like(layer.weight)
                layer.weight.data = weight / weight.norm(dim=1, keepdim=True)
                nn.init.zeros_(layer.bias)

    def forward(self, obs, memory):
        x = self.image(obs.image.permute(0, 3, 1, 2)).flatten(1)
        logits = torch.log_softmax(self.actor(x), dim=1)
        return torch.distributions.Categorical(logits=logits), self.critic(x).squeeze(1), memory


def preprocess(observations, device=None) -> torch_ac.DictList:
    images = np.array([observation["image"] for observation in observations])
    return torch_ac.DictList({"image": torch.tensor(images, device=device, dtype=torch.float)})


def update(algo: torch_ac.PPOAlgo) -> int:
    experiences, logs = algo.collect_experiences()
    algo.update_parameters(experiences)
    return logs["num_frames"]


def measure(seconds: float) -> float:
    """Train for about `seconds` after the warm-up; whole updates only. Frames per second."""
    others = set(multiprocessing.active_children())
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002  (as rl-starter-files)
    envs = [gymnasium.make(ENVIRONMENT) for _ in range(PROCESSES)]
    for i, env in enumerate(envs):
        env.reset(seed=1 + 10000 * i)
    try:
        algo = torch_ac.PPOAlgo(
            envs,
            Model(envs[0].action_space.n),
            device=torch.device("cpu"),
            preprocess_obss=preprocess,
            reshape_reward=lambda obs, action, reward, done: 20 * reward,
            **(ROLLOUT | LOSS | OPTIMISER),
        )
        for _ in range(WARM_UP_UPDATES):
            update(algo)
        frames, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            frames += update(algo)
        return frames / (time.perf_counter() - start)
    finally:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
            worker.join()


def main() -> None:
    parser = argparse.ArgumentParser(description="Frames per second of torch-ac's PPO.")
    parser.add_argument("--seconds", type=float, default=30.0, help="time measured (default: 30)")
    print(f"{measure(parser.parse_args().seconds):.1f}")


if __name__ == "__main__":
    main()
