"""The evaluations during training: save the policies, then evaluate the saved policies, optionally in the background.

Every saved policy gets a row for each seed. The rows depend only on the saved files. An interrupted evaluation is
therefore repeated when the run resumes, and evaluating in the background does not change the rows.
"""

import contextlib
import functools
import logging
import time
from collections import Counter
from typing import Any, Self

import jax

from drol.checkpoints import read_metadata, saved_steps, step_name
from drol.data.standardisation import Standardisation
from drol.evaluation.episodes import Cancelled, EnvironmentFailed, Evaluator
from drol.evaluation.support import DATA_SHARE, HeldOut, hold_out, offline_scores, support_warning
from drol.policy import Policy, load_policies, save_policies
from drol.runs.config import RunConfig
from drol.runs.directory import RunDirectory
from drol.runs.records import EvaluationRow, newest_scores
from drol.tasks.base import Task
from drol.training.background import Background

logger = logging.getLogger(__name__)


class ScheduledEvaluation:
    """Evaluate saved policies by episodes or, without an environment, by held-out data.

    With `evaluation_episodes` 0 no episode is played, and the rows have no score.

    Args:
        config: The settings of the run.
        directory: Its folder.
        task: Its task.
        processes: Concurrent environments; chosen for the machine if None.
        background: Whether training continues during an evaluation.
    """

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        task: Task,
        processes: int | None,
        background: bool,
    ):
        self.config, self.directory, self.task = config, directory, task
        self.background, self.holds_up_training = Background(), not background
        self.newest = ""  # the newest score as text
        self.cancelled = False
        self.evaluator = None
        if task.make_environment is not None and config.evaluation_episodes:
            self.evaluator = Evaluator(
                task.make_environment,
                processes,
                keep_positions=task.maze is not None,
                modules=task.environment_modules,
                share=task.shares_process,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop: after an error of the training, wait for the current evaluation; after an interrupt, cancel it."""
        try:
            if kind is not None and issubclass(kind, Exception):
                self.finish()
        except Exception as error:
            logger.warning(f"an evaluation failed too: {error}")
        finally:
            self.stop()

    def cancel(self) -> None:
        """Cancel current and later evaluations; they are repeated when the run resumes."""
        self.cancelled = True
        if self.evaluator:
            self.evaluator.cancel()

    def stop(self) -> None:
        self.cancel()
        self.background.close()
        if self.evaluator:
            self.evaluator.stop()

    def save(self, step: int, policies: tuple[Any, Standardisation], validation: list[dict[str, float]]) -> None:
        """Save the policies of all seeds with everything that their rows need."""
        box = self.task.action_box
        named = (self.task.observation_dimensions, self.task.action_dimensions)
        observation, action = (each and each.to_dict() for each in named)
        save_policies(
            self.directory.policies / step_name(step),
            self.config.algorithm,
            policies,
            self.task.train.spec,
            self.config.seeds,
            task=self.task.name,
            step=step,
            score_name=self.task.score_name,
            action_box=[box.low, box.high] if box else None,
            observation_dimensions=observation,
            action_dimensions=action,
            validation=validation,
        )

    def start(self, step: int) -> None:
        """Evaluate the saved policies of a step.

        In the background, wait only for the previous evaluation. The evaluation of step 0 never delays training.
        """
        self.background.start(self.evaluate, step)
        if self.holds_up_training and step > 0:
            self.background.wait()

    def check(self) -> None:
        """Raise the exception of a background evaluation, if there is one."""
        self.background.check()

    def finish(self) -> None:
        """Wait for the last evaluation."""
        if self.background.busy and not self.cancelled:
            logger.info("waiting for the last evaluation; if it is cut off, the same command makes it again")
        self.background.wait()

    def missing_seeds(self, step: int) -> list[int]:
        """Return the seeds without a row for a step."""
        there = {row.seed for row in self.directory.read_evaluations() if row.step == step}
        return [seed for seed in self.config.seeds if seed not in there]

    def unfinished_steps(self) -> list[int]:
        """Return the steps of saved policies that were not evaluated, or not for all seeds."""
        rows = Counter(row.step for row in self.directory.read_evaluations())
        return [step for step in saved_steps(self.directory.policies) if rows[step] < len(self.config.seeds)]

    def evaluate(self, step: int) -> None:
        """Write the missing rows of a step and log the scores; do neither after a cancellation."""
        with contextlib.suppress(Cancelled):
            self.write_rows(step)
            self.show_scores(step)

    def write_rows(self, step: int) -> None:
        """Write the missing rows of a step."""
        folder = self.directory.policies / step_name(step)
        policies = load_policies(folder, type(self.config.algorithm))
        validation = read_metadata(folder).get("validation") or [{}] * len(self.config.seeds)
        for seed in self.missing_seeds(step):
            if self.cancelled:
                raise Cancelled
            start = time.monotonic()
            found = {}
            if self.evaluator:
                found = self.play(step, policies[seed], seed)
            elif self.task.make_environment is None:
                found = self.judge(step, policies[seed], seed)
            seconds = round(time.monotonic() - start, 2)
            own = validation[self.config.seeds.index(seed)]
            self.directory.log_evaluation(EvaluationRow(step, seed, validation=own, seconds=seconds, **found))

    def play(self, step: int, policy: Policy, seed: int) -> dict[str, Any]:
        """Play the episodes of an evaluation."""
        assert self.evaluator is not None
        episodes = self.evaluator.run(policy, self.config.evaluation_episodes, self.config.evaluation_seed)
        failures = [episode.failure for episode in episodes if episode.failure]
        if len(failures) == len(episodes):
            raise EnvironmentFailed(f"all {len(episodes)} episodes of the evaluation failed: {failures[0]}")
        if failures:
            logger.warning(f"{len(failures)} of {len(episodes)} episodes failed: {failures[0]}")
        positions = [episode.positions for episode in episodes if episode.positions is not None]
        if len(positions) == len(episodes):
            self.directory.save_trajectories(step, seed, positions)
        return {"score": self.task.score(episodes), "episodes": tuple(episodes)}

    def judge(self, step: int, policy: Policy, seed: int) -> dict[str, Any]:
        """Compute the error against held-out actions, and the share of actions outside the support of the data.

        A policy that leaves the support is reported only in the second half of training, because early policies often
        leave it.
        """
        scores = offline_scores(policy, self.held_out, jax.random.key(0))
        error, outside = scores["single_sample_error"], scores["outside_support"]
        which = f", seed {seed}" if len(self.config.seeds) > 1 else ""
        tested = "held-out error" if self.task.validation is not None else "error on the last tenth of the data"
        share = f"{outside:.0%} of actions outside the data ({DATA_SHARE:.0%} of the data's own)"
        logger.info(f"step {step:,}{which}: {tested} {error:.3f}, {share}")
        warning = support_warning(outside, f"the policy of step {step:,}{which}")
        if warning and 2 * step >= self.config.total_steps:
            logger.warning(warning)
        return {"offline": scores}

    def show_scores(self, step: int) -> None:
        """Log the scores of all seeds and their mean."""
        scores = newest_scores(self.directory.read_evaluations())
        if scores:
            mean, name = sum(scores) / len(scores), self.task.score_name
            self.newest = f"{name} {mean:.0f}"
            each = f" (seeds: {', '.join(f'{score:.0f}' for score in scores)})" if len(scores) > 1 else ""
            logger.info(f"step {step:,}: {name} {mean:.1f}{each}")

    @functools.cached_property
    def held_out(self) -> HeldOut:
        return hold_out(self.task)
