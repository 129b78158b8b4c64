"""The simulated queue of SLURM: requests and answers; test_clusters.py uses a real one."""

import random
from collections import Counter
from pathlib import Path

import pytest

from drol.errors import InputError
from drol.jobs import slurm
from drol.jobs.job import Job
from drol.jobs.slurm import SlurmExecutor, code_file, seconds_file


class Killed(BaseException):
    """Ends the queue as a kill of its process does."""


class SimulatedSlurm:
    """Tasks that start and end as time passes; some fail, some lose their node, some are queued again."""

    def __init__(self, places, failing=0.0, losing=0.0):
        self.places, self.failing, self.losing = places, failing, losing
        self.random, self.arrays, self.tasks, self.done, self.most = random.Random(0), {}, {}, Counter(), 0

    def call(self, *command):
        return getattr(self, command[0])(*command[1:])

    def sbatch(self, *words):
        folder, number = Path(words[-1]).parent, str(len(self.arrays) + 1)
        count = int(next(word for word in words if word.startswith("--array=")).rpartition("-")[2]) + 1
        self.arrays[number] = folder
        self.tasks |= {(number, index): "PENDING" for index in range(count)}
        return f"{number};cluster\n"

    def squeue(self, *words):
        self.pass_time()
        names = next(word for word in words if word.startswith("--name=")).removeprefix("--name=").split(",")
        shown = {number for number, folder in self.arrays.items() if f"drol-{folder.name}" in names}
        return "".join(
            f"{number}_{index} {state}\n" for (number, index), state in self.tasks.items() if number in shown
        )

    def pass_time(self):
        running = [task for task, state in self.tasks.items() if state == "RUNNING"]
        for task in running:
            if self.random.random() < 0.3:
                self.end(task)
        free = self.places - sum(state == "RUNNING" for state in self.tasks.values())
        for task in [task for task, state in self.tasks.items() if state == "PENDING"][:free]:
            self.tasks[task] = "RUNNING"
        self.most = max(self.most, sum(state == "RUNNING" for state in self.tasks.values()))

    def end(self, task):
        folder, index = self.arrays[task[0]], task[1]
        (folder / f"{index}.out").touch()
        if self.random.random() < self.losing:
            self.tasks[task] = self.random.choice(["PENDING", "NODE_FAIL", "TIMEOUT"])  # PENDING: preempted
            return
        code = 1 if self.random.random() < self.failing else 0
        if code == 0:
            script = (folder / "array.sh").read_text()
            self.done[script.split(f"\n{index}) ")[1].split('"name": "')[1].split('"')[0]] += 1
        self.tasks[task] = "FAILED" if code else "COMPLETED"
        code_file(folder, index).write_text(str(code))


@pytest.fixture
def simulated(monkeypatch):
    made = SimulatedSlurm(500, failing=0.05, losing=0.05)
    monkeypatch.setattr(slurm, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(slurm, "STOP_SECONDS", 0.0)  # a kill waits for nothing
    monkeypatch.setattr(slurm, "LATE_SECONDS", 0.0)
    monkeypatch.setattr(slurm, "write_whole", lambda path, text: path.write_text(text))  # thousands need no disk
    monkeypatch.setattr(slurm, "call", made.call)
    monkeypatch.setattr(slurm.shutil, "which", lambda name: name)
    monkeypatch.setattr(slurm.subprocess, "run", lambda *_, **__: None)  # scancel
    return made


def made_jobs(root, count):
    (root / "logs").mkdir(exist_ok=True)
    return [Job(f"job {number}", ("--version",), root / "logs" / f"{number}.log") for number in range(count)]


def test_six_thousand_jobs_with_failures_losses_and_a_kill_lose_and_double_nothing(tmp_path, simulated):
    jobs, ended = made_jobs(tmp_path, 6000), {}

    def on_finished(finished):
        assert finished.name not in ended
        ended[finished.name] = finished
        if len(ended) == 3000:
            raise Killed

    executor = SlurmExecutor(retries=5)
    with pytest.raises(Killed):
        executor.execute(jobs, on_finished)
    handed_in = len(simulated.tasks)
    left = [job for job in jobs if not simulated.done[job.name]]  # what folders of runs tell
    waiting = sum(state in ("PENDING", "RUNNING") for state in simulated.tasks.values())
    executor.execute(left, on_finished)
    assert {each.code for each in ended.values()} == {0}
    assert simulated.done == Counter(job.name for job in jobs)  # each once
    assert len(simulated.tasks) - handed_in < len(left) - waiting + 1000  # tasks that were still there were found
    assert simulated.most == 500


def test_a_task_that_is_gone_is_handed_in_again_and_given_up_after_many_times(tmp_path, simulated):
    simulated.failing, simulated.losing = 0.0, 1.0
    simulated.random.choice = lambda _: "NODE_FAIL"
    ended = []
    SlurmExecutor().execute(made_jobs(tmp_path, 1), ended.append)
    assert [each.code for each in ended] == [137]
    assert len(simulated.arrays) == slurm.LOSSES + 1


def test_a_task_that_is_shown_as_preempted_before_it_waits_again_is_not_handed_in_twice(
    tmp_path, simulated, monkeypatch
):
    monkeypatch.setattr(slurm, "LATE_SECONDS", 60.0)
    simulated.failing, simulated.losing, shown = 0.0, 1.0, []

    def squeue(*words):
        for task in [task for task, state in simulated.tasks.items() if state == "PREEMPTED"]:
            shown.append(simulated.tasks[task])
            simulated.tasks[task], simulated.losing = "PENDING", 0.0
        return SimulatedSlurm.squeue(simulated, *words)

    simulated.squeue = squeue
    simulated.random.choice = lambda _: "PREEMPTED"
    ended = []
    SlurmExecutor().execute(made_jobs(tmp_path, 3), ended.append)
    assert [each.code for each in ended] == [0, 0, 0]
    assert shown
    assert len(simulated.arrays) == 1


def test_a_controller_that_refuses_for_a_while_stops_nothing(tmp_path, simulated):
    simulated.failing, simulated.losing = 0.0, 1.0  # the first task is lost, and handed in again
    simulated.random.choice = lambda _: "NODE_FAIL"
    refusals, ended = iter([None, "busy", "busy"]), []
    sbatch, end = simulated.sbatch, simulated.end

    def refuse_for_a_while(*words):
        if reason := next(refusals, None):
            raise InputError(f"sbatch failed ({reason})")
        return sbatch(*words)

    def lose_once(task):
        end(task)
        simulated.losing = 0.0

    simulated.sbatch, simulated.end = refuse_for_a_while, lose_once
    SlurmExecutor().execute(made_jobs(tmp_path, 2), lambda finished: ended.append(finished.code))
    assert ended == [0, 0]
    assert next(refusals, "all were used") == "all were used"


def test_seconds_are_those_that_tasks_ran(tmp_path, simulated):
    simulated.failing, simulated.losing, ended = 0.0, 0.0, []
    original = simulated.end

    def end(task):
        seconds_file(simulated.arrays[task[0]], task[1]).write_text("2.5\n4.0\n")  # it was preempted once
        original(task)

    simulated.end = end
    SlurmExecutor().execute(made_jobs(tmp_path, 1), ended.append)
    assert ended[0].seconds == 6.5


def test_a_node_without_the_storage_is_told_by_its_silence(tmp_path, simulated):
    simulated.end = lambda task: simulated.tasks.update({task: "FAILED"})
    ended = []
    SlurmExecutor(retries=3).execute(made_jobs(tmp_path, 1), ended.append)
    assert [(each.code, each.attempts) for each in ended] == [(2, 1)]
    assert "the runs and drol must be on storage that all nodes share" in ended[0].reason


def test_the_number_of_jobs_in_the_queue_is_bounded(tmp_path, simulated):
    SlurmExecutor(processes=7).execute(made_jobs(tmp_path, 40), lambda _: None)
    assert simulated.most == 7


def test_a_mistake_is_one_line(tmp_path, simulated, monkeypatch):
    with pytest.raises(InputError, match="which cannot be split into words"):
        SlurmExecutor(sbatch="--comment='x").execute([], print)
    monkeypatch.setattr(slurm.shutil, "which", lambda _: None)
    with pytest.raises(InputError, match="needs `sbatch`, which is not on the PATH"):
        SlurmExecutor().execute([], print)
