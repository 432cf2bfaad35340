"""SyncEnvs against Gymnasium's own SyncVectorEnv: whatever is played, both say the same."""

from __future__ import annotations

from copy import deepcopy
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from mastery import Curriculum, Task, Teacher
from mastery.adapters.gymnasium import CurriculumVectorEnv
from mastery.adapters.sync_envs import SyncEnvs

PLAYED = {
    "mode": st.sampled_from(list(AutoresetMode)),
    "num_envs": st.integers(1, 5),
    "steps": st.integers(1, 60),
    "seed": st.integers(0, 10**6),
    "copy": st.booleans(),
}
BOX = spaces.Box(-9, 9, (3,), np.float32)
OBSERVATIONS = {
    "box": BOX,
    "image": spaces.Box(0, 255, (2, 3, 3), np.uint8),
    "number": spaces.Box(-1, 1, (), np.float64),
    "discrete": spaces.Discrete(5),
    "bits": spaces.MultiBinary(4),
    "dict": spaces.Dict({"a": BOX, "b": spaces.Discrete(3)}),
    "tuple": spaces.Tuple((BOX, spaces.MultiDiscrete([2, 3]))),
    "text": spaces.Text(5),
    "graph": spaces.Graph(BOX, None),
}
ACTIONS = {
    "discrete": spaces.Discrete(3),
    "box": spaces.Box(-1, 1, (2,), np.float32),
    "dict": spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(-1, 1, (1,), np.float32)}),
}


class Chance(gym.Env):
    """Everything is random, and follows from the seed: the lengths of episodes, what is in `info`
    and what kind of numbers rewards and ends are."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode = "rgb_array"

    def __init__(self, observation="box", action="discrete", as_list=False):
        self.observation_space = deepcopy(OBSERVATIONS[observation])  # which is seeded
        self.action_space = ACTIONS[action]
        self.as_list, self.level, self.acted = as_list, 1, None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.left = int(self.np_random.integers(1, 7))
        return self._see(), self._info() | ({"options": str(options)} if options else {})

    def step(self, action):
        self.acted, self.left = action, self.left - 1
        over = self.left == 0
        cut = over and bool(self.np_random.integers(2))
        ends = over and not cut
        if self.np_random.integers(2):
            cut, ends = np.bool_(cut), np.bool_(ends)
        reward = self.np_random.normal() * self.level
        reward = (float, np.float32, round)[self.np_random.integers(3)](reward)
        return self._see(), reward, ends, cut, self._info()

    def render(self):
        return np.full((2, 2, 3), self.left)

    def _see(self):
        seen = self.observation_space.sample()
        return seen.tolist() if self.as_list else seen

    def _info(self):
        """Nothing most of the time, as with most environments."""
        random = self.np_random
        some = {
            "whole": int(random.integers(9)),
            "real": random.normal(),
            "yes": bool(random.integers(2)),
            "word": str(random.integers(9)),
            "array": random.normal(size=2),
            "nested": {"left": self.left, "acted": str(self.acted)},
        }
        return {key: value for key, value in some.items() if random.random() < 0.2}


def same(a, b):
    """Whether two results are equal, down to the types of arrays."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) and a.dtype != object:
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and all(map(same, a.tolist(), b.tolist()))
    return a == b


def without_tasks(result):
    """The result of a vector environment, less what a curriculum adds to `infos`."""
    *rest, infos = result
    for where in (infos, infos.get("final_info", {})):
        for key in ("task", "_task"):
            where.pop(key, None)
    return (*rest, infos)


def compare(one, other, mode, steps, seed):
    """Play both, with all kinds of resets; they must say the same, at once and ever after."""
    random, n = np.random.default_rng(seed), one.num_envs
    one.action_space.seed(seed)
    said = []

    def both(call):
        said.append([without_tasks(call(envs)) for envs in (one, other)])
        assert same(*said[-1])
        return said[-1][0]

    both(lambda envs: envs.reset(seed=seed))
    over = np.zeros(n, bool)
    for _ in range(steps):
        if mode == AutoresetMode.DISABLED and over.any():
            mask = over | (random.random(n) < 0.1)
            both(lambda envs, mask=mask: envs.reset(options={"reset_mask": mask, "x": 1}))
        elif random.random() < 0.05:
            seeds = random.integers(100, size=n).tolist()
            both(lambda envs, seeds=seeds: envs.reset(seed=seeds, options={"x": 2}))
        actions = one.action_space.sample()
        _, _, terminated, truncated, _ = both(lambda envs, actions=actions: envs.step(actions))
        over = terminated | truncated
        for result in said[-1]:
            result[2][:] = result[3][:] = True  # what the caller has got is the caller's
    assert all(same(*each) for each in said)


@settings(max_examples=150, deadline=None)
@given(
    **PLAYED,
    observation=st.sampled_from(list(OBSERVATIONS)),
    action=st.sampled_from(list(ACTIONS)),
    observation_mode=st.sampled_from(["same", "different"]),
)
def test_it_does_what_gymnasium_does(
    mode, num_envs, steps, seed, observation, action, copy, observation_mode
):
    if observation in ("text", "graph"):  # Gymnasium cannot batch these if they differ
        observation_mode = "same"
    make = [partial(Chance, observation, action)] * num_envs
    given = {"copy": copy, "observation_mode": observation_mode, "autoreset_mode": mode}
    compare(SyncVectorEnv(make, **given), SyncEnvs(make, **given), mode, steps, seed)


@settings(max_examples=60, deadline=None)
@given(**PLAYED, observation=st.sampled_from(["box", "dict"]))
def test_a_curriculum_of_one_task_changes_nothing(mode, num_envs, steps, seed, observation, copy):
    plain = SyncVectorEnv([partial(Chance, observation)] * num_envs, copy, autoreset_mode=mode)
    teacher = Teacher(Curriculum([Task("only", 0, 1)]), seed=0)
    make = lambda task: Chance(observation)  # noqa: E731
    envs = CurriculumVectorEnv(make, teacher, num_envs, autoreset_mode=mode, copy=copy)
    compare(plain, envs, mode, steps, seed)


@pytest.mark.parametrize("copy", [True, False])
def test_observations_are_the_callers_own_if_they_are_copied(copy):
    envs = SyncEnvs([Chance] * 2, copy=copy)
    envs.reset(seed=0)
    first, second = (envs.step(np.zeros(2, int))[0] for _ in range(2))
    assert (first is second) is not copy


@pytest.mark.parametrize("kind", [SyncVectorEnv, SyncEnvs])
def test_what_both_accept_and_refuse(kind):
    """The same of both: lists for a box; not too few actions, nor a step after the end."""
    envs = kind([partial(Chance, as_list=True)] * 2, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0)
    for wrong in (1, 3):
        with pytest.raises(ValueError, match="argument"):
            envs.step(np.zeros(wrong, int))
    envs.reset(seed=0)
    over = False
    while not over:
        seen, _, terminated, truncated, _ = envs.step(np.zeros(2, int))
        assert seen.dtype == np.float32
        over = (terminated | truncated).any()
    with pytest.raises(AssertionError):
        envs.step(np.zeros(2, int))


class Odd(Chance):
    """Sees what does not fit its space."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def _see(self):
        return self.seen


@pytest.mark.parametrize("seen", [np.zeros(2), np.zeros((3, 1)), np.zeros(3, complex), 0.0])
@pytest.mark.parametrize("kind", [SyncVectorEnv, SyncEnvs])
def test_what_does_not_fit_is_refused(kind, seen):
    envs = kind([Chance, partial(Odd, np.zeros(3))])
    envs.reset(seed=0)
    envs.envs[1].seen = seen
    with pytest.raises((ValueError, TypeError)):
        envs.step(np.zeros(2, int))


def test_environments_are_asked_and_told_as_before():
    one, other = (kind([Chance] * 3) for kind in (SyncVectorEnv, SyncEnvs))
    for envs in (one, other):
        envs.reset(seed=0)
        envs.set_attr("level", [1, 2, 3])
        envs.step(np.zeros(3, int))
    for ask in (
        lambda envs: envs.get_attr("level"),
        lambda envs: envs.call("render"),
        lambda envs: envs.render(),
        lambda envs: envs.np_random_seed,
        lambda envs: (str(envs.observation_space), str(envs.action_space), envs.metadata),
    ):
        assert same(ask(one), ask(other))
    for envs in (one, other):
        envs.close()
        assert envs.closed
