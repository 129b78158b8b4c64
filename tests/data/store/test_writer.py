"""Datasets on disk are whole or not there; names stay in their folder; what was changed is refused."""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import random_rows

from drol.data.dataset import Dataset
from drol.data.files.episodes import ROW_ARRAYS
from drol.data.store.manifest import MANIFEST, digest
from drol.data.store.writer import SPLITS, DatasetWriter, StoredDataset, dataset_folder, dataset_names
from drol.errors import InputError

ABOUT = {
    "action_low": [-1.0, -1.0],
    "action_high": [1.0, 1.0],
    "actions_scaled": False,
    "ends": "flags",
    "fields": {},
    "counts": {},
    "sources": [],
}


def write(root, lengths=(5, 3, 4), name="mine", pieces=1, **options):
    rows = random_rows(lengths)
    with DatasetWriter(name, root, **options) as writer:
        for piece in np.array_split(np.arange(len(rows["last"])), pieces):
            writer.append({key: array[piece] for key, array in rows.items()})
        writer.publish(ABOUT)
    return StoredDataset.open(name, root)


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


BAD_NAMES = ("..", "../x", "a/b", "/tmp/x", "", ".hidden", "a\\b", "x" * 101, "a b", "ä", "a\n", "-x", "~")


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_never_leaves_the_root(tmp_path, name):
    root = tmp_path / "root"
    with pytest.raises(InputError, match="is not allowed; use up to 100 letters"):
        DatasetWriter(name, root)
    with pytest.raises(InputError, match="is not allowed"):
        StoredDataset.open(name, root)
    assert list(tmp_path.iterdir()) == []


@given(name=st.text(max_size=30))
def test_a_name_that_is_allowed_is_a_folder_of_the_root(tmp_path_factory, name):
    root = tmp_path_factory.getbasetemp()
    try:
        folder = dataset_folder(name, root)
    except InputError:
        return
    assert folder.parent == root
    assert folder.name == name


def test_a_link_out_of_the_root_is_refused(tmp_path):
    write(tmp_path / "elsewhere")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "mine").symlink_to(tmp_path / "elsewhere" / "mine")
    with pytest.raises(InputError, match="is a link that leads out"):
        StoredDataset.open("mine", tmp_path / "root")


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


def test_an_unknown_dataset_is_answered_with_those_there_are(tmp_path):
    with pytest.raises(InputError, match=r"there is no dataset 'x' .* make one with `drol data import"):
        StoredDataset.open("x", tmp_path)
    write(tmp_path)
    with pytest.raises(InputError, match="it has mine"):
        StoredDataset.open("x", tmp_path)


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
    with pytest.raises(InputError, match=r"reward.npy cannot be used"):
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
    with pytest.raises(InputError, match=r"reward.npy cannot be used .*"):
        stored.arrays("train")


def signed(manifest):
    return json.dumps(manifest | {"sha256": digest(manifest)})


MANIFESTS = {
    "not JSON": (lambda manifest: "{", "cannot be read"),
    "a list": (lambda manifest: "[]", "is not the manifest of a dataset"),
    "an entry twice": (lambda manifest: '{"format": 1, "format": 1}', "an entry is there twice"),
    "NaN": (lambda manifest: '{"format": NaN}', "NaN is not a number"),
    "deep": (lambda manifest: "[" * 100_000, "cannot be read"),
    "another format": (lambda manifest: signed(manifest | {"format": 2}), "has format 2; this version reads 1"),
    "an unknown entry": (lambda manifest: signed(manifest | {"extra": 1}), "lacks or should not have 'extra'"),
    "a lost entry": (lambda manifest: signed({k: v for k, v in manifest.items() if k != "ends"}), "'ends'"),
    "a changed entry": (lambda manifest: json.dumps(manifest | {"ends": "timeout"}), "does not match its checksum"),
}


@pytest.mark.parametrize(("change", "words"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_is_read_strictly(tmp_path, change, words):
    stored = write(tmp_path)
    (stored.folder / MANIFEST).write_text(change(stored.manifest))
    with pytest.raises(InputError, match=words):
        StoredDataset.open("mine", tmp_path)
