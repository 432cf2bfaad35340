"""The model that reasoning begins with: made once, the same to the bit, and kept."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from mastery import Curriculum
from mastery.learners.grpo import ReasoningSettings
from mastery.training import pretraining
from mastery.training.job import Job
from mastery.training.pretraining import load_model, model_path, pretrain

TINY = ReasoningSettings(
    prompts=8, group=4, width=8, layers=1, heads=2,
    pretrain_steps=110, pretrain_batch=16, pretrain_rate=0.01,
)  # fmt: skip
JOB = Job(Curriculum.load("reasoning-reverse"), settings=TINY)
REVERSE = [6]


def leaves(model):
    return [np.asarray(x) for x in jax.tree.leaves(model)]


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True))


@pytest.fixture(scope="module")
def made():
    """The model, and what is reported on the way."""
    reports = []
    model = pretrain(TINY, REVERSE, lambda *given: reports.append(given))
    return model, reports


@pytest.fixture
def cache(tmp_path, monkeypatch, made):
    """An empty cache of our own; what is made there costs nothing, and is counted."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    calls = []

    def again(settings, families, report):
        calls.append((settings, families))
        return made[0]

    monkeypatch.setattr(pretraining, "pretrain", again)
    return calls


def test_two_makings_are_equal_to_the_bit(made):
    model, reports = made
    assert equal(pretrain(TINY, REVERSE), model)
    assert [report[:2] for report in reports] == [(100, 110), (110, 110)]
    losses = [report[2] for report in reports]
    assert losses[1] < losses[0] < np.log(34)
    assert all(np.isfinite(x).all() for x in leaves(model))


def test_steps_beyond_the_end_change_nothing(made, monkeypatch):
    """The second call of the compiled function does 100 steps, of which 10 count; here 11 · 10."""
    monkeypatch.setattr(pretraining, "_STEPS", 10)
    whole = pretrain(TINY, REVERSE)
    for a, b in zip(leaves(whole), leaves(made[0]), strict=True):
        assert np.allclose(a, b, atol=1e-3)


def test_it_is_made_once_and_read_from_then_on(cache, made, tmp_path):
    notes = []
    first = load_model(JOB, notes.append)
    assert len(cache) == 1
    assert cache[0] == (TINY, REVERSE)
    path = model_path(JOB)
    assert path.is_relative_to(tmp_path / "cache" / "mastery" / "models")
    assert notes == [f"pre-training the model once; it is kept in {path}"]
    second = load_model(JOB, notes.append)
    assert len(cache) == len(notes) == 1
    assert equal(first, second)
    assert equal(second, made[0])
    assert jax.tree.structure(second) == jax.tree.structure(made[0])


@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "other"])
def test_a_damaged_file_is_reported_and_made_again(cache, how):
    load_model(JOB)
    path = model_path(JOB)
    content = path.read_bytes()
    if how == "other":  # a whole file, of another model
        other = replace(JOB, settings=replace(TINY, width=12))
        with pytest.MonkeyPatch.context() as patch:
            wider = pretraining.grpo.new_model(jax.random.key(0), other.settings)
            patch.setattr(pretraining, "pretrain", lambda *_: wider)
            load_model(other)
        path.write_bytes(model_path(other).read_bytes())
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes({"flipped": flipped, "cut": content[:middle], "empty": b""}[how])
    notes = []
    load_model(JOB, notes.append)
    assert len(cache) == 2
    assert notes[0].endswith("; making the pre-trained model again")
    assert path.read_bytes() == content
    load_model(JOB, notes.append)
    assert len(cache) == 2


def test_the_file_depends_on_what_the_model_depends_on(cache):
    path = model_path(JOB)
    assert model_path(replace(JOB, seeds=5, programs=("uniform",), frames=7)) == path
    same = ("prompts", 16), ("group", 2), ("learning_rate", 0.5), ("clip", 0.1), ("drop", 1.0)
    for name, value in same:
        assert model_path(replace(JOB, settings=replace(TINY, **{name: value}))) == path
    others = (
        ("width", 16), ("layers", 2), ("heads", 1), ("gradient_norm", 0.5), ("pretrain_steps", 9),
        ("pretrain_batch", 8), ("pretrain_rare", 2), ("pretrain_rate", 0.1),
    )  # fmt: skip
    paths = {model_path(replace(JOB, settings=replace(TINY, **{k: v}))) for k, v in others}
    paths.add(model_path(replace(JOB, curriculum=Curriculum.load("reasoning"))))
    assert len(paths | {path}) == len(others) + 2


def test_a_cache_that_cannot_be_written_is_no_obstacle(cache, made, tmp_path, monkeypatch):
    """A model that cannot be kept is used all the same."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    notes = []
    assert equal(load_model(JOB, notes.append), made[0])
    assert "cannot be kept" in notes[-1]


def test_without_a_home_directory_it_is_made_each_time(cache, made, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(pretraining, "cache_folder", no_home)
    notes = []
    model = load_model(JOB, notes.append)
    assert notes == [
        "the pre-trained model cannot be kept, and will be made again: "
        "Could not determine home directory."
    ]
    assert equal(model, made[0])
