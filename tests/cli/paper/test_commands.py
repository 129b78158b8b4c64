"""`drol paper plan`, `run`, `table`, `figure`, `status`, `summary` and `mechanism`, on results that were made up."""

import csv
import dataclasses

import pytest
from made_results import made_result
from toys import saved_run, tiny_config, tiny_task

from drol.cli.main import main
from drol.experiments.results.files import write_results
from drol.paper import mechanism
from drol.paper.reproduce import cost
from drol.queue.local import LocalExecutor
from drol.runs import config as configuration

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
    assert error.startswith("drol: left out: ")
    assert "results.csv" in error
    where = ["--results", str(results), "--root", str(results.parent)]
    plan = ["plan", "fig2", "--scale", "smoke", "--commands"]
    for command in (["figure", "4", "--out", str(results.parent)], ["summary"], ["status"], plan):
        assert main(["paper", *command, *where]) == 1
        assert capsys.readouterr().err.startswith("drol: left out: ")


OTHER_FILES = {
    "a bench that is none": (["figure", "3", "--bench", "broken"], "broken cannot be read"),
    "a bench without times": (["figure", "3", "--bench", "empty"], "empty has no times of methods"),
    "a mechanism without numbers": (["figure", "ownership", "--mechanism", "gaps"], "gaps, line 2: held is missing"),
    "a mechanism of no candidates": (["figure", "ownership", "--mechanism", "none"], "none, line 2: candidates is 0"),
    "a document that is no text": (["summary", "--document", "bytes"], "the document bytes is not text in UTF-8"),
    "a table into no folder": (
        ["table", "1", "--out", "no/table.tex"],
        "cannot write no/table.tex: there is no fold",
    ),
}


@pytest.mark.parametrize(("words", "message"), OTHER_FILES.values(), ids=OTHER_FILES)
def test_a_file_that_is_something_else_is_one_line(results, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    row = mechanism.MechanismRow("maze", "drol", 16, 0, 10, 0.5, 10.0, 0.0, -0.3, 0.25, 0.2, 0.7)
    mechanism.write_mechanism([dataclasses.replace(row, held=None)], tmp_path / "gaps")
    mechanism.write_mechanism([dataclasses.replace(row, candidates=0)], tmp_path / "none")
    (tmp_path / "broken").write_text("{")
    (tmp_path / "empty").write_text("{}")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert main(["paper", *words, "--results", str(results)]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(("figure", "file"), [("3", "candidates.png"), ("4", "sensitivity.png")])
def test_figures_of_results(results, tmp_path, figure, file, capsys):
    assert main(["paper", "figure", figure, "--results", str(results), "--out", str(tmp_path / "new")]) == 0
    assert (tmp_path / "new" / file).read_bytes()[:4] == b"\x89PNG"
    assert "K = 16" in capsys.readouterr().out


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
    monkeypatch.setattr(mechanism.follow, "__defaults__", (32,))
    monkeypatch.setattr(configuration.RunConfig, "load_task", lambda _: tiny_task())
    saved_run(tmp_path / "run", tiny_config(), (0, 6, 12))
    (tmp_path / "run" / "evaluations.jsonl").touch()
    out = tmp_path / "mechanism.csv"
    assert main(["paper", "mechanism", str(tmp_path / "run"), "--out", str(out)]) == 0
    assert f"wrote 4 rows to {out}" in capsys.readouterr().out
    assert main(["paper", "figure", "ownership", "--mechanism", str(out), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "ownership.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table", "3"], "invalid choice: '3'"),
        (["plan", "table9"], "unknown experiment 'table9'"),
        (["plan", "table1", "--tasks", "walker*"], "no task of table1 at scale paper matches 'walker*'"),
        (["figure", "ownership"], "needs --mechanism FILE"),
        (["figure", "4", "--results", "nowhere"], "nowhere is no folder"),
        (["status", "--document", "no.md"], "--document is no.md; it must be a Markdown file that exists"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["paper", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
