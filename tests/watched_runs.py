"""Folders of runs as training leaves them, without training."""

import json
from pathlib import Path

from toys import tiny_config

from drol.runs.directory import RunDirectory
from drol.runs.records import EvaluationRow, MetricsRow
from drol.tasks.base import Episode


def write_settings(folder: Path, **changes) -> RunDirectory:
    """A run that has only just begun."""
    folder.mkdir(parents=True, exist_ok=True)
    directory = RunDirectory(folder)
    config = tiny_config(**({"seeds": (0, 1), "steps": 1000} | changes))
    directory.write_config({"run": config.to_dict(), "dataset_fingerprint": "ab", "circumstances": {"drol": "0.1.0"}})
    return directory


def write_rows(directory: RunDirectory, steps, scores=True) -> None:
    """Rows of both seeds at some steps; the score is a tenth of the step."""
    for step in steps:
        for seed in (0, 1):
            directory.log_metrics(MetricsRow(step, seed, {"critic_loss": 1.0 + seed, "actor_loss": 1 / (1 + step)}))
            if scores:
                wins = step // 100
                episodes = tuple(Episode(number, 0.0, 9, number < wins) for number in range(10))
                directory.log_evaluation(EvaluationRow(step, seed, 10.0 * wins, episodes))


def write_many(root: Path, count: int) -> None:
    """Many small runs, quickly."""
    content = write_settings(root / "run-0")
    settings = (content.path / "config.json").read_text()
    rows = "".join(json.dumps({"step": step, "seed": 0, "critic_loss": 1.0}) + "\n" for step in range(10, 1001, 10))
    for number in range(count):
        folder = root / f"run-{number}"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(settings)
        (folder / "metrics.jsonl").write_text(rows)
