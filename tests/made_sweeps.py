"""Sweeps without training: an executor that writes what a run would leave."""

from drol.jobs.job import Finished
from drol.runs.directory import RunDirectory
from drol.runs.records import EvaluationRow, MetricsRow
from drol.sweeps.sweep import Parameter, Search, Sweep
from drol.sweeps.sweep_runs import swept_runs
from drol.tasks.base import Episode

MAZE = "pointmaze-medium-navigate-singletask-task1-v0"
EPISODE = Episode(0, -1.0, 1, True)


def made_sweep(root, **changes) -> Sweep:
    """FQL with two seeds and four values of alpha; the largest value has the highest score."""
    values = {
        "name": "made",
        "tasks": (MAZE,),
        "methods": ("fql",),
        "seeds": (0, 1),
        "preset": "smoke",
        "root": root,
        "parameters": (Parameter("alpha", (1.0, 2.0, 3.0, 4.0)),),
    }
    return Sweep(**(values | changes))


def halving(**changes) -> Search:
    return Search("halving", **({"at": (20, 40)} | changes))


def write_run(run, root, step=None, episodes=(EPISODE,), score=None):
    """Write the folder of a run up to a step: settings, checkpoint, rows; its score is its alpha and its seed."""
    step = run.steps if step is None else step
    directory = RunDirectory(root / run.name)
    (directory.checkpoints / f"{step:09d}").mkdir(parents=True, exist_ok=True)
    directory.write_config({"run": run.config.to_dict(), "dataset_fingerprint": "ab", "circumstances": {}})
    known = {(row.step, row.seed) for row in directory.read_evaluations()}
    for at in range(20, step + 1, 20):
        for seed in run.seeds:
            if (at, seed) not in known:
                own = 10 * getattr(run.config.algorithm, "alpha", 0.0) + seed if score is None else score
                directory.log_metrics(MetricsRow(at, seed, {"critic_loss": 100 - own}))
                directory.log_evaluation(EvaluationRow(at, seed, own, episodes))


class Writer:
    """An executor that writes the folders of runs; those whose name holds `broken` fail."""

    def __init__(self, sweep, broken="none of them", most=None):
        self.sweep, self.broken, self.most, self.names = sweep, broken, most, []

    def execute(self, jobs, on_finished, keep_going=lambda: True):
        for job in jobs:
            if not keep_going() or len(self.names) == self.most:
                return
            self.names.append(job.name)
            job.log.write_text("loading\ndrol: error: it broke\n")
            if self.broken not in job.name:
                due = {each.run.name: each.run for each in swept_runs(self.sweep)}
                write_run(due[job.name], self.sweep.root)
            on_finished(Finished(job.name, int(self.broken in job.name), 3600.0, job.log))
