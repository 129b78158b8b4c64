"""A run's folder; the only code that knows the names of its files."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from drol.checkpoints import finish_replacements, saved_steps, step_name
from drol.errors import InputError
from drol.runs.rows import AnyRow, EvaluationRow, MetricsRow, OfflineRow, OnlineEpisodeRow, Row, Rows
from drol.storage import exclusive, write_whole

CONFIG, LOCK, REPORT = "config.json", ".lock", "report.html"
METRICS, EVALUATIONS, ONLINE_EPISODES = "metrics.jsonl", "evaluations.jsonl", "online_episodes.jsonl"
EXTRA_EVALUATIONS, OFFLINE_EVALUATIONS = "extra_evaluations.jsonl", "offline.jsonl"
KEPT_CHECKPOINTS = 2


class RunDirectory:
    """Settings, rows, checkpoints, policies, trajectories, figures and report of one run."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.policies = path / "policies"
        self.figures = path / "figures"
        self.trajectories = path / "trajectories"
        self.videos = path / "videos"
        self.report = path / REPORT
        self.offline_file = path / OFFLINE_EVALUATIONS

    @property
    def exists(self) -> bool:
        return (self.path / CONFIG).is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one writer; make it if need be, refuse it if it is no run or cannot be written."""
        if self.path.is_dir() and not self.exists:
            foreign = [each for each in self.path.iterdir() if each.name != LOCK and each.suffix != ".partial"]
            if foreign:
                raise InputError(
                    f"the folder {self.path} has files but no {CONFIG}, so it is not a run; choose another --out"
                )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / LOCK).touch()
        except OSError as error:
            raise InputError(
                f"cannot write to the run folder {self.path} ({error.strerror}); choose another --out"
            ) from error
        busy = f"another process is writing to the run folder {self.path}; wait or choose another --out"
        with exclusive(self.path / LOCK, busy):
            yield

    def write_config(self, config: Mapping[str, Any]) -> None:
        write_whole(self.path / CONFIG, json.dumps(config, indent=2) + "\n")

    def read_config(self) -> dict[str, Any]:
        """Return `config.json`: the settings, the fingerprint of the data, and where the run was made."""
        try:
            return json.loads((self.path / CONFIG).read_text())
        except OSError as error:
            raise InputError(f"{self.path} is not a run folder: it has no {CONFIG}") from error
        except ValueError as error:
            raise InputError(f"{self.path / CONFIG} is not JSON ({error})") from error

    def log_metrics(self, row: MetricsRow) -> None:
        append_row(self.path / METRICS, row)

    def read_metrics(self) -> Rows[MetricsRow]:
        return read_rows(self.path / METRICS, MetricsRow)

    def log_evaluation(self, row: EvaluationRow) -> None:
        append_row(self.path / EVALUATIONS, row)

    def read_evaluations(self) -> Rows[EvaluationRow]:
        return read_rows(self.path / EVALUATIONS, EvaluationRow)

    def scores_at(self, step: int, seeds: int) -> dict[int, float | None]:
        """Return the score of each evaluated seed after a step; None where there is no environment.

        Rows are read from the last one on until so many seeds are found: thousands of runs are asked for this.
        """
        path, found = self.path / EVALUATIONS, {}
        for text in reversed(path.read_text().split("\n")[:-1] if path.is_file() else []):
            try:
                row = json.loads(text)
                if row["step"] == step:
                    found[row["seed"]] = row.get("score")
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{path} has a line that is no evaluation ({error}); remove that line") from error
            if len(found) == seeds:
                break
        return found

    def log_online_episode(self, row: OnlineEpisodeRow) -> None:
        append_row(self.path / ONLINE_EPISODES, row)

    def read_online_episodes(self) -> Rows[OnlineEpisodeRow]:
        return read_rows(self.path / ONLINE_EPISODES, OnlineEpisodeRow)

    def log_extra_evaluation(self, row: EvaluationRow) -> None:
        """Record an evaluation that was asked for after training; a repeated one replaces the first."""
        self.replace_row(EXTRA_EVALUATIONS, row)

    def read_extra_evaluations(self) -> Rows[EvaluationRow]:
        return read_rows(self.path / EXTRA_EVALUATIONS, EvaluationRow)

    def log_offline_evaluation(self, row: OfflineRow) -> None:
        """Record what data says of a policy; a repeated row replaces the first."""
        self.replace_row(OFFLINE_EVALUATIONS, row)

    def read_offline_evaluations(self) -> Rows[OfflineRow]:
        return read_rows(self.path / OFFLINE_EVALUATIONS, OfflineRow)

    def replace_row(self, name: str, row: EvaluationRow | OfflineRow) -> None:
        """Write a row in the place of one with the same step, seed and way of acting."""

        def identity(row: EvaluationRow | OfflineRow) -> tuple[Any, ...]:
            return row.step, row.seed, row.best_of, row.acting if isinstance(row, EvaluationRow) else {}

        kept = [old for old in read_rows(self.path / name, type(row)) if identity(old) != identity(row)]
        write_whole(self.path / name, "".join(line(each) for each in (*kept, row)))

    def rewind(self, step: int) -> None:
        """Forget everything after a step, so that what follows it is written once."""
        kinds = {METRICS: MetricsRow, EVALUATIONS: EvaluationRow, EXTRA_EVALUATIONS: EvaluationRow}
        kinds |= {OFFLINE_EVALUATIONS: OfflineRow, ONLINE_EPISODES: OnlineEpisodeRow}
        for name, kind in kinds.items():
            path = self.path / name
            if path.exists():
                write_whole(path, "".join(line(row) for row in read_rows(path, kind) if row.step <= step))
        for partial in self.path.glob(".*.partial"):
            partial.unlink(missing_ok=True)
        for folder in (self.checkpoints, self.policies):
            finish_replacements(folder)
            for saved in saved_steps(folder):
                if saved > step:
                    shutil.rmtree(folder / step_name(saved))
            for partial in folder.glob(".*.partial") if folder.is_dir() else ():
                shutil.rmtree(partial)

    def drop_old_checkpoints(self) -> None:
        for step in saved_steps(self.checkpoints)[:-KEPT_CHECKPOINTS]:
            shutil.rmtree(self.checkpoints / step_name(step))

    def save_trajectories(self, step: int, seed: int, positions: list[np.ndarray]) -> None:
        """Save the positions of every episode of one evaluation, for the pictures."""
        self.trajectories.mkdir(exist_ok=True)
        lengths = np.asarray([len(each) for each in positions])
        partial = self.trajectories / ".partial"
        with partial.open("wb") as file:
            np.savez_compressed(file, positions=np.concatenate(positions).astype(np.float32), lengths=lengths)
        partial.rename(self.trajectories / f"{step_name(step)}-seed{seed}.npz")

    def read_trajectories(self, step: int, seed: int) -> list[np.ndarray] | None:
        """Return the positions of every episode of one evaluation; None if there are none."""
        path = self.trajectories / f"{step_name(step)}-seed{seed}.npz"
        if not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as file:
            return np.split(file["positions"], np.cumsum(file["lengths"])[:-1])

    def video(self, step: int, seed: int, episode_seed: int) -> Path:
        """Return the file for the video of one episode of a policy."""
        return self.videos / f"{step_name(step)}-seed{seed}-episode{episode_seed}.gif"

    def write_report(self, page: str) -> None:
        write_whole(self.report, page)

    def sync(self) -> None:
        """Wait until the appended rows are on the disk; the checkpoint that follows them relies on it."""
        for name in (METRICS, EVALUATIONS, ONLINE_EPISODES):
            if (self.path / name).exists():
                with (self.path / name).open("rb") as file:
                    os.fsync(file.fileno())


def line(row: Row) -> str:
    return json.dumps(row.to_dict()) + "\n"


def append_row(path: Path, row: Row) -> None:
    with path.open("a") as file:
        file.write(line(row))


def read_rows(path: Path, kind: type[AnyRow]) -> Rows[AnyRow]:
    """Read the rows of a JSON-lines file; a last line that a kill cut off is left out."""
    if not path.is_file():
        return Rows()
    return Rows(kind.from_dict(json.loads(text)) for text in path.read_text().split("\n")[:-1])
