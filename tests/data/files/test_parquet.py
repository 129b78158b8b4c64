import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from step_files import flat_steps, refusal, write_parquet

from drol.data.files.parquet import ParquetFile


def write(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def read(path, **mapping):
    """All steps of a file, joined."""
    blocks = [block for block, _ in ParquetFile(path, mapping).blocks()]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.parquet"


@pytest.mark.parametrize("block_bytes", [300, 1 << 23])
def test_fixed_lists_are_vectors(path, monkeypatch, block_bytes):
    monkeypatch.setattr("drol.data.files.fields.BLOCK_BYTES", block_bytes)
    steps = flat_steps()
    write_parquet(path, steps)
    found = read(path)
    np.testing.assert_array_equal(found["observation"], steps["observations"])
    np.testing.assert_array_equal(found["terminal"], steps["terminals"])


def test_lists_of_any_kind_are_vectors_and_a_missing_number_is_nan(path):
    nested = pyarrow.array([[[1.0, 2.0], [3.0, 4.0]]] * 3)
    write(path, observation=nested, action=[[0.5]] * 3, reward=pyarrow.array([1.0, None, 2.0]))
    found = read(path)
    assert found["observation"].shape == (3, 2, 2)
    assert found["action"].tolist() == [[0.5]] * 3
    assert np.isnan(found["reward"]).tolist() == [False, True, False]


def test_the_size_is_that_of_the_columns_that_are_read(path):
    write(path, observation=[[1.0, 2.0]] * 8, action=[0.5] * 8, video=[[0] * 100] * 8)
    assert ParquetFile(path, {}).nbytes == 4 * 8 * 3


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"observation": [[1.0, 2.0], [1.0]], "action": [0.5, 0.5]},
            "observation has lists of 1 to 2 numbers; all must be equally long",
        ),
        (
            {"observation": [[1.0], None], "action": [0.5, 0.5]},
            "observation has no value in some steps; every step must have one",
        ),
        ({"observation": ["a", "b"], "action": [0.5, 0.5]}, "observation is of the type string; it must hold numbers"),
        ({"pixels": [1.0], "action": [0.5]}, "which is the observation?"),
    ],
)
def test_what_cannot_be_read_is_named(path, columns, words):
    write(path, **columns)
    assert words in refusal(read, path)


def test_a_file_that_is_not_whole_is_refused(path):
    write_parquet(path, flat_steps())
    content = path.read_bytes()
    for damaged in (b"", bytes(99), content[:-20], content[: len(content) // 2]):
        path.write_bytes(damaged)
        assert f"{path} is not a whole Parquet file" in refusal(read, path)


def test_without_pyarrow_the_extra_is_named(monkeypatch, path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = refusal(ParquetFile, path, {})
    assert message == "Parquet files need the package pyarrow; install it with: pip install 'drol[lerobot]'"
