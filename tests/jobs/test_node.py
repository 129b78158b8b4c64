"""A job on a node, without a cluster; test_clusters.py has real ones."""

import sys
import threading
import time

import pytest

from drol.errors import InputError
from drol.jobs import cores, node
from drol.jobs.job import Job
from drol.jobs.node import do_job
from drol.jobs.ray_cluster import RayExecutor, check_answers, places_of
from drol.jobs.slurm import code_file, decoded, encoded, script_of
from drol.jobs.slurm_task import main
from drol.storage import exclusive

VERSION = ("--version",)


@pytest.fixture(autouse=True)
def quick(tmp_path, monkeypatch):
    monkeypatch.setattr(node, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(node, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(cores, "claims_folder", lambda: tmp_path / "claims")
    (tmp_path / "logs").mkdir()


@pytest.fixture
def job(tmp_path):
    return Job("a", VERSION, tmp_path / "logs" / "a.log", tmp_path / "lock")


def test_a_job_waits_until_nobody_holds_its_folder(job):
    """Its node was lost: the process there may still be saving."""
    ended = []
    with exclusive(job.lock, "held"):
        thread = threading.Thread(target=lambda: ended.append(do_job(job, 1, lambda: False)))
        thread.start()
        time.sleep(0.3)
        assert not job.log.exists()
    thread.join()
    assert ended == [0]
    assert job.log.read_text().startswith("drol ")


def test_a_job_that_is_stopped_while_it_waits_does_not_begin(job):
    with exclusive(job.lock, "held"):
        assert do_job(job, 1, lambda: True) == 143
    assert not job.log.exists()


def test_a_node_without_the_folder_is_refused(job, tmp_path):
    job = Job("a", VERSION, tmp_path / "elsewhere" / "a.log")
    with pytest.raises(InputError, match="this node has no folder"):
        do_job(job, 1, lambda: False)


def test_a_task_gets_its_job_through_a_script_whatever_its_words(tmp_path):
    odd = Job("it's", ("execute", "a b", "$HOME", "'; rm -rf /"), tmp_path / "x.log", None)
    assert decoded(encoded(odd)) == odd
    assert script_of(tmp_path, [odd], 2).count("\n") == 6


def test_a_task_writes_how_its_job_ended(job, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    monkeypatch.setattr("signal.signal", lambda *_: None)  # this process keeps its own
    assert main(tmp_path, 1, encoded(job)) == 0
    assert code_file(tmp_path, 3).read_text() == "0"
    assert "what it prints is in" in capsys.readouterr().out
    lost = Job("b", VERSION, tmp_path / "gone" / "b.log")
    assert main(tmp_path, 1, encoded(lost)) == 2
    assert code_file(tmp_path, 3).read_text() == "2"


def test_ray_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match="needs Ray; install it with: pip install 'drol\\[ray\\]'"):
        RayExecutor().execute([], pytest.fail)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:123456"])
def test_an_address_where_nobody_answers_is_refused_at_once(address):
    with pytest.raises(InputError, match="no Ray cluster answers at"):
        check_answers(address)


@pytest.mark.parametrize(
    ("resources", "cores", "gpus", "places"),
    [
        ({"CPU": 8.0}, 1, 0.0, 8),
        ({"CPU": 8.0}, 3, 0.0, 2),
        ({"CPU": 8.0}, 1, 0.5, 0),
        ({"CPU": 8.0, "GPU": 2.0}, 1, 0.5, 4),
        ({"CPU": 8.0, "GPU": 2.0}, 1, 0.4, 4),  # a share of 0.4 leaves a fifth of a GPU unused
        ({"CPU": 3.0, "GPU": 2.0}, 1, 0.25, 3),
        ({"CPU": 8.0, "GPU": 4.0}, 2, 2.0, 2),
        ({}, 1, 0.0, 0),
    ],
)
def test_a_node_has_room_for_so_many_jobs(resources, cores, gpus, places):
    assert places_of(resources, cores, gpus) == places
