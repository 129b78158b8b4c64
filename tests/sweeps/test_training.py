"""A sweep that trains, through the files of its jobs: its runs are bit for bit those of `drol.train` alone."""

import pytest
import run_folders
from toys import tiny_task

import drol.tasks
from drol.cli.main import main
from drol.jobs.job import Finished
from drol.sweeps.execute import run_sweep
from drol.sweeps.status import kind_of
from drol.sweeps.sweep import Parameter, Search, Sweep
from drol.sweeps.sweep_runs import planned_runs
from drol.training.train import train


class Toys(drol.tasks.TaskSource):
    name = "toys"

    def task_names(self):
        return ["toy"]

    def load(self, name, dataset_path=None):
        return tiny_task(None)


class InProcess:
    """An executor that runs commands in this process; it is killed before its job number `most`."""

    def __init__(self, most=None):
        self.most, self.count = most, 0

    def execute(self, jobs, on_finished, keep_going):
        for job in jobs:
            if self.count == self.most:
                raise run_folders.Killed
            self.count += 1
            on_finished(Finished(job.name, main(list(job.arguments)), 1.0, job.log))


def test_runs_of_a_sweep_that_was_cut_and_halved_are_those_of_a_quiet_training(tmp_path, monkeypatch):
    monkeypatch.setattr(drol.tasks, "REGISTRY", drol.tasks.Registry())
    drol.tasks.register_task_source(Toys())
    sweep = Sweep(
        "cut",
        ("toy",),
        ("bc",),
        preset="smoke",
        root=tmp_path / "sweep",
        settings={"checkpoint_interval": 20},
        parameters=(Parameter("learning_rate", (1e-3, 3e-2)),),
        search=Search("halving", metric="offline/single_sample_error", goal="lowest", at=(20,)),
    )
    with pytest.raises(run_folders.Killed):
        run_sweep(sweep, InProcess(most=1))
    executor = InProcess()
    runs = run_sweep(sweep, executor)
    assert executor.count == 2  # the second choice to step 20, then the better one to its end
    (best,) = [each for each in runs if kind_of(each) == "done"]
    (run,) = [run for run, _ in planned_runs(sweep) if run.name == best.run.name]
    train(run.config, tmp_path / "quiet", quiet=True)
    run_folders.assert_same_run(tmp_path / "sweep" / run.name, tmp_path / "quiet")
