"""The end of an environment's process that lives in it."""

import multiprocessing
import os
import signal
import time

import pytest
from fake_environments import Walk

from drol.evaluation.environment_process import EnvironmentProcess
from drol.evaluation.worker import STOP_SIGNALS, Reset, Seen, serve


@pytest.fixture
def handlers():
    """Restore the handlers of this process: `serve` changes them, because it normally has a separate process."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Silent(Walk):
    """Closes the other end while it answers, as a main process that gave up does."""

    other_end = None

    def reset(self, **options):
        self.other_end.close()
        return super().reset(**options)


@pytest.mark.usefixtures("handlers")
def test_an_answer_that_nobody_waits_for_ends_the_process_without_an_error():
    Silent.other_end, theirs = multiprocessing.Pipe()
    Silent.other_end.send(Reset(0))
    serve(theirs, Silent)


def test_a_process_ignores_what_asks_a_run_to_stop():
    """A terminal or a scheduler sends these to every process; an episode that ended by one would be a failure."""
    process = EnvironmentProcess(Walk, timeout=60.0)
    try:
        process.send(Reset(0))
        assert isinstance(process.receive(), Seen)
        for number in STOP_SIGNALS:
            os.kill(process.worker[0].pid, number)
        time.sleep(0.1)
        process.send(Reset(0))
        assert isinstance(process.receive(), Seen)
    finally:
        process.stop()
