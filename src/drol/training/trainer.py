"""The host loop: chunk, log, save, evaluate; resumed by running it again."""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from drol.checkpoints import newest_valid, save_tree, step_name
from drol.data.dataset import Dataset
from drol.errors import InputError
from drol.policy import Standardisation
from drol.progress import Display
from drol.runs.config import GROWING, RunConfig, differences
from drol.runs.directory import RunDirectory
from drol.tasks import load_task
from drol.tasks.base import Task
from drol.training.compiled import diagnose_seeds, init_seeds, seed_keys, zero_totals
from drol.training.following import END, follow
from drol.training.online import Interaction, online_update
from drol.training.placement import ONE_DEVICE, Placement, place
from drol.training.preparation import prepare, standardise
from drol.training.reproducibility import circumstances
from drol.training.scheduled_evaluation import RunEvaluation
from drol.training.signals import Stop, requested_stop
from drol.training.updates import Updates, in_memory

CHUNK_SECONDS = 1.0  # a chunk of updates aims at this, so that progress shows and a signal is heeded


class Diverged(Exception):
    """A metric was no longer a number."""


@dataclass(frozen=True)
class Outcome:
    """How a call of `train` ended."""

    directory: RunDirectory
    step: int
    saved_step: int  # that the newest checkpoint holds
    scores: list[float] | None  # of each seed at the last evaluation; None without an environment
    stopped_by: int | None  # the signal that asked for the end, if one did


def train(
    config: RunConfig,
    path: Path | str,
    task: Task | None = None,
    processes: int | None = None,
    quiet: bool = False,
    background_evaluation: bool = False,
    devices: int | None = None,
) -> Outcome:
    """Train all seeds of a run in a folder; if the folder holds this run already, go on where it stopped.

    Of several processes that train together, the first one writes the folder and evaluates.
    """
    directory = RunDirectory(Path(path))
    check_same_run(directory, config)
    placement = place(len(config.seeds), config.algorithm.batch_size, devices)
    task = task or load_task(config.task, Path(config.dataset) if config.dataset else None)
    if jax.process_index() > 0:
        with requested_stop():  # the leading process decides when to stop
            step = follow(config, task, placement)
        return Outcome(directory, step, step, None, None)
    with directory.locked(), requested_stop() as stop:
        run = Run(config, directory, task, placement, processes, quiet, background_evaluation)
        return run.train(stop)


def check_same_run(directory: RunDirectory, config: RunConfig) -> None:
    """Refuse a folder that holds another run; only the numbers of steps may grow."""
    if not directory.exists:
        return
    old, new = directory.read_config()["run"], config.to_dict()
    changed = [words for words in differences(old, new) if words.split()[0] not in GROWING]
    if changed:
        raise InputError(f"the folder {directory.path} holds another run ({changed[0]}); choose another --out")
    for name in GROWING:
        if new[name] < old.get(name, 0):
            flag = f"--{name.replace('_', '-')}"
            raise InputError(
                f"the run in {directory.path} has {old[name]} {name.replace('_', ' ')}; "
                f"{flag} {new[name]} cannot be fewer"
            )
    if old.get("online_steps") and new["steps"] > old["steps"]:
        raise InputError(
            f"the run in {directory.path} trains online after {old['steps']} steps; "
            f"--steps {new['steps']} cannot be more"
        )


class Run:
    """Everything that lives while a run trains."""

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        task: Task,
        placement: Placement,
        processes: int | None,
        quiet: bool,
        background_evaluation: bool,
    ):
        self.config, self.directory, self.task, self.placement = config, directory, task, placement
        self.algorithm = config.algorithm
        self.spec = task.train.spec
        self.standardisation = standardise(config, task.train)
        self.check_same_data()
        self.dataset = prepare(config, task.train, self.standardisation)
        self.validation = None
        if task.validation:
            self.validation = in_memory(prepare(config, task.validation, self.standardisation))
        self.keys = seed_keys(config.seeds)
        self.states = init_seeds(self.algorithm, self.keys, self.spec)
        self.updates = Updates(self.algorithm, self.dataset, self.keys, config.steps, placement)
        self.totals = zero_totals(self.algorithm, self.states, self.updates.in_memory, self.keys)
        self.logged_step = 0  # the totals are of the updates after this one
        self.interaction = self.make_interaction()
        self.step, self.messages = self.resume()
        self.step = placement.agree(self.step)
        self.states, self.totals = map(placement.put_seeds, placement.from_leader((self.states, self.totals)))
        self.saved_step = self.step
        self.display = Display(config.total_steps, self.step, task.score_name, quiet)
        self.evaluation = RunEvaluation(
            config, directory, task, self.display, self.policies, processes, background_evaluation
        )
        self.write_config()

    def check_same_data(self) -> None:
        """Before anything of the run is touched."""
        if self.directory.exists:
            before = self.directory.read_config()
            if before["dataset_fingerprint"] != self.task.train.fingerprint():
                raise InputError(
                    f"the data of {self.task.name} is not what the run in {self.directory.path} began with"
                )

    def resume(self) -> tuple[int, list[str]]:
        """Load the newest whole checkpoint and forget whatever came after it."""
        step, tree, messages = newest_valid(self.directory.checkpoints, self.checkpoint_like)
        if tree is None and messages:
            raise InputError(f"no checkpoint in {self.directory.checkpoints} can be used; {messages[0]}")
        if self.directory.exists:
            self.directory.rewind(step)
        if tree is not None:
            self.states, self.totals, self.logged_step = tree["states"], tree["totals"], int(tree["logged_step"])
            if self.interaction and "online" in tree:
                self.interaction.restore(tree["online"])
            messages.append(f"resuming {self.directory.path} at step {step:,}")
        return step, messages

    def checkpoint_like(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """The structure of a checkpoint; how much experience it holds is in its metadata."""
        like = {"states": self.states, "totals": self.totals, "logged_step": np.int64(0)}
        if self.interaction and "online" in metadata:
            like["online"] = self.interaction.tree_like(**metadata["online"])
        return like

    def make_interaction(self) -> Interaction | None:
        if not self.config.online_steps:
            return None
        if self.task.make_environment is None:
            raise InputError(f"--online-steps needs an environment, and {self.task.name} has only data")
        if self.placement.mesh:
            raise InputError("--online-steps trains on one device; give --devices 1")
        assert isinstance(self.dataset, Dataset), "data on disk comes without an environment"
        return Interaction(
            self.config, self.task, self.dataset, self.standardisation, self.directory.log_online_episode
        )

    def write_config(self) -> None:
        """Write what determines the run and where it ran; say so if it goes on under other circumstances."""
        now = {
            "run": self.config.to_dict(),
            "dataset_fingerprint": self.task.train.fingerprint(),
            "circumstances": circumstances() | {"placement": str(self.placement)},
        }
        if self.directory.exists:
            before = self.directory.read_config()
            changed = differences(before["circumstances"], now["circumstances"])
            if changed:
                self.messages.append(
                    f"the result will not be bit-identical to an uninterrupted run: {'; '.join(changed)}"
                )
        self.directory.write_config(now)

    def train(self, stop: Stop) -> Outcome:
        with self.display, self.evaluation, self.interaction or nullcontext(), self.leading():
            for message in self.messages:
                self.display.note(message)
            if self.step == 0 and self.evaluation.missing_seeds(0):
                self.save_policies()
            for step in self.evaluation.unfinished_steps():
                self.evaluation.start(step)
            while self.step < self.config.total_steps and stop.signal is None:
                self.evaluation.check()
                boundary = self.next_boundary()
                if self.step < self.config.steps:
                    self.advance(boundary)
                else:
                    self.advance_online(boundary)
                if self.due(self.config.log_interval):
                    self.log()
                if self.due(self.config.evaluation_interval):
                    self.save_policies()
                if self.due(self.config.checkpoint_interval):
                    self.save()
                if self.due(self.config.evaluation_interval):
                    self.evaluation.start(self.step)
            if self.saved_step < self.step:  # a signal asked for the end
                self.save()
            self.evaluation.finish()
        return Outcome(self.directory, self.step, self.saved_step, self.evaluation.scores(), stop.signal)

    @property
    def policies(self) -> tuple[Any, Standardisation]:
        return self.placement.gather(self.states).policy, self.standardisation

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Whatever happens, processes that follow hear that this one has ended."""
        try:
            yield
        finally:
            self.placement.agree(END)

    def due(self, interval: int) -> bool:
        return self.step % interval == 0 or self.step in (self.config.steps, self.config.total_steps)

    def next_boundary(self) -> int:
        """The next step at which something is logged, evaluated or saved."""
        config = self.config
        intervals = (config.log_interval, config.evaluation_interval, config.checkpoint_interval)
        end = config.steps if self.step < config.steps else config.total_steps
        return min(end, *((self.step // interval + 1) * interval for interval in intervals))

    def advance(self, boundary: int) -> None:
        """Run one chunk, not past the boundary and about a second long."""
        last_step = min(boundary, self.step + max(1, round(self.display.rate * CHUNK_SECONDS)))
        self.placement.agree(last_step)
        start = time.monotonic()
        self.states, self.totals = self.updates.run(self.states, self.totals, self.step + 1, last_step)
        jax.block_until_ready(self.totals)
        self.step = last_step
        self.display.advance(self.step, time.monotonic() - start)

    def advance_online(self, boundary: int) -> None:
        """Take steps and updates in turn for about a second, not past the boundary."""
        assert self.interaction is not None
        if not self.interaction.started:
            self.states, self.totals = self.placement.gather(self.states), self.placement.gather(self.totals)
            self.placement = ONE_DEVICE
            for message in self.interaction.start():
                self.display.note(message)
        start, first_step = time.monotonic(), self.step
        while self.step == first_step or (self.step < boundary and time.monotonic() - start < CHUNK_SECONDS):
            self.step += 1
            self.interaction.step(self.algorithm, self.states, self.keys, self.step)
            self.states, self.totals = online_update(
                self.algorithm, self.states, self.totals, self.dataset, self.interaction.experiences, self.keys,
                self.step, self.config.online_data == "balance",
            )  # fmt: skip
        self.display.advance(self.step, time.monotonic() - start)

    def log(self) -> None:
        """Write the mean metrics since the last log and the diagnostics of this step; stop if one is not a number."""
        updates = self.step - self.logged_step
        states, totals = self.placement.gather(self.states), self.placement.gather(self.totals)
        means = {name: np.asarray(total) / np.float32(updates) for name, total in totals.items()}
        diagnostics = diagnose_seeds(self.algorithm, states, self.updates.in_memory, self.keys, self.step)
        metrics = means | {f"diagnostics/{name}": value for name, value in diagnostics.items()}
        for seed, values in zip(self.config.seeds, per_seed(metrics, len(self.config.seeds)), strict=True):
            row = {"step": self.step, "seed": seed, **values}
            broken = [name for name, value in row.items() if not math.isfinite(value)]
            if broken:
                raise Diverged(
                    f"{broken[0]} of seed {row['seed']} is not finite at step {self.step}; "
                    "the last checkpoint is kept, and a lower --learning-rate may help"
                )
            self.directory.log_metrics(row)
        self.totals = self.placement.put_seeds(jax.tree.map(jnp.zeros_like, totals))
        self.logged_step = self.step

    def save_policies(self) -> None:
        """Save what the next evaluation looks at, with what validation data says of it now."""
        validation = []
        if self.validation:
            states = self.placement.gather(self.states)
            metrics = diagnose_seeds(self.algorithm, states, self.validation, self.keys, self.step)
            validation = per_seed(metrics, len(self.config.seeds))
        self.evaluation.save(self.step, self.policies, validation)

    def save(self) -> None:
        """Write a checkpoint; a full disk is reported and tried again at the next one, except at the end."""
        states, totals = self.placement.gather(self.states), self.placement.gather(self.totals)
        tree = {"states": states, "totals": totals, "logged_step": np.int64(self.logged_step)}
        metadata: dict[str, Any] = {"step": self.step}
        if self.interaction and self.interaction.started:
            tree["online"], metadata["online"] = self.interaction.to_tree()
        try:
            self.directory.sync()
            save_tree(self.directory.checkpoints / step_name(self.step), tree, metadata)
            self.saved_step = self.step
            self.directory.drop_old_checkpoints()
        except OSError as error:
            if self.step == self.config.total_steps:
                raise
            self.display.note(
                f"the checkpoint of step {self.step:,} was not saved ({error.strerror}); the one before is kept"
            )


def per_seed(metrics: Mapping[str, Any], count: int) -> list[dict[str, float]]:
    """Metrics [seed] as one dictionary for each seed."""
    arrays = {name: np.asarray(value) for name, value in metrics.items()}
    return [{name: float(array[index]) for name, array in arrays.items()} for index in range(count)]
