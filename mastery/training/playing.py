"""Let a trained agent play an episode of one of its tasks in Gymnasium."""

from __future__ import annotations

from typing import Any, NamedTuple

from mastery.training.agent import TrainedAgent


class GymnasiumEpisode(NamedTuple):
    """An episode in a Gymnasium environment."""

    frames: list[Any]  # one picture per step and one of the end, if they were asked for
    steps: int
    reward: float  # the return
    ended: bool  # False if it was stopped at the limit


def play_gymnasium(
    agent: TrainedAgent, task: str, seed: int, steps: int, greedy: bool = False, draw: bool = True
) -> GymnasiumEpisode:
    """Play an episode of a task; the environment draws its own frames.

    Args:
        agent: The agent.
        task: The name of one of its job's tasks.
        seed: Seed of the environment.
        steps: Most steps to play.
        greedy: Take the likeliest actions instead of sampled ones.
        draw: Whether to keep the frames.
    """
    frames: list[Any] = []
    env = agent.make(task, "rgb_array" if draw else None)
    try:
        observation, _ = env.reset(seed=seed)
        agent.reset()
        total, ended, count = 0.0, False, 0
        while not ended and count < steps:
            if draw:
                frames.append(env.render())
            observation, reward, terminated, truncated, _ = env.step(agent.act(observation, greedy))
            total, ended, count = total + float(reward), terminated or truncated, count + 1
        if draw:
            frames.append(env.render())
    finally:
        env.close()
    return GymnasiumEpisode(frames, count, total, ended)
