import io
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drol.errors import InputError
from drol_reproduction.collecting.ogbench import unfinished
from drol_reproduction.collecting.ogbench.unfinished import UnfinishedCollection, write_joined

COLLECTION = {"name": "pointmaze-medium-navigate-v0", "seed": 0}


def trajectory(rows, seed=0, buttons=False, picture=False):
    generator = np.random.default_rng(seed)
    arrays = {
        "observations": generator.normal(size=(rows, 3)).astype(np.float32),
        "actions": generator.normal(size=(rows, 2)).astype(np.float32),
        "terminals": np.arange(rows) == rows - 1,
        "qpos": generator.normal(size=(rows, 2)).astype(np.float32),
        "qvel": generator.normal(size=(rows, 2)).astype(np.float32),
    }
    if picture:
        arrays["observations"] = generator.integers(0, 256, (rows, 4, 4, 3)).astype(np.uint8)
    if buttons:
        arrays["button_states"] = generator.integers(0, 2, (rows, 4))
    return arrays


@pytest.fixture
def parts(tmp_path):
    parts = UnfinishedCollection(tmp_path / "mine.parts")
    parts.folder.mkdir()
    return parts


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(2, 9), min_size=1, max_size=6), st.booleans(), st.booleans())
def test_joined_parts_are_the_bytes_that_numpy_would_write(tmp_path_factory, lengths, buttons, picture):
    folder = tmp_path_factory.mktemp("join")
    parts = UnfinishedCollection(folder)
    trajectories = [trajectory(rows, seed, buttons, picture) for seed, rows in enumerate(lengths)]
    for number, each in enumerate(trajectories):
        parts.write(number, each)
    write_joined(folder / "all.npz", [parts.path(number) for number in range(len(lengths))])
    expected = {name: np.concatenate([each[name] for each in trajectories]) for name in trajectories[0]}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **expected)
    with zipfile.ZipFile(folder / "all.npz") as ours, zipfile.ZipFile(buffer) as numpys:
        assert ours.namelist() == numpys.namelist()
        for name in ours.namelist():
            assert ours.read(name) == numpys.read(name)


def test_finished_trajectories_are_those_that_are_whole(parts):
    for number, rows in enumerate((5, 6, 7, 8)):
        parts.write(number, trajectory(rows))
    damaged = bytearray(parts.path(1).read_bytes())
    damaged[100] ^= 0xFF
    parts.path(1).write_bytes(damaged)
    parts.path(2).write_bytes(parts.path(2).read_bytes()[:50])
    (parts.folder / ".000009.npz.123.partial").write_bytes(b"half")
    rows, gone = parts.finished(total=3)
    assert rows == {0: 5}
    assert gone == ["000001.npz", "000002.npz"]
    # Damaged ones and what a kill left are gone; one beyond the total is left for a longer collection.
    assert sorted(path.name for path in parts.folder.iterdir()) == ["000000.npz", "000003.npz"]


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_no_cut_or_flipped_bit_is_taken_for_a_trajectory(tmp_path_factory, data):
    parts = UnfinishedCollection(tmp_path_factory.mktemp("cut"))
    whole = trajectory(5)
    parts.write(0, whole)
    content = bytearray(parts.path(0).read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    parts.path(0).write_bytes(content)
    rows, gone = parts.finished(1)
    if not gone:  # zip files do not use the flipped bit
        assert rows == {0: 5}
        with np.load(parts.path(0)) as file:
            for name, array in whole.items():
                np.testing.assert_array_equal(file[name], array)


def test_a_folder_of_another_collection_is_refused(parts):
    parts.claim(COLLECTION)
    parts.claim(COLLECTION)
    with pytest.raises(InputError) as caught:
        parts.claim(COLLECTION | {"seed": 1})
    assert str(caught.value).startswith(f"{parts.folder} holds trajectories with seed 0, not 1; ")
    assert json.loads((parts.folder / "collection.json").read_text()) == COLLECTION


def test_a_damaged_claim_is_refused(parts):
    (parts.folder / "collection.json").write_text("{")
    with pytest.raises(InputError, match=r"not JSON .*; delete the folder"):
        parts.claim(COLLECTION)


def test_two_commands_at_once_are_refused(parts):
    with parts.locked(), pytest.raises(InputError, match="another process is collecting into"), parts.locked():
        pass
    with parts.locked():
        pass


def test_a_disk_that_is_full_leaves_no_half_file(parts, tmp_path, monkeypatch):
    parts.write(0, trajectory(5))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        parts.join({tmp_path / "mine.npz": [0]})
    assert [path.name for path in tmp_path.iterdir()] == ["mine.parts"]
    assert parts.path(0).exists()


def test_a_kill_between_the_two_files_is_made_good(parts, tmp_path, monkeypatch):
    for number in range(2):
        parts.write(number, trajectory(5, seed=number))
    targets = {tmp_path / "mine.npz": [0], tmp_path / "mine-val.npz": [1]}

    class Killed(BaseException):
        pass

    def kill(folder) -> None:
        if folder == tmp_path:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(unfinished, "sync_folder", kill)
        with pytest.raises(Killed):
            parts.join(targets)
    assert (tmp_path / "mine.npz").exists()
    assert not (tmp_path / "mine-val.npz").exists()
    assert parts.is_joining
    parts.join(targets)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine-val.npz", "mine.npz"]
    with np.load(tmp_path / "mine-val.npz") as file:
        np.testing.assert_array_equal(file["qpos"], trajectory(5, seed=1)["qpos"])
