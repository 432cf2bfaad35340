"""A trained agent, taken out of its run directory and used."""

import shutil
from dataclasses import replace

import gymnasium
import jax
import minigrid  # noqa: F401  (registers the environments)
import numpy as np
import pytest
from typer.testing import CliRunner

import mastery
from mastery import Curriculum, MasteryError
from mastery.cli import app
from mastery.learners.ppo import PAPER, PPOSettings
from mastery.minigrid.editions import find_edition
from mastery.minigrid.grid import unpack
from mastery.minigrid.planner import plan
from mastery.minigrid.play import play
from mastery.minigrid.vision import seen_cells
from mastery.rundir.metrics import Evaluation
from mastery.rundir.store import Store
from mastery.training.job import Job
from mastery.training.loops.minigrid import MiniGridLoop
from mastery.training.train import train

SMALL = PPOSettings(envs=4, frames=16, batch=32, ahead=2, bptt=2)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Three runs after one update, and what evaluations might have said of them."""
    path = tmp_path_factory.mktemp("jobs") / "job"
    job = Job(Curriculum.load("blocked-unlock-pickup"), seeds=3, settings=SMALL, chunk=1)
    loop = MiniGridLoop(job)
    carry, metrics = loop.advance(loop.begin())
    returns = np.zeros((3, 2, 3))  # of runs, policies and tasks
    returns[1] = 0.3  # the second is the best
    evaluation = Evaluation(returns, returns, np.full_like(returns, 100))
    with Store(path, job) as store:
        store.record(1, 1.0, metrics, evaluation, loop.save(carry))
    return path, carry


def test_it_is_the_agent_of_the_run(directory):
    path, carry = directory
    for run in range(3):
        agent = mastery.load_agent(path, run=run).agent
        weight = np.concatenate([turn.learner.agent.policy[0].weight for turn in carry])[run]
        assert np.array_equal(agent.policy[0].weight, weight)
    best = mastery.load_agent(path)
    assert best.run.seed == 1


def test_it_acts_on_what_the_real_package_shows_and_remembers(directory):
    agent = mastery.load_agent(directory[0], seed=3)
    env = gymnasium.make("MiniGrid-Unlock-v0")
    observation, _ = env.reset(seed=0)
    first = [agent.act(observation) for _ in range(30)]
    assert set(first) == set(range(6))  # a new policy does everything, and there is no seventh
    agent.reset()
    image = observation["image"]
    many = agent.act(np.stack([image, image]), greedy=True)
    assert many.shape == (2,)
    assert many[0] == many[1]
    with pytest.raises(MasteryError, match="there were 2 observations, and now there are 1"):
        agent.act(observation)
    agent.reset()
    memories = []
    for _ in range(2):  # the same again: it is not the first time, and it knows
        agent.act(observation)
        memories.append(np.asarray(agent._memory))
    assert not np.allclose(*memories)
    agent.reset(where=[True])
    agent.act(observation)
    assert np.allclose(agent._memory, memories[0])


def test_it_plays_and_its_environments_can_be_made(directory):
    agent = mastery.load_agent(directory[0])
    episode = play("Unlock", agent.act, seed=1, steps=20)
    assert len(episode.actions) == 20
    env = agent.make("Unlock", "rgb_array")
    observation, _ = env.reset(seed=0)
    agent.reset()
    assert 0 <= agent.act(observation) < 6
    assert env.render().ndim == 3


@pytest.fixture(scope="module")
def agent_of_2018(tmp_path_factory):
    """One run of the paper's agent after one update."""
    path = tmp_path_factory.mktemp("jobs") / "old"
    settings = replace(PAPER, envs=4, frames=16, batch=32, ahead=2)
    job = Job(Curriculum.load("blocked-unlock-pickup"), settings=settings, chunk=1)
    loop = MiniGridLoop(job)
    carry, metrics = loop.advance(loop.begin())
    with Store(path, job) as store:
        store.record(1, 1.0, metrics, None, loop.save(carry))
    return mastery.load_agent(path)


def test_an_agent_of_2018_acts_in_the_minigrid_of_2018(agent_of_2018):
    """What it makes of an observation is what the network makes of the cells it was trained on."""
    agent, old = agent_of_2018, find_edition("2018")
    assert agent.job.settings.edition == "2018"
    env = agent.make("UnlockPickup")
    observation, _ = env.reset(seed=0)
    state = env.state
    where = int(state.agent), int(state.direction), int(state.target)
    actions = plan(unpack(state.grid), *where, edition=old)
    network, look = jax.jit(agent.agent.__call__), jax.jit(seen_cells, static_argnums=1)
    memory, seen = np.zeros((128, 1), np.float32), set()
    for action in actions:
        seen |= {(int(t), int(s)) for t, _, s in observation["image"].reshape(-1, 3)}
        cells = np.asarray(look(env.state, old))[None]
        memory, logits, _ = network(memory, np.zeros(1, bool), cells)
        assert agent.act(observation, greedy=True) == int(logits.argmax())
        assert np.allclose(agent._memory, memory, atol=1e-5)
        observation, reward, terminated, *_ = env.step(action)
    assert {(1, 0), (4, 0), (4, 1), (5, 0), (7, 0)} <= seen  # wall, door (both), key, box
    assert terminated
    assert np.isclose(reward, 1 - 0.9 * len(actions) / 288)


def test_an_agent_of_2018_plays(agent_of_2018):
    agent_of_2018.reset()
    episode = play("Unlock", agent_of_2018.act, seed=1, steps=20, edition="2018")
    assert len(episode.actions) == 20
    assert episode.actions.max() < 7


@pytest.fixture(scope="module")
def moments(tmp_path_factory):
    """A job of two programs and three seeds after two chunks, with its agents of three moments."""
    path = tmp_path_factory.mktemp("jobs") / "moments"
    curriculum = Curriculum.load("blocked-unlock-pickup")
    job = Job(curriculum, ("mr", "uniform"), seeds=3, frames=256, settings=SMALL, chunk=2)
    train(replace(job, evaluate_every=0), path)
    return path


def weights(agent):
    return np.asarray(agent.agent.policy[0].weight)


def test_an_agent_of_an_earlier_moment(moments):
    per_chunk = 2 * 64
    last = mastery.load_agent(moments, run=4)
    found = {at: mastery.load_agent(moments, run=4, at=at) for at in (0, 127, 128, 255, 10**9)}
    assert [agent.frames for agent in found.values()] == [0, 0, per_chunk, per_chunk, 256]
    assert np.array_equal(weights(found[10**9]), weights(last))
    assert np.array_equal(weights(found[0]), weights(found[127]))
    assert not np.array_equal(weights(found[0]), weights(found[128]))
    assert not np.array_equal(weights(found[128]), weights(last))
    # runs of one seed begin with the same agent, and the third seed's earlier ones are not kept
    assert np.array_equal(weights(mastery.load_agent(moments, run=1, at=0)), weights(found[0]))
    assert mastery.load_agent(moments, run=2).frames == 256
    text = r"no agent of run 2 from the first 255 frames; its first is after 256"
    with pytest.raises(MasteryError, match=text):
        mastery.load_agent(moments, run=2, at=255)
    assert mastery.load_agent(moments, at=0).run.seed in (0, 1)


def test_a_damaged_file_of_agents_is_passed_over(moments, tmp_path):
    copy = shutil.copytree(moments, tmp_path / "job")
    (copy / "agents" / "000000000002.agent").write_bytes(b"mastery 1\n")
    assert mastery.load_agent(copy, run=0, at=200).frames == 0
    (copy / "agents" / "000000000000.agent").unlink()
    with pytest.raises(MasteryError, match=r"cannot read .*000000000000\.agent"):
        mastery.load_agent(copy, run=0, at=200)


def test_the_command_plays_it_and_says_which(moments):
    def said(*more):
        command = ["play", str(moments), "--task", "Unlock", "--run", "4", "--steps", "5", *more]
        return CliRunner().invoke(app, command).output

    assert said().startswith("uniform, seed 1, after 256 frames:\nUnlock: ")
    assert said("--at", "0.2k").startswith("uniform, seed 1, after 128 frames:\nUnlock: ")


def test_what_cannot_be(directory, tmp_path):
    path, _ = directory
    with pytest.raises(MasteryError, match=r"there is no run 3: .* has runs 0 to 2"):
        mastery.load_agent(path, run=3)
    with pytest.raises(MasteryError, match="is not a run directory"):
        mastery.load_agent(tmp_path)
    with pytest.raises(MasteryError, match=r"\(7, 7, 3\)"):
        mastery.load_agent(path).act(np.zeros((5, 5, 3), np.uint8))
    Store(tmp_path / "new", Job(Curriculum.load("blocked-unlock-pickup"))).close()
    with pytest.raises(MasteryError, match="has no checkpoint yet"):
        mastery.load_agent(tmp_path / "new")
