"""`python -m drol_runtime.serve` as a process."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import drol_runtime
import pytest

SOURCE = Path(drol_runtime.__file__).parents[1]


@pytest.fixture
def folder(served_bundle):
    return served_bundle


def start(folder, *arguments, **environment):
    command = [sys.executable, "-m", "drol_runtime.serve", str(folder), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("number", "code", "last"), [(signal.SIGINT, 0, "served 0 requests\n"), (signal.SIGTERM, -signal.SIGTERM, "")]
)
def test_a_signal_ends_it_without_a_traceback(folder, number, code, last):
    with start(folder, "--port", "0") as process:
        line = process.stdout.readline()
        assert line.startswith(f"serving {folder} at http://127.0.0.1:")
        with urllib.request.urlopen(line.split(" at ")[1].partition(";")[0] + "/status", timeout=60) as answer:
            assert answer.status == 200
        process.send_signal(number)
        found, errors = process.communicate(timeout=60)
    assert (process.returncode, found, errors) == (code, last, "")


def test_a_mistake_is_one_line(folder, tmp_path):
    (tmp_path / "uvicorn.py").write_text("raise ImportError('No module named uvicorn')")
    hidden = f"{tmp_path}{os.pathsep}{SOURCE}"
    for arguments, environment, words in (
        (("--port", "99999"), {}, "--port is 99999; it must be from 0 to 65535"),
        (("--host", "0.0.0.0"), {}, "0.0.0.0 can be reached from other machines; give a token ($DROL_TOKEN)"),
        ((), {"DROL_TOKEN": "s\u00e9cret"}, "the token must consist of printable ASCII characters"),
        (
            (),
            {"PYTHONPATH": hidden},
            "serving needs starlette and uvicorn (No module named uvicorn); install them",
        ),
    ):
        with start(folder, *arguments, **environment) as process:
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 2
        assert errors.count("\n") == 1
        assert words in errors
