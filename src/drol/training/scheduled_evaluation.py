"""The evaluations of a run: its policies are saved, and what is saved is evaluated, at once or in the background.

Every saved policy gets a row for each seed. The rows follow from the saved files alone, so an evaluation that was cut
off is made again by the next start, and it makes no difference to them whether training waited or went on.
"""

import functools
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from drol.checkpoints import DamagedCheckpoint, load_tree, read_metadata, saved_steps, step_name
from drol.errors import InputError
from drol.evaluation.episodes import Evaluator
from drol.evaluation.support import HeldOut, hold_out, offline_scores
from drol.policy import Policy, Standardisation, save_policies
from drol.progress import Display
from drol.runs.config import RunConfig
from drol.runs.directory import RunDirectory
from drol.tasks.base import Task
from drol.training.background import Background


class RunEvaluation:
    """Evaluates by episodes or, without an environment, by held-out data."""

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        task: Task,
        display: Display,
        policies: tuple[Any, Standardisation],
        processes: int | None,
        background: bool,
    ):
        self.config, self.directory, self.task, self.display = config, directory, task, display
        self.like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), policies)
        self.background, self.holds_up_training = Background(), not background
        self.evaluator = None
        if task.make_environment is not None:
            self.evaluator = Evaluator(task.make_environment, processes, keep_positions=task.maze is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """After an error of the training wait for what is under way; after an interrupt end it."""
        try:
            if kind is not None and issubclass(kind, Exception):
                self.finish()
        except Exception as error:
            self.display.note(f"an evaluation failed too: {error}")
        finally:
            self.stop()

    def stop(self) -> None:
        if self.evaluator:
            self.evaluator.cancel()
        self.background.close()
        if self.evaluator:
            self.evaluator.stop()

    def save(self, step: int, policies: tuple[Any, Standardisation], validation: list[dict[str, float]]) -> None:
        """Save the policies of all seeds with all that their rows need."""
        box = self.task.action_box
        save_policies(
            self.directory.policies / step_name(step), self.config.algorithm, policies, self.task.train.spec,
            self.config.seeds, task=self.task.name, step=step, score_name=self.task.score_name,
            action_box=[box.low, box.high] if box else None, validation=validation,
        )  # fmt: skip

    def start(self, step: int) -> None:
        """Evaluate the saved policies of a step.

        In the background, wait only for the evaluation before. The policies before any update never hold training up.
        """
        self.background.start(self.evaluate, step)
        if self.holds_up_training and step > 0:
            self.background.wait()

    def check(self) -> None:
        """Raise what went wrong in the background."""
        self.background.check()

    def finish(self) -> None:
        """Wait for the last evaluation."""
        if self.background.busy:
            self.display.note("waiting for the last evaluation; if it is cut off, the same command makes it again")
        self.background.wait()

    def missing_seeds(self, step: int) -> list[int]:
        """The seeds without a row for a step."""
        there = {row["seed"] for row in self.directory.read_evaluations() if row["step"] == step}
        return [seed for seed in self.config.seeds if seed not in there]

    def unfinished_steps(self) -> list[int]:
        """The steps of saved policies that were not evaluated, or not for all seeds."""
        rows = Counter(row["step"] for row in self.directory.read_evaluations())
        return [step for step in saved_steps(self.directory.policies) if rows[step] < len(self.config.seeds)]

    def scores(self) -> list[float] | None:
        """Those of all seeds at the last evaluation; None without an environment."""
        rows = [row for row in self.directory.read_evaluations() if "score" in row]
        return [row["score"] for row in rows if row["step"] == rows[-1]["step"]] or None

    def evaluate(self, step: int) -> None:
        """Write the rows that a step lacks and show the scores."""
        networks, standardisation, validation = self.load(step)
        for seed in self.missing_seeds(step):
            index = self.config.seeds.index(seed)
            mine = jax.tree.map(lambda leaf, i=index: jnp.asarray(leaf[i]), networks)
            policy = Policy(self.config.algorithm, mine, standardisation)
            start = time.monotonic()
            found = self.play(step, policy, seed) if self.evaluator else self.judge_by_data(step, policy)
            row = {"step": step, "seed": seed, "seconds": round(time.monotonic() - start, 2)}
            self.directory.log_evaluation(row | {"validation": validation[index]} | found)
        scores = self.scores()
        if scores:
            self.display.show_score(step, scores)

    def load(self, step: int) -> tuple[Any, Standardisation, list[Mapping[str, float]]]:
        """The saved networks [seed, ...], the standardisation and what validation data said of each seed."""
        folder = self.directory.policies / step_name(step)
        try:
            networks, standardisation = load_tree(folder, self.like)
            validation = read_metadata(folder).get("validation")
        except DamagedCheckpoint as error:
            raise InputError(
                f"the policy in {folder} cannot be evaluated: {error}; remove that folder to go on without its scores"
            ) from error
        return jax.tree.map(np.asarray, networks), standardisation, validation or [{}] * len(self.config.seeds)

    def play(self, step: int, policy: Policy, seed: int) -> dict[str, Any]:
        """Run the episodes of an evaluation."""
        assert self.evaluator is not None
        episodes = self.evaluator.run(policy, self.config.evaluation_episodes, self.config.evaluation_seed)
        failures = [episode.failure for episode in episodes if episode.failure]
        if failures:
            self.display.note(f"{len(failures)} of {len(episodes)} episodes failed: {failures[0]}")
        positions = [episode.positions for episode in episodes if episode.positions is not None]
        if len(positions) == len(episodes):
            self.directory.save_trajectories(step, seed, positions)
        return {"score": self.task.score(episodes), "episodes": [episode.to_dict() for episode in episodes]}

    def judge_by_data(self, step: int, policy: Policy) -> dict[str, Any]:
        """The error against held-out actions, and the share of actions that leave the support of the data."""
        scores = offline_scores(policy, self.held_out, jax.random.key(0))
        error, outside = scores["single_sample_error"], scores["outside_support"]
        self.display.note(f"step {step:,}: held-out error {error:.3f}, {outside:.0%} of actions outside the support")
        return {"offline": scores}

    @functools.cached_property
    def held_out(self) -> HeldOut:
        return hold_out(self.task)
