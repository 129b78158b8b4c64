"""One environment in a process of its own: whatever breaks in it is an answer, not the end of the run."""

import contextlib
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from drol.evaluation.worker import Broke, Reset, Seen, Step, serve

# Imported once, not in every process; what is not installed is left out.
PRELOADED = [
    "drol.evaluation.worker",
    "gymnasium",
    "mujoco",
    "ogbench",
    "drol.tasks.d4rl.adroit",
    "drol.tasks.d4rl.antmaze",
]

GRACE = 1.0  # seconds beyond the deadline: after Ctrl-Z and `fg` it has passed, though the answer needs but a moment


class EnvironmentProcess:
    """Started when it is first needed, and again after it died or hung."""

    def __init__(self, make_environment: Callable[[], Any], timeout: float):
        self.make_environment = make_environment
        self.timeout = timeout  # seconds that the environment may take to answer
        self.deadline = 0.0
        # Not a fork: this process has the threads of jax.
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(PRELOADED)
        self.worker: tuple[BaseProcess, Connection] | None = None

    @property
    def connection(self) -> Connection:
        if self.worker is None:
            ours, theirs = self.context.Pipe()
            process = self.context.Process(target=serve, args=(theirs, self.make_environment), daemon=True)
            process.start()
            theirs.close()
            self.worker = (process, ours)
        return self.worker[1]

    def send(self, request: Reset | Step) -> None:
        self.deadline = time.monotonic() + self.timeout
        with contextlib.suppress(OSError):  # the process is dead; reading its answer says so
            self.connection.send(request)

    def receive(self) -> Seen | Broke:
        """The answer to what was sent last, waiting for it until the deadline."""
        try:
            if self.connection.poll(max(0.0, self.deadline - time.monotonic())) or self.connection.poll(GRACE):
                return self.read()
        except OSError:
            return self.read()
        self.stop()
        return Broke(f"no answer from the environment within {self.timeout:g} s")

    def read(self) -> Seen | Broke:
        """An answer that has arrived, if only as the end of the process."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return Broke(f"the environment's process ended with exit code {self.stop()}")

    def stop(self) -> int | None:
        """End the process, by force if need be; its exit code."""
        if self.worker is None:
            return None
        process, connection = self.worker
        self.worker = None
        connection.close()
        process.join(0.2)
        if process.is_alive():
            process.kill()
            process.join()
        return process.exitcode
