"""Manage the processes that collect trajectories; replace a dead process and retry its trajectory."""

import contextlib
import multiprocessing
import os
import platform
import signal
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from drol.errors import InputError
from drol_reproduction.collecting.ogbench.collecting_process import Collected, Failed, serve

ATTEMPTS = 3  # maximum number of attempts for a trajectory whose process dies
# One thread for NumPy, since more threads would compete for the cores. OpenBLAS chooses its kernels by the processor,
# and they round differently, so that the same seed would give other arrays on another machine.
VARIABLES: dict[str, str] = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | (
    {"OPENBLAS_CORETYPE": "Haswell"} if platform.machine() in ("x86_64", "AMD64") else {}
)


class Team:
    """Processes that collect trajectories.

    Args:
        size: The maximum number of processes.
        arguments: The arguments of `collecting_process.serve` after the connection.
    """

    def __init__(self, size: int, arguments: tuple):
        self.size, self.arguments = size, arguments
        self.context = multiprocessing.get_context("spawn")  # fork is unsafe, since the caller may have threads of jax
        self.workers: dict[Connection, BaseProcess] = {}
        self.assigned: dict[Connection, int] = {}

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        for connection in list(self.workers):
            self.end(connection)

    def collect(self, numbers: Sequence[int]) -> Iterator[Collected]:
        """Collect trajectories; yield each when it is on disk, in any order."""
        waiting, deaths = deque(numbers), Counter()
        for _ in range(min(self.size, len(numbers))):
            self.start()
        while waiting or self.assigned:
            for connection in [each for each in self.workers if each not in self.assigned]:
                if waiting:
                    self.assigned[connection] = waiting.popleft()
                    with contextlib.suppress(OSError):  # the process is dead; `recv` fails below
                        connection.send(self.assigned[connection])
            for ready in wait(list(self.assigned)):
                assert isinstance(ready, Connection)
                number = self.assigned.pop(ready)
                try:
                    answer = ready.recv()
                except (EOFError, OSError):
                    answer = None
                if isinstance(answer, Collected):
                    yield answer
                elif isinstance(answer, Failed):
                    raise InputError(
                        f"collecting trajectory {number} failed ({answer.reason}); finished ones are kept, "
                        "the same command resumes"
                    )
                else:
                    code = self.end(ready)
                    deaths[number] += 1
                    if deaths[number] == ATTEMPTS:
                        raise InputError(
                            f"the process of trajectory {number} ended {ATTEMPTS} times, last with exit code {code}; "
                            "finished ones are kept, the same command resumes"
                        )
                    waiting.appendleft(number)
                    self.start()

    def start(self) -> None:
        """Start one more process."""
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=serve, args=(theirs, *self.arguments), daemon=True)
        with settings_of_new_processes():
            process.start()
        theirs.close()
        self.workers[ours] = process

    def end(self, connection: Connection) -> int | None:
        """End a process and return its exit code."""
        process = self.workers.pop(connection)
        connection.close()
        process.kill()
        process.join()
        return process.exitcode


@contextlib.contextmanager
def settings_of_new_processes() -> Iterator[None]:
    """Set `VARIABLES` for processes started in this context, and block Ctrl-C, which the parent handles."""
    before: Mapping[str, Any] = {name: os.environ.get(name) for name in VARIABLES}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(VARIABLES)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
