"""Functions that are compiled before they are called."""

from __future__ import annotations

import threading
from dataclasses import replace

import jax
import numpy as np
import pytest
from small_jobs import job as small_job

from mastery.training.loops.early import Early, EarlyCompiler
from mastery.training.loops.minigrid import MiniGridLoop


@pytest.fixture
def compiler():
    made = EarlyCompiler(threads=2)
    yield made
    made.close()


def test_it_is_traced_once_and_elsewhere(compiler):
    traced = []

    def double(x):
        traced.append(threading.current_thread())
        return 2 * x

    early = Early(jax.jit(double))
    compiler.start(early, lambda: (np.float32(0),))
    assert early(np.float32(3)) == 6
    assert early(np.float32(4)) == 8
    (thread,) = traced
    assert thread is not threading.main_thread()


def test_what_is_not_started_is_compiled_by_its_first_call():
    assert Early(jax.jit(lambda x: 2 * x))(3) == 6


def test_shapes_are_those_of_a_call_and_do_not_trace_again(compiler):
    traced = []

    def double(x):
        traced.append(x)
        return 2 * x

    early, given = Early(jax.jit(double)), jax.numpy.ones(3)
    shape = early.shapes(given)
    assert (shape.shape, shape.dtype, shape.sharding) == ((3,), np.float32, given.sharding)
    compiler.start(early, lambda: (shape,))
    assert early(given).tolist() == [2, 2, 2]
    assert len(traced) == 1


def test_an_error_is_raised_where_the_function_is_called(compiler):
    def wrong(x):
        raise ValueError("no such thing")

    early = Early(jax.jit(wrong))
    compiler.start(early, lambda: (np.float32(0),))
    for _ in range(2):
        with pytest.raises(ValueError, match="no such thing"):
            early(np.float32(3))


def test_close_leaves_what_has_not_begun_to_a_later_call():
    compiler, go, begun = EarlyCompiler(threads=1), threading.Event(), []
    compiler.start(Early(jax.jit(lambda x: x)), lambda: (go.wait(), 1.0)[1:])
    left = Early(jax.jit(lambda x: 2 * x))
    compiler.start(left, lambda: begun.append(1) or (1.0,))
    compiler.close()
    go.set()
    compiler._pool.shutdown(wait=True)
    assert not begun
    assert left(3.0) == 6


def test_a_prepared_loop_computes_the_same():
    job = small_job(episodes=2)
    job = replace(job, settings=replace(job.settings, memory="none", width=8))
    plain, prepared = MiniGridLoop(job), MiniGridLoop(job)
    prepared.prepare(new=True)
    found = []
    for loop in (plain, prepared):
        carry, metrics = loop.advance(loop.begin())
        found.append((metrics, loop.evaluate(carry, 7), loop.save(carry)))
        loop.close()
    for a, b in zip(*map(jax.tree.leaves, found), strict=True):
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
