"""Collect the results of runs and of results files."""

import contextlib
import dataclasses
import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drol.algorithms import algorithm_name
from drol.checkpoints import DamagedCheckpoint, read_metadata, step_name
from drol.errors import InputError
from drol.results.result import LEFT_OUT, Evaluation, Result, Results, settings_id
from drol.results.result_files import SUFFIXES, read_results
from drol.runs.config import RunConfig
from drol.runs.config_file import CONFIG
from drol.runs.directory import EVALUATIONS
from drol.runs.records import EvaluationRow, Rows
from drol.runs.run import Run, open_run
from drol.tasks import find_source

VERSIONS = ("drol", "jax", "gymnasium", "mujoco", "ogbench")
DIAGNOSTICS = "diagnostics/"


logger = logging.getLogger(__name__)


def collect_results(paths: Path | str | Iterable[Path | str]) -> Results:
    """Collect the results of runs and of results files.

    docs/comparing.md explains the columns.

    Args:
        paths: Run folders, folders that contain runs at any depth, and files of `write_results`; or one of these.

    Returns:
        A row for each evaluation with a score. Unreadable runs, such as those of an unregistered algorithm, are
        skipped; `skipped` and a warning list them.

    Example:
        >>> import drol
        >>> drol.collect_results("runs").to_pandas()  # doctest: +SKIP
    """
    results = read_all(paths)
    for words in results.skipped:
        logger.warning(f"skipped: {words}")
    return results


def read_all(paths: Path | str | Iterable[Path | str]) -> Results:
    """Collect results as `collect_results` does, without warnings."""
    results = Results()
    for path in [paths] if isinstance(paths, Path | str) else paths:
        found = collect_path(Path(path))
        results += found
        results.skipped += found.skipped
    return results


def collect_path(path: Path) -> Results:
    """Return the results of a run, of all runs below a folder, or of a file."""
    if path.suffix in SUFFIXES and not path.is_dir():
        return read_results(path)
    results = Results()
    for folder in find_runs(path):
        try:
            run = open_run(folder)
            found = results_of(run)
            results += found
            results.skipped += found.skipped
            results.skipped += run.directory.bad_lines()
        except InputError as error:
            results.skipped.append(f"{folder}: {error}")
    return results


def find_runs(path: Path) -> list[Path]:
    """Return the folders of all evaluated runs in a folder, at any depth."""
    if not path.is_dir():
        raise InputError(f"{path} is not a folder; give a run, a folder with runs, or a file ({', '.join(SUFFIXES)})")
    folders = sorted(each.parent for each in path.rglob(CONFIG) if (each.parent / EVALUATIONS).is_file())
    if not folders:
        raise InputError(f"no run with evaluations is in {path} or below it; a run has {CONFIG} and {EVALUATIONS}")
    return folders


def results_of(run: Run) -> Results:
    """Return the results of one run; its task is not loaded. Results that contradict themselves are left out."""
    recorded, algorithm = run.directory.read_config(), run.config.algorithm
    figures = {
        (row.seed, row.step): {
            name.removeprefix(DIAGNOSTICS): value for name, value in row.values.items() if name.startswith(DIAGNOSTICS)
        }
        for row in run.metrics
    }
    versions = recorded.get("circumstances", {})
    evaluations: dict[Evaluation, Rows[EvaluationRow]] = {"training": run.evaluations, "extra": run.extra_evaluations}
    scored: dict[Evaluation, list[EvaluationRow]] = {
        kind: [row for row in rows if row.score is not None and row.episodes] for kind, rows in evaluations.items()
    }
    shared = {
        "task": run.config.task,
        "method": recorded["run"]["algorithm"]["name"],
        "steps": run.config.total_steps,
        "score_name": score_name(run, [row for rows in scored.values() for row in rows]),
        "success_timing": success_timing(run),
        "dataset_fingerprint": recorded.get("dataset_fingerprint", ""),
        "versions": ", ".join(f"{name} {versions[name]}" for name in VERSIONS if versions.get(name)),
        "run": "/".join(run.path.absolute().parts[-2:]),
    }
    results = Results()
    for kind, rows in scored.items():
        for row in (row for row in rows if row.episodes):
            settings = changed_settings(run.config, row.acting, row.step)
            result = Result(
                **shared,
                settings=settings,
                settings_id=settings_id(settings),
                seed=row.seed,
                step=row.step,
                evaluation=kind,
                best_of=algorithm.default_best_of if row.best_of is None else row.best_of,
                first_episode_seed=row.episodes[0].seed,
                episodes=len(row.episodes),
                outcomes="".join(str(int(episode.success)) for episode in row.episodes),
                score=float(row.score or 0),
                mean_return=float(np.mean([episode.total_reward for episode in row.episodes])),
                mean_length=float(np.mean([episode.length for episode in row.episodes])),
                figures=figures.get((row.seed, row.step), {}),
            )
            try:
                result.check()
            except InputError as error:
                results.skipped.append(f"{run.path}: step {row.step:,}, seed {row.seed} ({kind}): {error}")
            else:
                results.append(result)
    return results


def stand_in(run: Run) -> Result:
    """Return a result that only has the fields of the run's group."""
    settings = changed_settings(run.config, {}, 0)
    return Result(
        task=run.config.task, method=algorithm_name(run.config.algorithm), settings=settings,
        settings_id=settings_id(settings), seed=0, step=0, steps=run.config.total_steps, evaluation="training",
        best_of=run.config.algorithm.default_best_of, first_episode_seed=0, episodes=0, outcomes="", score=np.nan,
        score_name="", mean_return=np.nan, mean_length=np.nan, success_timing="", dataset_fingerprint="", versions="",
        run="",
    )  # fmt: skip


def changed_settings(config: RunConfig, acting: Mapping[str, Any], step: int) -> str:
    """Return the hyperparameters and settings of an evaluation that differ from the defaults, as sorted JSON."""
    changed: dict[str, Any] = {"steps": config.steps} if step > config.steps else {}
    for owner in (config, config.algorithm):
        for field in dataclasses.fields(owner):
            value = acting.get(field.name, getattr(owner, field.name))
            if field.name not in LEFT_OUT and value != field.default:
                changed[field.name] = value
    return json.dumps(changed, sort_keys=True)


def success_timing(run: Run) -> str:
    """Return whether success was checked "before" or "after" a step; empty if only the environment knows."""
    if run.config.success_timing != "environment":
        return run.config.success_timing
    try:
        return "before" if find_source(run.config.task).name == "ogbench" else ""
    except InputError:  # the task is not registered
        return ""


def score_name(run: Run, rows: list[EvaluationRow]) -> str:
    """Return the name of the score from the newest policy; without a policy, infer it from the episodes."""
    for step in reversed(run.steps):
        with contextlib.suppress(DamagedCheckpoint):
            name = read_metadata(run.directory.policies / step_name(step)).get("score_name")
            if isinstance(name, str) and name:
                return name
    played = [row for row in rows if row.episodes]
    rates = [100 * row.successes / len(row.episodes) for row in played]
    return "success (%)" if np.allclose(rates, [row.score or 0 for row in played]) else "score"
