"""Requests to stop, honoured between two chunks of updates."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from drol.evaluation.worker import STOP_SIGNALS

REPEATED_SECONDS = 10.0  # in which SIGTERM counts once: a service manager, and the queue that it stops, both send it


@dataclass
class StopRequest:
    """The signal that asked the run to end, if one did."""

    signal: int | None = None
    answer: Callable[[], None] = lambda: None

    def answer_with(self, call: Callable[[], None]) -> None:
        """Call something as soon as a signal comes; now, if it has come."""
        self.answer = call
        if self.signal is not None:
            call()


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Turn Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 into a request that is honoured after the chunk.

    A second one ends at once, but SIGTERM after SIGTERM only after some seconds. SIGHUP stays ignored where `nohup`
    asked for that.
    """
    request = StopRequest()
    previous, came = {}, 0.0

    def note(number: int, _: FrameType | None) -> None:
        nonlocal came
        if request.signal is not None:
            if number == request.signal == signal.SIGTERM and time.monotonic() - came < REPEATED_SECONDS:
                return
            raise KeyboardInterrupt(number)
        request.signal, came = number, time.monotonic()
        request.answer()

    try:
        for number in STOP_SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                previous[number] = signal.signal(number, note)
    except ValueError:  # not in the main thread, where signals cannot be handled
        pass
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
