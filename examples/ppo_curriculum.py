"""PPO in one file, after CleanRL's ppo.py, on a lock of eight digits.

    python examples/ppo_curriculum.py

ppo.py is without a curriculum, ppo_curriculum.py is the same with one, of shorter locks.
"""

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from mastery import Curriculum, Task, Teacher
from mastery.adapters.gymnasium import CurriculumVectorEnv

DIGITS = (2, 0, 3, 1, 1, 2, 0, 3)  # of the longest lock
TASKS = [f"{n}-digits" for n in range(1, len(DIGITS) + 1)]
ENVS, STEPS, UPDATES, MINIBATCHES, EPOCHS = 8, 64, 50, 4, 4
GAMMA, GAE_LAMBDA, CLIP, ENTROPY, VALUE, LEARNING_RATE = 0.98, 0.95, 0.2, 0.02, 0.5, 2.5e-3


class Lock(gym.Env):
    """A lock opens when its digits, from 0 to 3, are entered in their order; lamps show how many
    are. After a wrong one it has to be begun again. Reward 1 when it opens, in three steps a digit
    or never. Of the shorter locks the first lamps are always on."""

    observation_space = gym.spaces.Box(0, 1, (len(DIGITS),), np.float32)
    action_space = gym.spaces.Discrete(4)

    def __init__(self, task):
        self.length = TASKS.index(task) + 1

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.right, self.steps = len(DIGITS) - self.length, 0
        return self.lamps(), {}

    def step(self, action):
        self.steps += 1
        begin = len(DIGITS) - self.length
        self.right = self.right + 1 if action == DIGITS[self.right] else begin
        opened = self.right == len(DIGITS)
        return self.lamps(), float(opened), opened, self.steps >= 3 * self.length, {}

    def lamps(self):
        return (np.arange(len(DIGITS)) < self.right).astype(np.float32)


def layer(inputs, outputs, gain=2**0.5):
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    def __init__(self, envs):
        super().__init__()
        seen = int(np.prod(envs.single_observation_space.shape))
        actions = envs.single_action_space.n
        self.critic = nn.Sequential(layer(seen, 64), nn.Tanh(), layer(64, 1, 1.0))
        self.actor = nn.Sequential(layer(seen, 64), nn.Tanh(), layer(64, actions, 0.01))

    def forward(self, seen, action=None):
        policy = torch.distributions.Categorical(logits=self.actor(seen))
        action = policy.sample() if action is None else action
        return action, policy.log_prob(action), policy.entropy(), self.critic(seen).flatten()


def rollout(agent, envs, seen):
    """STEPS steps of all environments, and what is seen after them."""
    kept = []
    for _ in range(STEPS):
        with torch.no_grad():
            action, log_probability, _, value = agent(seen)
        after, reward, terminated, truncated, _ = envs.step(action.numpy())
        over = torch.as_tensor(terminated | truncated, dtype=torch.float32)
        reward = torch.as_tensor(reward, dtype=torch.float32)
        kept.append((seen, action, log_probability, value, reward, over))
        seen = torch.as_tensor(after)
    return [torch.stack(x) for x in zip(*kept, strict=True)], seen


def advantages(value, reward, over, last):
    """Generalised advantage estimation."""
    found, after = torch.zeros_like(reward), torch.zeros_like(last)
    for t in reversed(range(STEPS)):
        following = value[t + 1] if t + 1 < STEPS else last
        delta = reward[t] + GAMMA * following * (1 - over[t]) - value[t]
        found[t] = after = delta + GAMMA * GAE_LAMBDA * (1 - over[t]) * after
    return found


def improve(agent, optimizer, seen, action, log_probability, advantage, target):
    """The epochs of one update, over flat arrays."""
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(seen)).chunk(MINIBATCHES):
            _, new, entropy, value = agent(seen[rows], action[rows])
            ratio, a = (new - log_probability[rows]).exp(), advantage[rows]
            a = (a - a.mean()) / (a.std() + 1e-8)
            policy_loss = -torch.min(a * ratio, a * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
            value_loss = 0.5 * (value - target[rows]).square().mean()
            optimizer.zero_grad()
            (policy_loss + VALUE * value_loss - ENTROPY * entropy.mean()).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def main(seed=0):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    tasks = [Task(name, after=TASKS[i - 1 : i]) for i, name in enumerate(TASKS)]
    teacher = Teacher(Curriculum(tasks), seed=seed)
    envs = CurriculumVectorEnv(Lock, teacher, ENVS, autoreset_mode="SameStep")
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), LEARNING_RATE, eps=1e-5)
    seen = torch.as_tensor(envs.reset(seed=seed)[0])
    for update in range(1, UPDATES + 1):
        (*kept, reward, over), seen = rollout(agent, envs, seen)
        with torch.no_grad():
            advantage = advantages(kept[3], reward, over, agent(seen)[3])
        kept = [x.flatten(0, 1) for x in (*kept[:3], advantage, advantage + kept[3])]
        improve(agent, optimizer, *kept)
        envs.update()
        if update % 10 == 0:
            ended = max(int(over.sum()), 1)
            print(f"{update * STEPS * ENVS} steps: {reward.sum() / ended:.2f} of a lock opened")
    envs.close()

    opened, lock = 0, Lock(TASKS[-1])
    for _ in range(100):
        lamps, over = lock.reset()[0], False
        while not over:
            lamps, reward, terminated, truncated, _ = lock.step(
                agent(torch.as_tensor(lamps))[0].item()
            )
            over = terminated or truncated
        opened += reward
    print(f"the longest lock opens in {opened:.0f} of 100 episodes")


if __name__ == "__main__":
    main()
