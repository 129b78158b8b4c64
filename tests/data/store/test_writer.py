"""Datasets on disk are complete or absent, and equal the dataset in memory."""

import os

import numpy as np
import pytest
from full_disk import largest_file
from hypothesis import given, settings
from hypothesis import strategies as st
from step_files import ABOUT, write_dataset
from toys import random_rows

from drol.data.dataset import Dataset
from drol.data.store.layout import SPLITS, dataset_names
from drol.data.store.stored import StoredDataset
from drol.data.store.writer import DatasetWriter
from drol.data.trajectory_rows import ROW_ARRAYS
from drol.errors import InputError


def write(root, lengths=(5, 3, 4), **options):
    return write_dataset(root, random_rows(lengths), **options)


def loaded(stored, split="train"):
    return Dataset.from_rows(**{name: np.array(array) for name, array in stored.arrays(split).items()})


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=30),
    pieces=st.integers(1, 9),
    validation=st.sampled_from((0.0, 0.1, 0.3, 0.5)),
    seed=st.integers(0, 5),
)
def test_every_episode_is_in_exactly_one_split(tmp_path_factory, lengths, pieces, validation, seed):
    stored = write(tmp_path_factory.mktemp("store"), lengths, pieces=pieces, validation=validation, seed=seed)
    rows = random_rows(lengths)
    expected = [
        rows["observation"][part] for part in np.split(np.arange(len(rows["last"])), np.flatnonzero(rows["last"]) + 1)
    ]
    expected = sorted(episode.tobytes() for episode in expected if len(episode))
    found = []
    for split in SPLITS:
        if stored.has(split):
            stored.verify(split)
            arrays = stored.arrays(split)
            assert {array.dtype for name, array in arrays.items() if name != "last"} == {np.dtype(np.float32)}
            ends = np.flatnonzero(arrays["last"]) + 1
            found += [part.tobytes() for part in np.split(arrays["observation"], ends) if len(part)]
            assert stored.manifest["splits"][split]["episodes"] == len(ends)
            assert stored.manifest["splits"][split]["transitions"] == len(arrays["last"]) - len(ends)
    assert sorted(found) == expected
    if len(lengths) >= 20 and validation:
        held_out = stored.manifest["splits"]["validation"]["episodes"]
        assert abs(held_out - validation * len(lengths)) <= 2


@pytest.mark.parametrize("pieces", [1, 4, 15])
def test_the_rows_on_disk_are_those_of_a_dataset_in_memory(tmp_path, pieces):
    rows = random_rows((5, 3, 4))
    stored = write(tmp_path, pieces=pieces, validation=0)
    memory = Dataset.from_rows(**rows)
    for name in ROW_ARRAYS:
        np.testing.assert_array_equal(stored.arrays("train")[name], getattr(memory, name))
    assert loaded(stored).fingerprint() == memory.fingerprint() == stored.manifest["splits"]["train"]["fingerprint"]


def test_nothing_is_left_when_writing_fails(tmp_path):
    root = tmp_path / "root"

    def torn():
        with DatasetWriter("mine", root) as writer:
            writer.append(random_rows((5, 3)))
            raise RuntimeError("torn")

    with pytest.raises(RuntimeError, match="torn"):
        torn()
    assert not root.exists()
    write(root, name="other")
    with (
        pytest.raises(InputError, match="not one transition; nothing was written"),
        DatasetWriter("mine", root) as writer,
    ):
        writer.publish(ABOUT)
    assert [path.name for path in root.iterdir()] == ["other"]


def test_a_full_disk_leaves_the_old_dataset(tmp_path, monkeypatch):
    before = write(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, (9, 9), replace=True)
    monkeypatch.undo()
    after = StoredDataset.open("mine", tmp_path)
    assert after.manifest == before.manifest
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_a_killed_process_left_is_cleared(tmp_path):
    (tmp_path / ".mine.partial" / "train").mkdir(parents=True)
    (tmp_path / ".mine.partial" / "train" / "old.npy").write_text("half")
    assert dataset_names(tmp_path) == []
    write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert dataset_names(tmp_path) == ["mine"]


def test_two_processes_do_not_write_one_dataset(tmp_path):
    with DatasetWriter("mine", tmp_path) as first:
        first.append(random_rows((5, 3)))
        with (
            pytest.raises(InputError, match="another process is writing the dataset mine"),
            DatasetWriter("mine", tmp_path),
        ):
            pass
        first.publish(ABOUT)
    StoredDataset.open("mine", tmp_path).verify("train")


def test_a_dataset_is_replaced_only_when_asked(tmp_path):
    write(tmp_path)
    with pytest.raises(InputError, match="exists already; choose another name or pass --replace"):
        write(tmp_path, (9, 9))
    assert write(tmp_path, (9, 9), replace=True).manifest["splits"]["train"]["episodes"] == 2
    (tmp_path / "notes").mkdir()
    with pytest.raises(InputError, match="is not a dataset, so it is not replaced"):
        write(tmp_path, name="notes", replace=True)


@pytest.mark.parametrize(("option", "value"), [("validation", 0.9), ("validation", -0.1), ("seed", -1)])
def test_options_out_of_range_are_refused(tmp_path, option, value):
    with pytest.raises(InputError, match=f"{option} is {value}; it must be"):
        DatasetWriter("mine", tmp_path, **{option: value})


def test_a_kill_in_the_middle_of_replacing_is_recovered(tmp_path):
    before = write(tmp_path)
    (tmp_path / "mine").rename(tmp_path / ".mine.old")  # where `replace_folder` may be killed
    with pytest.raises(InputError, match="exists already"):
        write(tmp_path, (9, 9))
    assert StoredDataset.open("mine", tmp_path).manifest == before.manifest
    (tmp_path / "mine").rename(tmp_path / ".mine.old")
    assert write(tmp_path, (9, 9), replace=True).manifest["splits"]["train"]["episodes"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_is_written_about_a_dataset_must_be_complete(tmp_path):
    with DatasetWriter("mine", tmp_path) as writer:
        writer.append(random_rows((5, 3)))
        with pytest.raises(InputError, match="ends: missing"):
            writer.publish({name: value for name, value in ABOUT.items() if name != "ends"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("exists", [False, True])
def test_a_disk_that_is_full_is_named_and_leaves_what_was_there(tmp_path, exists):
    if exists:
        write(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with largest_file(10_000), pytest.raises(OSError, match="File too large") as caught:
        write(tmp_path, (1000, 1000), replace=exists)
    assert caught.value.filename == str(tmp_path / "mine")
    assert sorted(tmp_path.rglob("*")) == before
