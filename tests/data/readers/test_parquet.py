import subprocess
import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from step_files import flat_steps, refusal, write_parquet

from drol.data.readers.arrow_tables import ParquetFile


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
    monkeypatch.setattr("drol.data.readers.fields.BLOCK_BYTES", block_bytes)
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
        ({"pixels": [1.0], "action": [0.5]}, "cannot tell which column is the observation"),
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
        assert f"{path} is not a valid Parquet file" in refusal(read, path)


FLIPS = """
import sys
from pathlib import Path
from drol.data.readers.arrow_tables import ParquetFile
from drol.errors import InputError
path = Path(sys.argv[1])
whole = path.read_bytes()
footer = int.from_bytes(whole[-8:-4], "little") + 8
read = refused = 0
for bit in range(8 * (len(whole) - footer), 8 * len(whole)):
    changed = bytearray(whole)
    changed[bit // 8] ^= 1 << bit % 8
    path.write_bytes(changed)
    try:
        for block, _ in ParquetFile(path, {}).blocks():
            assert len(block["observation"]) == len(block["action"]) == 2
        read += 1
    except InputError as error:
        assert str(error).isprintable()
        refused += 1
print(read, refused, 8 * footer)
"""


def test_no_flipped_bit_of_a_footer_ends_the_process(path):
    """What pyarrow throws over a damaged column is thrown where Python cannot catch it."""
    columns = {"observation": pyarrow.array([1, 2], "float32"), "action": pyarrow.array([0.5, 0.25], "float32")}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, store_schema=False, use_dictionary=False)
    answer = subprocess.run([sys.executable, "-c", FLIPS, path], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    read, refused, flips = map(int, answer.stdout.split())
    assert read + refused == flips
    assert min(read, refused) > 500


def test_a_footer_that_counts_other_steps_is_refused(path, monkeypatch):
    write_parquet(path, flat_steps())
    file = ParquetFile(path, {})
    file.steps = 61
    assert "holds 60 steps where it declares 61" in refusal(lambda: list(file.blocks()))


def test_a_changed_number_is_found_where_pages_have_sums(path):
    columns = {"observation": [1.5, 2.5], "action": [0.5, 0.25]}
    options = {"write_page_checksum": True, "use_dictionary": False, "compression": "none", "write_statistics": False}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    content = path.read_bytes()
    number = np.float64(2.5).tobytes()
    assert content.count(number) == 1
    path.write_bytes(content.replace(number, np.float64(2.25).tobytes()))
    assert "CRC" in refusal(read, path)


def test_a_page_that_claims_to_be_huge_takes_no_memory(path):
    """The header of the first page: kind, size unpacked, size packed, checksum; then a structure."""
    columns = {"observation": [1.5, 2.5], "action": [0.5, 0.25]}
    options = {"write_page_checksum": True, "use_dictionary": False, "compression": "none"}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    content = path.read_bytes()
    size = content[7]
    assert content[4:11] == bytes([0x15, 0, 0x15, size, 0x15, size, 0x15])
    assert (size < 0x80, content[16]) == (True, 0x1C)  # numbers of one byte and of five
    huge = bytes([0x15, 0, 0x15, size | 0x80, 0x80, 0, 0x15, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F, 0x2C])  # 2 GB, no checksum
    path.write_bytes(content[:4] + huge + content[17:])
    allocated = pyarrow.default_memory_pool().max_memory()
    assert "2147483647" in refusal(read, path)
    assert pyarrow.default_memory_pool().max_memory() < max(allocated, 1 << 25)


def test_without_pyarrow_the_extra_is_named(monkeypatch, path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = refusal(ParquetFile, path, {})
    assert (
        message == "CSV, Parquet and Arrow files need the package pyarrow; install it with: pip install 'drol[tables]'"
    )
