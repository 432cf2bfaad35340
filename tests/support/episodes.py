"""Episodes played in the real package, and the same actions played by the engine, compared."""

from __future__ import annotations

from dataclasses import dataclass, field

import gymnasium
import jax
import jax.numpy as jnp
import minigrid  # noqa: F401  (registers its environments)
import numpy as np

from mastery.errors import MasteryError
from mastery.minigrid.cells import DECODED
from mastery.minigrid.exchange import from_package, to_package
from mastery.minigrid.grid import unpack
from mastery.minigrid.levels import generate
from mastery.minigrid.planner import plan
from mastery.minigrid.rules import MINIGRID_REWARD, act
from mastery.minigrid.state import State
from mastery.minigrid.tasks import TASKS
from mastery.minigrid.vision import observe

LENGTH, BATCH = 256, 64  # of what is replayed at once, so that there is one compile


@dataclass
class Segment:
    """Part of an episode in the package: how it began, what was done, what came of each step."""

    before: State
    first: np.ndarray  # what was seen then
    after: State | None = None
    actions: list[int] = field(default_factory=list)
    images: list[np.ndarray] = field(default_factory=list)
    directions: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminated: list[bool] = field(default_factory=list)
    truncated: list[bool] = field(default_factory=list)
    carrying: list[tuple[int, int, int]] = field(default_factory=list)


def host(tree):
    return jax.tree.map(np.asarray, tree)


def play(env, actions, limit: int | None = None) -> list[Segment]:
    """Play an episode in the package until it ends, and write down what happens."""
    segments: list[Segment] = []
    done = False
    while not done and limit != sum(len(s.actions) for s in segments):
        segment = Segment(host(from_package(env)), env.gen_obs()["image"])
        segments.append(segment)
        while not done and len(segment.actions) < min(LENGTH, limit or LENGTH):
            action = actions(env)
            obs, reward, terminated, truncated, _ = env.step(action)
            thing = env.carrying
            segment.actions.append(action)
            segment.images.append(obs["image"])
            segment.directions.append(obs["direction"])
            segment.rewards.append(reward)
            segment.terminated.append(terminated)
            segment.truncated.append(truncated)
            segment.carrying.append(thing.encode() if thing else (1, 0, 0))
            done = terminated or truncated
        if not segment.terminated[-1]:
            segment.after = host(from_package(env))
    return segments


@jax.jit
def _replay(state: State, actions):
    def one(state, action):
        state, outcome = act(state, action, MINIGRID_REWARD)
        return state, (observe(state), state.direction, state.carrying, outcome)

    return observe(state), *jax.lax.scan(one, state, actions)


def differences(segments: list[Segment]) -> tuple[int, int]:
    """Play the same actions by the engine: how many steps were compared, how many differ."""
    steps = wrong = 0
    for begin in range(0, len(segments), BATCH):
        part = segments[begin : begin + BATCH]
        padded = part + [part[-1]] * (BATCH - len(part))
        state = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *[s.before for s in padded])
        actions = np.full((LENGTH, BATCH), 6, np.int32)
        for e, segment in enumerate(part):
            actions[: len(segment.actions), e] = segment.actions
        first, last, (images, directions, carrying, outcome) = host(_replay(state, actions))

        for e, segment in enumerate(part):
            n = len(segment.actions)
            wrong += not np.array_equal(first[e], segment.first)
            same = (
                (images[:n, e] == np.stack(segment.images)).all((1, 2, 3))
                & (directions[:n, e] == segment.directions)
                & (outcome.reward[:n, e] == np.array(segment.rewards, np.float32))
                & (outcome.terminated[:n, e] == segment.terminated)
                & (outcome.truncated[:n, e] == segment.truncated)
                & (DECODED[carrying[:n, e]] == np.array(segment.carrying)).all(-1)
            )
            steps += n
            wrong += int((~same).sum())
            if segment.after is not None and n == LENGTH:
                wrong += not all(
                    np.array_equal(a[e], b) for a, b in zip(last, segment.after, strict=True)
                )
    return steps, wrong


class Player:
    """Chooses actions so that all rules come into play: at random, by a plan, or plan and whim."""

    def __init__(self, rng: np.random.Generator, whim: float, planned: bool) -> None:
        self.rng, self.whim, self.planned = rng, whim, planned
        self.todo: list[int] | None = None

    def __call__(self, env) -> int:
        if self.rng.random() < self.whim or not self.planned:
            self.todo = None
            if env.grid.get(*env.front_pos) is None:
                return int(self.rng.choice(7, p=(0.15, 0.15, 0.5, 0.02, 0.1, 0.05, 0.03)))
            return int(self.rng.integers(7))
        if not self.todo:
            self.todo = solve(env)
        if not self.todo:  # the goal is gone
            self.planned = False
            return 6
        return self.todo.pop(0)


def solve(env) -> list[int]:
    state = from_package(env)
    try:
        return plan(
            unpack(state.grid),
            int(state.agent),
            int(state.direction),
            int(state.target),
            int(state.carrying),
        )
    except MasteryError:
        return []


def package_level(task: int, seed: int):
    env = gymnasium.make(TASKS[task].id, disable_env_checker=True).unwrapped
    env.reset(seed=seed)
    return env


_generate = jax.jit(generate)


def our_levels(task: int, count: int, seed: int) -> list:
    """Levels of ours, as environments of the package."""
    levels = host(_generate(jax.random.key(seed), jnp.full(count, task, jnp.int32)))
    return [to_package(jax.tree.map(lambda x, e=e: x[e], levels)) for e in range(count)]


def compare(task: int, steps: int, successes: int, seed: int) -> tuple[int, int, int]:
    """Steps compared, successes among them, and differences, on levels of both makes."""
    rng = np.random.default_rng([seed, task])
    done = won = wrong = 0
    episode = 0
    while done < steps or won < successes:
        segments: list[Segment] = []
        ours = our_levels(task, 16, int(rng.integers(2**31)))
        for n in range(32):
            env = ours.pop() if n % 2 else package_level(task, int(rng.integers(2**31)))
            kind = episode % 4
            episode += 1
            player = Player(rng, whim=(0.0, 0.1, 0.4, 1.0)[kind], planned=kind < 3)
            played = play(env, player)
            segments += played
            won += played[-1].terminated[-1]
            if sum(len(s.actions) for s in segments) + done >= steps and won >= successes:
                break
        n_steps, n_wrong = differences(segments)
        done, wrong = done + n_steps, wrong + n_wrong
    return done, won, wrong
