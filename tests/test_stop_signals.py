import signal
import threading

import pytest

from drol.evaluation.worker import STOP_SIGNALS
from drol.stop_signals import stop_requests


def ignore(number, _):
    """A handler installed by other code."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_is_noted_a_second_one_ends_at_once_and_the_handlers_come_back(number):
    before = signal.signal(number, ignore)
    try:
        with stop_requests() as stop:
            assert stop.signal is None
            signal.raise_signal(number)
            assert stop.signal == number
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
        assert signal.getsignal(number) is ignore
    finally:
        signal.signal(number, before)


def test_sigterm_that_comes_twice_counts_once_and_later_ends_at_once(monkeypatch):
    with stop_requests() as stop:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # a service manager told all, and then the queue told its runs
        assert stop.signal == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr("drol.stop_signals.REPEATED_SECONDS", 0.0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


def test_a_hangup_that_nohup_has_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_requests() as stop:
            signal.raise_signal(signal.SIGHUP)
        assert stop.signal is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_answers_a_signal_is_called_when_it_comes_or_at_once_if_it_has_come():
    called = []
    with stop_requests() as stop:
        stop.answer_with(lambda: called.append("first"))
        assert called == []
        signal.raise_signal(signal.SIGTERM)
        assert called == ["first"]
        stop.answer_with(lambda: called.append("second"))
        assert called == ["first", "second"]


def test_outside_the_main_thread_nothing_is_handled():
    noted = []

    def use():
        with stop_requests() as stop:
            noted.append(stop.signal)

    before = [signal.getsignal(number) for number in STOP_SIGNALS]
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert noted == [None]
    assert [signal.getsignal(number) for number in STOP_SIGNALS] == before
