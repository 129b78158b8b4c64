"""docs/reliability.md names tests that exist."""

import ast
import csv
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", (TESTS.parent / "docs" / "reliability.md").read_text())))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_promise_has_the_test_that_it_names(file, name):
    tree = ast.parse((TESTS / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_promise_names_a_test():
    text = (TESTS.parent / "docs" / "reliability.md").read_text()
    promises = text[: text.index("## The storm")].split("| --- | --- | --- |\n")[1:]
    rows = [row for part in promises for row in part.split("\n\n")[0].splitlines()]
    assert len(rows) > 20
    assert [row for row in rows if "::test_" not in row] == []


def test_the_table_of_fuzzing_is_that_of_the_file():
    document = (TESTS.parent / "docs" / "reliability.md").read_text()
    with (TESTS.parent / "results" / "fuzzing.csv").open() as file:
        rows = list(csv.DictReader(file))
    files = {"npz", "hdf5", "parquet", "arrow", "csv", "bag", "episodes", "lerobot", "minari"}
    others = {"dataset", "config", "policy", "rows", "results", "sweep", "bundle"}
    assert files | others <= {row["reader"] for row in rows}
    for row in rows:
        counts = [f"{int(value):,}" for value in list(row.values())[3:]]
        assert f"| {row['reader']} | {float(row['minutes']):g} | {' | '.join(counts)} |" in document
