"""A forged dataset with correct checksums is rejected in one line by every command."""

import json
import shutil

import numpy as np
import pytest
from step_files import refusal, write_dataset
from toys import random_rows

from drol.data.importing.audit import audit_stored
from drol.data.on_disk import OnDiskDataset
from drol.data.store.manifest import digest
from drol.data.store.stored import StoredDataset, read_checksums
from drol.tasks import own_data


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.setenv("DROL_DATA", str(tmp_path))
    return write_dataset(tmp_path, random_rows((5, 3, 4)), validation=0.5)


def sign(stored, split=None, **entries):
    """Make all checksums of a dataset right, after other entries were put into its manifest."""
    manifest = stored.manifest | entries
    if split:
        changed = manifest["splits"][split] | read_checksums(stored.folder, split)
        manifest["splits"] = manifest["splits"] | {split: changed}
    (stored.folder / "dataset.json").write_text(json.dumps(manifest | {"sha256": digest(manifest)}))


def forge(stored, split, name, change):
    """Replace an array by what a function makes of it."""
    path = stored.folder / split / f"{name}.npy"
    np.save(path, change(np.load(path)))
    sign(stored, split)


def nan_at(index):
    def change(array):
        array[index] = np.nan
        return array

    return change


def put(index, value):
    def change(array):
        array[index] = value
        return array

    return change


def every_refusal(stored) -> set[str]:
    """What checking, training and listing say; all must say something."""
    (entry,) = own_data.SOURCE.datasets()
    check = refusal(audit_stored, "mine")
    train = refusal(own_data.SOURCE.load, "files/mine")
    return {check, train, *([entry.damage] if entry.damage else [])}


SHAPES = {
    "other columns": ("validation", "observation", lambda array: array[:, :1], "shape [1] where train has [3]"),
    "other actions": ("train", "action", lambda array: array[:, :1], "actions of another size than its manifest"),
    "other rows": ("train", "reward", lambda array: array[:3], "has 3 rows, not those of its manifest"),
    "double numbers": ("train", "observation", lambda array: array.astype(np.float64), "holds float64 of shape"),
    "a column too much": ("train", "reward", lambda array: array[:, None], "holds float32 of shape"),
    "no columns": ("train", "observation", lambda array: array[:, :0], "holds float32 of shape"),
    "columns first": ("train", "observation", np.asfortranarray, "holds float32 of shape"),
    "bytes that are no images": ("train", "observation", lambda array: array.astype(np.uint8), "holds uint8 of shape"),
}  # fmt: skip


@pytest.mark.parametrize(("split", "name", "change", "words"), SHAPES.values(), ids=SHAPES)
def test_arrays_of_another_shape_are_refused_by_all_in_the_same_words(stored, split, name, change, words):
    forge(stored, split, name, change)
    (message,) = every_refusal(stored)
    assert words in message, message


VALUES = {
    "NaN in an observation": ("observation", nan_at((3, 1)), "observation has 1 values that are NaN or infinite"),
    "an infinite reward": ("reward", put(0, np.inf), "reward has 1 values that are NaN or infinite"),
    "NaN in an action": ("action", nan_at((0, 0)), "action has 1 values that are NaN or infinite"),
    "an action outside": ("action", put((0, 0), 7), "actions reach 7; they must lie in [-1, 1]"),
    "no end": ("last", lambda last: np.zeros_like(last), "does not mark the ends"),
    "only ends": ("last", lambda last: np.ones_like(last), "does not mark the ends"),
    "an end at the start": ("last", lambda last: np.roll(last, 1), "does not mark the ends"),
    "a truth of 2": ("last", lambda last: (2 * last.astype(np.uint8)).view(bool), "does not mark the ends"),
    "a reward after the end": ("reward", put(-1, 1), "does not mark the ends"),
    "an action after the end": ("action", put(-1, 0.125), "does not mark the ends"),
    "NaN after the end": ("action", nan_at(-1), "does not mark the ends"),
}


@pytest.mark.parametrize(("name", "change", "words"), VALUES.values(), ids=VALUES)
def test_values_that_no_import_writes_are_refused(stored, name, change, words):
    forge(stored, "train", name, change)
    for message in every_refusal(stored):
        assert words in message, message


def test_what_stays_on_disk_is_checked_as_far_as_it_is_held_in_memory(stored):
    forge(stored, "train", "reward", nan_at(0))
    forged = StoredDataset.open("mine")
    assert "reward has 1 values that are NaN" in refusal(OnDiskDataset.open, forged, "train")


def test_a_fingerprint_of_other_data_is_refused(stored):
    splits = json.loads(json.dumps(stored.manifest["splits"]))
    splits["train"]["fingerprint"] = "0" * 64
    sign(stored, splits=splits)
    assert "mine/train does not match its fingerprint" in every_refusal(stored).pop()


def test_folders_and_files_that_lead_out_of_the_dataset_are_refused(stored, tmp_path):
    outside = tmp_path.with_name(f"{tmp_path.name}-outside")
    shutil.copytree(stored.folder, outside)
    shutil.rmtree(stored.folder / "train")
    (stored.folder / "train").symlink_to(outside / "train")
    assert "train/observation.npy cannot be used (it is a link)" in every_refusal(stored).pop()
    (stored.folder / "train").unlink()
    shutil.copytree(outside / "train", stored.folder / "train")
    audit_stored("mine")
    (stored.folder / "dataset.json").unlink()
    (stored.folder / "dataset.json").symlink_to(outside / "dataset.json")
    assert "dataset.json cannot be used (it is a link)" in every_refusal(stored).pop()
