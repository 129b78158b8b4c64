"""Train or resume a run in a folder."""

from dataclasses import dataclass
from pathlib import Path

from drol.bounds import check_at_least
from drol.errors import InputError
from drol.evaluation.environment_process import refuse_inside_environment_process
from drol.runs.config import GROWING, RunConfig, differences
from drol.runs.directory import RunDirectory
from drol.runs.run import Run
from drol.stop_signals import stop_requests
from drol.tasks.base import Task
from drol.tracking import check_tracker, mirrored
from drol.training.memory import check_memory
from drol.training.placement import Placement, place
from drol.training.trainer import Trainer


def train(
    config: RunConfig,
    path: Path | str,
    task: Task | None = None,
    processes: int | None = None,
    quiet: bool = False,
    background_evaluation: bool = False,
    devices: int | None = None,
    track: str | None = None,
) -> Run:
    """Train all seeds of a run in a folder; the same call again resumes an interrupted run.

    Args:
        config: The settings; `drol.settings` makes them from a preset.
        path: The folder of the run.
        task: The task, if it is neither built in nor registered; its name must be `config.task`.
        processes: Concurrent environments in evaluations; chosen for the machine if None.
        quiet: Whether to show no progress.
        background_evaluation: Whether to evaluate while training continues; the scores are the same.
        devices: Number of devices; all if None. They share the seeds if their number divides the number of seeds, and
            each batch otherwise.
        track: The tracker that mirrors the rows of the run: "wandb", "tensorboard" or "trackio"; none if None.

    Returns:
        The run: `run.policy()`, `run.scores`, `run.evaluations`, ... After a signal (Ctrl-C, SIGTERM, SIGHUP, SIGUSR1)
        the run is saved and returned early, with `run.stopped_by` set; the next call repeats an interrupted evaluation.
        `run.damaged` is True if corrupted files were found and quarantined; the logger `drol` warns about each file.

    Example:
        >>> import drol
        >>> config = drol.settings(preset="laptop", seeds=(0, 1, 2))
        >>> run = drol.train(config, "runs/mine")  # doctest: +SKIP
        >>> run.scores  # doctest: +SKIP
        [100.0, 100.0, 74.0]
    """
    prepared = prepare_run(config, path, task, processes, devices, track)
    return train_prepared(prepared, quiet, background_evaluation)


@dataclass(frozen=True)
class PreparedRun:
    """A run that passed all checks, with its task loaded; nothing is written yet."""

    config: RunConfig
    directory: RunDirectory
    task: Task
    placement: Placement
    processes: int | None
    track: str | None


def train_prepared(prepared: PreparedRun, quiet: bool = False, background_evaluation: bool = False) -> Run:
    """Train a prepared run; `train` explains the arguments."""
    config, directory, task = prepared.config, prepared.directory, prepared.task
    with directory.locked(), stop_requests() as stop:
        options = (prepared.placement, prepared.processes, quiet, background_evaluation)
        trainer = Trainer(config, directory, task, *options)
        trainer.resume()
        with mirrored(directory, prepared.track, lambda: stop.signal is not None):
            trainer.train(stop)
    return Run(directory, config, task, stop.signal, trainer.damaged)


def prepare_run(
    config: RunConfig,
    path: Path | str,
    task: Task | None = None,
    processes: int | None = None,
    devices: int | None = None,
    track: str | None = None,
) -> PreparedRun:
    """Check the arguments of a run, its folder and its memory, and load its task; `train` explains the arguments."""
    if not isinstance(config, RunConfig):
        raise InputError(f"config is {config!r}; it must be a drol.RunConfig, such as drol.settings() returns")
    if track is not None:
        check_tracker(track)
    refuse_inside_environment_process()
    if processes is not None:
        check_at_least("processes", processes, 1)
    if "\0" in str(path):
        raise InputError(f"the run folder is {str(path)!r}; no name of a file can have a NUL byte")
    directory = RunDirectory(Path(path))
    check_same_run(directory, config)
    placement = place(len(config.seeds), config.algorithm.batch_size, devices)
    if task is None:
        task = config.load_task()
    elif task.name != config.task:
        raise InputError(f"the task is {task.name!r} and the settings are for {config.task!r}; both must be the same")
    task = config.prepare(task)
    check_memory(config, task, placement)
    return PreparedRun(config, directory, task, placement, processes, track)


def check_same_run(directory: RunDirectory, config: RunConfig) -> None:
    """Raise `InputError` if the folder has a run with other settings; only the numbers of steps may grow."""
    if not directory.exists:
        return
    old, new = directory.read_config()["run"], config.to_dict()
    if old["algorithm"]["name"] == new["algorithm"]["name"]:  # an old run has the defaults of settings added later
        defaults = RunConfig(type(config.algorithm).from_dict({})).to_dict()
        old = defaults | old | {"algorithm": defaults["algorithm"] | old["algorithm"]}
    changed = [each for each in differences(old, new) if each.path[0] not in GROWING or len(each.path) > 1]
    if changed:
        raise InputError(f"the folder {directory.path} holds another run ({changed[0]}); choose another folder")
    for name in GROWING:
        if new[name] < old.get(name, 0):
            raise InputError(
                f"the run in {directory.path} has {old[name]} {name.replace('_', ' ')}; "
                f"{name} {new[name]} cannot be fewer"
            )
    if old.get("online_steps") and new["steps"] > old["steps"]:
        raise InputError(
            f"the run in {directory.path} trains online after {old['steps']} steps; steps {new['steps']} cannot be more"
        )
