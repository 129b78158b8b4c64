"""The host loop of a run: chunk, log, save, evaluate."""

import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from drol.checkpoints import newest_valid, save_tree, step_name
from drol.data.dataset import Transitions
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.progress import Progress
from drol.runs.config import RunConfig, differences
from drol.runs.directory import RunDirectory
from drol.runs.rows import MetricsRow
from drol.tasks.base import Task
from drol.training.compiled import DIAGNOSTICS, VALIDATION, diagnose_seeds, init_seeds, seed_keys, zero_totals
from drol.training.divergence import all_finite, broken_arrays, broken_metrics, record_divergence
from drol.training.online import Interaction, online_update
from drol.training.placement import ONE_DEVICE, Placement
from drol.training.reproducibility import circumstances
from drol.training.resuming import lost_rows, refuse_without_checkpoint
from drol.training.scheduled_evaluation import ScheduledEvaluation
from drol.training.signals import StopRequest
from drol.training.start import states_of_another_run
from drol.training.updates import DIAGNOSED, Updates

CHUNK_SECONDS = 1.0  # a chunk of updates aims at this, so that progress shows and a signal is honoured soon


class Trainer:
    """Everything that lives while a run trains. To make one changes nothing on the disk; `resume` does."""

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        task: Task,
        placement: Placement = ONE_DEVICE,
        processes: int | None = None,
        quiet: bool = False,
        background_evaluation: bool = False,
    ):
        self.config, self.directory, self.task, self.placement = config, directory, task, placement
        self.algorithm = config.algorithm
        self.fingerprint = task.train.fingerprint()
        self.check_same_data()
        self.standardisation = Standardisation.identity(task.train.spec)
        if config.standardise_observations:
            self.standardisation = Standardisation.from_moments(*task.train.moments(), config.observation_scale)
        self.dataset = self.prepared(task.train)
        self.validation = self.prepared(task.validation).some(DIAGNOSED) if task.validation is not None else None
        self.keys = seed_keys(config.seeds)
        self.updates = Updates(self.algorithm, self.dataset, self.keys, config.steps, placement)
        self.step = self.saved_step = self.logged_step = 0  # metrics are summed over the updates after `logged_step`
        self.finite_step = 0  # up to which the metrics of all updates are known to be finite
        self.damage: list[str] = []  # what was found damaged and set aside
        states = init_seeds(self.algorithm, self.keys, task.train.spec)
        totals = zero_totals(self.algorithm, states, self.updates.diagnosed, self.keys)
        shapes = jax.eval_shape(lambda: {"states": states, "totals": totals})
        self.shapes = shapes | {"logged_step": np.int64(0)}  # of a checkpoint
        self.put(states, totals)
        self.interaction = self.make_interaction()
        self.progress = Progress("training", "updates", quiet=quiet)
        self.evaluation = ScheduledEvaluation(
            config, directory, task, self.progress.note, processes, background_evaluation
        )

    def put(self, states: Any, totals: Any) -> None:
        """Hold states and totals [seed, ...] where the updates want them."""
        self.states, self.totals = self.placement.put_seeds(states), self.placement.put_seeds(totals)

    def prepared(self, data: Transitions) -> Transitions:
        """Return data as the updates see it: with standardised observations, where the run asks for that."""
        return data.standardised(self.standardisation) if self.config.standardise_observations else data

    def check_same_data(self) -> None:
        """Refuse data that is not what the run began with."""
        if self.directory.exists and self.directory.read_config()["dataset_fingerprint"] != self.fingerprint:
            raise InputError(f"the data of {self.task.name} is not what the run in {self.directory.path} began with")

    def make_interaction(self) -> Interaction | None:
        if not self.config.online_steps:
            return None
        if self.task.make_environment is None:
            raise InputError(f"--online-steps needs an environment, and {self.task.name} has only data")
        if self.placement.mesh:
            raise InputError("--online-steps trains on one device; give --devices 1")
        on_device = self.dataset.on_device
        if on_device is None:
            raise InputError(f"--online-steps needs data that fits in memory; that of {self.task.name} does not")
        return Interaction(self.config, self.task, on_device, self.standardisation, self.directory.log_online_episode)

    def resume(self) -> None:
        """Load the newest whole checkpoint, forget whatever came after it, and write `config.json`."""
        step, tree, damage = newest_valid(self.directory.checkpoints, self.checkpoint_like)
        if tree is None and damage:
            raise InputError(f"no checkpoint in {self.directory.checkpoints} can be used; {damage[0]}")
        if tree is None:
            refuse_without_checkpoint(self.directory)
        notes = []
        if tree is None and self.config.start_from is not None:
            other = states_of_another_run(self.config, self.shapes["states"], self.standardisation, self.task)
            self.put(other.states, self.placement.gather(self.totals))
            damage, notes = [*damage, *other.skipped], [other.note]
        if self.directory.exists and (bad_lines := self.directory.rewind(step)):
            damage = [*damage, *bad_lines, *lost_rows(self.config, self.directory, step)]
        if tree is not None:
            self.put(tree["states"], tree["totals"])
            self.step = self.saved_step = self.finite_step = step
            self.logged_step = int(tree["logged_step"])
            if self.interaction and "online" in tree:
                self.interaction.restore(tree["online"])
            notes += [f"resuming {self.directory.path} at step {step:,}"] if step else []
        self.damage = damage
        for words in damage:
            self.progress.warn(words)
        for note in (*notes, *self.write_config()):
            self.progress.note(note)
        if tree is None:  # so that a run without any checkpoint was robbed of it, or has not begun
            self.save()

    def checkpoint_like(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return the structure of a checkpoint; how much experience it holds is in its metadata."""
        if self.interaction and "online" in metadata:
            return self.shapes | {"online": self.interaction.tree_like(**metadata["online"])}
        return self.shapes

    def write_config(self) -> list[str]:
        """Write what determines the run and where it runs; return a note if it goes on under other circumstances."""
        task, named = self.task, lambda dimensions: dimensions and dimensions.to_dict()
        now = {
            "run": self.config.to_dict(),
            "dataset_fingerprint": self.fingerprint,
            "dimensions": {"observation": named(task.observation_dimensions), "action": named(task.action_dimensions)},
            "circumstances": circumstances() | {"placement": str(self.placement)},
        }
        changed = []
        if self.directory.exists:
            changed = differences(self.directory.read_config()["circumstances"], now["circumstances"])
        self.directory.write_config(now)
        words = "; ".join(map(str, changed))
        return [f"the result will not be bit-identical to an uninterrupted run: {words}"] if changed else []

    def train(self, stop: StopRequest) -> None:
        """Train until the last step or a request to stop; everything that was done is saved then."""
        with self.progress, self.evaluation, self.interaction or nullcontext():
            stop.answer_with(self.evaluation.cancel)
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
                if not all_finite(self.totals):
                    self.diverge(broken_metrics(self.placement.gather(self.totals)))
                if self.due(self.config.log_interval):
                    self.log()
                self.finite_step = self.step
                if self.due(self.config.evaluation_interval):
                    self.save_policies()
                if self.due(self.config.checkpoint_interval):
                    self.save()
                if self.due(self.config.evaluation_interval):
                    self.evaluation.start(self.step)
            if self.saved_step < self.step:  # a signal asked for the end
                self.save()
            self.evaluation.finish()

    def due(self, interval: int) -> bool:
        return self.step % interval == 0 or self.step in (self.config.steps, self.config.total_steps)

    def next_boundary(self) -> int:
        """Return the next step at which something is logged, evaluated or saved."""
        config = self.config
        intervals = (config.log_interval, config.evaluation_interval, config.checkpoint_interval)
        end = config.steps if self.step < config.steps else config.total_steps
        return min(end, *((self.step // interval + 1) * interval for interval in intervals))

    def advance(self, boundary: int) -> None:
        """Run one chunk, not past the boundary and about a second long."""
        last_step = min(boundary, self.step + max(1, round(self.progress.rate * CHUNK_SECONDS)))
        start = time.monotonic()
        self.states, self.totals = self.updates.run(self.states, self.totals, self.step + 1, last_step)
        jax.block_until_ready(self.totals)
        self.step = last_step
        self.show_progress(time.monotonic() - start)

    def advance_online(self, boundary: int) -> None:
        """Take steps and updates in turn for about a second, not past the boundary."""
        assert self.interaction is not None
        if not self.interaction.started:
            states, totals = self.placement.gather(self.states), self.placement.gather(self.totals)
            self.placement = ONE_DEVICE
            self.put(states, totals)
            for message in self.interaction.start():
                self.progress.note(message)
        start, first_step = time.monotonic(), self.step
        balanced, on_device = self.config.online_data == "balance", self.dataset.on_device
        while self.step == first_step or (self.step < boundary and time.monotonic() - start < CHUNK_SECONDS):
            self.step += 1
            self.interaction.step(self.algorithm, self.states, self.keys, self.step)
            data = (on_device, self.interaction.experiences, self.keys, self.step, balanced)
            self.states, self.totals = online_update(self.algorithm, self.states, self.totals, *data)
        self.show_progress(time.monotonic() - start)

    def show_progress(self, seconds: float) -> None:
        self.progress.show(self.step, self.config.total_steps, self.evaluation.newest, seconds)

    def log(self) -> None:
        """Write the mean metrics since the last log and the diagnostics of this step; stop if one is not a number."""
        updates = self.step - self.logged_step
        states, totals = self.placement.gather(self.states), self.placement.gather(self.totals)
        means = {name: np.asarray(total) / np.float32(updates) for name, total in totals.items()}
        found = diagnose_seeds(self.algorithm, states, self.updates.diagnosed, self.keys, self.step, DIAGNOSTICS)
        metrics = means | {f"diagnostics/{name}": value for name, value in found.items()}
        if broken := broken_metrics(metrics):
            self.diverge(broken)
        for seed, values in zip(self.config.seeds, per_seed(metrics, len(self.config.seeds)), strict=True):
            self.directory.log_metrics(MetricsRow(self.step, seed, values))
        self.totals = self.placement.put_seeds(jax.tree.map(jnp.zeros_like, totals))
        self.logged_step = self.step

    def check_finite(self, tree: Any) -> None:
        """Stop if an array [seed, ...] that is about to be saved is not finite."""
        if not all_finite(tree):
            self.diverge(broken_arrays(tree))

    def diverge(self, broken: Mapping[int, Mapping[str, str]]) -> NoReturn:
        """Write down what is not finite, and the batches that may have done it; stop."""
        updates = range(max(self.finite_step, 1), self.step + 1)  # the last that was fine may have left bad networks
        raise record_divergence(self.directory, self.config, self.dataset, broken, updates, self.saved_step)

    def save_policies(self) -> None:
        """Save what the next evaluation looks at, with what validation data says of it now."""
        states, validation = self.placement.gather(self.states), []
        self.check_finite({"policy": states.policy})
        if self.validation is not None:
            metrics = diagnose_seeds(self.algorithm, states, self.validation, self.keys, self.step, VALIDATION)
            validation = per_seed(metrics, len(self.config.seeds))
        self.evaluation.save(self.step, (states.policy, self.standardisation), validation)

    def save(self) -> None:
        """Write a checkpoint; a full disk is reported and tried again at the next one, except at the start and end."""
        states, totals = self.placement.gather(self.states), self.placement.gather(self.totals)
        experience = {"online": self.interaction.experiences} if self.interaction else {}
        self.check_finite({"states": states, "totals": totals, **experience})
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
            if self.step in (0, self.config.total_steps):
                raise
            self.progress.note(
                f"the checkpoint of step {self.step:,} was not saved ({error.strerror}); the one before is kept"
            )


def per_seed(metrics: Mapping[str, Any], count: int) -> list[dict[str, float]]:
    """Return metrics [seed] as one dictionary for each seed."""
    arrays = {name: np.asarray(value) for name, value in metrics.items()}
    return [{name: float(array[index]) for name, array in arrays.items()} for index in range(count)]
