"""Collect OGBench datasets with the oracles of its package, or with expert policies, in parallel processes.

Trajectory n of a collection depends on (seed, n) alone, so the arrays do not depend on the number of processes, on
their order or on interruptions.
"""

import contextlib
import dataclasses
import importlib.metadata
import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from drol.errors import InputError
from drol.tasks.experts import Expert, read_expert
from drol.tasks.ogbench.collecting.recipes import COLLECTABLE, Recipe, find_recipe
from drol.tasks.ogbench.collecting.unfinished import Parts
from drol.tasks.ogbench.collecting.worker import Collected, Failed, serve

__all__ = ["COLLECTABLE", "Progress", "collect", "default_processes", "parts_folder"]

PACKAGES = ("ogbench", "mujoco", "gymnasium", "numpy")  # whose versions may change the arrays
ATTEMPTS = 3  # at a trajectory whose process dies
# Sizes of observation, action and what an expert is shown.
EXPERT_SIZES = {
    "ant": (8, {"observation": 29, "ogbench-direction": 29}),
    "humanoid": (21, {"observation": 69, "ogbench-direction": 69}),
    "soccer": (8, {"observation": 42, "ogbench-direction": 29, "ogbench-ball": 42}),
}
# Each process has one thread for NumPy: with more they would take the processors from each other.
ONE_THREAD: dict[str, str] = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Progress(NamedTuple):
    """How far a collection is."""

    done: int  # trajectories, with those of earlier commands
    total: int
    rows: int  # that this command collected
    notes: tuple[str, ...] = ()  # what a person should know


def collect(
    dataset_name: str,
    path: Path,
    *,
    episodes: int | None = None,
    seed: int = 0,
    processes: int | None = None,
    experts: Sequence[Path] = (),
    rows: int | None = None,
    report: Callable[[Progress], None] | None = None,
) -> dict[Path, int]:
    """Write `episodes` trajectories, and a tenth as many more to `<name>-val.npz`, in OGBench's format.

    Returns the transitions of each file. `rows` shortens the trajectories. The same call after an interruption goes on.
    """
    recipe = find_recipe(dataset_name)
    recipe = dataclasses.replace(recipe, rows=recipe.rows if rows is None else rows)
    episodes = recipe.episodes if episodes is None else episodes
    processes = default_processes() if processes is None else processes
    for name, value, least in (
        ("episodes", episodes, 1),
        ("seed", seed, 0),
        ("processes", processes, 1),
        ("rows", recipe.rows, 2),
    ):
        if value < least:
            raise InputError(f"{name} is {value}; it must be at least {least}")
    if path.suffix != ".npz":
        raise InputError(f"the file to write is {path}; its name must end with .npz")
    loaded = tuple(read_expert(each) for each in experts)
    check_experts(dataset_name, recipe, loaded)
    check_package()
    parts = Parts(parts_folder(path))
    validation_path = path.with_name(f"{path.stem}-val.npz")
    for target in (path, validation_path):
        if target.exists() and not parts.is_joining:
            raise InputError(f"{target} exists already; choose another --out, nothing was written")
    total = episodes + max(1, episodes // 10)
    with parts.locked():
        parts.claim(
            {
                "name": dataset_name,
                "seed": seed,
                "rows": recipe.rows,
                "experts": [expert.digest() for expert in loaded],
                "versions": {package: importlib.metadata.version(package) for package in PACKAGES},
            }
        )
        lengths, damaged = parts.finished(total)
        notes = tuple(f"{name} is damaged and collected again" for name in damaged)
        if report:
            report(Progress(len(lengths), total, 0, notes))
        missing = [number for number in range(total) if number not in lengths]
        new_rows = 0
        with Team(processes, (recipe, loaded, seed, parts.folder)) as team:
            for collected in team.collect(missing):
                lengths[collected.number] = collected.rows
                new_rows += collected.rows
                if report:
                    report(Progress(len(lengths), total, new_rows))
        targets = {path: range(episodes), validation_path: range(episodes, total)}
        parts.join(targets)
    return {target: sum(lengths[number] - 1 for number in numbers) for target, numbers in targets.items()}


def parts_folder(path: Path) -> Path:
    """Where the finished trajectories of a file are until all are there."""
    return path.with_name(f"{path.stem}.parts")


def default_processes() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_package() -> None:
    try:
        importlib.metadata.version("ogbench")
    except importlib.metadata.PackageNotFoundError as error:
        raise InputError("collecting needs the ogbench package: pip install 'drol[ogbench]'") from error


def check_experts(dataset_name: str, recipe: Recipe, experts: Sequence[Expert]) -> None:
    """Refuse experts that are missing, too many, or made for something else."""
    if not recipe.needs_expert:
        if experts:
            raise InputError(f"{dataset_name} is collected by an oracle of OGBench; leave --expert out")
        return
    if not experts:
        raise InputError(
            f"{dataset_name} needs a policy that can walk: --expert FOLDER with policy.npz and policy.json; "
            "`drol data expert --help` makes one from a file of weights"
        )
    action_size, inputs = EXPERT_SIZES[recipe.body]
    for expert in experts:
        if expert.input not in inputs:
            raise InputError(
                f"an expert's input is {expert.input}; for {dataset_name} it must be {' or '.join(inputs)}"
            )
        if (expert.input_size, expert.action_size) != (inputs[expert.input], action_size):
            raise InputError(
                f"an expert takes {expert.input_size} numbers and answers with {expert.action_size}; "
                f"with input {expert.input}, {dataset_name} needs {inputs[expert.input]} and {action_size}"
            )
    is_dribbler = Counter(expert.input == "ogbench-ball" for expert in experts)
    if is_dribbler[False] != 1 or is_dribbler[True] > 1:
        allowed = "one that walks and perhaps one with input ogbench-ball" if recipe.body == "soccer" else "one"
        raise InputError(f"{len(experts)} experts were given; {dataset_name} needs {allowed}")


class Team:
    """Processes that collect trajectories; one that dies is replaced and its trajectory tried again."""

    def __init__(self, size: int, arguments: tuple):
        self.size, self.arguments = size, arguments
        self.context = multiprocessing.get_context("spawn")  # not a fork: the caller may have threads of jax
        self.workers: dict[Connection, BaseProcess] = {}
        self.assigned: dict[Connection, int] = {}

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        for connection in list(self.workers):
            self.end(connection)

    def collect(self, numbers: Sequence[int]) -> Iterator[Collected]:
        """Each trajectory when it is finished, in any order."""
        waiting, deaths = deque(numbers), Counter()
        for _ in range(min(self.size, len(numbers))):
            self.start()
        while waiting or self.assigned:
            for connection in [each for each in self.workers if each not in self.assigned]:
                if waiting:
                    self.assigned[connection] = waiting.popleft()
                    with contextlib.suppress(OSError):  # it is dead; waiting for its answer says so
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
                        "the same command goes on"
                    )
                else:
                    code = self.end(ready)
                    deaths[number] += 1
                    if deaths[number] == ATTEMPTS:
                        raise InputError(
                            f"the process of trajectory {number} ended {ATTEMPTS} times, last with exit code {code}; "
                            "finished ones are kept, the same command goes on"
                        )
                    waiting.appendleft(number)
                    self.start()

    def start(self) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=serve, args=(theirs, *self.arguments), daemon=True)
        with childhood():
            process.start()
        theirs.close()
        self.workers[ours] = process

    def end(self, connection: Connection) -> int | None:
        process = self.workers.pop(connection)
        connection.close()
        process.kill()
        process.join()
        return process.exitcode


@contextlib.contextmanager
def childhood() -> Iterator[None]:
    """What a process inherits: one thread for NumPy, and deafness to Ctrl-C, which the parent answers for all."""
    before: Mapping[str, Any] = {name: os.environ.get(name) for name in ONE_THREAD}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
