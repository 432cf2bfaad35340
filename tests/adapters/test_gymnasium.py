"""Environments that play a curriculum: every return reaches the teacher once, under its task."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

from mastery import Curriculum, MasteryError, MasteryWarning, Task, Teacher
from mastery.adapters.gymnasium import CurriculumEnv, CurriculumVectorEnv

NAMES = ("short", "middle", "long")
CURRICULUM = Curriculum(
    [
        Task("short", 0, 1, settings={"env": "CartPole-v1", "max_episode_steps": 5}),
        Task("middle", 0, 1, ("short",), settings={"env": "CartPole-v1", "max_episode_steps": 9}),
        Task("long", 0, 1, ("middle",), settings={"env": "CartPole-v1"}),
    ]
)
SPACE = gym.spaces.Box(-1e9, 1e9, (3,), np.float64)


class Diary(gym.Env):
    """Episodes of random length and reward that are written down, by the environment itself, in a
    file: that of another process if need be. Tasks differ in the length of their episodes."""

    observation_space, action_space = SPACE, gym.spaces.Discrete(2)

    def __init__(self, path, task=None):
        self.path, self.task, self.made_for = Path(path), task, task

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.made_for is None:
            self.task = options["task"]
        most = {"short": 2, "middle": 6, "long": 15}[self.task]
        self.left, self.total = int(self.np_random.integers(1, most + 1)), 0.0
        return self._seen(), {}

    def step(self, action):
        self.left -= 1
        reward = float(self.np_random.normal())
        self.total += reward
        truncated = self.left == 0 and bool(self.np_random.integers(2))
        if self.left == 0:
            with self.path.open("a") as file:
                file.write(json.dumps([self.task, self.total]) + "\n")
        return self._seen(), reward, self.left == 0 and not truncated, truncated, {}

    def _seen(self):
        return np.array([NAMES.index(self.task), self.left, self.total])


class Notes(Teacher):
    """A teacher that writes down what it is given."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.given, self.costs = [], []

    def update(self, returns, *, cost=None):
        self.given.append({task: list(values) for task, values in returns.items()})
        self.costs.append(cost)
        super().update(returns, cost=cost)

    def by_task(self):
        found = defaultdict(list)
        for step in self.given:
            for task, values in step.items():
                found[task] += values
        return {task: sorted(values) for task, values in found.items()}


def really(path):
    found = defaultdict(list)
    for line in path.read_text().splitlines():
        task, total = json.loads(line)
        found[task].append(total)
    return {task: sorted(values) for task, values in found.items()}


def play(envs, steps, random):
    """Random actions; under DISABLED what has ended is reset, and now and then more than that."""
    mode = envs.metadata["autoreset_mode"]
    seen, infos = envs.reset(seed=int(random.integers(1000)))
    before, over = infos["task"], np.zeros(envs.num_envs, bool)
    for _ in range(steps):
        if mode == AutoresetMode.DISABLED and over.any():
            seen, infos = envs.reset(
                options={"reset_mask": over | (random.random(over.shape) < 0.1)}
            )
            before = infos["task"]
        elif random.random() < 0.02:  # all are broken off
            seen, infos = envs.reset()
            before = infos["task"]
        seen, _, terminated, truncated, infos = envs.step(random.integers(2, size=envs.num_envs))
        over = terminated | truncated
        # what is seen is what the task in `infos` shows
        assert infos["task"].tolist() == [NAMES[int(x)] for x in seen[:, 0]]
        if mode == AutoresetMode.SAME_STEP and over.any():
            assert infos["final_info"]["task"][over].tolist() == before[over].tolist()
            assert infos["final_info"]["_task"].tolist() == over.tolist()
        else:
            assert (infos["task"] == before)[over].all()
        before = infos["task"]


MODES = list(AutoresetMode)


@settings(max_examples=60, deadline=None)
@given(
    mode=st.sampled_from(MODES),
    num_envs=st.integers(1, 7),
    steps=st.integers(1, 120),
    every=st.sampled_from([1, 13, 64, None]),
    by_options=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_what_the_teacher_gets_is_what_happened(
    tmp_path_factory, mode, num_envs, steps, every, by_options, seed
):
    path = tmp_path_factory.mktemp("diary") / "diary"
    path.touch()
    teacher = Notes(CURRICULUM, "mr", seed=seed)
    make = (lambda: Diary(path)) if by_options else partial(Diary, path)
    envs = CurriculumVectorEnv(
        make if by_options else lambda task: make(task),
        teacher,
        num_envs,
        autoreset_mode=mode,
        update_every=every,
    )
    play(envs, steps, np.random.default_rng(seed))
    envs.close()
    assert teacher.by_task() == really(path)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_in_processes_of_their_own(tmp_path, mode, context):
    path = tmp_path / "diary"
    teacher = Notes(CURRICULUM, "mr", seed=1)
    envs = CurriculumVectorEnv(
        partial(Diary, path),
        teacher,
        3,
        vectorization_mode="async",
        autoreset_mode=mode,
        update_every=20,
        context=context,
    )
    play(envs, 100, np.random.default_rng(0))
    envs.close()
    assert teacher.by_task() == really(path)
    assert len(teacher.by_task()) >= 2
    assert teacher.time_step >= 300 // 20


@settings(max_examples=30, deadline=None)
@given(
    envs=st.integers(1, 3),
    steps=st.integers(1, 150),
    every=st.sampled_from([1, 20, None]),
    seed=st.integers(0, 10**6),
)
def test_single_environments_share_a_teacher(tmp_path_factory, envs, steps, every, seed):
    path = tmp_path_factory.mktemp("diary") / "diary"
    path.touch()
    teacher, random = Notes(CURRICULUM, "mr", seed=seed), np.random.default_rng(seed)
    made = [
        CurriculumEnv(lambda task: Diary(path, task), teacher, update_every=every)
        for _ in range(envs)
    ]
    over = [True] * envs
    for step in range(steps):
        n = step % envs
        if over[n] or random.random() < 0.05:
            seen, info = made[n].reset(seed=step)
            over[n] = False
        else:
            seen, _, terminated, truncated, info = made[n].step(0)
            over[n] = terminated or truncated
        assert info["task"] == made[n].task == NAMES[int(seen[0])]
    for env in made:
        env.close()
    assert teacher.by_task() == really(path)


def test_a_step_after_the_end_is_not_counted(tmp_path):
    path = tmp_path / "diary"
    teacher = Notes(CURRICULUM, seed=0)
    env = CurriculumEnv(lambda: Diary(path), teacher, update_every=None)
    env.reset(seed=0, options={"task": "long"})
    while True:
        _, _, terminated, truncated, _ = env.step(0)
        if terminated or truncated:
            break
    env.step(0)
    assert env.update() == {"long": [json.loads(path.read_text())[1]]}
    assert env.update() == {}
    assert teacher.time_step == 2


def test_a_time_step_is_so_many_steps_of_all_environments():
    teacher = Teacher(CURRICULUM, "uniform", seed=0)
    envs = CurriculumVectorEnv(None, teacher, 4, update_every=40)
    envs.reset(seed=0)
    other = CurriculumEnv(None, teacher, update_every=40)
    other.reset(seed=0)
    for _ in range(9):
        envs.step(np.zeros(4, int))
    assert teacher.time_step == 0
    for _ in range(4):
        other.step(0)
    assert teacher.time_step == 1


@pytest.mark.parametrize("mode", MODES)
def test_after_a_time_step_new_episodes_are_of_the_new_probabilities(mode):
    """The second task is learned when the first is; nothing drawn before is played after."""
    pair = Curriculum([Task("first", 0, 1), Task("second", 0, 1, after=("first",))])
    teacher = Teacher(pair, "sequential:threshold=0.5", seed=0)
    envs = CurriculumVectorEnv(
        lambda task: gym.make("CartPole-v1", max_episode_steps=3),
        teacher,
        5,
        autoreset_mode=mode,
        update_every=None,
    )
    envs.reset(seed=0)
    assert set(envs.tasks) == {"first"}
    envs.reset(options={"reset_mask": np.arange(5) < 2})
    for _ in range(20):
        teacher.update({"first": 1.0})
    envs.reset(options={"reset_mask": np.arange(5) < 1})
    assert envs.tasks == ["second", *["first"] * 4]
    assert teacher.probabilities == {"first": 0.0, "second": 1.0}
    for _ in range(5):  # at least one end, and a beginning
        _, _, terminated, truncated, _ = envs.step(np.zeros(5, int))
        if mode == AutoresetMode.DISABLED and (terminated | truncated).any():
            envs.reset(options={"reset_mask": terminated | truncated})
    assert set(envs.tasks) == {"second"}


def test_the_three_ways_to_make_environments(tmp_path):
    made = Counter()

    def by_task(task):
        made[task] += 1
        return Diary(tmp_path / "diary", task)

    gym.register("MasteryTestDiary-v0", entry_point=lambda: Diary(tmp_path / "diary"))
    try:
        for make_env in (by_task, lambda: Diary(tmp_path / "diary"), "MasteryTestDiary-v0"):
            env = CurriculumEnv(make_env, Teacher(CURRICULUM, "uniform", seed=0))
            for _ in range(20):
                seen, info = env.reset()
                assert NAMES[int(seen[0])] == info["task"]
    finally:
        del gym.registry["MasteryTestDiary-v0"]
    assert made == dict.fromkeys(NAMES, 1)  # each was kept

    env = CurriculumEnv(None, Teacher(CURRICULUM, seed=0))
    for task, steps in (("short", 5), ("middle", 9), ("long", 500)):
        env.reset(options={"task": task})
        assert env.get_wrapper_attr("_max_episode_steps") == steps


def test_tasks_can_be_named_by_the_ids_of_environments():
    tasks = Curriculum([Task("CartPole-v0"), Task("CartPole-v1")])
    with pytest.warns(DeprecationWarning, match="CartPole-v0"):
        env = CurriculumEnv(gym.make, Teacher(tasks, seed=0))
    env.reset(options={"task": "CartPole-v0"})
    assert env.spec.id == "CartPole-v0"


def test_no_more_environments_than_allowed_are_open(tmp_path):
    closed = []

    class Closing(Diary):
        def close(self):
            closed.append(self.made_for)

    made = Counter()

    def make(task):
        made[task] += 1
        return Closing(tmp_path / "diary", task)

    env = CurriculumEnv(make, Teacher(CURRICULUM, seed=0), keep=2)
    assert made == {"short": 1, "middle": 1}
    for task in ("short", "long", "middle"):  # middle, then short, is the one not played longest
        env.reset(options={"task": task})
    assert closed == ["middle", "short"]
    assert made == {"short": 1, "middle": 2, "long": 1}
    env.close()
    assert sorted(closed) == ["long", "middle", "middle", "short"]


def test_the_same_seeds_give_the_same_episodes():
    def played(mode):
        teacher = Teacher(CURRICULUM, "mr", seed=3)
        envs = CurriculumVectorEnv(None, teacher, 3, vectorization_mode=mode, update_every=30)
        found = [envs.reset(seed=5)]
        found += [envs.step(np.full(3, i % 2)) for i in range(40)]
        envs.close()
        return [x[0] for x in found], [x[-1]["task"].tolist() for x in found]

    (seen, tasks), (again, same_tasks), (apart, apart_tasks) = map(
        played, ("sync", "sync", "async")
    )
    assert np.array_equal(seen, again)
    assert np.array_equal(seen, apart)
    assert tasks == same_tasks == apart_tasks


def test_a_teacher_that_was_saved_goes_on(tmp_path):
    def tasks(teacher, steps):
        envs = CurriculumVectorEnv(None, teacher, 2, update_every=8)
        envs.reset(seed=steps)
        return [envs.step(np.zeros(2, int))[4]["task"].tolist() for _ in range(steps)]

    teacher = Teacher(CURRICULUM, "mr", seed=0)
    tasks(teacher, 40)
    teacher.save(tmp_path / "teacher")
    assert tasks(teacher, 30) == tasks(Teacher.load(tmp_path / "teacher"), 30)


def test_wrappers_go_around():
    envs = CurriculumVectorEnv(None, Teacher(CURRICULUM, seed=0), 2, autoreset_mode="SameStep")
    wrapped = RecordEpisodeStatistics(envs)
    wrapped.reset(seed=0, options={"task": ["short", "middle"]})
    for _ in range(5):
        infos = wrapped.step(np.zeros(2, int))[4]
    assert infos["episode"]["r"][0] == 5
    assert infos["final_info"]["task"][0] == "short"


class Wide(gym.Env):
    observation_space, action_space = gym.spaces.Box(0, 1, (7,)), gym.spaces.Discrete(2)


def failing(task):
    if task == "middle":
        raise RuntimeError("no licence")
    return gym.make("CartPole-v1")


ONE = gym.make("CartPole-v1")


@pytest.mark.parametrize(
    ("make_env", "said"),
    [
        (lambda: gym.make("CartPole-v1"), "does not accept tasks: its reset.. did not read"),
        (
            lambda task: Wide() if task == "long" else Diary("x", task),
            "'short' and 'long' differ in",
        ),
        (lambda: 3, "returned 3; it must return a gymnasium.Env"),
        (failing, "task 'middle': make_env failed: RuntimeError: no licence"),
        (
            ONE,
            "must be a function that returns an environment.*make the environment in the function",
        ),
        (lambda a, b: ONE, "needs 2 arguments .a, b."),
        ("NoSuch-v0", "task 'short': make_env failed: NameNotFound"),
        (lambda task: Diary("x"), "task '.*': reset.. of its environment failed: TypeError"),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_wrong_environments_are_refused(make_env, said, many):
    teacher = Teacher(CURRICULUM, "uniform", seed=0)
    make = partial(CurriculumVectorEnv, num_envs=2) if many else CurriculumEnv
    with pytest.raises(MasteryError, match=said):
        make(make_env, teacher).reset()


def test_two_teachers_cannot_teach_one_environment(tmp_path):
    one, other = (Teacher(CURRICULUM, seed=seed) for seed in range(2))
    inner = Diary(tmp_path / "diary")
    first = CurriculumEnv(lambda: inner, one)
    for make_env in (lambda: inner, lambda: first):
        with pytest.raises(MasteryError, match="already has a teacher"):
            CurriculumEnv(make_env, other)
    with pytest.raises(MasteryError, match="already has a teacher"):
        CurriculumVectorEnv(lambda: inner, other, 2)
    first.close()
    CurriculumEnv(lambda: inner, other)


def use_in_another_process(teacher):
    CurriculumEnv(None, teacher)


def test_a_copy_of_a_teacher_in_another_process_is_refused():
    with (
        multiprocessing.get_context("spawn").Pool(1) as pool,
        pytest.raises(MasteryError, match=r"made in another process.*vectorization_mode='async'"),
    ):
        pool.apply(use_in_another_process, (Teacher(CURRICULUM, seed=0),))


def test_an_error_in_another_process_is_told_here():
    teacher = Teacher(CURRICULUM, seed=0)
    envs = CurriculumVectorEnv(
        lambda: gym.make("CartPole-v1"), teacher, 2, vectorization_mode="async"
    )
    with (
        pytest.raises(MasteryError, match="does not accept tasks"),
        pytest.warns(UserWarning, match="ERROR"),
    ):
        envs.reset()
    envs.close(terminate=True)


def test_what_is_no_task_is_refused():
    teacher = Teacher(CURRICULUM, seed=0)
    env, envs = CurriculumEnv(None, teacher), CurriculumVectorEnv(None, teacher, 2)
    for reset in (env.reset, envs.reset):
        with pytest.raises(MasteryError, match="no task 'shrt'; did you mean 'short'"):
            reset(options={"task": "shrt"})
    with pytest.raises(MasteryError, match="a list of 2 tasks, one per"):
        envs.reset(options={"task": ["short"]})
    with pytest.raises(MasteryError, match="must hold 2 booleans"):
        envs.reset(options={"reset_mask": np.ones(3, bool)})
    envs.reset(options={"task": ["short", "long"]})
    assert envs.tasks == ["short", "long"]


def test_an_episode_that_has_ended_must_be_reset_if_nobody_else_does():
    teacher = Teacher(CURRICULUM, seed=0)
    envs = CurriculumVectorEnv(None, teacher, 2, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0, options={"task": ["long", "short"]})
    for _ in range(5):
        envs.step(np.zeros(2, int))
    with pytest.raises(MasteryError, match="the episode of environment 1 has ended"):
        envs.step(np.zeros(2, int))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"num_envs": 0}, "num_envs is 0"),
        ({"vectorization_mode": "threads"}, "choose from 'sync', 'async'"),
        ({"autoreset_mode": "Never"}, "autoreset_mode is 'Never'; choose from"),
        ({"update_every": 0}, "update_every is 0"),
        ({"update_every": "often"}, "update_every is 'often'"),
        ({"keep": 0}, "keep is 0"),
        ({"teacher": CURRICULUM}, "needs a Teacher"),
    ],
)
def test_wrong_settings_are_refused(settings, said):
    given = {"make_env": None, "teacher": Teacher(CURRICULUM, seed=0), "num_envs": 2} | settings
    with pytest.raises(MasteryError, match=said):
        CurriculumVectorEnv(**given)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("gymnasium", "gymnasium", "gymnasium"), ("stable_baselines3", "stable_baselines3", "sb3")],
)
def test_a_missing_library_is_named(module, package, extra):
    code = f"""
import sys
sys.modules[{package!r}] = None
try:
    import mastery.adapters.{module}
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"pip install 'mastery-curriculum[{extra}]'" in done.stdout
    assert len(done.stdout.splitlines()) == 1


class Broken(gym.Env):
    """Episodes of one step; the third has a reward that is no number."""

    observation_space, action_space = SPACE, gym.spaces.Discrete(2)

    def __init__(self):
        self.episodes = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3), {}

    def step(self, action):
        self.episodes += 1
        return np.zeros(3), np.nan if self.episodes == 3 else 0.5, True, False, {}


def test_a_return_that_is_no_number_is_told_once_and_the_others_count():
    teacher = Teacher(Curriculum([Task("only", 0, 1)]), seed=0)
    env = CurriculumEnv(lambda task: Broken(), teacher, update_every=None)
    for episode in range(5):
        env.reset()
        if episode == 2:
            with pytest.raises(MasteryError, match="task 'only': a return is nan"):
                env.step(0)
        else:
            env.step(0)
    assert env.update() == {"only": [0.5] * 4}


def test_a_mask_may_be_a_list(tmp_path):
    teacher = Teacher(CURRICULUM, seed=0)
    make_env = partial(Diary, tmp_path / "diary")
    envs = CurriculumVectorEnv(make_env, teacher, 2, autoreset_mode="Disabled")
    envs.reset(seed=0)
    _, infos = envs.reset(options={"reset_mask": [True, False]})
    assert infos["_task"].tolist() == [True, False]
    envs.close()


class Endless(gym.Env):
    """Episodes of two steps, or without end in the task "long"."""

    observation_space, action_space = gym.spaces.Box(0, 1, (1,)), gym.spaces.Discrete(2)

    def __init__(self, task="long"):
        self.forever = task == "long"

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        return np.zeros(1, np.float32), 0.5, self.count == 2 and not self.forever, False, {}


TWO = Curriculum([Task("short"), Task("long", after=("short",))])


@pytest.mark.parametrize("kind", ["one", "reset", "NextStep", "SameStep"])
def test_episodes_that_never_end_give_one_warning(kind):
    teacher = Teacher(TWO, "uniform", seed=0)
    if kind in ("one", "reset"):
        envs, action = CurriculumEnv(Endless, teacher), 0
    else:
        envs = CurriculumVectorEnv(Endless, teacher, 2, autoreset_mode=kind)
        action = np.zeros(2, int)

    def play():
        envs.reset(seed=0)
        for i in range(25_000):
            over = envs.step(action)[2]
            if kind in ("one", "reset") and (over or (kind == "reset" and i % 500 == 499)):
                envs.reset(options={"task": "long"} if kind == "reset" else None)

    with pytest.warns(MasteryWarning) as caught:
        play()
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("task 'long': no episode has ended in 10,000 steps of one environment")
    assert "max_episode_steps" in text
    assert warning.filename == __file__


def test_a_task_of_which_an_episode_has_ended_gives_no_warning():
    env = CurriculumEnv(Endless, Teacher(TWO, seed=0))
    for task in ("short", "long"):
        env.reset(options={"task": task})
        env.step(0)
        env.step(0)
        env.env.forever = False
    env.step(0)
    env.env.count = 1
    assert env.step(0)[2]  # so an episode of each has ended
    env.env.forever = True
    env.reset(options={"task": "long"})
    for _ in range(11_000):
        env.step(0)


@pytest.mark.parametrize("vector", [False, True])
def test_a_teacher_that_nobody_updates_gives_one_warning(vector):
    teacher = Teacher(TWO, "uniform", seed=0)
    if vector:
        envs = CurriculumVectorEnv(Endless, teacher, 2, update_every=None)
    else:
        envs = CurriculumEnv(Endless, teacher, update_every=None)
    action, only = (np.zeros(2, int) if vector else 0), {"task": "short"}

    def play(steps):
        envs.reset(options=only)
        for _ in range(steps):
            envs.step(action)
            envs.step(action)
            envs.reset(options=only)

    play(450)
    with pytest.warns(MasteryWarning) as caught:
        play(1000)
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("1,000 episodes have ended and the teacher was never updated; with")
    assert "call the environment's update() after each rollout" in text
    assert warning.filename == __file__
    envs.update()
    play(1500)


@pytest.mark.parametrize("who", ["env", "teacher", "steps"])
def test_a_teacher_that_is_updated_gives_no_warning(who):
    teacher = Teacher(TWO, "uniform", seed=0)
    env = CurriculumEnv(Endless, teacher, update_every=None if who != "steps" else 5000)
    for i in range(1500):
        env.reset(options={"task": "short"})
        env.step(0)
        env.step(0)
        if i == 900 and who == "env":
            env.update()
        if i == 900 and who == "teacher":
            teacher.update({"short": 0.5})


def test_an_episode_costs_its_steps():
    """CartPole falls after eight steps at the earliest, so short episodes have exactly five."""
    single, several = Notes(CURRICULUM, "uniform", seed=0), Notes(CURRICULUM, "uniform", seed=0)
    env = CurriculumEnv(None, single, update_every=None)
    for _ in range(4):
        env.reset(seed=0, options={"task": "short"})
        while not any(env.step(0)[2:4]):
            pass
    env.update()
    assert single.costs == [{"short": [5, 5, 5, 5]}]
    envs = CurriculumVectorEnv(
        None, several, 2, update_every=None, autoreset_mode=AutoresetMode.SAME_STEP
    )
    envs.reset(seed=0, options={"task": ["short", "middle"]})
    for _ in range(5):
        envs.step(np.array([0, 1]))
    envs.update()
    assert several.costs == [{"short": [5]}]
    env.close()
    envs.close()
