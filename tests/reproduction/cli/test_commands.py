"""`drol paper plan`, `run`, `table`, `figure`, `status`, `summary` and `mechanism`, on results that were made up."""

import csv

import pytest
from made_mechanism import made_row
from made_results import made_result
from toys import tiny_config, tiny_task

import drol
from drol.cli.main import main
from drol.jobs.local import LocalExecutor
from drol.results.result_files import write_results
from drol.runs import config as configuration
from drol_reproduction import cost, mechanism

CUBE = "cube-single-play-singletask-task2-v0"


@pytest.fixture
def results(tmp_path):
    """A file with the last evaluations of DROL with two K, and of FQL."""
    rows = [
        made_result(task=CUBE, seed=seed, step=30, steps=30, score=60.0 + k, settings={"num_candidates": k},
                    figures={"candidate_distance": 0.1 * k, "routed_bc_loss": 0.1, "candidate_divergence": 0.2})
        for k in (4, 16)
        for seed in (0, 1)
    ]  # fmt: skip
    rows.append(made_result(task=CUBE, method="fql", step=30, steps=30, score=90.0))
    write_results(rows, tmp_path / "results.csv")
    return tmp_path / "results.csv"


def test_a_plan_says_what_is_missing_and_what_it_costs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cost, "timed_product", lambda: 0.01)
    assert main(["paper", "plan", "fig4", "--scale", "smoke", "--root", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "drol-k4     0 of 2 seeds done" in output
    assert "0 of 4 runs done" in output
    assert "to do: 240 updates" in output
    assert main(["paper", "plan", "fig4", "--scale", "smoke", "--root", str(tmp_path), "--commands"]) == 0
    commands = capsys.readouterr().out.splitlines()
    assert commands[0].startswith("drol train pointmaze-medium-navigate-singletask-task1-v0 --algorithm drol")
    assert commands[1].startswith("drol evaluate ")


def test_run_ends_with_one_while_something_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(LocalExecutor, "execute", lambda *_: None)
    assert main(["paper", "run", "fig2", "--scale", "smoke", "--root", str(tmp_path)]) == 1
    assert "0 of 1 runs done" in capsys.readouterr().out


def test_a_table_is_printed_or_written(results, tmp_path, capsys):
    assert main(["paper", "table", "full", "--results", str(results)]) == 0
    assert "76±0 " in capsys.readouterr().out
    out = tmp_path / "table.csv"
    assert main(["paper", "table", "1", "--results", str(results), "--format", "csv", "--out", str(out)]) == 0
    with out.open() as file:
        cells = {(row["row"], row["method"]): row for row in csv.DictReader(file)}
    assert cells["cube-single", "drol"]["mean"] == "76"
    assert cells["cube-single", "drol*"]["mean"] == ""  # two values of K are too few to choose among


def test_a_broken_row_is_named_left_out_and_told_by_the_exit_code(results, capsys):
    lines = results.read_text().splitlines()
    results.write_text("\n".join([*lines, lines[1].replace(CUBE, CUBE).replace(",30,30,", ",x,30,", 1)]) + "\n")
    assert main(["paper", "table", "1", "--results", str(results)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("drol: warning: skipped: ")
    assert "results.csv" in error
    where = ["--results", str(results), "--root", str(results.parent)]
    plan = ["plan", "fig2", "--scale", "smoke", "--commands"]
    for command in (["figure", "4", "--out", str(results.parent)], ["summary"], ["status"], plan):
        assert main(["paper", *command, *where]) == 1
        assert capsys.readouterr().err.startswith("drol: warning: skipped: ")


OTHER_FILES = {
    "a bench that is none": (["figure", "3", "--bench", "broken"], "broken: not JSON"),
    "a bench without times": (["figure", "3", "--bench", "empty"], "empty: methods: missing"),
    "a mechanism without numbers": (
        ["figure", "ownership", "--mechanism", "gaps"],
        "gaps, line 2: changed is ''; it must be a number",
    ),
    "a mechanism of another drol": (
        ["figure", "ownership", "--mechanism", "empty"],
        "empty: the columns are not those",
    ),
    "a document that is no text": (["summary", "--document", "bytes"], "the document bytes is not text in UTF-8"),
    "a table into no folder": (
        ["table", "1", "--out", "no/table.tex"],
        "cannot write no/table.tex: the fold",
    ),
}


@pytest.mark.parametrize(("words", "message"), OTHER_FILES.values(), ids=OTHER_FILES)
def test_a_file_that_is_something_else_is_one_line(results, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    mechanism.write_mechanism([made_row(changed=None)], tmp_path / "gaps")
    (tmp_path / "broken").write_text("{")
    (tmp_path / "empty").write_text("{}")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert main(["paper", *words, "--results", str(results)]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("figure", "file", "words"),
    [("3", "candidates.png", "| cube-single-task2 | 16 | 2 | 30 | 1.600 |"), ("4", "sensitivity.png", "K = 16")],
)
def test_figures_of_results(results, tmp_path, figure, file, words, capsys):
    assert main(["paper", "figure", figure, "--results", str(results), "--out", str(tmp_path / "new")]) == 0
    assert (tmp_path / "new" / file).read_bytes()[:4] == b"\x89PNG"
    assert words in capsys.readouterr().out


def test_status_and_summary_are_printed_or_written_between_marks(results, tmp_path, capsys):
    for command, name, expected in (("status", "runs", "drol-k16 0/2"), ("summary", "scores", "76±0 (2)")):
        assert main(["paper", command, "--results", str(results), "--root", str(tmp_path)]) == 0
        assert expected in capsys.readouterr().out
        document = tmp_path / f"{command}.md"
        document.write_text(f"<!-- made by: drol paper {command} ({name}) -->\n<!-- end -->\n")
        arguments = ["paper", command, "--results", str(results), "--root", str(tmp_path)]
        assert main([*arguments, "--document", str(document)]) == 0
        assert expected in document.read_text()


def test_the_mechanism_of_runs_is_written_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mechanism, "STATES", 32)
    task = tiny_task(environment=None)
    monkeypatch.setattr(configuration.RunConfig, "load_task", lambda _: task)
    drol.train(tiny_config(evaluation_episodes=0, seeds=(0,)), tmp_path / "run", task, quiet=True)
    out = tmp_path / "mechanism.csv"
    measure = ["paper", "mechanism", str(tmp_path / "run"), "--out", str(out), "--lags", "1", "2"]
    assert main(measure) == 0
    capsys.readouterr()
    assert main([*measure, "--add", "--step", "9"]) == 0
    printed = capsys.readouterr().out
    assert f"wrote 4 rows to {out}" in printed
    assert "| M1 | toy, 2x16 | not measured |" in printed
    assert main(["paper", "figure", "ownership", "--mechanism", str(out), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "ownership.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table", "3"], "invalid choice: '3'"),
        (["plan", "table9"], "unknown experiment 'table9'"),
        (["plan", "table1", "--tasks", "walker*"], "no task of table1 at scale paper matches 'walker*'"),
        (["figure", "ownership"], "needs --mechanism FILE"),
        (["mechanism", ".", "--out", "rows.csv", "--lags", "0"], "--lags is 0; every lag must be at least 1"),
        (["mechanism", ".", "--out", "rows.csv"], ".: contains no runs"),
        (["mechanism", ".", "--out", "no/rows.csv"], "--out is no/rows.csv; it must be a file in a folder that exists"),
        (["figure", "4", "--results", "nowhere"], "nowhere is not a folder"),
        (["status", "--document", "no.md"], "--document is no.md; it must be a Markdown file that exists"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["paper", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_gate_ends_with_one_while_a_baseline_is_not_known_to_be_as_fast_as_public_runs(results, tmp_path, capsys):
    assert main(["paper", "gate", "--results", str(results)]) == 1
    assert "| fql after 20,000 | - (0) | 55 (6) | - | - | too few seeds |" in capsys.readouterr().out
    document = tmp_path / "page.md"
    document.write_text("<!-- made by: drol paper gate (gates) -->\n<!-- end -->\n")
    main(["paper", "gate", "--results", str(results), "--document", str(document)])
    assert "| iql after 100,000 |" in document.read_text()


@pytest.mark.parametrize("command", ["gate", "hypotheses"])
def test_the_runs_of_both_planned_scales_are_read(command, tmp_path, capsys):
    for scale in ("short", "medium", "small"):
        (tmp_path / scale / "run").mkdir(parents=True)
    assert main(["paper", command, "--root", str(tmp_path)]) == 2
    assert "no run with evaluations is in" in capsys.readouterr().err
    (tmp_path / "short").rename(tmp_path / "elsewhere")
    assert main(["paper", command, "--root", str(tmp_path)]) == 2
    assert f"in {tmp_path / 'medium'} or below" in capsys.readouterr().err


def test_the_hypotheses_are_open_without_planned_runs(results, tmp_path, capsys):
    assert main(["paper", "hypotheses", "--results", str(results)]) == 0
    assert "| H1 | above frozen routing, cube-single-task2 | - (0) | - (0) | - | - | not finished |" in (
        capsys.readouterr().out
    )
    document = tmp_path / "page.md"
    document.write_text("<!-- made by: drol paper hypotheses (runs) -->\n<!-- end -->\n")
    main(["paper", "hypotheses", "--results", str(results), "--document", str(document)])
    assert "| cube-single-task2 | FQL | short | 40,000 | 0 of 3 | - | 97±2 |" in document.read_text()


def test_learning_curves_are_drawn_over_public_ones(results, tmp_path, capsys):
    assert main(["paper", "figure", "curves", "--results", str(results), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert "public: FQL" not in capsys.readouterr().out
    main(["paper", "figure", "curves", "--results", str(results), "--out", str(tmp_path), "--other-protocols"])
    assert "public: FQL" in capsys.readouterr().out
