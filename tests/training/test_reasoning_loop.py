"""Learning to reason under a teacher: small jobs on reversing digits, from start to end."""

from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
import small_jobs

from mastery import Curriculum, MasteryError, Task, Teacher
from mastery.cli.play import play_command
from mastery.cli.train import _job
from mastery.learners import grpo
from mastery.learners.grpo import SMALL, ReasoningSettings
from mastery.reasoning.problems import FamilyLevels
from mastery.rundir.results import load_results
from mastery.training.agent import load_agent
from mastery.training.job import Job, reasoning_tasks
from mastery.training.loops.loop import EVALUATION_SEED
from mastery.training.loops.reasoning import FLAT, GENERATED, TRAINED, ReasoningLoop
from mastery.training.pretraining import load_model
from mastery.training.train import TrainOptions, resume, train

REVERSE = Curriculum.load("reasoning-reverse")
TINY = ReasoningSettings(
    prompts=8, group=4, minibatches=2, width=16, layers=1, heads=2, learning_rate=1e-3,
    pretrain_steps=100, pretrain_batch=64, pretrain_rate=0.01,
)  # fmt: skip
PROGRAMS = ("mr", "uniform")
UPDATE, CHUNK = 32, 5  # completions, updates


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The user's own cache is never touched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def job():
    return Job(
        REVERSE, PROGRAMS, settings=TINY, frames=4 * CHUNK * UPDATE, chunk=CHUNK,
        evaluate_every=2 * CHUNK * UPDATE, episodes=20,
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(cache, job):
    return load_model(job)


@pytest.fixture(scope="module")
def directory(model, job, tmp_path_factory):
    path = tmp_path_factory.mktemp("jobs") / "whole"
    assert train(job, path).ended == "trained 640 completions per run"
    return path


def test_reasoning_is_told_by_its_families(job):
    assert job.environments == "reasoning"
    assert job.frames_of_update == UPDATE
    assert Job(REVERSE).settings == ReasoningSettings()
    assert Job.from_dict(job.to_dict()) == job
    assert job.to_dict()["unit"] == "completions"
    assert job.to_dict()["score"] == "pass rate"
    assert reasoning_tasks(REVERSE) == ([6] * 4, [1, 2, 3, 4])


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"family": "revers", "level": 1}, "no family 'revers' of problems; did you mean 'reverse"),
        ({"family": "sum", "level": 5}, "task 'a': level is 5; it must be a whole number from 1"),
        ({"family": "sum", "level": 0}, "task 'a': level is 0"),
        ({"family": "sum", "level": "hard"}, "task 'a': level is 'hard'"),
        ({"family": "sum"}, "task 'a': level is None"),
    ],
)
def test_tasks_that_do_not_exist_are_refused(settings, text, tmp_path):
    with pytest.raises(MasteryError, match=text):
        train(Job(Curriculum([Task("a", 0, 1, settings=settings)])), tmp_path / "job")
    assert not (tmp_path / "job").exists()


def test_settings_must_fit(job):
    with pytest.raises(MasteryError, match="'group' cannot differ from run to run"):
        replace(job, grid={"group": (4.0, 8.0)})
    with pytest.raises(MasteryError, match="not the settings of a learner of minigrid"):
        Job(Curriculum.load("key-corridor"), settings=TINY)
    points = replace(job, grid={"drop": (0.0, 1.0)}).points
    assert points == [{"drop": 0.0}, {"drop": 1.0}]
    with pytest.raises(MasteryError, match=r"drop is 2\.0; it must be 0 or more, and at most 1"):
        replace(job, grid={"drop": (0.0, 2.0)})
    with pytest.raises(MasteryError, match="task 'a' of 'curriculum' has no environment"):
        Job(Curriculum([Task("a", 0, 1), Task("b", 0, 1, settings={"family": "sum"})]))


def test_the_command_counts_completions_and_has_a_small_model():
    made = partial(
        _job, REVERSE, environments="auto", variants=[], evaluate_every=None, episodes=None
    )
    small = made(preset="small", changes={}, budgets={"completions": "5k"})
    assert small.settings == SMALL
    assert (small.frames, small.evaluate_every, small.episodes) == (5000, 20_000, 64)
    usual = made(preset="default", changes={"group": ["4"]}, budgets={"completions": None})
    assert usual.settings == ReasoningSettings(group=4)
    assert usual.frames == 200_000
    with pytest.raises(MasteryError, match="paper"):
        made(preset="paper", changes={}, budgets={})


def test_curves_add_up(directory, job):
    results = load_results(directory)
    assert (results.unit, results.labels) == ("completions", PROGRAMS)
    shape = (4, 2, 4)  # chunks, runs, tasks
    assert results.frames.tolist() == [160, 320, 480, 640]
    assert results.played.shape == results.episodes.shape == results.returns.shape == shape
    assert (results.played.sum(2) == CHUNK * UPDATE).all()
    assert np.array_equal(results.played, results.episodes)  # each completion is a result
    known = results.returns[results.episodes > 0]
    assert ((known >= 0) & (known <= 1)).all()
    assert np.nanmean(results.returns[:, :, 0]) > 0.05  # guessing two digits gets 0.01
    assert np.allclose(results.probability.sum(2), 1)


def test_measures_are_read_back_and_fit_the_curves(directory):
    results = load_results(directory)
    assert set(results.scalars) == {GENERATED, TRAINED, FLAT}
    for scalars in results.scalars.values():
        assert scalars.frames.tolist() == results.frames.tolist()
        assert scalars.values.shape == (4, 2)
    generated, learned, flat = (results.scalars[name].values for name in (GENERATED, TRAINED, FLAT))
    assert ((generated >= UPDATE) & (generated <= 10 * UPDATE)).all()  # per update, END at least
    assert ((learned >= 0) & (learned <= generated)).all()
    assert ((flat >= 0) & (flat <= 1)).all()
    assert np.allclose(flat * 8 * CHUNK, np.round(flat * 8 * CHUNK), atol=1e-4)  # whole groups
    assert ((learned == 0) == (flat == 1)).all()
    assert (learned > 0).any()


def test_evaluations_are_the_share_of_held_out_problems_that_is_right(directory, job):
    results = load_results(directory)
    for policy, index in (("greedy", 0), ("sampled", 1)):
        found = results.evaluations[policy]
        assert found.frames.tolist() == [320, 640]
        assert found.returns.shape == (2, 2, 4)
        assert np.array_equal(found.returns, found.success)
        assert np.allclose(found.returns * 20, np.round(found.returns * 20), atol=1e-4)
        assert ((found.length >= 1) & (found.length <= 10)).all()
        # of the last agent; every run and every evaluation has the same problems
        for run in range(2):
            agent = load_agent(directory, run=run).model
            key = jax.random.fold_in(jax.random.key(EVALUATION_SEED), 0)
            tasks = FamilyLevels(*map(np.array, reasoning_tasks(job.curriculum)))
            right, long = jax.jit(partial(grpo.evaluate, tasks=tasks, each=20))(agent, key)
            assert np.allclose(found.returns[-1, run], right[index], atol=1e-6)
            assert np.allclose(found.length[-1, run], long[index], atol=1e-5)


def test_the_compiled_teacher_is_the_numpy_teacher(model, job):
    """Fed with the same pass rates it gives the same probabilities, update by update."""
    _, metrics = small_jobs.trained(ReasoningLoop(job, model), 2)
    teacher = Teacher(REVERSE, "mr")
    for t in range(2 * CHUNK):
        p = [teacher.probabilities[name] for name in REVERSE.names]
        assert np.allclose(p, metrics.probability[t, 0], atol=2e-5)
        episodes, returns = metrics.episodes[t, 0], metrics.returns[t, 0]
        teacher.update(
            {
                name: float(returns[i] / episodes[i])
                for i, name in enumerate(REVERSE.names)
                if episodes[i]
            }
        )
    assert (metrics.frames.sum(2) == UPDATE).all()


def test_runs_of_a_job_are_those_that_train_alone(model, job, directory):
    """Also with a setting that differs from run to run."""
    together = small_jobs.trained(ReasoningLoop(job, model), 1)[1]
    alone = small_jobs.trained(ReasoningLoop(replace(job, programs=PROGRAMS[1:]), model), 1)[1]
    assert np.array_equal(alone.returns[:, 0], together.returns[:, 1])
    assert np.allclose(alone.probability[:, 0], together.probability[:, 1], atol=1e-6)
    for name, values in alone.scalars.items():
        assert np.allclose(values[:, 0], together.scalars[name][:, 1])
    results = load_results(directory)
    assert np.allclose(results.scalars[GENERATED].values[0], together.scalars[GENERATED].mean(0))


def test_what_is_resumed_goes_on_to_the_bit(directory, job, tmp_path):
    train(job, tmp_path / "job", TrainOptions(minutes=1e-6))
    assert load_results(tmp_path / "job").ended is None
    resume(tmp_path / "job")
    whole, again = load_results(directory), load_results(tmp_path / "job")
    assert len(again.sessions) == 2
    assert np.array_equal(whole.returns, again.returns, equal_nan=True)
    for name in whole.scalars:
        assert np.array_equal(whole.scalars[name].values, again.scalars[name].values)
    last = [max((path / "checkpoints").iterdir()) for path in (directory, tmp_path / "job")]
    assert last[0].read_bytes() == last[1].read_bytes()


def test_a_trained_model_answers(directory):
    agent = load_agent(directory)
    answers = {text: agent.answer(text) for text in ("r12=", "r381=", "r12=")}
    assert all(
        set(answer) <= set("0123456789+-*%?=:<>()[]{}bchprsx") for answer in answers.values()
    )
    assert agent.answer("r12=") == answers["r12="]  # greedy: always the same
    one, other = (load_agent(directory, seed=4) for _ in range(2))
    drawn = [one.answer("r381=", greedy=False) for _ in range(12)]
    assert drawn == [other.answer("r381=", greedy=False) for _ in range(12)]
    assert len(set(drawn)) > 1
    with pytest.raises(MasteryError, match="'/' cannot be read"):
        agent.answer("8/2=")
    with pytest.raises(MasteryError, match="the prompt has 20 characters; the most is 17"):
        agent.answer("r" + "1" * 18 + "=")
    with pytest.raises(MasteryError, match="holds a learner of reasoning, which cannot play"):
        play_command(str(directory))
    with pytest.raises(MasteryError, match=r"there is no run 2: .* has runs 0 to 1"):
        load_agent(directory, run=2)
