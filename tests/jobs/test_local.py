"""Jobs as real processes."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from drol.jobs import local
from drol.jobs.job import Job
from drol.jobs.local import LocalExecutor, LocalWorkers
from drol.machine import session_memory

VERSION = ("--version",)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(local, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(local, "STAGGER_SECONDS", 0.0)


class Endless:
    """Stands for a job that never ends by itself."""

    started, stopped = [], []

    def __init__(self, job, pinned):
        self.job, self.pinned, self.cores, self.memory = job, pinned, len(pinned), 0
        self.process = SimpleNamespace(pid=0)
        self.started.append((job.name, pinned))

    def poll(self):
        return None

    def stop(self):
        self.stopped.append(self.job.name)

    def wait(self):
        pass


@pytest.fixture
def endless(monkeypatch):
    monkeypatch.setattr(local, "LocalWork", Endless)
    monkeypatch.setattr(Endless, "started", [])
    monkeypatch.setattr(Endless, "stopped", [])
    return Endless


def test_a_job_is_a_command_of_drol_whose_output_is_its_log(tmp_path, quick):
    ended = []
    jobs = [
        Job("good", VERSION, tmp_path / "logs" / "good.log"),
        Job("bad", ("no-such-command",), tmp_path / "logs" / "bad.log"),
    ]
    LocalExecutor(2, retries=3).execute(jobs, ended.append)
    assert {each.name: (each.code, each.attempts) for each in ended} == {"good": (0, 1), "bad": (2, 1)}
    assert (tmp_path / "logs" / "good.log").read_text().startswith("drol 0")
    assert "unknown command" in (tmp_path / "logs" / "bad.log").read_text()


def test_a_signal_stops_what_runs_and_starts_nothing_more(tmp_path, quick, endless):
    threading.Thread(target=lambda: (time.sleep(0.2), os.kill(os.getpid(), signal.SIGTERM))).start()
    with pytest.raises(KeyboardInterrupt):
        LocalExecutor(1).execute([Job("a", VERSION, tmp_path), Job("b", VERSION, tmp_path)], print)
    assert [name for name, _ in endless.started] == ["a"]
    assert endless.stopped == ["a"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_a_queue_that_is_killed_leaves_no_process_behind(tmp_path):
    """The process of a job gets SIGTERM, and one whose parent is gone already does not begin."""
    code = """
        import os, pathlib, sys, time
        from drol.jobs.child_process import end_with
        end_with(os.getppid())
        pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
        time.sleep(60)
    """
    note = tmp_path / "pid"
    start = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', sys.argv[1], {str(note)!r}]); "
    queue = subprocess.Popen([sys.executable, "-c", start + "time.sleep(60)", textwrap.dedent(code)])
    while not (note.exists() and note.read_text()):
        time.sleep(0.05)
    queue.kill()
    queue.wait()
    child = int(note.read_text())
    while is_alive(child):  # the timeout of the test ends this
        time.sleep(0.05)
    late = subprocess.run([sys.executable, "-m", "drol.jobs.child_process", "1234567", "--version"], check=False)
    assert late.returncode == 143


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_each_job_has_cores_of_its_own_however_many_jobs_there_are(monkeypatch, endless):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 4})
    assert LocalWorkers().free == [{0}, {1}, {2}, {3}, {4}]
    assert LocalWorkers(2).free == [{0, 1}, {2, 3}]
    assert LocalWorkers(1).free == [{0, 1, 2, 3, 4}]
    assert len(LocalWorkers(7).free) == 7


def test_a_job_starts_when_there_is_memory_for_what_the_largest_took(monkeypatch, endless):
    free = [10_000]
    monkeypatch.setattr(local, "free_memory", lambda: free[0])
    monkeypatch.setattr(local, "STAGGER_SECONDS", 0.0)
    workers = LocalWorkers(3)
    job = Job("a", VERSION, None)
    first = workers.start(job)
    first.memory = workers.most = 3_000
    free[0] = 3_200
    assert not workers.has_room()
    free[0] = 3_301
    assert workers.has_room()
    second = workers.start(job)  # it has taken nothing yet and will take as much
    free[0] = 6_200
    assert not workers.has_room()
    free[0] = 6_301
    assert workers.has_room()
    free[0] = 0
    workers.release(first)
    assert not workers.has_room()
    workers.release(second)
    assert workers.has_room()  # one job is always tried


def test_jobs_start_apart_until_one_has_ended(monkeypatch, endless):
    monkeypatch.setattr(local, "STAGGER_SECONDS", 60.0)
    monkeypatch.setattr(local, "free_memory", lambda: None)
    workers = LocalWorkers(3)
    first = workers.start(Job("a", VERSION, None))
    assert not workers.has_room()
    workers.start(Job("b", VERSION, None))
    workers.release(first)
    assert workers.has_room()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="memory of processes is read from /proc")
def test_the_memory_of_a_job_is_measured_with_its_children():
    hold = "block = b'1' * 50_000_000; print(flush=True); input()"
    job = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", job], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline()
        assert 50_000_000 < session_memory()[process.pid] < 500_000_000
        process.communicate(b"\n")
    assert process.pid not in session_memory()
