"""A run's folder; the only code that knows the names of its files."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from drol.checkpoints import saved_steps, step_name, sync_folder, write_synced
from drol.errors import InputError

CONFIG, METRICS, EVALUATIONS, LOCK = "config.json", "metrics.jsonl", "evaluations.jsonl", ".lock"
EXTRA_EVALUATIONS, ONLINE_EPISODES = "extra_evaluations.jsonl", "online_episodes.jsonl"
OFFLINE_EVALUATIONS = "offline.jsonl"
KEPT_CHECKPOINTS = 2


class RunDirectory:
    """Configuration, metrics, evaluations, checkpoints, policies, trajectories, figures and report of one run."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.policies = path / "policies"
        self.figures = path / "figures"
        self.report = path / "report.html"
        self.offline = path / OFFLINE_EVALUATIONS

    @property
    def exists(self) -> bool:
        return (self.path / CONFIG).is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one writer; made if need be, refused if it is somebody else's or cannot be written."""
        if (
            self.path.is_dir()
            and not self.exists
            and any(entry.name not in (LOCK, f".{CONFIG}.partial") for entry in self.path.iterdir())
        ):
            raise InputError(
                f"the folder {self.path} has files but no {CONFIG}, so it is not a run; choose another --out"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / LOCK).open("a+")
        except OSError as error:
            raise InputError(
                f"cannot write to the run folder {self.path} ({error.strerror}); choose another --out"
            ) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InputError(
                    f"another process is writing to the run folder {self.path}; wait or choose another --out"
                ) from error
            yield

    def write_config(self, config: Mapping[str, Any]) -> None:
        self.write_file(CONFIG, json.dumps(config, indent=2) + "\n")

    def read_config(self) -> dict[str, Any]:
        try:
            return json.loads((self.path / CONFIG).read_text())
        except OSError as error:
            raise InputError(f"{self.path} is not a run folder: it has no {CONFIG}") from error
        except ValueError as error:
            raise InputError(f"{self.path / CONFIG} is not JSON ({error})") from error

    def log_metrics(self, row: Mapping[str, Any]) -> None:
        append_row(self.path / METRICS, row)

    def log_evaluation(self, row: Mapping[str, Any]) -> None:
        append_row(self.path / EVALUATIONS, row)

    def log_online_episode(self, row: Mapping[str, Any]) -> None:
        """An episode of fine-tuning that ended."""
        append_row(self.path / ONLINE_EPISODES, row)

    def read_online_episodes(self) -> list[dict[str, Any]]:
        return read_rows(self.path / ONLINE_EPISODES)

    def log_extra_evaluation(self, row: Mapping[str, Any]) -> None:
        """An evaluation asked for after training, such as one with best-of-N; a repeated one replaces the first."""
        self.replace_row(EXTRA_EVALUATIONS, row, ("step", "seed", "best_of"))

    def log_offline_evaluation(self, row: Mapping[str, Any]) -> None:
        """What was said of a policy without a simulator; said again, it replaces the first."""
        self.replace_row(OFFLINE_EVALUATIONS, row, ("step", "seed", "best_of"))

    def replace_row(self, name: str, row: Mapping[str, Any], same: tuple[str, ...]) -> None:
        """Write a row in the place of those that are equal to it in these entries."""
        kept = [old for old in read_rows(self.path / name) if any(old[each] != row[each] for each in same)]
        self.write_file(name, "".join(json.dumps(each) + "\n" for each in (*kept, row)))

    def read_offline_evaluations(self) -> list[dict[str, Any]]:
        return read_rows(self.path / OFFLINE_EVALUATIONS)

    def read_extra_evaluations(self) -> list[dict[str, Any]]:
        return read_rows(self.path / EXTRA_EVALUATIONS)

    def read_metrics(self) -> list[dict[str, Any]]:
        return read_rows(self.path / METRICS)

    def read_evaluations(self) -> list[dict[str, Any]]:
        return read_rows(self.path / EVALUATIONS)

    def rewind(self, step: int) -> None:
        """Forget everything after a step, so that what follows it is written once."""
        for name in (METRICS, EVALUATIONS, EXTRA_EVALUATIONS, OFFLINE_EVALUATIONS, ONLINE_EPISODES):
            if not (self.path / name).exists():
                continue
            rows = [row for row in read_rows(self.path / name) if row["step"] <= step]
            self.write_file(name, "".join(json.dumps(row) + "\n" for row in rows))
        for folder in (self.checkpoints, self.policies):
            for saved in saved_steps(folder):
                if saved > step:
                    shutil.rmtree(folder / step_name(saved))
            if folder.is_dir():
                for partial in folder.glob(".*.partial"):
                    shutil.rmtree(partial)

    def drop_old_checkpoints(self) -> None:
        for step in saved_steps(self.checkpoints)[:-KEPT_CHECKPOINTS]:
            shutil.rmtree(self.checkpoints / step_name(step))

    def save_trajectories(self, step: int, seed: int, positions: list[np.ndarray]) -> None:
        """The positions of every episode of one evaluation, for the pictures."""
        folder = self.path / "trajectories"
        folder.mkdir(exist_ok=True)
        lengths = np.asarray([len(each) for each in positions])
        partial = folder / ".partial"
        with partial.open("wb") as file:
            np.savez_compressed(file, positions=np.concatenate(positions).astype(np.float32), lengths=lengths)
        partial.rename(folder / f"{step_name(step)}-seed{seed}.npz")

    def read_trajectories(self, step: int, seed: int) -> list[np.ndarray] | None:
        path = self.path / "trajectories" / f"{step_name(step)}-seed{seed}.npz"
        if not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as file:
            return np.split(file["positions"], np.cumsum(file["lengths"])[:-1])

    def write_file(self, name: str, text: str) -> None:
        """Replace a file of the folder in one move."""
        partial = self.path / f".{name}.partial"
        write_synced(partial, text.encode())
        partial.rename(self.path / name)
        sync_folder(self.path)

    def sync(self) -> None:
        """Have the rows that were appended on disk before the checkpoint that follows them."""
        for name in (METRICS, EVALUATIONS, ONLINE_EPISODES):
            if (self.path / name).exists():
                with (self.path / name).open("rb") as file:
                    os.fsync(file.fileno())


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON-lines file; a last line cut off by a kill is left out."""
    if not path.is_file():
        return []
    lines = path.read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]
