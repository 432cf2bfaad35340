"""What was traced for a GPU is kept, and found only where nothing that it depends on has changed.

Here a CPU trains all runs at once, as a GPU does.
"""

import os
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from abstract_gpu import abstract_h200
from jax import export
from small_jobs import job as small_job

from mastery import Curriculum
from mastery.learners import grpo, lstm_kernels, ppo_minigrid
from mastery.learners.kernels import agent as kernels
from mastery.learners.ppo import PPO
from mastery.training import devices
from mastery.training.job import Job
from mastery.training.loops import compiled, traced
from mastery.training.loops.addition import AdditionLoop
from mastery.training.loops.minigrid import MiniGridLoop
from mastery.training.loops.reasoning import ReasoningLoop
from mastery.training.loops.traced import Traced

JOB = small_job(programs=("mr",), names=("easy",), evaluate_every=0, seeds=1)
SMALL = replace(JOB.settings, memory="none", width=8)
JOB = replace(JOB, settings=SMALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where it is kept."""
    monkeypatch.setattr(compiled, "in_turn", lambda devices: False)
    monkeypatch.setattr(devices, "traced_folder", tmp_path / "traced")
    return tmp_path / "traced"


@pytest.fixture
def learned(monkeypatch):
    """The calls of the learner's code, so the times it is traced."""
    calls, update = [], ppo_minigrid.update

    def counted(*given):
        calls.append(given)
        return update(*given)

    monkeypatch.setattr(ppo_minigrid, "update", counted)
    return calls


def two_chunks(job):
    """The arrays of a job after two chunks, and its metrics."""
    loop = MiniGridLoop(job, jax.devices()[:1])
    loop.prepare(new=True)
    begun = loop.begin()
    carry, first = loop.advance(begun)
    assert all(x.is_deleted() for x in jax.tree.leaves(begun))  # its memory serves again
    carry, second = loop.advance(carry)
    loop.close()
    return loop.save(carry), first, second


def same(one, other):
    arrays = zip(*map(jax.tree.leaves, (one, other)), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in arrays)


@pytest.fixture(scope="module")
def plain():
    """What the job makes where nothing is kept, as in a script."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "in_turn", lambda devices: False)
        return two_chunks(JOB)


def test_a_kept_function_is_not_traced_again_and_is_the_same_to_the_bit(folder, learned, plain):
    first = two_chunks(JOB)
    (file,) = folder.iterdir()
    os.utime(file, (0, 0))
    traced_once = len(learned)
    again = two_chunks(JOB)
    assert len(learned) == traced_once > 0
    assert same(first, plain)
    assert same(again, plain)
    assert type(again[1]) is type(plain[1])
    assert list(folder.iterdir()) == [file]
    assert file.stat().st_mtime > time.time() - 600  # its last use


def test_jobs_that_share_a_file_are_each_as_without_it(folder, learned, monkeypatch):
    first = two_chunks(JOB)
    other = replace(JOB, seed=7, frames=4096, stop_return=0.5)
    traced_once = len(learned)
    kept = two_chunks(other)
    assert len(learned) == traced_once
    monkeypatch.setattr(devices, "traced_folder", None)
    assert same(kept, two_chunks(other))
    assert not same(kept, first)


def test_a_damaged_file_is_made_anew(folder, learned, plain):
    assert same(two_chunks(JOB), plain)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole[:500] + b"x" + whole[501:]):
        file.write_bytes(damaged)
        before = len(learned)
        assert same(two_chunks(JOB), plain)
        assert len(learned) > before
        assert file.read_bytes() == whole


def test_a_file_of_another_user_is_read(folder, learned, plain, monkeypatch):
    two_chunks(JOB)
    traced_once = len(learned)

    def refused(path):
        raise PermissionError

    monkeypatch.setattr(traced.os, "utime", refused)
    assert same(two_chunks(JOB), plain)
    assert len(learned) == traced_once


def test_where_the_code_has_changed_since_it_was_imported_nothing_is_kept(
    folder, learned, plain, monkeypatch
):
    two_chunks(JOB)
    (file,) = folder.iterdir()
    monkeypatch.setattr(traced, "source", lambda: "of files that were edited meanwhile")
    traced_once = len(learned)
    assert same(two_chunks(JOB), plain)
    assert len(learned) > traced_once
    assert list(folder.iterdir()) == [file]


def test_where_it_cannot_be_written_it_is_traced_each_time(folder, learned, plain):
    folder.write_text("a file, not a folder")
    assert same(two_chunks(JOB), plain)
    assert learned


def digest(job):
    """The name of the job's file."""
    loop = MiniGridLoop(job, jax.devices()[:1])
    leaves, tree = jax.tree.flatten(([loop.shapes()], [loop.plan]))
    return loop._chunk._digest(leaves, tree)


def test_a_name_stands_for_all_that_decides_what_is_traced(folder, monkeypatch):
    found = {digest(JOB)}
    others = {
        "seed": replace(JOB, seed=7),
        "length": replace(JOB, frames=4096, stop_return=0.5),
    }
    assert {digest(job) for job in others.values()} == found  # these do not
    for job in (
        replace(JOB, settings=replace(SMALL, epochs=2)),
        replace(JOB, settings=replace(SMALL, reward="minigrid")),
        replace(JOB, seeds=2),
        replace(JOB, chunk=2),
        replace(JOB, programs=("uniform",)),
        replace(JOB, curriculum=small_job(names=("other",)).curriculum),
    ):
        found.add(digest(job))
    assert len(found) == 7
    with jax.default_matmul_precision("highest"):
        found.add(digest(JOB))
    monkeypatch.setattr(traced, "versions", lambda: {"jax": "another"})
    found.add(digest(JOB))
    monkeypatch.setattr(traced, "SOURCE", "another")
    found.add(digest(JOB))
    assert len(found) == 10


def test_arrays_and_the_device_are_in_the_name(folder, monkeypatch):
    chunk = MiniGridLoop(JOB, jax.devices()[:1])._chunk
    (device,) = one = jax.devices()[:1]
    array, longer = (
        jax.ShapeDtypeStruct((n,), np.float32, sharding=jax.sharding.SingleDeviceSharding(device))
        for n in (1, 2)
    )
    given = ([array], "*"), ([longer], "*"), ([array.update(dtype=np.int32)], "*"), ([array], "**")
    found = [chunk._digest(*each) for each in given]
    for kind, count in (("another", 1), (device.device_kind, 2)):
        other = SimpleNamespace(platform=device.platform, device_kind=kind)
        monkeypatch.setattr(jax, "devices", lambda other=other, count=count: [other] * count)
        found.append(chunk._digest([array], "*"))
    monkeypatch.setattr(jax, "devices", lambda: one)
    assert len(set(found)) == 6
    assert chunk._digest([array], "*") == found[0]


def test_the_code_of_mastery_is_in_the_name(tmp_path, monkeypatch):
    package = tmp_path / "mastery"
    (package / "room").mkdir(parents=True)
    monkeypatch.setattr(traced.mastery, "__file__", str(package / "__init__.py"))
    found = set()
    for name, text in (
        ("__init__.py", "a = 1"),
        ("__init__.py", "a = 2"),
        ("room/new.py", "a = 2"),
        ("room/new.py", "a = 3"),
    ):
        (package / name).write_text(text)
        found.add(traced.source())
    assert len(found) == 4


def test_nothing_is_kept_for_several_devices_or_for_a_program_of_your_own(folder, tmp_path):
    program = tmp_path / "own.py"
    program.write_text(
        "import mastery\n\n\ndef mine():\n    return mastery.programs.functions.uniform()\n"
    )
    own = replace(JOB, programs=(f"{program}:mine",))
    chunk, of_own = (MiniGridLoop(job, jax.devices()[:1])._chunk for job in (JOB, own))
    on_one, on_two = (SimpleNamespace(sharding=SimpleNamespace(device_set=x)) for x in ("1", "12"))
    assert chunk._may_keep([on_one])
    assert not chunk._may_keep([on_two])
    assert not of_own._may_keep([on_one])


def test_what_jax_does_not_export_is_traced_each_time(folder, learned, plain, monkeypatch):
    def refused(*given, **options):
        raise ValueError("Cannot serialize code with custom calls")

    monkeypatch.setattr(export, "export", refused)
    assert same(two_chunks(JOB), plain)
    assert learned
    assert not folder.exists()


def test_without_flatbuffers_nothing_is_kept(folder, monkeypatch):
    monkeypatch.setattr(traced, "_can_export", lambda: False)
    two_chunks(JOB)
    assert not folder.exists()


def test_what_was_not_used_for_long_is_deleted(folder):
    folder.mkdir()
    old, new = folder / "old.traced", folder / "new.traced"
    for file, days in ((old, 31), (new, 29)):
        file.write_bytes(b"")
        then = time.time() - days * 86400
        os.utime(file, (then, then))
    two_chunks(JOB)
    assert not old.exists()
    assert new.exists()
    assert len(list(folder.iterdir())) == 2


def test_what_cannot_be_deleted_does_no_harm(folder):
    (folder / "folder.traced").mkdir(parents=True)
    os.utime(folder / "folder.traced", (0, 0))
    two_chunks(JOB)
    assert len(list(folder.iterdir())) == 2


@pytest.mark.filterwarnings("ignore:.*Triton:DeprecationWarning")  # JAX 0.11 will remove it
@pytest.mark.parametrize(
    "preset",
    ["fast", *(pytest.param(p, marks=pytest.mark.slow) for p in PPO.presets if p != "fast")],
)
def test_a_chunk_with_kernels_can_be_kept(preset, folder, monkeypatch):
    """JAX refuses to keep calls of what it does not know, unless each is allowed."""
    monkeypatch.setattr(kernels, "measured", lambda: True)
    loop = MiniGridLoop(replace(JOB, settings=PPO.presets[preset]), jax.devices()[:1])
    text = kept_for_h200(loop)
    # four each to play and for the value after the last frame; eight to learn
    assert text.count(traced.KERNELS) == 16
    assert isinstance(loop._chunk, Traced)


@pytest.mark.filterwarnings("ignore:.*Triton:DeprecationWarning")  # JAX 0.11 will remove it
@pytest.mark.slow
def test_chunks_of_addition_and_reasoning_can_be_kept(folder, monkeypatch):
    monkeypatch.setattr(lstm_kernels, "measured", lambda: True)
    job = Job(Curriculum.load("addition-3"), evaluate_every=0)
    assert traced.KERNELS in kept_for_h200(AdditionLoop(job, jax.devices()[:1]))
    job = Job(Curriculum.load("reasoning"), evaluate_every=0)
    model = grpo.new_model(jax.random.key(0), job.settings)
    assert kept_for_h200(ReasoningLoop(job, model, jax.devices()[:1]))


def kept_for_h200(loop):
    """What is kept of a loop's chunk for an NVIDIA H200, as text."""
    chunk = partial(compiled._chunk, [loop.pieces], 1)
    with abstract_h200():
        kept = export.export(jax.jit(chunk), platforms=["cuda"], disabled_checks=traced.ALLOWED)(
            [loop.shapes()], [loop.plan]
        )
    return str(kept.mlir_module())
