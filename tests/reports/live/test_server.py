import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import drol_runtime
import pytest
from running_servers import converse, running
from watched_runs import write_rows, write_settings

from drol.cli.main import main
from drol.reports.live import server as server_module
from drol.reports.live.server import WatchServer, make_server
from drol.reports.live.watcher import Watcher


@pytest.fixture
def serve():
    """Start servers that end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda path, **changes: stack.enter_context(running(make_server(path, **changes)))


def ask(server, path, method="GET", headers=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


@pytest.fixture
def run(tmp_path):
    directory = write_settings(tmp_path / "runs" / "a")
    write_rows(directory, [100])
    return directory


def test_the_page_its_parts_and_the_list_are_served_with_a_strict_policy(serve, run):
    server = serve(run.path.parent)
    for path in ("/", "/watch.js", "/watch.css", "/charts.js", "/page.css", "/runs.json", "/details.json?runs=x"):
        answer, content = ask(server, path)
        assert answer.status == 200, path
        assert content
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        head, nothing = ask(server, path, "HEAD")
        assert (head.status, nothing) == (200, b"")
    found = json.loads(ask(server, "/runs.json")[1])
    assert [each["name"] for each in found["runs"]] == ["a"]


def test_nothing_is_written_over_http(serve, run):
    server = serve(run.path.parent)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "MKCOL", "TRACE"):
        answer, _ = ask(server, "/runs.json", method, body=b"x")
        assert (answer.status, set(answer.headers["Allow"].split(", "))) == (405, {"GET", "HEAD"})
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_a_foreign_host_is_refused(serve, run):
    server = serve(run.path.parent)
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "10.0.0.1", "evil@localhost"):
        answer, content = ask(server, "/runs.json", headers={"Host": host})
        assert answer.status == 421
        assert b"version" not in content
    for host in ("localhost:1", "127.0.0.1", "[::1]:9", "[::1]", "LOCALHOST"):
        assert ask(server, "/runs.json", headers={"Host": host})[0].status == 200


def test_other_machines_need_the_token(serve, run, monkeypatch):
    monkeypatch.setattr(server_module, "LOOPBACK", ("localhost",))  # so that 127.0.0.1 stands for the outside
    server = serve(run.path.parent, host="127.0.0.1")
    token = server.address.split("token=")[1]
    assert len(token) >= 32
    assert ask(server, "/runs.json")[0].status == 401
    assert ask(server, "/?token=wrong")[0].status == 401
    assert ask(server, "/runs.json", headers={"Cookie": "drol_watch=wrong"})[0].status == 401
    answer, _ = ask(server, f"/?token={token}")
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert ask(server, "/runs.json", headers={"Cookie": cookie.split(";")[0], "Host": "a.name"})[0].status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/file/{id}/page/../config.json", "/file/{id}/page/..%2Fconfig.json",
        "/file/{id}/page/config.json", "/file/{id}/videos/..%2F..%2Fconfig.json", "/file/{id}/videos/%2Fetc%2Fpasswd",
        "/file/{id}/checkpoints/x", "/file/..%2F..%2F/page/report.html", "/file/{id}/page/report.html%00.png",
        "/file/{id}", "/no-such", "//etc/passwd", "/file/{id}/videos/link.gif", "/file/{id}/videos/notes.txt",
    ],
)  # fmt: skip
def test_only_pages_and_videos_of_runs_are_served(serve, run, path):
    server = serve(run.path.parent)
    run.videos.mkdir()
    (run.videos / "link.gif").symlink_to("/etc/passwd")
    (run.videos / "notes.txt").write_text("private")
    (name,) = (each["id"] for each in json.loads(ask(server, "/runs.json")[1])["runs"])
    answer, content = ask(server, path.format(id=name))
    assert answer.status == 404
    assert b"root:" not in content
    assert b"private" not in content


def test_a_report_is_served_where_it_reaches_nothing(serve, run):
    (run.path / "report.html").write_text("<script>1</script>" + "x" * 600_000)
    run.videos.mkdir()
    (run.videos / "maze 1.gif").write_bytes(b"GIF89a")
    server = serve(run.path.parent)
    (name,) = (each["id"] for each in json.loads(ask(server, "/runs.json")[1])["runs"])
    answer, content = ask(server, f"/file/{name}/page/report.html")
    assert content == (run.path / "report.html").read_bytes()
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "same-origin" not in policy
    assert ask(server, f"/file/{name}/videos/maze%201.gif")[1] == b"GIF89a"


def test_requests_that_make_no_sense_are_answered(serve, run):
    server = serve(run.path.parent)
    (name,) = (each["id"] for each in json.loads(ask(server, "/runs.json")[1])["runs"])
    for path in (
        "/runs.json?since=-1",
        "/runs.json?since=x",
        f"/runs.json?since={'9' * 400}",
        "/runs.json?since=%F0%9F",
    ):
        found = json.loads(ask(server, path)[1])
        assert [each["id"] for each in found["runs"]] == [name]
    many = ",".join([name, *("x" * 50 for _ in range(900))])
    assert json.loads(ask(server, f"/details.json?runs={many}")[1])["found"] == [name]
    assert ask(server, "/" + "a" * 70_000)[0].status in (400, 404)
    assert converse(server, b"GET http://[bad/ HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 404 ")


def test_pages_of_other_sites_are_rejected(serve, run):
    server = serve(run.path.parent)
    host = f"localhost:{server.port}"
    for origin in ("http://evil.example", "null"):  # "null" is the origin of a report in its sandbox
        answer, content = ask(server, "/runs.json", headers={"Host": host, "Origin": origin})
        assert (answer.status, b"version" in content) == (403, False)
    assert ask(server, "/runs.json", headers={"Host": host, "Origin": f"http://{host}"})[0].status == 200


def test_a_run_whose_name_is_not_utf_8_is_listed(serve, run):
    run.path.rename(os.fsdecode(os.fsencode(run.path.parent) + b"/\xff"))
    (found,) = json.loads(ask(serve(run.path.parent), "/runs.json")[1])["runs"]
    assert found["name"] == "\udcff"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command(run, number):
    command = [sys.executable, "-m", "drol.cli.main", "watch", str(run.path.parent), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().split(" at ")[1].split()[0]
        with urllib.request.urlopen(f"{address}runs.json", timeout=60) as answer:
            assert answer.status == 200
        process.send_signal(number)
        found, errors = process.communicate(timeout=60)
    assert (process.returncode, found, errors) == (0, "stopped\n", "")


def test_without_its_packages_it_is_one_line(run, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "drol.reports.live.server", None)
    assert main(["watch", str(run.path.parent)]) == 2
    assert "the live view needs starlette and uvicorn" in capsys.readouterr().err


def test_a_sweep_file_is_watched_by_its_root(tmp_path, serve, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "new", "sweep.toml"]) == 0
    text = (tmp_path / "sweep.toml").read_text()
    assert "root" in text
    root = next(line.split('"')[1] for line in text.splitlines() if line.startswith("root"))
    Path(root).mkdir(parents=True)
    found = json.loads(ask(serve("sweep.toml"), "/runs.json")[1])
    assert found["sweep"]["words"].startswith("0 of ")


def test_what_cannot_be_served_is_one_line(tmp_path, capsys):
    assert main(["watch", str(tmp_path / "no")]) == 2
    assert "no is not a folder; give a folder for runs" in capsys.readouterr().err
    with WatchServer(Watcher(tmp_path), port=0) as busy:
        assert main(["watch", str(tmp_path), "--port", str(busy.port)]) == 2
        assert "choose another --port" in capsys.readouterr().err
    assert main(["watch", str(tmp_path), "--port", "70000"]) == 2
    assert "--port is 70000; it must be from 0 to 65535" in capsys.readouterr().err
    with pytest.raises(drol_runtime.InputError, match="cannot serve at"):
        make_server(tmp_path, host="no.such.host.invalid", port=0)
