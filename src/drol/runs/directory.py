"""The folder of a run; only this module knows the names of its files."""

import io
import json
import os
import shutil
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NotRequired

import numpy as np

from drol.checkpoints import finish_replacements, named_steps, saved_steps, step_name
from drol.decoding import Count, convert, entries, located, parse_json
from drol.errors import InputError
from drol.runs.config_file import CONFIG, read_config, write_config
from drol.runs.record_files import name_faults, read_lines, read_rows, rewrite
from drol.runs.records import EvaluationRow, MetricsRow, OfflineRow, OnlineEpisodeRow, Row, Rows
from drol.storage import append_whole, exclusive, write_whole

LOCK, EVALUATIONS_LOCK, REPORT, DIVERGENCE = ".lock", ".evaluations.lock", "report.html", "diverged.json"
METRICS, EVALUATIONS, ONLINE_EPISODES = "metrics.jsonl", "evaluations.jsonl", "online_episodes.jsonl"
EXTRA_EVALUATIONS, OFFLINE_EVALUATIONS = "extra_evaluations.jsonl", "offline.jsonl"
ROW_FILES: dict[str, type[Any]] = {
    METRICS: MetricsRow,
    EVALUATIONS: EvaluationRow,
    ONLINE_EPISODES: OnlineEpisodeRow,
    EXTRA_EVALUATIONS: EvaluationRow,
    OFFLINE_EVALUATIONS: OfflineRow,
}
KEPT_CHECKPOINTS = 2
KEPT_FORGOTTEN = 10  # rewinds whose removed files are kept
Scored = entries(step=Count, seed=Count, score=NotRequired[float | None])  # the entries that `scores_at` reads
# All exceptions that NumPy may raise for a damaged archive.
UNREADABLE = (OSError, ValueError, EOFError, KeyError, SyntaxError, NotImplementedError, MemoryError)
UNREADABLE += (zipfile.BadZipFile, zlib.error, tokenize.TokenError)


class RunDirectory:
    """Settings, rows, checkpoints, policies, trajectories and report of one run."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.policies = path / "policies"
        self.trajectories = path / "trajectories"
        self.videos = path / "videos"
        self.forgotten = path / "forgotten"
        self.tracking = path / "tracking"
        self.divergence = path / DIVERGENCE
        self.report = path / REPORT
        self.offline_file = path / OFFLINE_EVALUATIONS

    @property
    def exists(self) -> bool:
        return (self.path / CONFIG).is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for one writer, and make it if needed.

        Raise `InputError` if the folder has files but is not a run, is not writable, or is locked.
        """
        if self.path.is_dir() and not self.exists:
            foreign = [each for each in self.path.iterdir() if each.name != LOCK and each.suffix != ".partial"]
            if foreign:
                raise InputError(
                    f"the folder {self.path} has files but no {CONFIG}, so it is not a run; choose another folder"
                )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / LOCK).touch()
        except OSError as error:
            raise InputError(
                f"cannot write to the run folder {self.path} ({error.strerror}); choose another folder"
            ) from error
        busy = f"another process is writing to the run folder {self.path}; wait or choose another folder"
        with exclusive(self.path / LOCK, busy):
            yield

    @contextmanager
    def evaluations_locked(self) -> Iterator[None]:
        """Lock the files of evaluations after training; wait for another process's lock. Training is not blocked."""
        with exclusive(self.path / EVALUATIONS_LOCK, None):
            yield

    def write_config(self, config: Mapping[str, Any]) -> None:
        write_config(self.path, config)

    def read_config(self) -> dict[str, Any]:
        """Return `config.json`: the settings, the fingerprint of the data, and the circumstances."""
        return read_config(self.path)

    def log_metrics(self, row: MetricsRow) -> None:
        append_row(self.path / METRICS, row)

    def read_metrics(self) -> Rows[MetricsRow]:
        return read_rows(self.path / METRICS, MetricsRow)

    def log_evaluation(self, row: EvaluationRow) -> None:
        append_row(self.path / EVALUATIONS, row)

    def read_evaluations(self) -> Rows[EvaluationRow]:
        return read_rows(self.path / EVALUATIONS, EvaluationRow)

    def scores_at(self, step: int, seeds: int) -> dict[int, float | None]:
        """Return the score of each evaluated seed at a step; a score is None if there is no environment.

        For speed, rows are read from the end until `seeds` seeds are found: sweeps call this for thousands of runs.
        """
        path, found = self.path / EVALUATIONS, {}
        for text in reversed(path.read_bytes().split(b"\n")[:-1] if path.is_file() else []):
            row = located(path, lambda text=text: convert(parse_json(text, nan=True), Scored, extra=True))
            if row["step"] == step:
                found[row["seed"]] = row.get("score")
            if len(found) == seeds:
                break
        return found

    def log_online_episode(self, row: OnlineEpisodeRow) -> None:
        append_row(self.path / ONLINE_EPISODES, row)

    def read_online_episodes(self) -> Rows[OnlineEpisodeRow]:
        return read_rows(self.path / ONLINE_EPISODES, OnlineEpisodeRow)

    def log_extra_evaluation(self, row: EvaluationRow, replace: bool = False) -> int:
        """Record an evaluation after training; see `replace_row`."""
        return self.replace_row(EXTRA_EVALUATIONS, row, replace)

    def read_extra_evaluations(self) -> Rows[EvaluationRow]:
        return read_rows(self.path / EXTRA_EVALUATIONS, EvaluationRow)

    def log_offline_evaluation(self, row: OfflineRow) -> int:
        """Record an offline evaluation; see `replace_row`."""
        return self.replace_row(OFFLINE_EVALUATIONS, row, replace=True)

    def read_offline_evaluations(self) -> Rows[OfflineRow]:
        return read_rows(self.path / OFFLINE_EVALUATIONS, OfflineRow)

    def replace_row(self, name: str, row: EvaluationRow | OfflineRow, replace: bool) -> int:
        """Write a row, replacing the row with the same step, seed and way of acting.

        If the old row has more episodes and `replace` is False, it is kept and the new row is not written. Return the
        number of damaged lines, which are quarantined.
        """
        with self.evaluations_locked():
            rows = read_rows(self.path / name, type(row))
            if not replace and any(identity(old) == identity(row) and played(old) > played(row) for old in rows):
                return 0
            kept, added = lambda old: identity(old) != identity(row), line(row).encode()
            return rewrite(self.path / name, type(row), kept, added=added)

    def bad_lines(self) -> list[str]:
        """Return warnings about malformed lines in all files."""
        paths = {self.path / name: kind for name, kind in ROW_FILES.items()}
        return [words for path, kind in paths.items() for words in name_faults(path, read_lines(path, kind)[0])]

    def newest_step(self) -> int:
        """Return the newest step of all rows and saved policies."""
        rows = [row.step for name, kind in ROW_FILES.items() for row in read_rows(self.path / name, kind)]
        return max([0, *rows, *named_steps(self.policies)])

    def seconds_per_update(self) -> float | None:
        """Estimate the seconds per update from the times of the last two saved policies; None without two."""
        saved = saved_steps(self.policies)[-2:]
        try:
            first, last = ((self.policies / step_name(number)).stat().st_mtime for number in saved)
        except (OSError, ValueError):  # a folder was removed meanwhile, or there are fewer than two
            return None
        return max(0.0, last - first) / (saved[1] - saved[0])

    def rewind(self, step: int) -> int:
        """Remove everything after a step, so that a resumed run writes each row once.

        Removed rows, checkpoints, policies and `diverged.json` are moved to a new folder in `forgotten`, which keeps
        the last `KEPT_FORGOTTEN` rewinds. Rows are copied before they are removed from their file, and folders are
        renamed. A kill at any moment therefore loses nothing, and the next rewind completes the work. Return the number
        of damaged lines, which are quarantined beside their file.
        """
        place, damage = self.forgotten / step_name(max(named_steps(self.forgotten), default=0) + 1), 0
        with self.evaluations_locked():
            for name, kind in ROW_FILES.items():
                damage += rewrite(self.path / name, kind, lambda row: row.step <= step, step, place)
            for folder in (self.path, self.trajectories):
                remove_partials(folder)
        if self.divergence.exists():
            move(self.divergence, place)
        for folder in (self.checkpoints, self.policies):
            finish_replacements(folder)
            for saved in named_steps(folder):
                if saved > step:
                    move(folder / step_name(saved), place / folder.name)
            remove_partials(folder)
        for number in saved_steps(self.forgotten)[:-KEPT_FORGOTTEN]:
            shutil.rmtree(self.forgotten / step_name(number))
        return damage

    def drop_old_checkpoints(self) -> None:
        for step in saved_steps(self.checkpoints)[:-KEPT_CHECKPOINTS]:
            shutil.rmtree(self.checkpoints / step_name(step))

    def save_trajectories(self, step: int, seed: int, positions: list[np.ndarray]) -> None:
        """Save the positions in every episode of one evaluation, for reports."""
        self.trajectories.mkdir(exist_ok=True)
        lengths = np.asarray([len(each) for each in positions])
        content = io.BytesIO()
        np.savez_compressed(content, positions=np.concatenate(positions).astype(np.float32), lengths=lengths)
        write_whole(self.trajectories / f"{step_name(step)}-seed{seed}.npz", content.getvalue())

    def read_trajectories(self, step: int, seed: int) -> list[np.ndarray] | None:
        """Return the positions in every episode of one evaluation; None if they were not saved."""
        path = self.trajectories / f"{step_name(step)}-seed{seed}.npz"
        if not path.is_file():
            return None
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                positions, lengths = file["positions"], file["lengths"]
        except UNREADABLE as error:
            raise InputError(f"{path} cannot be read ({error})") from error
        whole = positions.ndim == 2 and positions.shape[1] == 2 and np.issubdtype(positions.dtype, np.floating)
        if not (whole and lengths.ndim == 1 and np.issubdtype(lengths.dtype, np.integer)):
            raise InputError(f"{path} has no positions of episodes")
        if (lengths < 1).any() or lengths.sum() != len(positions):
            raise InputError(
                f"{path} has {len(positions)} positions, but the lengths of its episodes sum to {lengths.sum()}"
            )
        return np.split(positions, np.cumsum(lengths)[:-1])

    def video(self, step: int, seed: int, episode_seed: int) -> Path:
        """Return the file for the video of one episode of a policy."""
        return self.videos / f"{step_name(step)}-seed{seed}-episode{episode_seed}.gif"

    def write_report(self, page: str) -> None:
        write_whole(self.report, page)

    def sync(self) -> None:
        """Wait until the appended rows are on the disk, before the checkpoint that relies on them is written."""
        for name in (METRICS, EVALUATIONS, ONLINE_EPISODES):
            if (self.path / name).exists():
                with (self.path / name).open("rb") as file:
                    os.fsync(file.fileno())


def line(row: Row) -> str:
    return json.dumps(row.to_dict()) + "\n"


def append_row(path: Path, row: Row) -> None:
    append_whole(path, line(row))


def identity(row: EvaluationRow | OfflineRow) -> tuple[Any, ...]:
    """Return the step, seed and way of acting; an evaluation replaces an earlier one with the same identity."""
    return row.step, row.seed, row.best_of, row.acting if isinstance(row, EvaluationRow) else {}


def played(row: EvaluationRow | OfflineRow) -> int:
    """Return the number of episodes of an evaluation."""
    return len(row.episodes) if isinstance(row, EvaluationRow) else 0


def move(path: Path, folder: Path) -> None:
    """Move a file or folder into another folder of the same run."""
    folder.mkdir(parents=True, exist_ok=True)
    path.rename(folder / path.name)


def remove_partials(folder: Path) -> None:
    """Remove incomplete files and folders that interrupted writes left in a folder."""
    for partial in folder.glob(".*.partial") if folder.is_dir() else ():
        if partial.is_dir() and not partial.is_symlink():
            shutil.rmtree(partial)
        else:
            partial.unlink(missing_ok=True)
