"""Open a run to read its settings, rows and policies; opening is read-only."""

import functools
from pathlib import Path

from drol.algorithms import Algorithm
from drol.checkpoints import saved_steps, step_name
from drol.decoding import located
from drol.errors import InputError
from drol.policy import Policy
from drol.runs.config import RunConfig
from drol.runs.config_file import CONFIG
from drol.runs.directory import RunDirectory
from drol.runs.records import EvaluationRow, MetricsRow, OfflineRow, OnlineEpisodeRow, Rows, newest_scores
from drol.tasks.base import Task


class Run:
    """A run on the disk, as returned by `drol.train` and `drol.open_run`.

    Attributes:
        path: The folder.
        config: The settings, a `RunConfig`.
        stopped_by: The signal that stopped the training early; None without one.
        damaged: Whether `drol.train`, `drol.evaluate` or `drol.report` found corrupted files. They log such files and
            quarantine or skip them.
    """

    def __init__(
        self,
        directory: RunDirectory,
        config: RunConfig,
        task: Task | None = None,
        stopped_by: int | None = None,
        damaged: bool = False,
    ):
        self.directory, self.config, self.stopped_by, self.damaged = directory, config, stopped_by, damaged
        self.path = directory.path
        if task is not None:
            self.task = task

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, step {self.step:,} of {self.config.total_steps:,})"

    @functools.cached_property
    def task(self) -> Task:
        """The task with its data, loaded on first use."""
        dataset = self.config.dataset
        if dataset is not None and not Path(dataset).exists():
            remedy = "put it back" if Path(dataset).is_absolute() else "do this in the folder in which it was trained"
            raise InputError(f"{self.path} was trained on {dataset}, which is not there; {remedy}")
        return self.config.load_task()

    @property
    def step(self) -> int:
        """The step of the newest checkpoint."""
        return max(saved_steps(self.directory.checkpoints), default=0)

    @property
    def finished(self) -> bool:
        return self.step >= self.config.total_steps

    @property
    def steps(self) -> list[int]:
        """The steps with saved policies."""
        return saved_steps(self.directory.policies)

    @property
    def scores(self) -> list[float] | None:
        """The score of each seed at the last evaluation; None without an environment."""
        return newest_scores(self.evaluations)

    @property
    def metrics(self) -> Rows[MetricsRow]:
        """A row for each seed and log step."""
        return self.directory.read_metrics()

    @property
    def evaluations(self) -> Rows[EvaluationRow]:
        """A row for each seed and evaluation of the training."""
        return self.directory.read_evaluations()

    @property
    def extra_evaluations(self) -> Rows[EvaluationRow]:
        """A row for each evaluation by `drol.evaluate`."""
        return self.directory.read_extra_evaluations()

    @property
    def offline_evaluations(self) -> Rows[OfflineRow]:
        """A row for each policy that `drol.evaluate_offline` evaluated."""
        return self.directory.read_offline_evaluations()

    @property
    def online_episodes(self) -> Rows[OnlineEpisodeRow]:
        """A row for each episode of fine-tuning."""
        return self.directory.read_online_episodes()

    def policy(self, step: int | None = None, seed: int | None = None) -> Policy:
        """Load a saved policy.

        Args:
            step: The step at which it was saved; the newest if None.
            seed: Its seed; the first of the run if None.

        Returns:
            The policy.
        """
        folder = self.directory.policies / step_name(self.saved_step(step))
        return Policy.load(folder, seed, type(self.config.algorithm))

    def saved_step(self, step: int | None = None) -> int:
        """Return the given step, or the newest step if None; raise `InputError` if no policy was saved there."""
        saved = self.steps
        if not saved and self.step:
            raise InputError(
                f"the policies of the run in {self.path} are missing; the same `drol train` command saves those of "
                f"step {self.step:,} again from its checkpoint"
            )
        if not saved:
            raise InputError(f"the run in {self.path} has no policy yet; train it first")
        if step is not None and step not in saved:
            raise InputError(f"no policy of step {step} in {self.path}; it has {', '.join(map(str, saved))}")
        return saved[-1] if step is None else step


def open_run(path: Path | str, algorithm: type[Algorithm] | None = None, task: Task | None = None) -> Run:
    """Open an existing run to read its rows, load its policies, evaluate it or make a report.

    Args:
        path: The folder of the run.
        algorithm: The class of its algorithm, if that is neither built in nor registered.
        task: Its task, if that is neither built in nor registered.

    Returns:
        The run.

    Example:
        >>> import drol
        >>> run = drol.open_run("runs/demo")  # doctest: +SKIP
        >>> run.evaluations[-1].score  # doctest: +SKIP
        100.0
    """
    directory = RunDirectory(Path(path))
    settings = directory.read_config()["run"]
    config = located(directory.path / CONFIG, lambda: RunConfig.from_dict(settings, algorithm))
    return Run(directory, config, task)


def load_policy(
    path: Path | str, step: int | None = None, seed: int | None = None, algorithm: type[Algorithm] | None = None
) -> Policy:
    """Load a policy of a run.

    Args:
        path: The folder of the run, or one folder of its `policies`.
        step: The step at which it was saved; the newest if None.
        seed: Its seed; the first of the run if None.
        algorithm: The class of its algorithm, if that is neither built in nor registered.

    Returns:
        The policy; `policy.act(observation, seed=0)` returns an action in the units of the data.

    Example:
        >>> import drol
        >>> policy = drol.load_policy("runs/demo")  # doctest: +SKIP
        >>> action = policy.act([0.0, 0.0], seed=0)  # doctest: +SKIP
    """
    path = Path(path)
    if not RunDirectory(path).exists and step is None and (path / "manifest.json").is_file():
        return Policy.load(path, seed, algorithm)
    return open_run(path, algorithm).policy(step, seed)
