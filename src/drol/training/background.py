"""Work that goes on while the main thread does something else, one piece at a time."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Background:
    """A thread for one call at a time; what a call raises is raised again in the thread that asked for it."""

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1)
        self.running: Future | None = None

    @property
    def busy(self) -> bool:
        return self.running is not None and not self.running.done()

    def start(self, function: Callable, *arguments: Any) -> None:
        """Begin a call; the one before is waited for, so that none is dropped and all happen in order."""
        self.wait()
        self.running = self.thread.submit(function, *arguments)

    def check(self) -> None:
        """Raise what the last call raised, if it is over; do not wait for it."""
        if not self.busy:
            self.wait()

    def wait(self) -> None:
        """Return when nothing is under way."""
        if self.running is not None:
            try:
                self.running.result()
            finally:
                if self.running.done():  # not so if a signal cut the wait short
                    self.running = None

    def close(self) -> None:
        """End the thread after its last call, whatever became of it."""
        self.thread.shutdown()
