"""The tables of docs/results.md and docs/reproduction.md are those of the files in results/."""

from pathlib import Path

import pytest

from drol.experiments.documents import fill_blocks
from drol.experiments.results.files import read_results
from drol.experiments.results.merge import check_results
from drol.paper.mechanism import read_mechanism
from drol.paper.reproduce import status, summary
from drol.paper.reproduce.execute import read_timings

PROJECT = Path(__file__).parents[3]
RESULTS = PROJECT / "results"


@pytest.fixture(scope="module")
def results():
    return read_results(RESULTS / "paper_small.csv")


def test_the_tables_of_results_are_those_of_the_files(results):
    text = (PROJECT / "docs" / "results.md").read_text()
    tables = summary.summary_tables(results, read_mechanism(RESULTS / "mechanism.csv"))
    assert fill_blocks(text, summary.COMMAND, tables) == text
    assert all(f"({name})" in text for name in tables)


def test_the_tables_of_reproduction_are_those_of_the_files(results):
    text = (PROJECT / "docs" / "reproduction.md").read_text()
    tables = status.status_tables(results, read_timings(RESULTS))
    assert fill_blocks(text, status.COMMAND, tables) == text


def test_nothing_is_wrong_with_the_results(results):
    assert not results.skipped
    faults = [line for line in check_results([RESULTS / "paper_small.csv"]) if "seed" not in line]
    assert faults == []
