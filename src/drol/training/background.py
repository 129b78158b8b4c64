"""Run calls in a background thread, one at a time."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Background:
    """A thread for one call at a time; an exception of a call is raised again in the thread that started it."""

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1)
        self.running: Future | None = None

    @property
    def busy(self) -> bool:
        return self.running is not None and not self.running.done()

    def start(self, function: Callable, *arguments: Any) -> None:
        """Start a call after the previous call has ended, so that all calls run in order."""
        self.wait()
        self.running = self.thread.submit(function, *arguments)

    def check(self) -> None:
        """Raise the exception of the last call, if it has ended; do not wait for it."""
        if not self.busy:
            self.wait()

    def wait(self) -> None:
        """Wait for the last call; raise its exception."""
        if self.running is not None:
            try:
                self.running.result()
            finally:
                if self.running.done():  # False if a signal interrupted the wait
                    self.running = None

    def close(self) -> None:
        """Wait for the last call and end the thread; exceptions of the call are ignored."""
        self.thread.shutdown()
