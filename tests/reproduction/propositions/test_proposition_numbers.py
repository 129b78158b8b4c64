"""docs/propositions.md shows results/propositions.json, and that holds what the code gives."""

import json
from pathlib import Path

import pytest

from drol_reproduction.documents import START, fill_blocks
from drol_reproduction.propositions.proposition_numbers import cheap_numbers
from drol_reproduction.propositions.proposition_tables import COMMAND, proposition_tables

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "propositions.md"
STORED = json.loads((ROOT / "results" / "propositions.json").read_text())
AGAIN = f"make them again: {COMMAND} --out docs/images --json results/propositions.json --document docs/propositions.md"


def test_the_document_shows_the_stored_numbers():
    text = DOCUMENT.read_text()
    tables = proposition_tables(STORED)
    assert [mark["name"] for mark in START.finditer(text)] == list(tables)
    assert fill_blocks(text, COMMAND, tables) == text, AGAIN


def flat(tree, path=""):
    """Every leaf by the path to it."""
    if isinstance(tree, dict | list):
        pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
        return {name: leaf for key, value in pairs for name, leaf in flat(value, f"{path}/{key}").items()}
    return {path: tree}


def test_the_stored_numbers_are_what_the_code_gives():
    fresh, stored = flat(cheap_numbers()), flat({key: tree for key, tree in STORED.items() if key != "actors"})
    assert fresh.keys() == stored.keys()
    for name, value in fresh.items():
        same = value == stored[name] if isinstance(value, str) else value == pytest.approx(stored[name], 1e-4, 1e-6)
        assert same, (name, value, stored[name], AGAIN)


def test_an_actor_covers_as_the_bound_says():
    for name, actor in STORED["actors"].items():
        for row in actor["rows"]:
            assert row["counted"] >= row["union_bound"] - 4 * row["standard_error"], name
            assert row["counted"] == pytest.approx(row["exact"], abs=4 * row["standard_error"] + 0.01), name
    assert STORED["actors"]["cloning alone"]["in_more_than_one"] > 0.3  # they do overlap
