"""Evaluate the saved policies of a run, in its environment or on data only."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from drol.bounds import check_at_least
from drol.errors import InputError
from drol.evaluation.episodes import EnvironmentFailed, Evaluator
from drol.evaluation.offline import DISCOUNT, UPDATES, OfflineEvaluator
from drol.evaluation.videos import Recorder
from drol.progress import Report
from drol.runs.directory import identity
from drol.runs.records import EvaluationRow, OfflineRow, Rows
from drol.runs.run import Run, open_run

LARGEST_SEED = 2**32 - 1


def evaluate(
    run: Run | Path | str,
    episodes: int = 50,
    best_of: int | None = None,
    step: int | None = None,
    first_seed: int = 0,
    processes: int | None = None,
    report: Report | None = None,
    videos: int = 0,
    replace: bool = False,
    **acting: Any,
) -> Rows[EvaluationRow]:
    """Play episodes with a saved policy of every seed of a run, and record the scores in its folder.

    An evaluation replaces an earlier one of the same step, seed and way of acting. If the earlier one has more
    episodes, `InputError` is raised instead.

    Args:
        run: A run, or its folder.
        episodes: Episodes of each seed.
        best_of: The number of actions to draw for each step, from which the critic chooses; the method's default if
            None.
        step: The step whose policies are evaluated; the newest if None.
        first_seed: Seed of the first episode; the other episodes have the following seeds.
        processes: Concurrent environments; chosen for the machine if None.
        report: Called as `report(done, total, what)` after each episode, in episodes of all seeds.
        videos: The number of episodes of each seed to record as animations in the folder `videos` of the run.
        replace: Whether to replace an earlier evaluation even if it has more episodes.
        acting: Values that replace the run's hyperparameters. Only hyperparameters that affect acting are allowed:
            those in `acting` of its algorithm, such as `act_steps=2` of `drol.SORL`.

    Returns:
        A row for each seed, with its score and every episode.

    Example:
        >>> import drol
        >>> drol.evaluate("runs/demo", episodes=10, best_of=16)[0].score  # doctest: +SKIP
        100.0
    """
    run = run if isinstance(run, Run) else open_run(run)
    check_at_least("episodes", episodes, 1)
    if processes is not None:
        check_at_least("processes", processes, 1)
    check_at_least("first_seed", first_seed, 0)
    check_at_least("videos", videos, 0)
    if first_seed + episodes - 1 > LARGEST_SEED:
        raise InputError(f"first_seed is {first_seed}; with {episodes} episodes it must be at most 2^32 - {episodes}")
    algorithm = run.config.algorithm.acting_with(acting)
    count = algorithm.check_best_of(best_of)
    without_effect = [name for name in acting if name in algorithm.choosing and count == 1]
    if without_effect:
        raise InputError(f"{without_effect[0]} is given, but there is nothing to choose of 1 draw; give best_of, too")
    step = run.saved_step(step)
    if not replace:
        refuse_fewer(run, step, count, acting, episodes)
    task = run.task
    if task.make_environment is None:
        raise InputError(
            f"the task {task.name} has no environment to evaluate in; `drol evaluate RUN --offline`, or "
            "drol.evaluate_offline, evaluates on the data"
        )
    rows: Rows[EvaluationRow] = Rows()
    with (
        Recorder(task) if videos else contextlib.nullcontext() as recorder,
        Evaluator(
            task.make_environment, processes, modules=task.environment_modules, share=task.shares_process
        ) as evaluator,
    ):
        for number, seed in enumerate(run.config.seeds):

            def on_episode(finished: int, number: int = number, seed: int = seed) -> None:
                if report:
                    report(number * episodes + finished, len(run.config.seeds) * episodes, f"seed {seed}")

            on_episode(0)
            start = time.monotonic()
            policy = dataclasses.replace(run.policy(step, seed), algorithm=algorithm)
            played = tuple(evaluator.run(policy, episodes, first_seed, count, on_episode))
            seconds = round(time.monotonic() - start, 2)
            row = EvaluationRow(step, seed, task.score(played), played, best_of=count, seconds=seconds, acting=acting)
            if len(row.failures) == len(played):
                raise EnvironmentFailed(f"all {len(played)} episodes of seed {seed} failed: {row.failures[0]}")
            rows.append(row)
            run.damaged |= run.directory.log_extra_evaluation(row, replace) > 0
            for episode in played[:videos]:
                assert recorder is not None
                recorder.record(policy, episode, count, run.directory.video(step, seed, episode.seed))
    return rows


def evaluate_offline(
    run: Run | Path | str,
    step: int | None = None,
    every_step: bool = False,
    best_of: int | None = None,
    updates: int = UPDATES,
    discount: float = DISCOUNT,
    on_row: Callable[[OfflineRow], None] | None = None,
    report: Report | None = None,
) -> Rows[OfflineRow]:
    """Evaluate saved policies of every seed of a run on data only, and record the metrics in its folder.

    Args:
        run: A run, or its folder.
        step: The step whose policies are evaluated; the newest if None.
        every_step: Whether to evaluate the policies of every saved step.
        best_of: The number of actions to draw for each state, from which the critic chooses; the method's default if
            None.
        updates: Updates of fitted-Q evaluation for each policy.
        discount: Discount of the values. The default does not depend on the run's discount, so that the values of
            different runs are comparable.
        on_row: Called with each row after it was recorded.
        report: Called as `report(done, total, what)` before each part of the work, in policies.

    Returns:
        A row for each step and seed; docs/offline-evaluation.md explains the metrics.
    """
    run = run if isinstance(run, Run) else open_run(run)
    check_at_least("updates", updates, 1)
    count = run.config.algorithm.check_best_of(best_of)
    if step is not None and every_step:
        raise InputError(f"step {step} and every_step exclude each other; give one of them")
    newest = run.saved_step(step)
    steps = run.steps if every_step else (newest,)
    rows: Rows[OfflineRow] = Rows()

    def tell(what: str) -> None:
        if report:
            report(len(rows), len(steps) * len(run.config.seeds), what)

    tell("loading the data")
    task = run.task
    tell("preparing: nearest neighbours of held-out states, and a regression on the returns")
    evaluator = OfflineEvaluator(task, discount, updates)
    for each in steps:
        for seed in run.config.seeds:
            tell(f"step {each:,}, seed {seed}: {updates:,} updates of fitted-Q evaluation")
            start = time.monotonic()
            figures = evaluator.evaluate(run.policy(each, seed), count)
            seconds = round(time.monotonic() - start, 2)
            rows.append(OfflineRow(each, seed, count, discount, updates, evaluator.unseen, seconds, figures))
            run.damaged |= run.directory.log_offline_evaluation(rows[-1]) > 0
            if on_row:
                on_row(rows[-1])
    tell("done")
    return rows


def refuse_fewer(run: Run, step: int, best_of: int, acting: Mapping[str, Any], episodes: int) -> None:
    """Raise `InputError` if an evaluation would replace one with more episodes."""
    wanted = [identity(EvaluationRow(step, seed, best_of=best_of, acting=acting)) for seed in run.config.seeds]
    for old in run.extra_evaluations:
        if identity(old) in wanted and len(old.episodes) > episodes:
            raise InputError(
                f"{run.path}: step {step}, seed {old.seed}, best of {best_of} has {len(old.episodes)} stored episodes; "
                f"{episodes} would replace them; play at least as many, or give --replace"
            )
