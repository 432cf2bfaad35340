"""Training on Gymnasium environments: real ones, and toys whose numbers are known beforehand."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import jax
import minigrid  # noqa: F401  (registers its environments)
import numpy as np
import pytest
from gymnasium import spaces

from mastery import Curriculum, MasteryError, Task, Teacher
from mastery.errors import CheckpointError
from mastery.learners import ppo
from mastery.learners.encoders import Space
from mastery.learners.ppo import PPOHyper, PPOSettings
from mastery.minigrid import from_package
from mastery.minigrid.cells import BALL, BOX, CLOSED, EMPTY, KEY, LOCKED, UNSEEN, WALL
from mastery.minigrid.vision import seen_cells
from mastery.training.job import Job
from mastery.training.loops import gymnasium_episodes
from mastery.training.loops.gymnasium import GymnasiumLoop, new_learner
from mastery.training.loops.gymnasium_episodes import Play, Slot
from mastery.training.loops.gymnasium_tasks import GymnasiumTasks

SMALL = PPOSettings(envs=4, frames=16, batch=32, width=16, memory="none")
WITH_MEMORY = replace(SMALL, memory="lstm", bptt=4)
MINIGRID = PPOSettings(envs=4, frames=96, batch=128)
SPACES = {
    "vector": spaces.Box(-1, 1, (3,)),
    "double": spaces.Box(-1, 1, (3,), np.float64),
    "pixels": spaces.Box(0, 255, (9, 8, 3), np.uint8),
    "channels first": spaces.Box(0, 255, (3, 9, 8), np.uint8),
    "rendered": spaces.Dict(
        image=spaces.Box(0, 255, (9, 8, 3), np.uint8), mission=gymnasium.Space()
    ),
    "grey": spaces.Box(0, 1, (9, 8)),
    "parts": spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(-1, 1, (1, 1))),
    "bits": spaces.MultiBinary(3),
    "number": spaces.Discrete(3),
    "six": spaces.Box(-1, 1, (6,)),
    "graph": spaces.Graph(spaces.Discrete(3), None),
    "two numbers": spaces.MultiDiscrete([2, 3]),
    "own": gymnasium.Space((3,), np.float32),
}


class Toy(gymnasium.Env):
    """An episode of `steps` steps, terminated or truncated; each gives a reward, and counts."""

    closed = 0

    def __init__(
        self, show="count", n=2, first=0, actions="", steps=5, reward=1.0, fault="", forever=False
    ):
        counts = spaces.Box(0, 1000, (3,))
        self.observation_space = SPACES.get(show, counts)
        self.action_space = SPACES.get(actions, spaces.Discrete(n, start=first))
        self.show, self.steps, self.reward, self.fault = show, steps, reward, fault
        self.forever, self.taken = forever, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.number = 0, float(self.np_random.integers(1000))
        if self.fault == "reset":
            raise RuntimeError("no level today")
        return self.observe(), {}

    def observe(self):
        if self.fault == "shape":
            return np.zeros(7, np.float32)
        if self.fault == "type":
            return np.zeros(self.observation_space.shape)
        if self.fault == "nan seen" and self.count == 3:
            return np.full(3, np.nan, np.float32)
        if self.show == "count":
            return np.array([self.count, self.number, 0], np.float32)
        self.observation_space.seed(int(self.number) + self.count)
        return self.observation_space.sample()

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken.append(action)
        self.count += 1
        if self.fault == "step":
            raise RuntimeError("a leg came off")
        over = self.count == self.steps and not self.forever
        reward = float(self.fault) if self.fault in ("nan", "inf") else self.reward
        return self.observe(), reward, over and self.number < 500, over and self.number >= 500, {}

    def close(self):
        Toy.closed += 1


@pytest.fixture(autouse=True, scope="module")
def toys():
    gymnasium.register("Toy-v0", Toy)
    yield
    del gymnasium.registry["Toy-v0"]


def toy(name, minimum=0.0, maximum=10.0, after=(), **kwargs):
    return Task(name, minimum, maximum, after, {"env": "Toy-v0", "kwargs": kwargs})


def job_of(*tasks, settings=SMALL, chunk=2, **more):
    return Job(Curriculum(tasks), environments="gymnasium", settings=settings, chunk=chunk, **more)


def loop_of(*tasks, **more):
    return GymnasiumLoop(job_of(*tasks, **more))


def same(a, b):
    """Whether two trees of arrays are equal to the bit."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.array_equal(x, y) and x.dtype == y.dtype for x, y in pairs)


def test_cartpole_is_learned():
    short, long = ({"env": "CartPole-v1", "max_episode_steps": n} for n in (50, 120))
    tasks = (
        Task("short", 0, 50, settings=short),
        Task("long", 0, 120, ("short",), {**long, "kwargs": {"sutton_barto_reward": False}}),
    )
    settings = PPOSettings(envs=8, frames=64, batch=128, learning_rate=1e-3)
    loop = loop_of(*tasks, settings=settings, chunk=8, episodes=8)
    carry = loop.begin()
    means = []
    for _ in range(6):
        carry, metrics = loop.advance(carry)
        means.append(metrics.returns.sum() / metrics.episodes.sum())
        assert (metrics.frames.sum(-1) == 8 * 64).all()
    evaluation = loop.evaluate(carry, 48)
    assert means[0] < 40  # of a policy that knows nothing: about 22
    assert evaluation.returns[0, :, 0].min() > 45
    assert evaluation.returns[0, 0, 1] > 80
    loop.close()


def test_the_teacher_is_mastery_teacher():
    tasks = (toy("a", steps=3), toy("b", after=("a",), steps=6), toy("c", steps=2, reward=-1))
    programs = ("mr", "mr:window=3", "gprop-linreg", "exp3s", "sequential")
    loop = loop_of(*tasks, programs=programs, chunk=6)
    carry, first = loop.advance(loop.begin())
    _, second = loop.advance(carry)
    names = loop.job.curriculum.names
    for run, program in enumerate(loop.job.programs):
        teacher = Teacher(loop.job.curriculum, program)
        for metrics in (first, second):
            for t in range(6):
                shown = metrics.probability[t, run]
                assert np.array_equal(teacher.distribution.astype(np.float32), shown)
                episodes, returns = metrics.episodes[t, run], metrics.returns[t, run]
                means = {
                    name: float(returns[i]) / int(episodes[i])  # returns are whole numbers here
                    for i, name in enumerate(names)
                    if episodes[i]
                }
                teacher.update(means)
                mastery = np.array([*teacher.mastery.values()], np.float32)
                assert np.array_equal(mastery, metrics.mastery[t, run])


def test_tasks_are_drawn_as_the_teacher_says():
    tasks = (toy("a", steps=3), toy("b", after=("a",), steps=3))
    loop = loop_of(*tasks, programs=("uniform", "target"))
    _, metrics = loop.advance(loop.begin())
    uniform, target = metrics.frames.sum(0)
    assert uniform.min() > 30
    assert target.tolist() == [0, 128]


def test_episodes_are_counted_and_those_at_the_end_of_a_chunk_dropped():
    loop = loop_of(toy("a", steps=6, reward=2.0))
    carry = loop.begin()
    for _ in range(2):  # a chunk: 32 frames, 5 episodes and 2 frames of another
        carry, metrics = loop.advance(carry)
        assert metrics.frames[:, 0, 0].tolist() == [64, 64]
        assert metrics.episodes[:, 0, 0].tolist() == [4 * 2, 4 * 3]  # at 6, 12; 18, 24, 30
        assert metrics.returns[:, 0, 0].tolist() == [8 * 12.0, 12 * 12.0]
    *numbers, solved, progress, scalars = metrics
    assert [x.dtype for x in numbers] == [np.float32, np.float32, np.int32, np.float32, np.int32]
    assert [x.shape for x in (*numbers, progress)] == [(2, 1, 1)] * 6
    assert solved is scalars is None  # nobody judges that, and there are no other numbers


@pytest.mark.parametrize("settings", [SMALL, WITH_MEMORY], ids=["none", "lstm"])
def test_what_is_played_is_what_is_learned_from(settings):
    tasks = GymnasiumTasks(Curriculum([toy("a", steps=5, reward=0.5)]), 6)
    agent = new_learner(jax.random.key(0), settings, tasks.space).agent
    slots = [Slot(tasks) for _ in range(4)]
    play = Play(tasks, slots, [np.random.default_rng(i) for i in range(4)])

    @jax.jit
    def again(trajectory):
        last = np.zeros(4, np.float32)
        frames = ppo.segments(trajectory, last, settings, PPOHyper.of(settings))
        return frames, *ppo.replay(agent, frames)

    rng = np.random.default_rng(3)
    for first in (0, 16):  # the second goes on where the first ended
        uniforms = rng.random((16, 4), np.float32)
        trajectory, after, played = play.on(agent, np.ones(1), uniforms, settings.bptt)
        count = (first + np.arange(17)) % 5
        assert (trajectory.observation[:, :, 0] == count[:-1, None]).all()
        assert (trajectory.starts == (count[:-1, None] == 0)).all()
        assert (trajectory.ended == (count[:-1, None] == 4)).all()
        assert np.allclose(trajectory.reward, 0.05)  # of the 10 from minimum to maximum
        assert not trajectory.new.any()  # which is for MiniGrid's views
        assert (after[2][:, 0] == count[-1]).all()
        assert (after[1] == (count[-1] == 0)).all()
        assert played.frames.tolist() == [64]
        frames, logits, value = again(trajectory)
        chosen = np.take_along_axis(jax.nn.log_softmax(logits), frames.action[..., None], -1)
        assert np.allclose(chosen[..., 0], frames.log_probability, atol=1e-5)
        assert np.allclose(value, frames.value, atol=1e-5)
    numbers = trajectory.observation[:, :, 1]
    assert len(np.unique(numbers)) > 12  # every episode has a seed of its own


MIXED = (toy("a", steps=3), toy("b", after=("a",), steps=6))
GRID = {"learning_rate": (1e-3, 1e-4)}
MANY = {"programs": ("sampling", "naive:window=4"), "seeds": 2, "grid": GRID}


def test_the_same_seed_does_the_same_and_another_does_not():
    a, b, other = (loop_of(*MIXED, **MANY, seed=seed) for seed in (0, 0, 5))
    first, second = a.advance(a.begin()), b.advance(b.begin())
    assert same(first, second)
    assert not same(first, other.advance(other.begin()))
    carry, metrics = first
    # of each program the runs are (setting, seed): no two runs are alike
    agents = [np.asarray(jax.tree.leaves(run.learner.agent)[0]) for run in carry]
    assert not any(np.array_equal(agents[0], x) for x in agents[1:4])
    assert metrics.frames.shape == (2, 8, 2)


@pytest.mark.parametrize("settings", [SMALL, WITH_MEMORY], ids=["none", "lstm"])
def test_a_job_goes_on_from_its_arrays_to_the_bit(settings):
    loop = loop_of(*MIXED, settings=settings, **MANY)
    carry, _ = loop.advance(loop.begin())
    arrays = {name: array.copy() for name, array in loop.save(carry).items()}
    assert all(len(array) == 8 for array in arrays.values())
    assert "learner.agent.policy.0.weight" in arrays
    carry, _ = loop.advance(carry)
    expected = loop.advance(carry)
    evaluated = loop.evaluate(carry, 4)
    loop.close()
    other = loop_of(*MIXED, settings=settings, **MANY)
    carry = other.load(arrays)
    assert same(other.save(carry), arrays)
    carry, _ = other.advance(carry)
    assert same(other.evaluate(carry, 4), evaluated)  # and it leaves no trace in what follows
    assert same(other.advance(carry), expected)


def test_arrays_of_another_job_are_refused():
    loop = loop_of(*MIXED)
    arrays = loop.save(loop.begin())
    with pytest.raises(CheckpointError, match=r"learner\.agent\..* is missing"):
        loop.load({k: v for k, v in arrays.items() if not k.endswith("policy.0.weight")})
    with pytest.raises(CheckpointError, match=r"update is missing"):
        loop.load({**arrays, "update": arrays["update"].astype(np.int32)})
    with pytest.raises(CheckpointError, match="surprise is new"):
        loop.load({**arrays, "surprise": np.zeros(1)})
    with pytest.raises(CheckpointError, match="does not fit this job"):
        loop_of(*MIXED, seeds=2).load(arrays)


def test_an_evaluation_worked_out_by_hand():
    tasks = (toy("low", 5.0, 9.0, steps=5), toy("high", 5.0, 9.0, steps=3, reward=2.0))
    loop = loop_of(*tasks, episodes=7, seeds=2)
    evaluation = loop.evaluate(loop.begin(), 0)
    assert [x.shape for x in evaluation] == [(2, 2, 2)] * 3
    assert [x.dtype for x in evaluation] == [np.float32] * 3
    assert (evaluation.returns == [5.0, 6.0]).all()
    assert (evaluation.length == [5, 3]).all()
    assert (evaluation.success == [0, 1]).all()  # 5 is not above the minimum, 6 is


def test_an_evaluation_is_greedy_and_sampled():
    loop = loop_of(toy("a", steps=50), episodes=8)
    carry = loop.begin()  # its policy is nearly uniform
    loop.evaluate(carry, 0)
    greedy, sampled = (
        np.array([slot._envs[0].unwrapped.taken for slot in loop._slots])[:, part]
        for part in (slice(100), slice(100, None))  # two episodes of each
    )
    assert greedy.shape == sampled.shape == (4, 100)
    assert np.mean(greedy[:, 1:] != greedy[:, :-1]) < 0.2
    assert 0.4 < np.mean(sampled[:, 1:] != sampled[:, :-1]) < 0.6


def test_an_episode_without_end_is_cut_in_an_evaluation(monkeypatch):
    monkeypatch.setattr(gymnasium_episodes, "LONGEST", 20)
    loop = loop_of(toy("a", forever=True), episodes=3)
    assert (loop.evaluate(loop.begin(), 0).length == 20).all()


def test_cells_are_those_of_our_own_engine():
    names = ("Unlock", "BlockedUnlockPickup", "KeyCorridorS3R2", "ObstructedMaze-1Dlh")
    curriculum = Curriculum(Task(name, settings={"env": f"MiniGrid-{name}-v0"}) for name in names)
    tasks = GymnasiumTasks(curriculum, 6)
    assert tasks.space == Space("cells", (7, 7), 6)
    rng, see = np.random.default_rng(0), jax.jit(seen_cells)
    theirs, ours = [], []
    for task in range(len(names)):
        env = tasks.make(task)
        seen, _ = env.reset(seed=task)
        for _ in range(40):
            theirs.append(tasks.views[task].encode(seen))
            ours.append(np.asarray(see(from_package(env))))
            seen, _, terminated, _, _ = env.step(int(rng.choice([0, 1, 2, 2, 3, 5])))
            if terminated:
                break
    kinds = {UNSEEN, WALL, LOCKED, CLOSED, EMPTY, KEY, BALL, BOX}
    assert {int(cell) >> 3 for cell in np.unique(theirs)} >= kinds
    agent = new_learner(jax.random.key(0), MINIGRID, tasks.space).agent
    memory = np.zeros((agent.memory_size, len(ours)), np.float32)
    starts = np.ones(len(ours), bool)
    a, b = (jax.jit(agent.__call__)(memory, starts, np.stack(x))[1] for x in (theirs, ours))
    assert np.array_equal(a, b)
    assert len(np.unique(a)) > 100


def test_views_that_an_episode_has_shown_are_not_new():
    tasks = GymnasiumTasks(Curriculum([Task("a", settings={"env": "MiniGrid-Unlock-v0"})]), 6)
    agent = new_learner(jax.random.key(0), MINIGRID, tasks.space).agent
    play = Play(tasks, [Slot(tasks) for _ in range(2)], [np.random.default_rng(i) for i in (0, 1)])
    rng, shown, before = np.random.default_rng(0), [set(), set()], None
    for _ in range(3):  # 384 frames: some episode of 288 ends
        played, after, _ = play.on(agent, np.ones(1), rng.random((128, 2), np.float32), 8)
        seen, starts = (
            np.concatenate([x, y[None]])
            for x, y in ((played.observation, after[2]), (played.starts, after[1]))
        )
        for t in range(129):
            for e in range(2):
                if starts[t, e]:
                    shown[e] = set()
                view = seen[t, e].tobytes()
                if t and not starts[t, e]:
                    assert played.new[t - 1, e] == (view not in shown[e])
                shown[e].add(view)
        assert before is None or np.array_equal(seen[0], before)
        before = seen[-1]
    assert 0 < played.new.sum() < 200


def test_the_real_minigrid_trains():
    task = Task("Unlock", settings={"env": "MiniGrid-Unlock-v0"})
    loop = loop_of(task, settings=MINIGRID, chunk=3, episodes=4)
    carry, metrics = loop.advance(loop.begin())
    assert metrics.episodes.sum() >= 4
    assert loop.evaluate(carry, 3).length.max() <= 288
    assert loop.tasks.space == Space("cells", (7, 7), 6)


@pytest.mark.parametrize(
    ("env", "kwargs", "side"),
    [
        ("MiniGrid-DoorKey-5x5-v0", {}, 7),  # its goal has no cell of one byte
        ("MiniGrid-Unlock-v0", {"agent_view_size": 5}, 5),
        ("BabyAI-GoToRedBallGrey-v0", {}, 7),
    ],
)
def test_other_views_of_minigrid_are_zeros_and_ones(env, kwargs, side):
    tasks = GymnasiumTasks(
        Curriculum([Task("a", settings={"env": env, "kwargs": kwargs})]), actions=6
    )
    assert tasks.space == Space("pixels", (side, side, 33), 7)
    seen = tasks.make(0).reset(seed=0)[0]
    spread = tasks.views[0].encode(seen).reshape(side, side, 3, 11)
    assert np.array_equal(spread.argmax(-1), seen["image"])
    assert (spread.sum(-1) == 1).all()


@pytest.mark.parametrize(
    ("show", "kind", "shape", "dtype"),
    [
        ("vector", "vector", (3,), np.float32),
        ("double", "vector", (3,), np.float32),
        ("pixels", "pixels", (9, 8, 3), np.uint8),
        ("channels first", "pixels", (9, 8, 3), np.uint8),
        ("parts", "vector", (3,), np.float32),
        ("bits", "vector", (3,), np.float32),
        ("number", "vector", (3,), np.float32),
    ],
)
def test_all_kinds_of_observations(show, kind, shape, dtype):
    loop = loop_of(toy("a", show=show))
    assert loop.tasks.space == Space(kind, shape, 2)
    assert loop.tasks.dtype == dtype
    carry, metrics = loop.advance(loop.begin())
    assert metrics.episodes.sum() == 4 * 6
    before = jax.tree.leaves(loop.begin()[0].learner.agent)
    after = jax.tree.leaves(carry[0].learner.agent)
    assert not all(np.array_equal(x, y) for x, y in zip(before, after, strict=True))


def test_observations_keep_their_numbers():
    def encoded(show, seen):
        tasks = GymnasiumTasks(Curriculum([toy("a", show=show)]), 6)
        found = tasks.views[0].encode(seen)
        assert (found.shape, found.dtype) == (tasks.space.shape, tasks.dtype)
        return found

    image = np.arange(3 * 9 * 8, dtype=np.uint8).reshape(3, 9, 8)
    shown = {"image": image.reshape(9, 8, 3), "mission": "look"}
    assert np.array_equal(encoded("rendered", shown), shown["image"])
    turned = encoded("channels first", image)
    assert all(np.array_equal(turned[..., c], image[c]) for c in range(3))
    grey = np.linspace(0, 1, 72).reshape(9, 8)
    assert np.array_equal(encoded("grey", grey)[..., 0], grey.astype(np.float32))
    assert encoded("parts", {"a": 1, "b": np.full((1, 1), 7.0)}).tolist() == [0, 1, 7]
    assert encoded("number", 2).tolist() == [0, 0, 1]


def test_actions_may_begin_elsewhere():
    loop = loop_of(toy("a", first=4))
    loop.advance(loop.begin())
    taken = {action for slot in loop._slots for action in slot._envs[0].unwrapped.taken}
    assert taken == {4, 5}


def test_environments_are_closed():
    loop = loop_of(*MIXED)
    loop.advance(loop.begin())
    made = sum(len(slot._envs) for slot in loop._slots)
    before = Toy.closed
    loop.close()
    assert Toy.closed - before == made >= 4
    loop.advance(loop.begin())  # they are made again
    loop.close()


def test_a_package_is_imported_for_its_ids(tmp_path, monkeypatch):
    (tmp_path / "own_levels.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "gymnasium.register('Own-v0', CartPoleEnv, max_episode_steps=20)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    tasks = GymnasiumTasks(Curriculum([Task("a", settings={"env": "own_levels:Own-v0"})]), 6)
    assert tasks.limits == [20]


def task_of(**settings):
    return (Task("a", settings=settings),)


@pytest.mark.parametrize(
    ("tasks", "text"),
    [
        (task_of(), "task 'a' names no environment; add a Gymnasium id"),
        (task_of(env=3), "task 'a' names no environment"),
        (task_of(env="CartPol-v1"), r"there is no 'CartPol-v1' \(.*Did you mean: `CartPole`"),
        (task_of(env="CartPole-v7"), r"there is no 'CartPole-v7' \(.*`v1`"),
        (task_of(env="nowhere:A-v0"), "No module named 'nowhere'.*install 'nowhere', or run in"),
        (task_of(env="MiniGrid-Nope-v0"), "pip install minigrid"),
        (task_of(env="a b"), "cannot make 'a b': Error: Malformed"),
        (task_of(env="CartPole-v1", kwargs=[1]), r"task 'a': kwargs is \[1\]; it must be a table"),
        (
            task_of(env="CartPole-v1", kwargs={"foo": 3}),
            "task 'a': cannot make 'CartPole-v1': TypeError.*'foo'.*check kwargs",
        ),
        (task_of(env="CartPole-v1", max_episode_steps=0), "to be positive"),
        (
            task_of(env="CartPole-v1"),
            "may have 500 steps.*give --chunk 32 or more, or .* at most 32",
        ),
        (task_of(env="MiniGrid-Unlock-v0"), "may have 288 steps"),
        (
            (toy("a", actions="vector"),),
            "task 'a' has the action_space Box.*only Discrete is",
        ),
        ((toy("a", actions="two numbers"),), "task 'a' has the action_space MultiDiscrete"),
        ((toy("a", show="graph"),), "task 'a' has the observation_space Graph.*cannot be"),
        ((toy("a", show="own"),), "task 'a' has the observation_space .*cannot be made one"),
        (
            (toy("a"), toy("b"), toy("c", show="six")),
            r"tasks 'a' and 'c' .* show vector float32\[3\] and vector float32\[6\]",
        ),
        (
            (toy("a", show="pixels"), toy("b", show="grey")),
            r"show pixels uint8\[9, 8, 3\] and pixels float32\[9, 8, 1\]",
        ),
        ((toy("a"), toy("b", n=3)), "tasks 'a' and 'b' .* have actions 0 to 1 and actions 0 to 2"),
        ((toy("a"), toy("b", first=1)), "have actions 0 to 1 and actions 1 to 2"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(tasks, text):
    with pytest.raises(MasteryError, match=f"(?s){text}"):
        loop_of(*tasks)


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        (
            {"fault": "reset"},
            r"in reset\(\): RuntimeError: no level today \(.*loop.py, line \d+, in reset\); repair",
        ),
        ({"fault": "step"}, r"in step\(\): RuntimeError: a leg came off"),
        ({"fault": "nan"}, "ValueError: its reward is nan; repair"),
        ({"fault": "inf"}, "its reward is inf"),
        ({"fault": "nan seen"}, "it shows something that is not finite"),
        ({"fault": "shape"}, r"it shows float32\[7\], where its space says float32\[3\]"),
        ({"fault": "type", "show": "pixels"}, r"it shows float64\[9, 8, 3\], .* uint8\[9, 8, 3\]"),
    ],
)
def test_an_environment_that_fails_is_named(faults, text):
    loop = loop_of(toy("a", **faults))
    carry = loop.begin()
    for play in (loop.advance, lambda carry: loop.evaluate(carry, 0)):
        with pytest.raises(MasteryError, match=f"task 'a': its environment failed .*{text}"):
            play(carry)
