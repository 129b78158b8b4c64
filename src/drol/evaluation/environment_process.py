"""Run environments in a separate process; a failure there is returned as `Broke` and does not end the run."""

import atexit
import contextlib
import multiprocessing
import multiprocessing.resource_tracker
import pickle
import signal
import sys
import time
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from drol.errors import InputError
from drol.evaluation.worker import AskLimit, Batch, Broke, Limit, Picture, Render, Reset, Step, serve
from drol.stop_signals import STOP_SIGNALS

PROCESS_NAME = "drol environment"
GRACE_SECONDS = 1.0  # wait after the deadline: after Ctrl-Z and `fg` it has passed, but the answer arrives soon


@contextlib.contextmanager
def without_main_module() -> Iterator[None]:
    """Hide the main script from processes that are started inside this context.

    Python imports the main script again in a new process. A script without `if __name__ == "__main__":` would then
    train in every process of an environment. The process needs the script only if the script defines the environment.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def without_stop_signals() -> Iterator[None]:
    """Block stop signals in processes that are started inside this context; `serve` then ignores them.

    Otherwise Ctrl-C while a process starts would end it with a traceback on the terminal.
    """
    multiprocessing.resource_tracker.ensure_running()  # if it started inside the context, it would unblock the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_defined_in_main(make_environment: Callable[[], Any]) -> bool:
    """Return whether the pickled function refers to the main script."""
    return b"__main__" in pickle.dumps(make_environment)


def refuse_inside_environment_process() -> None:
    """Raise `InputError` if a main script, imported by the process of an environment, starts a training."""
    if multiprocessing.current_process().name == PROCESS_NAME:
        raise InputError(
            "this script defines the environment and trains when it is imported; "
            'put the training under `if __name__ == "__main__":`'
        )


class EnvironmentProcess:
    """A process with environments; started on first use, and again after it died or timed out."""

    def __init__(self, make_environment: Callable[[], Any], timeout: float, modules: Sequence[str] = ()):
        self.make_environment = make_environment
        self.timeout = timeout  # seconds
        self.deadline = 0.0
        # A fork is unsafe, because this process has the threads of jax.
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["drol.evaluation.worker", *modules])  # imported once for all processes
        self.worker: tuple[BaseProcess, Connection] | None = None

    @property
    def connection(self) -> Connection:
        if self.worker is None:
            try:
                self.worker = self.start()
            except EOFError:  # the fork server was killed, perhaps for lack of memory; a second start makes another one
                self.worker = self.start()
            STARTED.add(self)
        return self.worker[1]

    def start(self) -> tuple[BaseProcess, Connection]:
        """Start the process."""
        ours, theirs = self.context.Pipe()
        arguments = (theirs, self.make_environment)
        process = self.context.Process(target=serve, args=arguments, name=PROCESS_NAME, daemon=True)
        hidden = contextlib.nullcontext() if is_defined_in_main(self.make_environment) else without_main_module()
        try:
            with without_stop_signals(), hidden:
                process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return process, ours

    def episode_limit(self) -> int | None:
        """Return the maximum steps of an episode; None if unknown or if the environment cannot be made."""
        self.send(AskLimit())
        answer: Any = self.receive()
        return answer.steps if isinstance(answer, Limit) else None

    def render(self) -> np.ndarray | Broke:
        """Return a picture of the current state of the environment, or the reason why there is none."""
        self.send(Render())
        answer = self.receive()
        return answer.pixels if isinstance(answer, Picture) else answer

    def send(self, request: Reset | Step | Render | AskLimit | Batch) -> None:
        resets = len(request.seeds) if isinstance(request, Batch) else 1  # each may have to make its environment
        self.deadline = time.monotonic() + self.timeout * max(1, resets)
        with contextlib.suppress(OSError):  # the process is dead; `receive` reports it
            self.connection.send(request)

    def receive(self) -> Any:
        """Return the answer to the last request; wait for it until the deadline."""
        try:
            if self.connection.poll(max(0.0, self.deadline - time.monotonic())) or self.connection.poll(GRACE_SECONDS):
                return self.read()
        except OSError:
            return self.read()
        self.stop()
        return Broke(f"no answer from the environment within {self.timeout:g} s")

    def read(self) -> Any:
        """Return an answer that has arrived, or `Broke` if the process has ended."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return Broke(f"the environment's process ended with exit code {self.stop()}")

    def stop(self) -> int | None:
        """End the process, kill it if needed, and return its exit code."""
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


STARTED: weakref.WeakSet[EnvironmentProcess] = weakref.WeakSet()


@atexit.register
def stop_all() -> None:
    """Stop leftover processes at exit; they ignore SIGTERM, so Python would wait for them forever."""
    for process in list(STARTED):
        process.stop()
