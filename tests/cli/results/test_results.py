"""`drol results export|merge|check` as they are typed."""

import pytest
from made_results import made_result
from toys import saved_run, tiny_config

from drol.cli.main import main
from drol.results.result_files import read_results, write_results
from drol.runs.records import EvaluationRow
from drol.tasks.base import Episode


@pytest.fixture
def run(tmp_path):
    directory = saved_run(tmp_path / "run", tiny_config(), ())
    directory.log_evaluation(EvaluationRow(6, 0, 100.0, (Episode(0, 1.0, 3, True),)))
    return directory.path


def test_runs_are_exported(run, tmp_path, capsys):
    out = tmp_path / "all.csv"
    assert main(["results", "export", str(run), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote 1 results to {out}\n"
    assert read_results(out)[0].score == 100.0


def test_files_are_merged_or_kept_apart(tmp_path, capsys):
    first, second, out = (tmp_path / name for name in ("first.csv", "second.parquet", "all.csv"))
    write_results([made_result(), made_result(seed=1)], first)
    write_results([made_result(seed=2, success_timing="after")], second)
    files = ["results", "merge", str(first), str(second), "--out", str(out)]
    assert main(files) == 2
    assert "success_timing is before in runs/one and after in runs/one; --keep-apart" in capsys.readouterr().err
    assert not out.exists()
    assert main([*files, "--keep-apart"]) == 0
    assert [len(read_results(path)) for path in (out, tmp_path / "all-2.csv")] == [2, 1]


def test_a_broken_row_is_left_out_and_the_exit_code_says_so(tmp_path, capsys):
    path, out = tmp_path / "results.csv", tmp_path / "all.csv"
    write_results([made_result(), made_result(seed=1, episodes=9)], path)
    for command in ("export", "merge"):
        assert main(["results", command, str(path), "--out", str(out)]) == 1
        assert (
            f"drol: warning: skipped: {path}: line 3: outcomes: expected 9 characters 0 or 1, got 4 characters"
            in capsys.readouterr().err
        )
        assert len(read_results(out)) == 1
    assert main(["results", "check", str(path)]) == 1
    assert main(["results", "check", str(out)]) == 0
    assert capsys.readouterr().out.endswith("no faults found\n")


def test_a_mistake_is_one_line(run, tmp_path, capsys):
    assert main(["results", "export", str(run), "--out", str(tmp_path / "all.txt")]) == 2
    assert main(["results", "exprot"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert "name must end in .csv or .parquet" in errors[0]
    assert "unknown command of `drol results` 'exprot'; did you mean export?" in errors[1]
