"""A loop of your own, recorded: REINFORCE in NumPy on poles that are harder and harder to balance.

    python examples/record_loop.py            # then: mastery watch runs/poles
    python examples/record_loop.py --seed 1   # side by side with the first, on the same page

One line, `mastery.record(teacher, …)`, is all that the page needs; the rest is extra.
"""

import argparse

import gymnasium as gym
import numpy as np

import mastery

EPISODES, BATCH, RATE, GAMMA = 800, 10, 20, 0.99
LENGTHS = {"long": 1.0, "half": 0.5, "short": 0.2, "shortest": 0.1}  # a short pole falls sooner


def play(env, task, weights, random):
    """One episode: its length, gradients, discounted returns and mean entropy."""
    env.unwrapped.length = LENGTHS[task]
    env.unwrapped.polemass_length = env.unwrapped.masspole * LENGTHS[task]
    seen, _ = env.reset(seed=int(random.integers(2**31)))
    steps, entropy, done = [], 0.0, False
    while not done:
        inputs = np.append(seen, 1.0)
        right = 1 / (1 + np.exp(-weights @ inputs))
        action = int(random.random() < right)
        seen, _, ended, out_of_time, _ = env.step(action)
        steps.append((action - right) * inputs)
        entropy -= right * np.log(right + 1e-9) + (1 - right) * np.log(1 - right + 1e-9)
        done = ended or out_of_time
    to_go = (1 - GAMMA ** np.arange(len(steps), 0, -1)) / (1 - GAMMA)
    return len(steps), np.array(steps), to_go, entropy / len(steps)


def main(folder, seed, episodes=EPISODES):
    names = list(LENGTHS)
    tasks = [mastery.Task(n, 0, 1, after=tuple(names[i - 1 : i])) for i, n in enumerate(names)]
    teacher = mastery.Teacher(mastery.Curriculum(tasks, name="poles"), "mr", seed=seed)
    recorder = mastery.record(teacher, folder, seed=seed)
    env, random = gym.make("CartPole-v1"), np.random.default_rng(seed)
    weights, frames = np.zeros(5), 0
    for update in range(episodes // BATCH):
        scores, cost, played = {}, {}, []
        for task in teacher.sample(BATCH):
            length, steps, to_go, entropy = play(env, task, weights, random)
            played.append((steps, to_go))
            scores.setdefault(task, []).append(length / 500)
            cost[task] = cost.get(task, 0) + length
        steps, to_go = (np.concatenate(x) for x in zip(*played, strict=True))
        weights += RATE * (steps * ((to_go - to_go.mean()) / to_go.std())[:, None]).mean(0)
        frames += sum(cost.values())
        teacher.update(scores, cost=cost)
        recorder.log(entropy=entropy, weights=np.abs(weights).max())
        if update % 20 == 19:
            tested = {
                n: np.mean([play(env, n, weights, random)[0] for _ in range(5)]) for n in names
            }
            recorder.evaluate({n: steps / 500 for n, steps in tested.items()})
            print(
                f"{frames:6,} frames", *(f"{n} {x / 500:.3f}" for n, x in tested.items()), sep="  "
            )
    recorder.close()
    print(f"see it: mastery watch {folder}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", default="runs/poles")
    options = parser.parse_args()
    main(options.folder, options.seed)
