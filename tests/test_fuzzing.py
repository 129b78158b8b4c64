"""The fuzzer of benchmarks/ reads its good files, and changed ones to right numbers or not at all."""

import importlib
import random
from pathlib import Path

import pytest

from drol.errors import InputError

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
FILES_TRIED = 40


@pytest.mark.parametrize("reader", ["npz", "hdf5", "parquet", "arrow", "csv", "dataset"])
def test_changed_files_are_read_to_what_is_in_them_or_refused(reader, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("DROL_DATA", str(tmp_path))
    fuzzing = importlib.import_module("fuzzing")
    attempt, seeds = fuzzing.READERS[reader](tmp_path)
    for content in seeds:
        attempt(content)
    generator, refused = random.Random(0), 0
    for _ in range(FILES_TRIED):
        try:
            attempt(fuzzing.change(generator.choice(seeds), generator))
        except InputError:
            refused += 1
    assert refused
