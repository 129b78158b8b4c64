"""Changed files of a dataset are rejected."""

import numpy as np
import pytest
from step_files import refusal, write_dataset
from toys import random_rows

from drol.data.store.stored import StoredDataset
from drol.data.trajectory_rows import ROW_ARRAYS
from drol.errors import InputError


def write(root, **options):
    return write_dataset(root, random_rows((5, 3, 4)), **options)


def test_a_dataset_knows_its_splits_sizes_and_box(tmp_path):
    stored = write(tmp_path, validation=0.5)
    assert stored.splits == ("train", "validation")
    rows = sum(stored.manifest["splits"][split]["rows"] for split in stored.splits)
    assert sum(stored.nbytes(split) for split in stored.splits) == rows * (4 * (3 + 2 + 1 + 1) + 1)
    assert stored.box.low == (-1.0, -1.0)
    assert write(tmp_path, name="other", validation=0).splits == ("train",)


@pytest.mark.parametrize(
    ("sampling", "rate"),
    [(None, None), ({"unit": "s", "interval": 0.05}, 20.0), ({"unit": "steps", "interval": 1.0}, None),
     ({"unit": "s", "interval": 0.0}, None), ({"unit": "s", "interval": 1 / 30}, 30.0)],
)  # fmt: skip
def test_the_control_rate_is_that_of_the_usual_interval(tmp_path, sampling, rate):
    assert StoredDataset(tmp_path, {"sampling": sampling}).control_rate == rate


def test_verifying_reports_every_byte(tmp_path):
    stored, seen = write(tmp_path), []
    stored.verify("train", seen.append)
    assert sum(seen) == stored.nbytes("train")


def test_a_dataset_whose_replacement_was_killed_is_found(tmp_path):
    before = write(tmp_path)
    (tmp_path / "mine").rename(tmp_path / ".mine.old")
    assert StoredDataset.open("mine", tmp_path).manifest == before.manifest
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_an_unknown_dataset_is_answered_with_those_there_are(tmp_path):
    message = (
        f"unknown dataset 'x'. The folder {tmp_path} holds none, so make one with `drol data import FILE --out NAME`"
    )
    assert refusal(StoredDataset.open, "x", tmp_path) == message
    write(tmp_path)
    message = f"unknown dataset 'x'. The folder {tmp_path} holds mine"
    assert refusal(StoredDataset.open, "x", tmp_path) == message


@pytest.mark.parametrize("name", ROW_ARRAYS)
def test_a_changed_bit_is_found(tmp_path, name):
    stored = write(tmp_path)
    path = stored.folder / "train" / f"{name}.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"{name}.npy does not match its checksum; import the dataset again"):
        stored.verify("train")


def test_a_short_missing_or_linked_array_is_found(tmp_path):
    stored = write(tmp_path)
    path = stored.folder / "train" / "reward.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    with pytest.raises(InputError, match=r"reward.npy declares 60 bytes \(shape \(15,\)\) where the file has 56"):
        stored.arrays("train")
    path.unlink()
    with pytest.raises(InputError, match=r"reward.npy cannot be used"):
        stored.arrays("train")
    (tmp_path / "reward.npy").write_bytes(whole)
    path.symlink_to(tmp_path / "reward.npy")
    with pytest.raises(InputError, match="it is a link"):
        stored.arrays("train")
    path.unlink()
    np.save(path, np.zeros(3, np.float32))
    with pytest.raises(InputError, match="has 3 rows, not those of its manifest"):
        stored.arrays("train")
    np.save(path, np.array([{}] * 13), allow_pickle=True)
    with pytest.raises(InputError, match=r"reward.npy holds pickled Python objects"):
        stored.arrays("train")
