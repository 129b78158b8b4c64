"""The training loop of a run on the host: run chunks of updates, log, save and evaluate."""

import logging
import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from drol.checkpoints import newest_valid, save_tree, saved_steps, step_name
from drol.data.dataset import Transitions
from drol.data.standardisation import Standardisation
from drol.errors import InputError
from drol.progress import Progress
from drol.runs.config import RunConfig, differences
from drol.runs.directory import RunDirectory
from drol.runs.records import MetricsRow
from drol.stop_signals import StopRequest
from drol.tasks.base import Task
from drol.training.compiled import DIAGNOSTICS, VALIDATION, diagnose_seeds, init_seeds, seed_keys, zero_totals
from drol.training.divergence import all_finite, broken_arrays, broken_metrics, record_divergence
from drol.training.initial_states import states_of_another_run
from drol.training.online import Interaction, online_update
from drol.training.placement import ONE_DEVICE, Placement
from drol.training.reproducibility import circumstances
from drol.training.resuming import lost_rows, refuse_without_checkpoint
from drol.training.scheduled_evaluation import ScheduledEvaluation
from drol.training.updates import DIAGNOSED, Updates

CHUNK_SECONDS = 1.0  # target duration of a chunk of updates, so that progress and signals are handled soon


logger = logging.getLogger(__name__)


class Trainer:
    """The state of a run in training. The constructor does not write to the disk; `resume` does."""

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
        self.step = self.saved_step = self.logged_step = 0  # `totals` has the metrics of updates after `logged_step`
        self.finite_step = 0  # the metrics of all updates up to this step are known to be finite
        self.damaged = False  # whether corrupted files were found and quarantined
        states = init_seeds(self.algorithm, self.keys, task.train.spec)
        totals = zero_totals(self.algorithm, states, self.updates.diagnosed, self.keys)
        shapes = jax.eval_shape(lambda: {"states": states, "totals": totals})
        self.shapes = shapes | {"logged_step": np.int64(0)}  # the shapes of a checkpoint's arrays
        self.put(states, totals)
        self.interaction = self.make_interaction()
        self.progress = Progress("training", "updates", quiet=quiet)
        self.evaluation = ScheduledEvaluation(config, directory, task, processes, background_evaluation)

    def put(self, states: Any, totals: Any) -> None:
        """Store states and totals [seed, ...] as the placement puts them."""
        self.states, self.totals = self.placement.put_seeds(states), self.placement.put_seeds(totals)

    def prepared(self, data: Transitions) -> Transitions:
        """Return data for the updates, with standardised observations if the run asks for them."""
        return data.standardised(self.standardisation) if self.config.standardise_observations else data

    def check_same_data(self) -> None:
        """Raise `InputError` if the run in the folder was trained on other data."""
        if self.directory.exists and self.directory.read_config()["dataset_fingerprint"] != self.fingerprint:
            raise InputError(f"the data of {self.task.name} is not what the run in {self.directory.path} began with")

    def make_interaction(self) -> Interaction | None:
        if not self.config.online_steps:
            return None
        if self.task.make_environment is None:
            raise InputError(f"online_steps needs an environment, and {self.task.name} has only data")
        if self.placement.mesh:
            raise InputError("online_steps trains on one device; give devices 1")
        on_device = self.dataset.on_device
        if on_device is None:
            raise InputError(f"online_steps needs data that fits in memory; that of {self.task.name} does not")
        log = self.directory.log_online_episode
        interaction = Interaction(self.config, self.task, on_device, self.standardisation, log)
        interaction.check_replay_size(self.config.online_steps)
        return interaction

    def resume(self) -> None:
        """Load the newest valid checkpoint, move everything after it to `forgotten`, and write `config.json`."""
        step, tree, faults = newest_valid(self.directory.checkpoints, self.checkpoint_like)
        if tree is None and faults:
            raise InputError(f"no checkpoint in {self.directory.checkpoints} can be used; {faults[0]}")
        if tree is None:
            refuse_without_checkpoint(self.directory)
        if tree is None and self.config.start_from is not None:
            states, faults = states_of_another_run(self.config, self.shapes["states"], self.standardisation, self.task)
            self.put(states, self.placement.gather(self.totals))
        quarantined = self.directory.rewind(step) if self.directory.exists else 0
        if quarantined:
            faults = [*faults, *lost_rows(self.config, self.directory, step)]
        for words in faults:
            logger.warning(words)
        self.damaged = bool(faults) or quarantined > 0
        if tree is not None:
            self.put(tree["states"], tree["totals"])
            self.step = self.saved_step = self.finite_step = step
            self.logged_step = int(tree["logged_step"])
            if self.interaction and "online" in tree:
                self.interaction.restore(tree["online"])
            if step:
                logger.info(f"resuming {self.directory.path} at step {step:,}")
        self.write_config()
        if tree is None:  # so a missing checkpoint always means that it was deleted
            self.save()

    def checkpoint_like(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return the structure of a checkpoint; its metadata has the size of the experience."""
        if self.interaction and "online" in metadata:
            return self.shapes | {"online": self.interaction.tree_like(**metadata["online"])}
        return self.shapes

    def write_config(self) -> None:
        """Write the settings and circumstances of the run; log the circumstances that changed."""
        task, named = self.task, lambda dimensions: dimensions and dimensions.to_dict()
        now = {
            "run": self.config.to_dict(),
            "dataset_fingerprint": self.fingerprint,
            "dimensions": {"observation": named(task.observation_dimensions), "action": named(task.action_dimensions)},
            "circumstances": circumstances() | {"placement": str(self.placement)},
        }
        before = self.directory.read_config()["circumstances"] if self.directory.exists else now["circumstances"]
        self.directory.write_config(now)
        if changed := "; ".join(map(str, differences(before, now["circumstances"]))):
            logger.info(f"the result will not be bit-identical to an uninterrupted run: {changed}")

    def train(self, stop: StopRequest) -> None:
        """Train until the last step or a request to stop, then save."""
        with self.progress, self.evaluation, self.interaction or nullcontext():
            stop.answer_with(self.evaluation.cancel)
            if self.step == 0 and self.evaluation.missing_seeds(0):
                self.save_policies()
            elif self.step and self.due(self.config.evaluation_interval):
                self.repair_policies()
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
            if self.saved_step < self.step:  # stopped by a signal
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
        """Run about one second of updates, and stop at step `boundary` at the latest."""
        last_step = min(boundary, self.step + max(1, round(self.progress.rate * CHUNK_SECONDS)))
        start = time.monotonic()
        self.states, self.totals = self.updates.run(self.states, self.totals, self.step + 1, last_step)
        jax.block_until_ready(self.totals)
        self.step = last_step
        self.show_progress(time.monotonic() - start)

    def advance_online(self, boundary: int) -> None:
        """Alternate environment steps and updates for about a second, not past the boundary."""
        assert self.interaction is not None
        if not self.interaction.started:
            states, totals = self.placement.gather(self.states), self.placement.gather(self.totals)
            self.placement = ONE_DEVICE
            self.put(states, totals)
            self.interaction.start()
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
        """Write the mean metrics since the last log and the diagnostics; raise `Diverged` if one is not finite."""
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
        """Raise `Diverged` if an array [seed, ...] is not finite."""
        if not all_finite(tree):
            self.diverge(broken_arrays(tree))

    def diverge(self, broken: Mapping[int, Mapping[str, str]]) -> NoReturn:
        """Record the values that are not finite and the batches that may be the cause; raise `Diverged`."""
        # Include the last update with finite metrics: it may have produced networks that are not finite.
        updates = range(max(self.finite_step, 1), self.step + 1)
        raise record_divergence(self.directory, self.config, self.dataset, broken, updates, self.saved_step)

    def save_policies(self) -> None:
        """Save the policies for the next evaluation, with their diagnostics on validation data."""
        states, validation = self.placement.gather(self.states), []
        self.check_finite({"policy": states.policy})
        if self.validation is not None:
            metrics = diagnose_seeds(self.algorithm, states, self.validation, self.keys, self.step, VALIDATION)
            validation = per_seed(metrics, len(self.config.seeds))
        self.evaluation.save(self.step, (states.policy, self.standardisation), validation)

    def repair_policies(self) -> None:
        """Save the policies of the checkpoint's step again if they are missing."""
        if self.step not in saved_steps(self.directory.policies):
            self.save_policies()
            self.damaged = True
            logger.warning(
                f"the policies of step {self.step:,} were missing; they were saved again from the checkpoint"
            )

    def save(self) -> None:
        """Write a checkpoint; if that fails, log a warning and continue, except at the first and the last step."""
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
            logger.warning(
                f"the checkpoint of step {self.step:,} was not saved ({error.strerror}); the one before is kept"
            )


def per_seed(metrics: Mapping[str, Any], count: int) -> list[dict[str, float]]:
    """Return metrics [seed] as one dictionary for each seed."""
    arrays = {name: np.asarray(value) for name, value in metrics.items()}
    return [{name: float(array[index]) for name, array in arrays.items()} for index in range(count)]
