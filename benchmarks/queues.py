"""A sweep of the size of the paper's table, 68 tasks x 11 columns x 8 seeds: python benchmarks/queues.py

Nothing is trained: folders of runs are written as training leaves them, for as many of the runs as --done says, and the
status of all of them is timed. Then as many jobs go through the schedule on 500 workers that do nothing.
"""

import argparse
import json
import tempfile
import time
import tracemalloc
from pathlib import Path

from drol.paper.presets import METHODS, TASKS
from drol.queue.schedule import run_jobs
from drol.runs.directory import RunDirectory
from drol.runs.rows import EvaluationRow
from drol.sweeps.runs import planned_runs
from drol.sweeps.status import sweep_status, text_status
from drol.sweeps.sweep import Parameter, Sweep
from drol.tasks.base import Episode

EVALUATIONS, EPISODES, WORKERS = 10, 50, 500


class Idle:
    """Workers whose jobs end at the next look."""

    cores = 1

    def __init__(self):
        self.busy = 0

    def has_room(self):
        return self.busy < WORKERS

    def start(self, _):
        self.busy += 1
        return self

    def poll(self):
        return 0

    def release(self, _):
        self.busy -= 1

    def pause(self):
        pass

    def stop(self):
        pass

    def wait(self):
        pass


def write_run(run, root):
    directory = RunDirectory(root / run.name)
    (directory.checkpoints / f"{run.steps:09d}").mkdir(parents=True)
    (directory.path / "config.json").write_text(json.dumps({"run": run.config.to_dict()}))
    (directory.path / ".lock").touch()
    episodes = tuple(Episode(seed, -200.0, 200, seed % 2 == 0) for seed in range(EPISODES))
    for number in range(1, EVALUATIONS + 1):
        step = run.steps * number // EVALUATIONS
        directory.log_evaluation(EvaluationRow(step, run.seeds[0], 50.0, episodes))


def timed(work):
    """The seconds of this process alone, because machines do other work as well, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--done", type=float, default=0.5, help="share of the runs that are done (default: 0.5)")
    parsed = parser.parse_args()
    parameters = (Parameter("num_candidates", (16, 4), methods=("drol",)),)
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep("table", TASKS, METHODS, tuple(range(8)), root=Path(folder), parameters=parameters)
        seconds, planned = timed(lambda: planned_runs(sweep))
        print(f"{len(planned):,} runs planned for the first time in {seconds:.2f} s of a core")
        for run, _ in planned[: round(parsed.done * len(planned))]:
            write_run(run, sweep.root)
        for number in range(3):
            seconds, text = timed(lambda: text_status(sweep_status(sweep)))
            print(f"status {number + 1}: {seconds:.2f} s of a core; {text.splitlines()[0]}")
        tracemalloc.start()
        sweep_status(sweep)
        print(f"memory of a status: {tracemalloc.get_traced_memory()[1] / 1e6:.0f} MB")
        tracemalloc.stop()
        jobs = (run.job(sweep.root) for run, _ in planned)
        ended = []
        tracemalloc.start()
        seconds, _ = timed(lambda: run_jobs(jobs, Idle(), lambda each: ended.append(each.name)))
        memory = tracemalloc.get_traced_memory()[1] / 1e6
        print(
            f"schedule: {len({*ended}):,} of {len(ended):,} jobs on {WORKERS} workers, {seconds:.2f} s, {memory:.0f} MB"
        )


if __name__ == "__main__":
    main()
