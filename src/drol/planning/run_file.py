"""A run as a JSON file that a process on this machine or on a node of a cluster executes."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from drol.errors import InputError
from drol.evaluation.evaluate_run import evaluate
from drol.runs.config import RunConfig
from drol.runs.directory import RunDirectory
from drol.runs.run import Run
from drol.storage import write_whole
from drol.training.train import train


@dataclass(frozen=True)
class RunFile:
    """The content of the file.

    Args:
        config: The settings of the run.
        folder: The folder of the run.
        best_of: For each further evaluation of the last policy, the number of actions from which the critic chooses.
        track: The tracker that mirrors the rows of the run; none if None.
    """

    config: RunConfig
    folder: Path
    best_of: tuple[int, ...] = ()
    track: str | None = None

    def write(self, folder: Path, name: str) -> Path:
        """Write `NAME-DIGEST.json` into a folder and return its path.

        The digest depends on the content, so a file never changes. A task that waits in the queue of a cluster
        therefore executes the run that was submitted.
        """
        values = {
            "run": self.config.to_dict(),
            "folder": str(self.folder),
            "best_of": self.best_of,
            "track": self.track,
        }
        text = json.dumps(values, indent=2) + "\n"
        path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.json"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
        return path

    @classmethod
    def read(cls, path: Path) -> "RunFile":
        """Read a file from `write`. The algorithm must be built in or registered; this imports no module."""
        try:
            values = json.loads(path.read_bytes())
            config = RunConfig.from_dict(values["run"])
            return cls(config, Path(values["folder"]), tuple(values["best_of"]), values["track"])
        except OSError as error:
            raise InputError(f"cannot read the run file {path} ({error.strerror})") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            words = f"{path} is not a run file ({type(error).__name__}: {error})"
            raise InputError(f"{words}; remove it and start the sweep or plan again, which writes it") from error

    def execute(self) -> Run:
        """Train the run, then do the missing evaluations; the same call again resumes."""
        run = train(self.config, self.folder, quiet=True, track=self.track)
        if run.stopped_by is None:
            for count in missing_best_of(run.directory, self.config, self.best_of):
                evaluate(run, best_of=count)
        return run


def missing_best_of(directory: RunDirectory, config: RunConfig, best_of: Iterable[int]) -> list[int]:
    """Return the numbers of actions for which the last policy of a run was not yet evaluated."""
    rows = directory.read_extra_evaluations() if directory.exists else []
    found = {(row.best_of, row.seed) for row in rows if row.step == config.total_steps and not row.acting}
    return [count for count in best_of if not found >= {(count, seed) for seed in config.seeds}]
