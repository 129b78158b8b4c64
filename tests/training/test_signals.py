import signal
import threading

import pytest

from drol.training.signals import stop_requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_a_second_one_ends_at_once_and_the_handlers_come_back(number):
    before = signal.getsignal(number)
    with stop_requests() as stop:
        assert stop.signal is None
        signal.raise_signal(number)
        assert stop.signal == number
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(number) is before


def test_outside_the_main_thread_nothing_is_handled():
    noted = []

    def use():
        with stop_requests() as stop:
            noted.append(stop.signal)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert noted == [None]
