"""The host loop: chunk, log, evaluate, save; resumed by running it again."""

import functools
import math
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from drol.data.dataset import Dataset
from drol.data.mapped import MappedDataset
from drol.errors import InputError
from drol.runs.checkpoints import newest_valid, save_tree, step_name
from drol.runs.directory import RunDirectory
from drol.tasks import load_task
from drol.tasks.base import Task
from drol.training.circumstances import circumstances
from drol.training.compiled import diagnose_seeds, init_seeds, seed_keys, zero_totals
from drol.training.config import GROWING, RunConfig, differences
from drol.training.evaluation import Evaluator
from drol.training.online import Interaction, online_update
from drol.training.policy import Policy, Standardisation, save_policies
from drol.training.progress import Display
from drol.training.signals import Stop, requested_stop
from drol.training.support import HeldOut, hold_out, offline_scores
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
    config: RunConfig, path: Path | str, task: Task | None = None, processes: int | None = None, quiet: bool = False
) -> Outcome:
    """Train all seeds of a run in a folder; if the folder holds this run already, go on where it stopped."""
    directory = RunDirectory(Path(path))
    check_same_run(directory, config)
    task = task or load_task(config.task, Path(config.dataset) if config.dataset else None)
    with directory.locked(), requested_stop() as stop:
        run = Run(config, directory, task, processes, quiet)
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

    def __init__(self, config: RunConfig, directory: RunDirectory, task: Task, processes: int | None, quiet: bool):
        self.config, self.directory, self.task, self.processes = config, directory, task, processes
        self.algorithm = config.algorithm
        self.spec = task.train.spec
        self.standardisation = self.standardise()
        self.check_same_data()
        self.dataset = self.prepare(task.train)
        self.validation = in_memory(self.prepare(task.validation)) if task.validation else None
        self.keys = seed_keys(config.seeds)
        self.states = init_seeds(self.algorithm, self.keys, self.spec)
        self.updates = Updates(self.algorithm, self.dataset, self.keys, config.steps)
        self.totals = zero_totals(self.algorithm, self.states, self.updates.in_memory, self.keys)
        self.logged_step = 0  # the totals are of the updates after this one
        self.interaction = self.make_interaction()
        self.step, self.messages = self.resume()
        self.saved_step = self.step
        self.display = Display(config.total_steps, self.step, task.score_name, quiet)
        self.write_config()

    def check_same_data(self) -> None:
        """Before anything of the run is touched."""
        if self.directory.exists:
            before = self.directory.read_config()
            if before["dataset_fingerprint"] != self.task.train.fingerprint():
                raise InputError(
                    f"the data of {self.task.name} is not what the run in {self.directory.path} began with"
                )

    def standardise(self) -> Standardisation:
        if not self.config.standardise_observations:
            return Standardisation.identity(self.spec)
        train: Any = self.task.train
        if isinstance(train, MappedDataset):
            return Standardisation.from_moments(*train.moments(), self.config.observation_scale)
        return Standardisation.of(train.observation, self.config.observation_scale)

    def prepare(self, dataset: Any) -> Any:
        if not self.config.standardise_observations:
            return dataset
        return dataset.standardised(self.standardisation.mean, self.standardisation.deviation)

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
        assert isinstance(self.dataset, Dataset), "data on disk comes without an environment"
        return Interaction(
            self.config, self.task, self.dataset, self.standardisation, self.directory.log_online_episode
        )

    def write_config(self) -> None:
        """Write what determines the run and where it ran; say so if it goes on under other circumstances."""
        now = {
            "run": self.config.to_dict(),
            "dataset_fingerprint": self.task.train.fingerprint(),
            "circumstances": circumstances(),
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
        scores = None
        with self.display, self.evaluator() as evaluator, self.interaction or nullcontext():
            for message in self.messages:
                self.display.note(message)
            if self.step == 0 and not self.evaluated(0):
                self.directory.rewind(-1)  # an evaluation that was cut off leaves the rows of some seeds
                scores = self.evaluate(evaluator)
            while self.step < self.config.total_steps and stop.signal is None:
                boundary = self.next_boundary()
                if self.step < self.config.steps:
                    self.advance(boundary)
                else:
                    self.advance_online(boundary)
                if self.due(self.config.log_interval):
                    self.log()
                if self.due(self.config.evaluation_interval):
                    scores = self.evaluate(evaluator)
                if self.due(self.config.checkpoint_interval) or stop.signal is not None:
                    self.save()
        if scores is None:
            rows = self.directory.read_evaluations()
            newest = max((row["step"] for row in rows), default=0)
            scores = [row["score"] for row in rows if row["step"] == newest and "score" in row] or None
        return Outcome(self.directory, self.step, self.saved_step, scores, stop.signal)

    def evaluator(self) -> Any:
        if self.task.make_environment is None:
            return nullcontext()
        return Evaluator(self.task.make_environment, self.processes, keep_positions=self.task.maze is not None)

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
        start = time.monotonic()
        self.states, self.totals = self.updates.run(self.states, self.totals, self.step + 1, last_step)
        jax.block_until_ready(self.totals)
        self.step = last_step
        self.display.advance(self.step, time.monotonic() - start)

    def advance_online(self, boundary: int) -> None:
        """Take steps and updates in turn for about a second, not past the boundary."""
        assert self.interaction is not None
        if not self.interaction.started:
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
        means = {name: np.asarray(total) / np.float32(updates) for name, total in self.totals.items()}
        diagnostics = diagnose_seeds(self.algorithm, self.states, self.updates.in_memory, self.keys, self.step)
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
        self.totals = jax.tree.map(lambda total: total * 0, self.totals)
        self.logged_step = self.step

    def evaluate(self, evaluator: Evaluator | None) -> list[float] | None:
        """Save the policies and judge them, by episodes or, without an environment, by held-out data; their scores."""
        self.save_policies()
        scores = []
        validation = [{}] * len(self.config.seeds)
        if self.validation:
            metrics = diagnose_seeds(self.algorithm, self.states, self.validation, self.keys, self.step)
            validation = per_seed(metrics, len(self.config.seeds))
        for index, seed in enumerate(self.config.seeds):
            policy = Policy(
                self.algorithm, jax.tree.map(lambda leaf, i=index: leaf[i], self.states.policy), self.standardisation
            )
            start = time.monotonic()
            found = self.play(policy, seed, evaluator) if evaluator else self.judge_by_data(policy)
            scores += [found["score"]] if "score" in found else []
            row = {"step": self.step, "seed": seed, "seconds": round(time.monotonic() - start, 2)}
            self.directory.log_evaluation(row | {"validation": validation[index]} | found)
        if scores:
            self.display.show_score(self.step, scores)
        return scores or None

    def play(self, policy: Policy, seed: int, evaluator: Evaluator) -> dict[str, Any]:
        """Run the episodes of an evaluation."""
        episodes = evaluator.run(policy, self.config.evaluation_episodes, self.config.evaluation_seed)
        failures = [episode.failure for episode in episodes if episode.failure]
        if failures:
            self.display.note(f"{len(failures)} of {len(episodes)} episodes failed: {failures[0]}")
        positions = [episode.positions for episode in episodes if episode.positions is not None]
        if len(positions) == len(episodes):
            self.directory.save_trajectories(self.step, seed, positions)
        return {"score": self.task.score(episodes), "episodes": [episode.to_dict() for episode in episodes]}

    def judge_by_data(self, policy: Policy) -> dict[str, Any]:
        """The error against held-out actions, and the share of actions that leave the support of the data."""
        scores = offline_scores(policy, self.held_out, jax.random.key(0))
        error, outside = scores["single_sample_error"], scores["outside_support"]
        self.display.note(
            f"step {self.step:,}: held-out error {error:.3f}, {outside:.0%} of actions outside the support"
        )
        return {"offline": scores}

    @functools.cached_property
    def held_out(self) -> HeldOut:
        return hold_out(self.task)

    def evaluated(self, step: int) -> bool:
        return sum(row["step"] == step for row in self.directory.read_evaluations()) == len(self.config.seeds)

    def save_policies(self) -> None:
        folder = self.directory.policies / step_name(self.step)
        save_policies(
            folder, self.algorithm, (self.states.policy, self.standardisation), self.spec, self.config.seeds,
            task=self.task.name, step=self.step, score_name=self.task.score_name,
            action_box=[self.task.action_box.low, self.task.action_box.high] if self.task.action_box else None,
        )  # fmt: skip

    def save(self) -> None:
        """Write a checkpoint; a full disk is reported and tried again at the next one, except at the end."""
        tree = {"states": self.states, "totals": self.totals, "logged_step": np.int64(self.logged_step)}
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
