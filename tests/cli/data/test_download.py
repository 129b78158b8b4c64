"""`drol data download` against a server on this machine."""

import functools
import http.server
import threading

import numpy as np
import pytest

from drol.cli.main import main

DATASET = "antmaze-large-navigate-v0"


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A server with the two files of a dataset, and a home folder that has none."""
    ogbench_utils = pytest.importorskip("ogbench.utils")
    folder = tmp_path / "published"
    folder.mkdir()
    for name in (DATASET, f"{DATASET}-val"):
        rows = np.zeros((4, 2), np.float32)
        np.savez(folder / f"{name}.npz", observations=rows, actions=rows, terminals=np.zeros(4, bool))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DROL_MIRRORS", raising=False)
    monkeypatch.setattr(ogbench_utils, "DATASET_URL", "http://127.0.0.1:9/nobody")  # the published one is far away
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("name", [DATASET, "antmaze-large-navigate-singletask-task2-v0"])
def test_both_files_are_put_where_train_looks_for_them(published, name, tmp_path, capsys):
    assert main(["data", "download", name, "--mirror", published]) == 0
    folder = tmp_path / "home" / ".ogbench" / "data"
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == [f"{folder}/{DATASET}.npz", f"{folder}/{DATASET}-val.npz"]
    assert all(line.endswith("downloaded)") for line in printed)
    assert main(["data", "download", name, "--mirror", published]) == 0
    assert capsys.readouterr().out.count("already here, complete") == 2
    assert main(["data", "list", DATASET]) == 0
    assert "1 here" in capsys.readouterr().out


def test_mirrors_may_come_from_the_environment_and_the_folder_be_chosen(published, tmp_path, monkeypatch):
    monkeypatch.setenv("DROL_MIRRORS", f"http://127.0.0.1:9/a {published}/")
    assert main(["data", "download", DATASET, "--folder", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine" / f"{DATASET}-val.npz").is_file()


def test_the_address_is_that_of_the_ogbench_package(published, monkeypatch, tmp_path):
    monkeypatch.setattr("ogbench.utils.DATASET_URL", published)
    assert main(["data", "download", DATASET]) == 0


def test_without_a_network_one_line_says_where_the_file_belongs(published, tmp_path, capsys):
    assert main(["data", "download", DATASET]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"drol: error: {DATASET}.npz cannot be fetched: 127.0.0.1: ")
    assert printed.endswith(f"put the file at {tmp_path}/home/.ogbench/data/{DATASET}.npz\n")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["antmaze-lagre-navigate-v0"], "did you mean antmaze-large-navigate-v0?"),
        (["../../etc/passwd"], "unknown dataset '../../etc/passwd'"),
        (["cube-octuple-play-v0"], "no files are published for cube-octuple-play-v0"),
        ([DATASET, "--timeout", "0"], "a timeout of 0 s is not allowed; it must be above 0, to 3600"),
        ([DATASET, "--timeout", "inf"], "a timeout of inf s is not allowed"),
        ([DATASET, "--mirror", "file:///etc"], "it must begin with http:// or https://"),
        ([], "the following arguments are required: name"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(published, arguments, message, tmp_path, capsys):
    assert main(["data", "download", *arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "home").exists()
