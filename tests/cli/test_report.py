import signal
import subprocess
import sys
import urllib.request

from watched_runs import write_rows, write_settings

from drol.cli.main import main


def test_several_runs_are_reported_on_one_page(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        write_rows(write_settings(tmp_path / name, log_interval=4 if name == "a" else 8), [100, 200])
    assert main(["report", "a", "b"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "report: report.html\n"
    assert "the task toy cannot be loaded, so its data is not shown" in printed.err
    assert "report: 4/4 parts" in printed.err
    assert "was the page of other runs" not in printed.err
    assert main(["report", "b", "--out", "report.html"]) == 0
    words = "report.html was the page of other runs and is replaced; --out FILE writes to another file"
    assert words in capsys.readouterr().err
    for _ in range(2):
        assert main(["report", "a"]) == 0
    assert words not in capsys.readouterr().err
    assert main(["report", str(tmp_path), "--out", "all.html"]) == 0
    assert "<td>4</td>" in (tmp_path / "all.html").read_text()
    (tmp_path / "b" / "config.json").write_text("{}")
    assert main(["report", str(tmp_path), "--out", "all.html"]) == 3
    assert "drol: warning: " in capsys.readouterr().err
    assert main(["report", "a", "--out", "all.pdf"]) == 2
    assert "the page is all.pdf; its name must end in .html" in capsys.readouterr().err
    assert main(["report", "a", "--video", "1"]) == 2
    assert "has no evaluation to record; remove --video" in capsys.readouterr().err


def test_watch_serves_until_it_is_ended(tmp_path):
    write_rows(write_settings(tmp_path / "a"), [100])
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a shell may have it ignored
    code = f"{listen}; import sys; from drol.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "watch", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(f"watching {tmp_path} at http://127.0.0.1:")
        with urllib.request.urlopen(line.split(" at ")[1].split()[0] + "runs.json", timeout=30) as answer:
            assert b'"name":"a"' in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "stopped\n"
    assert process.returncode == 0
