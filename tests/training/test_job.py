"""A job as data: what its runs are, how long it is, what is refused."""

import json

import pytest

from mastery import Curriculum, MasteryError, Task
from mastery.cli.train import _job
from mastery.learners.ppo import FAST_RUNS, PAPER, PPO, PPOSettings
from mastery.training import devices
from mastery.training.job import Job, minigrid_tasks

BLOCKED = Curriculum.load("blocked-unlock-pickup")


def test_variants_change_settings_together():
    few = Job(BLOCKED, variants=({}, {"novelty": 0.0, "entropy": 0.1}), grid={"clip": (0.1, 0.3)})
    assert few.points == [
        {"clip": 0.1}, {"clip": 0.3},
        {"novelty": 0.0, "entropy": 0.1, "clip": 0.1},
        {"novelty": 0.0, "entropy": 0.1, "clip": 0.3},
    ]  # fmt: skip
    assert Job.from_dict(json.loads(json.dumps(few.to_dict()))) == few


def test_runs_are_programs_times_grid_times_seeds():
    job = Job(BLOCKED, ("mr", "uniform"), seeds=2, seed=5, grid={"entropy": (0.01, 0.02)})
    assert [(run.program, run.changes["entropy"], run.seed) for run in job.runs] == [
        ("mr", 0.01, 5), ("mr", 0.01, 6), ("mr", 0.02, 5), ("mr", 0.02, 6),
        ("uniform", 0.01, 5), ("uniform", 0.01, 6), ("uniform", 0.02, 5), ("uniform", 0.02, 6),
    ]  # fmt: skip
    assert job.runs[2].label == "mr entropy=0.02"
    assert Job(BLOCKED).runs[0].label == "mr"


def test_frames_are_rounded_up_to_whole_chunks():
    job = Job(BLOCKED, frames=2_000_000)  # an update has 16 · 128 frames, a chunk 10 updates
    assert (job.frames_of_update, job.chunks, job.updates) == (2048, 98, 980)
    assert job.evaluate_chunks == 12  # 250,000 / 20,480 = 12.2
    assert Job(BLOCKED, evaluate_every=0).evaluate_chunks == 0
    assert Job(BLOCKED, evaluate_every=1).evaluate_chunks == 1


def test_the_longest_job_has_as_many_updates_as_32_bits_count():
    assert Job(BLOCKED, frames=4_398_046_494_720).updates == 2_147_483_640  # 10 in a chunk
    assert Job(BLOCKED, frames=2**31, seed=2**32 - 1).chunks == 104_858


def test_a_job_comes_back_from_json_the_same():
    job = Job(
        BLOCKED,
        ("mr:delta=0.9", "uniform"),
        seeds=3,
        settings=PAPER,
        grid={"learning_rate": (1e-3, 1e-4)},
        stop_return=0.7,
    )
    again = Job.from_dict(json.loads(json.dumps(job.to_dict())))
    assert again == job
    assert again.runs == job.runs


def test_which_environments_a_curriculum_needs():
    assert Job(BLOCKED).environments == "minigrid"
    assert minigrid_tasks(BLOCKED) == [0, 1, 2]
    cart = Curriculum([Task("a", 0, 500, settings={"env": "CartPole-v1"})])
    assert Job(cart).environments == "gymnasium"
    changed = Curriculum(
        [Task("a", 0, 1, settings={"env": "MiniGrid-Unlock-v0", "kwargs": {"max_steps": 9}})]
    )
    assert Job(changed).environments == "gymnasium"  # ours has no such argument
    assert Job(BLOCKED, environments="gymnasium").environments == "gymnasium"


def test_presets_are_settings_and_the_paper_s_are_the_paper_s():
    assert set(PPO.presets) == {"default", "fast", "light", "paper", "paper-2019"}
    assert PPO.presets["default"] == PPOSettings()
    both = {
        "envs": 16, "frames": 128, "epochs": 4, "batch": 256, "actions": 7,
        "discount": 0.99, "gae": 0.95, "entropy": 0.01, "value": 0.5, "clip": 0.2,
        "gradient_norm": 0.5, "reward_scale": 20.0, "memory": "lstm", "clip_value": True,
        "novelty": 0.0, "normalise": False, "encoding": "raw", "skip": False,
    }  # fmt: skip
    for name, own in (
        # the agent and the MiniGrid of September 2018
        ("paper", {"learning_rate": 7e-4, "epsilon": 1e-5, "bptt": 1, "initial": "pytorch",
                   "reward": "minigrid", "edition": "2018"}),
        # the authors' later agent, in today's MiniGrid
        ("paper-2019", {"learning_rate": 1e-3, "epsilon": 1e-8, "bptt": 8, "initial": "scaled",
                        "reward": "paper", "edition": "3.2.0"}),
    ):  # fmt: skip
        expected = both | own
        assert {key: getattr(PPO.presets[name], key) for key in expected} == expected
    assert PPO.presets["paper"] == PAPER


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"programs": ("mrr",)}, "there is no program 'mrr'; did you mean 'mr'"),
        ({"programs": ()}, "there is no program: give one"),
        ({"seeds": 0}, "seeds is 0; it must be a whole number from 1"),
        ({"seed": 2**32}, "seed is 4,294,967,296; seeds go up to 4,294,967,295"),
        ({"seed": 2**32 - 2, "seeds": 3}, "4,294,967,294 and seeds is 3; seeds go up to 4,294,967"),
        (
            {"frames": 10**13},
            "is 10,000,000,000,000; the most is 4,398,046,494,720, which is 2,147,483,640 u",
        ),
        ({"frames": 10**400}, "the most is 4,398,046,494,720"),
        ({"chunk": 2**31}, "chunk is 2147483648; .* from 1 to 2147483647"),
        ({"evaluate_every": 2**63}, "evaluate_every is .* from 0 to 9223372036854775807"),
        ({"programs": ("mr", "uniform", "mr")}, "program 'mr' is given twice; give each program"),
        ({"programs": ("mr", "mr:delta=0.6")}, "programs 'mr' and 'mr:delta=0.6' are the same"),
        ({"frames": 0}, "frames is 0"),
        ({"variants": ({"memory": 1.0},)}, "'memory' cannot differ from run to run"),
        ({"variants": ({}, {})}, "each of them once"),
        ({"variants": ({"clip": -1.0},)}, "clip is -1.0; it must be more than 0"),
        ({"variants": ({"clip": 0.1},), "grid": {"clip": (0.1, 0.3)}}, "'clip' has several values"),
        ({"grid": {"memory": (1.0, 2.0)}}, "'memory' cannot differ from run to run"),
        ({"grid": {"entropy": (0.1, 0.1)}}, "entropy needs several numbers, each once"),
        ({"environments": "atari"}, "choose from minigrid, gymnasium, addition"),
        ({"grid": {"entropy": (0.1, float("nan"))}}, "entropy needs several numbers"),
        ({"stop_return": float("nan")}, "a mean return cannot be nan"),
        ({"stop_mastered": 1.5}, r"mastery is in \[0, 1\]"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(MasteryError, match=message):
        Job(BLOCKED, **given)


def test_tasks_must_say_their_environment_each_its_own():
    with pytest.raises(MasteryError, match="task 'a' of 'curriculum' has no environment"):
        Job(Curriculum([Task("a", 0, 1)]))
    twice = Curriculum(
        [Task(name, 0, 1, settings={"env": "MiniGrid-Unlock-v0"}) for name in ("a", "b")]
    )
    with pytest.raises(MasteryError, match="'a' and 'b' are the same environment, Unlock"):
        minigrid_tasks(twice)


def test_a_few_runs_on_a_gpu_have_many_environments(monkeypatch):
    """Unless the user chooses a preset; then the usual lengths are those of the preset, too."""

    def made(curriculum="key-corridor", preset=None, **given):
        budgets = dict.fromkeys(("frames", "examples", "completions"))
        changes = {"changes": {}, "variants": [], "evaluate_every": None, "episodes": None} | given
        return _job(
            Curriculum.load(curriculum),
            environments="auto",
            preset=preset,
            budgets=budgets,
            **changes,
        )

    assert made().settings == PPOSettings()
    monkeypatch.setattr(devices, "accelerated", lambda: True)
    job = made(seeds=FAST_RUNS)
    assert job.settings == PPO.presets["fast"]
    assert (job.frames, job.chunk, job.evaluate_every) == (20_000_000, 4, 2_000_000)
    assert made(changes={"envs": ["1024"]}).settings.envs == 1024
    many = made(seeds=FAST_RUNS + 1)
    assert many.settings == PPOSettings()
    assert (many.frames, many.chunk, many.evaluate_every) == (2_000_000, 10, 250_000)
    assert made(preset="default").settings == PPOSettings()
    assert made(chunk=5).chunk == 5
    assert made("addition-3").chunk == 10
