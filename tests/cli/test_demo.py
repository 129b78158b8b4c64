"""The first command of the README, with few updates and episodes."""

from drol.cli.main import main
from drol.runs.run import open_run


def test_the_demo_trains_evaluates_and_writes_a_page(tmp_path, capsys):
    out = tmp_path / "demo"
    command = ["demo", "--seed", "3", "--steps", "20", "--episodes", "1", "--out", str(out)]
    assert main(command) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("training DROL to cross a maze (pointmaze-medium-navigate-singletask-task1-v0)")
    assert printed[2].startswith("success in one pass: ")
    assert printed[3].startswith("success, best of 16: ")
    assert printed[4].startswith("routed BC loss: ")
    assert printed[5] == f"report:               {out / 'report.html'}"
    run = open_run(out)
    assert run.finished
    assert run.config.seeds == (3,)
    assert [row.step for row in run.evaluations] == [0, 20]
    assert [row.best_of for row in run.extra_evaluations] == [16]
    page = (out / "report.html").read_text()
    assert "Candidates and their cells" in page
    assert "Dashed: the run in <code>demo-cloning</code>" in page
    assert open_run(tmp_path / "demo-cloning").config.algorithm.q_weight == 0
    assert main(command) == 0  # again: no training, only a new page
    assert "success in one pass" in capsys.readouterr().out


def test_a_mistake_in_the_demo_is_one_line(capsys, tmp_path):
    assert main(["demo", "--steps", "0", "--out", str(tmp_path / "demo")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "demo").exists()
