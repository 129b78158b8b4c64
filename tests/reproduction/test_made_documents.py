"""The tables of docs/results.md and docs/reproduction.md are those of the files in results/."""

import json
from pathlib import Path

import pytest

from drol.jobs.job import read_timings
from drol.results.merge import check_results
from drol.results.result_files import read_results
from drol_reproduction import completion, gate, hypotheses, summary
from drol_reproduction.documents import fill_blocks
from drol_reproduction.mechanism import read_mechanism

PROJECT = Path(__file__).parents[2]
RESULTS = PROJECT / "results"
TASKS = RESULTS / "paper_tasks.csv"  # of the scales short and medium
DEMO = "pointmaze-medium-navigate-singletask-task1-v0"


@pytest.fixture(scope="module")
def results():
    return read_results(RESULTS / "paper_small.csv")


def test_the_tables_of_results_are_those_of_the_files(results):
    text = (PROJECT / "docs" / "results.md").read_text()
    tables = summary.summary_tables(results, read_mechanism(RESULTS / "mechanism.csv"))
    assert fill_blocks(text, summary.COMMAND, tables) == text
    shown = ("owners", "events", "regimes", "mechanism verdicts", "candidates")
    assert all(f"<!-- made by: {summary.COMMAND} ({name}) -->" in text for name in shown)


def test_the_gates_and_hypotheses_of_results_are_those_of_the_file():
    text = (PROJECT / "docs" / "results.md").read_text()
    found = read_results(TASKS) if TASKS.exists() else []  # it comes with the first finished run
    blocks = {gate.COMMAND: {"gates": gate.gate_table(gate.gates(found))}}
    blocks[hypotheses.COMMAND] = hypotheses.hypothesis_tables(found)
    for command, tables in blocks.items():
        assert fill_blocks(text, command, tables) == text
        assert all(f"<!-- made by: {command} ({name}) -->" in text for name in tables)


def test_the_tables_of_reproduction_are_those_of_the_files(results):
    text = (PROJECT / "docs" / "reproduction.md").read_text()
    tables = completion.status_tables(results, read_timings(RESULTS))
    assert fill_blocks(text, completion.COMMAND, tables) == text


def test_nothing_is_wrong_with_the_results(results):
    assert not results.skipped
    faults = [line for line in check_results([RESULTS / "paper_small.csv"]) if "seed" not in line]
    assert faults == []


def scores_of(path, step, best_of=1, target_candidates=1, **settings):
    """The scores of DROL with these settings at a step, by seed, and the routed losses."""
    wanted = {"num_candidates": 16, "q_weight": 1.0, "discount": 0.99} | settings
    rows = [
        row
        for row in read_results(RESULTS / path)
        if (row.step, row.best_of, row.method) == (step, best_of, "drol") and row.task == DEMO
        if all(row.setting(name) == value for name, value in wanted.items())
        if json.loads(row.settings).get("target_candidates", 1) == target_candidates  # which DROL no longer has
    ]
    rows.sort(key=lambda row: row.seed)
    return [f"{row.score:.0f}" for row in rows], [f"{row.figures['routed_bc_loss']:.2f}" for row in rows]


def test_the_table_of_the_demo_is_that_of_the_files():
    text = (PROJECT / "docs" / "algorithms.md").read_text()
    own = {"bc_weight": 0.03, "discount": 0.995}
    many = {"discount": 0.995, "num_candidates": 64}
    kept = {"bc_weight": 0.1, "discount": 0.995, "num_candidates": 8, "target_candidates": 8}
    expected = []
    for path, step, seeds, settings in (
        ("demo.csv", 10_000, 3, many | {"bc_weight": 0.03}),
        ("paper_small.csv", 10_000, 3, many | {"bc_weight": 0.03}),
        ("demo_settings.csv", 10_000, 3, many | {"bc_weight": 0.1}),
        ("demo_settings_one_core.csv", 10_000, 3, many | {"bc_weight": 0.1}),
        ("paper_small.csv", 15_000, 3, own),
        ("demo_settings.csv", 30_000, 1, own | {"bc_weight": 0.3}),
        ("demo_settings.csv", 10_000, 1, kept),
        ("demo_settings.csv", 15_000, 1, kept),
    ):
        scores, losses = scores_of(path, step, **settings)
        best, _ = scores_of(path, step, 16, **settings)
        expected.append(" | ".join(", ".join(each[:seeds]) for each in (scores, best, losses)))
    for line in expected:
        assert f"| {line} |" in text
    for path, settings in (("demo.csv", many), ("demo_settings.csv", own)):
        _, cloned = scores_of(path, 3_000, **settings | {"bc_weight": 0.03, "q_weight": 0.0})
        assert f"| {cloned[0]} |" in text
