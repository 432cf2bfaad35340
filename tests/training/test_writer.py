"""Work that is done in another thread while training goes on."""

import threading
import time

import pytest

from mastery.errors import CheckpointError
from mastery.training.writer import Behind


def test_calls_are_made_in_order_in_another_thread():
    behind, done = Behind(), []
    for i in range(20):
        behind(lambda i=i: done.append((i, threading.current_thread())))
    behind.wait()
    behind.close()
    assert [i for i, _ in done] == list(range(20))
    assert threading.main_thread() not in {thread for _, thread in done}


def test_what_a_call_raises_comes_with_the_next_one_or_the_wait():
    def fail():
        raise CheckpointError("the disk is full")

    behind, done = Behind(), []
    behind(fail)
    with pytest.raises(CheckpointError, match="the disk is full"):
        behind(done.append, 1)
    assert not done  # nothing is written after what is missing
    behind(fail)
    with pytest.raises(CheckpointError, match="the disk is full"):
        behind.wait()
    behind.wait()  # it was raised
    behind.close()


def test_closing_finishes_what_has_begun():
    behind, begun, done = Behind(), threading.Event(), []

    def work():
        begun.set()
        time.sleep(0.2)
        done.append(1)

    behind(work)
    begun.wait()
    behind.close()
    assert done == [1]
