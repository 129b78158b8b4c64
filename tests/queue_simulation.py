"""Workers that do nothing in no time, for tests of the schedule."""

import random
from collections import Counter
from dataclasses import dataclass

from drol.jobs.schedule import run_jobs


class Killed(BaseException):
    """Ends the schedule as a kill of its process does."""


@dataclass
class SimulatedWork:
    job: object
    ends: int
    code: int
    workers: "SimulatedWorkers"
    cores: int = 1
    seconds: float = 1.0
    stopped: bool = False

    def poll(self):
        if self.workers.clock < self.ends:
            return None
        if self.code == 0:
            self.workers.done[self.job.name] += 1
        return self.code

    def stop(self):
        self.stopped = True

    def wait(self):
        assert self.stopped


class SimulatedWorkers:
    """Slots whose jobs take some ticks of a clock and fail now and then; `broken` ones fail always."""

    def __init__(self, slots, failing=0.0, broken=(), killed_at=None, seed=0):
        self.slots, self.failing, self.broken, self.killed_at = slots, failing, {*broken}, killed_at
        self.random = random.Random(seed)
        self.clock, self.busy, self.most_busy = 0, 0, 0
        self.started, self.done = Counter(), Counter()

    def has_room(self):
        return self.busy < self.slots

    def start(self, job):
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        self.started[job.name] += 1
        fails = job.name in self.broken or self.random.random() < self.failing
        return SimulatedWork(job, self.clock + self.random.randint(1, 50), 137 if fails else 0, self)

    def release(self, _):
        self.busy -= 1

    def pause(self):
        self.clock += 1
        if self.clock == self.killed_at:
            raise Killed


@dataclass
class SimulatedExecutor:
    workers: SimulatedWorkers
    retries: int = 0

    def execute(self, jobs, on_finished, keep_going=lambda: True):
        run_jobs(jobs, self.workers, on_finished, self.retries, keep_going)
