"""Train a run in a folder; calling it again resumes."""

from pathlib import Path

from drol.bounds import check_at_least
from drol.errors import InputError
from drol.evaluation.environment_process import refuse_inside_environment_process
from drol.runs.config import GROWING, RunConfig, differences
from drol.runs.directory import RunDirectory
from drol.runs.run import Run
from drol.tasks.base import Task
from drol.tracking import check_tracker, mirrored
from drol.training.memory import check_memory
from drol.training.placement import Placement, place
from drol.training.signals import stop_requests
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
    """Train all seeds of a run in a folder; the same call again goes on where it stopped.

    Args:
        config: The settings; `drol.settings` makes them from a preset.
        path: The folder of the run.
        task: The task, where it is neither built in nor registered; its name must be `config.task`.
        processes: Environments at once in evaluations; as many as suit the machine if None.
        quiet: Whether to show no progress.
        background_evaluation: Whether to evaluate while training goes on; the scores are the same.
        devices: Devices that share the seeds or, if they do not divide them, each batch; all if None.
        track: The tracker that mirrors the rows of the run: "wandb", "tensorboard" or "trackio"; none if None.

    Returns:
        The run: `run.policy()`, `run.scores`, `run.evaluations`, ... A signal (Ctrl-C, SIGTERM, SIGHUP, SIGUSR1)
        saves and returns early, with `run.stopped_by` set; an evaluation under way is made by the next call.
        `run.damage` names what was found damaged and set aside.

    Example:
        >>> import drol
        >>> config = drol.settings(preset="laptop", seeds=(0, 1, 2))
        >>> run = drol.train(config, "runs/mine")  # doctest: +SKIP
        >>> run.scores  # doctest: +SKIP
        [100.0, 98.0, 100.0]
    """
    if track is not None:
        check_tracker(track)
    directory, task, placement = prepare_run(config, path, task, processes, devices)
    with directory.locked(), stop_requests() as stop:
        trainer = Trainer(config, directory, task, placement, processes, quiet, background_evaluation)
        trainer.resume()
        with mirrored(directory, track, trainer.progress.warn, lambda: stop.signal is not None):
            trainer.train(stop)
    return Run(directory, config, task, stop.signal, trainer.damage)


def prepare_run(
    config: RunConfig, path: Path | str, task: Task | None, processes: int | None, devices: int | None
) -> tuple[RunDirectory, Task, Placement]:
    """Return the folder, the task and the place of a run; refuse what cannot be used, before anything is written."""
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
    return directory, task, placement


def check_same_run(directory: RunDirectory, config: RunConfig) -> None:
    """Refuse a folder that holds another run; only the numbers of steps may grow."""
    if not directory.exists:
        return
    old, new = directory.read_config()["run"], config.to_dict()
    if old["algorithm"]["name"] == new["algorithm"]["name"]:  # settings younger than the run are at their default
        defaults = RunConfig(type(config.algorithm).from_dict({})).to_dict()
        old = defaults | old | {"algorithm": defaults["algorithm"] | old["algorithm"]}
    changed = [each for each in differences(old, new) if each.path[0] not in GROWING or len(each.path) > 1]
    if changed:
        raise InputError(f"the folder {directory.path} holds another run ({changed[0]}); choose another --out")
    for name in GROWING:
        if new[name] < old.get(name, 0):
            flag = f"--{name.replace('_', '-')}"
            raise InputError(
                f"the run in {directory.path} has {old[name]} {name.replace('_', ' ')}; "
                f"{flag} {new[name]} cannot be fewer"
            )
    if old.get("online_steps") and new["steps"] > old["steps"]:
        raise InputError(
            f"the run in {directory.path} trains online after {old['steps']} steps; "
            f"--steps {new['steps']} cannot be more"
        )
