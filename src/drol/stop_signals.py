"""Turn stop signals into requests; training answers them between two chunks of updates."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
REPEATED_SECONDS = 10.0  # SIGTERM counts once within this time


@dataclass
class StopRequest:
    """The stop signal that was received, if any."""

    signal: int | None = None
    answer: Callable[[], None] = lambda: None

    def answer_with(self, call: Callable[[], None]) -> None:
        """Register a callback for the stop signal; call it immediately if the signal was already received."""
        self.answer = call
        if self.signal is not None:
            call()


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Turn Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 into a stop request.

    A second signal raises `KeyboardInterrupt`. A repeated SIGTERM does so only after `REPEATED_SECONDS`, because a
    service manager and the job queue may both send it. SIGHUP stays ignored under `nohup`.
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
