"""Independent jobs get different cores."""

import os
import subprocess
import sys

import pytest

from drol.jobs import cores
from drol.jobs.cores import claimed_cores


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cores, "claims_folder", lambda: tmp_path / "claims")
    monkeypatch.setattr(cores, "usable_cores", lambda: [2, 3, 5])


def test_each_job_has_its_own_until_there_are_none_left():
    with claimed_cores(1) as first, claimed_cores(2) as second:
        assert (first, second) == ({2}, {3, 5})
        with claimed_cores(2) as third:  # more jobs than cores: the number stays what was asked for
            assert third == {2, 3}
    with claimed_cores(2) as again:
        assert again == {2, 3}
    with claimed_cores(9) as most:
        assert most == {2, 3, 5}


def test_a_claim_ends_with_its_process(tmp_path):
    code = "import sys; from drol.jobs import cores; from pathlib import Path\n"
    code += (
        f"cores.claims_folder = lambda: Path({str(tmp_path / 'claims')!r}); cores.usable_cores = lambda: [2, 3, 5]\n"
    )
    code += "with cores.claimed_cores(1) as own: print(own, flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"{2}\n"
        with claimed_cores(1) as own:
            assert own == {3}
        process.kill()
    with claimed_cores(1) as own:
        assert own == {2}


def test_a_folder_of_somebody_else_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "claims").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with claimed_cores(1) as first, claimed_cores(1) as second:
        assert (first, second) == ({2}, {2})
    assert [*(tmp_path / "claims").iterdir()] == []
