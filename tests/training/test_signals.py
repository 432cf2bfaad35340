"""Ctrl-C and a polite kill are noted for a while, and then do again what they did before."""

import signal
import threading
from functools import partial

import pytest

from mastery.training.signals import held, interrupts
from mastery.training.train import _interrupt


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_both_are_noted_and_told():
    before, told = handlers(), []
    with interrupts(told.append) as noted:
        assert not noted
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert noted == [signal.SIGTERM, signal.SIGINT]
    assert told == [1, 2]
    assert handlers() == before


def test_a_second_one_stops_a_training_at_once():
    before, said = handlers(), []
    with interrupts(partial(_interrupt, said.append)):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert said == ["stopping after this chunk; again to stop at once"]
    assert handlers() == before


def test_they_wait_while_they_are_held():
    with interrupts(lambda _: None) as noted:
        with held():
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            assert not noted
        assert noted == [signal.SIGINT]


def test_outside_of_the_main_thread_nothing_is_changed():
    before, during = handlers(), []

    def work():
        with interrupts(lambda _: None) as noted:
            during.append((handlers(), noted))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert during == [(before, [])]
