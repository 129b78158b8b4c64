import json

import numpy as np
import pytest

from drol.errors import InputError
from drol_reproduction.collecting.collected import append_fingerprint, content_sha256, read_fingerprints, read_record

ARRAYS = {
    "b": np.arange(6, dtype=np.float32).reshape(3, 2),
    "a": np.array([True, False, True]),
    "none": np.zeros((0, 4)),
}


def test_the_hash_is_of_the_arrays_and_not_of_the_file(tmp_path):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    np.savez_compressed(tmp_path / "b.npz", **dict(reversed(ARRAYS.items())))
    first = content_sha256(tmp_path / "a.npz")
    assert content_sha256(tmp_path / "b.npz") == first
    assert (
        first == "08ef2244789c6eae4f1480230e8e4734fc8b79ada37ba0c1d91d4ccf80b7e302"
    )  # a recorded hash stays comparable
    changes = [
        {"b": ARRAYS["b"] + 1},
        {"b": ARRAYS["b"].T.copy()},
        {"a": ARRAYS["a"].astype(np.uint8)},
        {"c": np.ones(1)},
    ]
    found = set()
    for change in changes:
        np.savez(tmp_path / "other.npz", **ARRAYS | change)
        found.add(content_sha256(tmp_path / "other.npz"))
    assert len(found | {first}) == 5


def test_large_arrays_are_hashed_in_pieces(tmp_path):
    array = np.arange(1_000_000, dtype=np.float32).reshape(-1, 4)
    np.savez(tmp_path / "a.npz", x=array)
    np.savez(tmp_path / "b.npz", x=np.asfortranarray(array))
    assert content_sha256(tmp_path / "a.npz") == content_sha256(tmp_path / "b.npz")
    array[-1, -1] += 1
    np.savez(tmp_path / "c.npz", x=array)
    assert content_sha256(tmp_path / "a.npz") != content_sha256(tmp_path / "c.npz")


def test_fingerprints_are_appended_and_replaced_by_name_and_command(tmp_path):
    path = tmp_path / "results" / "fingerprints.json"
    assert read_fingerprints(path) == []
    for name, command, seed in (("a", "x", 0), ("b", "x", 0), ("a", "y", 0), ("a", "x", 1)):
        append_fingerprint(path, {"name": name, "command": command, "seed": seed})
    found = [(each["name"], each["command"], each["seed"]) for each in read_fingerprints(path)]
    assert found == [("b", "x", 0), ("a", "y", 0), ("a", "x", 1)]
    assert [each.name for each in path.parent.iterdir()] == ["fingerprints.json"]


@pytest.mark.parametrize("text", ["{", "{}", "[1]", "[" * 100_000])
def test_a_file_that_is_no_list_of_records_is_rejected_and_kept(tmp_path, text):
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(InputError, match="choose another file"):
        append_fingerprint(path, {"name": "a"})
    assert path.read_text() == text


def test_a_record_that_is_not_one_is_rejected(tmp_path):
    assert read_record(tmp_path / "a.npz") is None
    for text in ("{", json.dumps({"files": 3})):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(InputError, match=r"a\.json is not"):
            read_record(tmp_path / "a.npz")
