"""`drol sweep`, with runs that are written instead of trained."""

import pytest
from made_sweeps import Writer

import drol.cli
from drol.cli import flags
from drol.cli.main import main
from drol.results.result_files import read_results
from drol.sweeps.sweep_file import read_sweep


@pytest.fixture
def sweep(tmp_path, monkeypatch, capsys):
    """Write the example to a new folder; the executor fails for runs in `broken`."""
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "new"]) == 0
    assert capsys.readouterr().out == "wrote sweep.toml; edit it, then: drol sweep run sweep.toml\n"
    sweep = read_sweep("sweep.toml")
    writer = Writer(sweep)
    monkeypatch.setattr(flags, "make_executor", lambda *_, **__: writer)
    return writer


def test_a_sweep_is_run_shown_and_written(sweep, capsys):
    assert main(["sweep", "run", "sweep.toml"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("example: 8 of 8 runs done\n\nbest so far\n")
    assert "fql alpha=100" in output
    assert main(["sweep", "status", "sweep.toml"]) == 0
    assert "example: 8 of 8 runs done" in capsys.readouterr().out
    assert main(["sweep", "results", "sweep.toml"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 4
    assert main(["sweep", "results", "sweep.toml", "--out", "results.csv"]) == 0
    assert capsys.readouterr().out == "wrote 24 results to results.csv\n"
    assert {row.method for row in read_results("results.csv")} == {"drol", "fql"}
    assert main(["sweep", "status", "sweep.toml", "--page", "page.html"]) == 0
    assert "wrote page.html" in capsys.readouterr().out


def test_a_failure_is_told_by_the_exit_code_until_it_was_tried_again(sweep, capsys):
    sweep.broken = "fql"
    assert main(["sweep", "run", "sweep.toml"]) == 1
    assert "4 of 8 runs done, 4 failed" in capsys.readouterr().out
    assert main(["sweep", "status", "sweep.toml"]) == 1
    sweep.broken = "none"
    assert main(["sweep", "retry", "sweep.toml"]) == 0
    assert "8 of 8 runs done" in capsys.readouterr().out


def test_a_budget_that_is_spent_is_said(sweep, capsys, tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(file.read_text() + "[budget]\nupdates = 130\n")
    assert main(["sweep", "run", "sweep.toml"]) == 0
    captured = capsys.readouterr()
    assert "2 of 8 runs done, 6 waiting" in captured.out
    assert "the budget is spent" in captured.err


def test_modules_that_were_imported_are_imported_by_the_runs(sweep, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(drol.cli, "IMPORTED", drol.cli.IMPORTED)
    (tmp_path / "module_of_mine.py").touch()
    commands = []
    execute = sweep.execute
    monkeypatch.setattr(
        sweep, "execute", lambda jobs, *rest: execute((commands.append(job.arguments) or job for job in jobs), *rest)
    )
    assert main(["sweep", "run", "sweep.toml", "--import", "module_of_mine"]) == 0
    drol.cli.IMPORTED.remove("module_of_mine")
    assert {command[-2:] for command in commands} == {("--import", "module_of_mine")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu", "sweep.toml"], "unknown command of `drol sweep` 'rnu'; did you mean run"),
        (["new"], "sweep.toml exists already"),
        (["run", "none.toml"], "cannot read the sweep none.toml"),
        (["run", "sweep.toml", "--retires", "3"], "did you mean --retries"),
        (["stop", "sweep.toml"], "the sweep example is not running"),
        (["status", "sweep.toml", "--page", "page.pdf"], "its name must end in .html"),
        (["results", "sweep.toml", "--out", "results.txt"], "name must end in .csv or .parquet"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, sweep, capsys):
    assert main(["sweep", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert sweep.names == []


def test_flags_of_a_cluster_reach_its_executor(tmp_path, monkeypatch, capsys):
    made = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(flags, "make_executor", lambda *given, **more: made.append((given, more)))
    assert main(["sweep", "new"]) == 0
    parser = flags.Parser("sweep run")
    flags.add_executor_flags(parser)
    words = ["--executor", "slurm", "--processes", "9", "--cores", "4", "--sbatch=--account=lab"]
    flags.executor_from(parser.parse(words))
    assert made == [(("slurm", 9, 1), {"cores": 4, "gpus": None, "address": None, "sbatch": "--account=lab"})]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "run", "sweep.toml", "--gpus", "0.5"]) == 2
    assert capsys.readouterr().err == "drol: error: gpus is for the executor ray; the executor is local\n"
    assert not (tmp_path / "runs").exists()


def test_a_stop_is_no_error_and_says_how_to_continue(sweep, capsys, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt(15)

    monkeypatch.setattr(sweep, "execute", stop)
    assert main(["sweep", "run", "sweep.toml"]) == 128 + 15
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("drol: example: 8 runs, 8 to do; ")
    assert lines[-1] == "drol: stopped and saved; run the same command to continue"
