"""Tables of Arrow: structs, texts, dates and dictionaries in columns, in Parquet and in both formats of Arrow."""

import datetime

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from step_files import refusal

from drol.data.readers import open_steps

TABLE = pyarrow.table(
    {
        "obs": pyarrow.array([{"q": [1.0, 2.0], "g": 3.0}, {"q": [4.0, 5.0], "g": 6.0}]),
        "action": [0.5, 0.25],
        "run": pyarrow.array(["a", "b"]).dictionary_encode(),
        "time": [datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2)],
        "camera": pyarrow.array([{"bytes": b"x", "path": "p"}] * 2),
        "ragged": [[1.0], [1.0, 2.0]],
        "text": ["t", "u"],
    }
)


def write_parquet(path):
    pyarrow.parquet.write_table(TABLE, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def write_arrow(path, new=pyarrow.ipc.new_file):
    with new(path.with_suffix(".arrow"), TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=1)
    return path.with_suffix(".arrow")


def write_stream(path):
    return write_arrow(path, pyarrow.ipc.new_stream)


WRITERS = pytest.mark.parametrize("write", [write_parquet, write_arrow, write_stream])


@WRITERS
def test_columns_in_columns_are_read(tmp_path, write):
    file = open_steps(write(tmp_path / "data"), {"episode": ["run"]})
    blocks = [block for block, _ in file.blocks()]
    steps = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    np.testing.assert_array_equal(steps["observation"], [[1, 2, 3], [4, 5, 6]])
    assert file.dimensions("observation").names == ("obs/q[0]", "obs/q[1]", "obs/g")
    assert steps["episode"].tolist() == ["a", "b"]
    assert steps["time"].dtype.kind == "M"
    unused = {each.name: each.why for each in file.unused}
    assert unused["camera"] == "images in tables are not read"
    assert unused["text"] == "it is text"
    assert "ragged" in unused


@WRITERS
def test_a_damaged_table_is_one_line(tmp_path, write):
    path = write(tmp_path / "data")
    content = path.read_bytes()
    for damaged in (b"", b"ARROW1", content[: len(content) // 2]):
        path.write_bytes(damaged)
        kind = "Parquet" if path.suffix == ".parquet" else "Arrow"
        message = refusal(lambda: list(open_steps(path, {}).blocks()))
        assert (
            f"{path} is not a valid {kind} file" in message or "cannot tell which column is the observation" in message
        )


def test_units_of_columns_are_kept(tmp_path):
    schema = pyarrow.schema([
        pyarrow.field("observation", pyarrow.float64(), metadata={"unit": "m", "frame": "world"}),
        pyarrow.field("action", pyarrow.float64()),
    ])  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.table([[1.0], [0.5]], schema=schema), tmp_path / "data.parquet")
    file = open_steps(tmp_path / "data.parquet", {})
    assert file.dimensions("observation").describe() == ["observation [m] in world"]


def test_text_in_place_of_numbers_is_refused(tmp_path):
    path = write_parquet(tmp_path / "data")
    assert "text is of the type string; it must hold numbers" in refusal(open_steps, path, {"observation": ["text"]})
    assert "camera is of the type an image" in refusal(open_steps, path, {"observation": ["camera"]})


def test_what_is_refused_in_a_good_table_is_not_called_damage(tmp_path):
    path = write_arrow(tmp_path / "data")
    message = refusal(open_steps, path, {"observation": ["missing"]})
    assert message.startswith(f"{path} has no 'missing'")
