"""Invalid files are reported and leave no dataset."""

import io
import json
import re
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from step_files import COUNT, FORMATS, flat_steps, write_dataset, write_hdf5, write_minari, write_npz
from step_files import refusal as refusal_of
from toys import random_rows

from drol.data.dataset import Dataset
from drol.data.importing.audit import audit_stored
from drol.data.importing.import_files import check_size, import_files, open_files
from drol.errors import InputError


@pytest.fixture
def root(tmp_path):
    return tmp_path / "datasets"


def refusal(root, paths, mapping=None, **options) -> str:
    """The one line with which files are refused; nothing is written."""
    message = refusal_of(import_files, paths, "mine", mapping, root=root, **options)
    assert not root.exists()
    return message


@pytest.fixture(scope="module")
def expected():
    """The fingerprint of the steps as they are."""
    steps = flat_steps()
    names = ("observations", "actions", "rewards", "terminals", "timeouts")
    return Dataset.from_arrays(*(steps[name] for name in names)).fingerprint()


def pickled(path):
    np.savez(path, **(flat_steps() | {"observations": np.array([{}] * COUNT)}))


def bomb(path):
    """A few kilobytes that claim to be a terabyte."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 38, 1)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in flat_steps().items():
            data = io.BytesIO()
            np.save(data, array)
            file.writestr(f"{name}.npy", header.getvalue() + bytes(1000) if name == "observations" else data.getvalue())


def damaged_header(path):
    """An archive whose checksums are right; the header of an array has lost a bracket."""
    write_npz(path, flat_steps())
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content.replace(b")", b" ", 1) if name == "rewards.npy" else content)


def ragged_lists(path):
    columns = {"observation": [[1.0, 2.0], [1.0]], "action": [0.5, 0.5], "reward": [0.0, 0.0], "terminal": [0, 1]}
    pyarrow.parquet.write_table(pyarrow.table(columns | {"timeout": [0, 0]}), path)


def linked(path):
    write_hdf5(path, {name: array for name, array in flat_steps().items() if name != "observations"})
    with h5py.File(path, "a") as file:
        file["observations"] = h5py.ExternalLink("/etc/passwd", "x")


def ragged_episodes(path):
    write_minari(path, flat_steps())
    with h5py.File(path, "a") as file:
        del file["episode_2/rewards"]
        file["episode_2/rewards"] = np.zeros(3)


def text(content):
    return lambda path: path.write_text(content)


HEADER = "observation_0,action_0,reward,terminal,timeout\n"  # the other faults of CSV files are in test_csv_tables.py
FILES = {
    "pickles in npz": ("data.npz", pickled, "'observations' holds pickled Python objects"),
    "a zip bomb": ("data.npz", bomb, "'observations' declares"),
    "a damaged header": ("data.npz", damaged_header, "the array 'rewards' has a damaged header"),
    "one array": ("data.npy", lambda path: np.save(path, np.zeros(3)), "is not imported: such files can run code"),
    "a pickle": ("data.pkl", lambda path: path.write_bytes(b"\x80\x04."), "is not imported: such files can run code"),
    "no npz": ("data.npz", lambda path: path.write_bytes(b"PK\x03\x04" + bytes(50)), "truncated or damaged"),
    "no hdf5": ("data.h5", lambda path: path.write_bytes(bytes(99)), "is not a valid HDF5 file"),
    "no parquet": ("data.parquet", lambda path: path.write_bytes(bytes(99)), "is not a valid Parquet file"),
    "a link in hdf5": ("data.hdf5", linked, "has a link to another file in place of 'observations'"),
    "ragged lists": ("data.parquet", ragged_lists, "observation has lists of 1 to 2 numbers; all must be equally long"),
    "ragged episodes": ("data.hdf5", ragged_episodes, "different numbers of steps .*episode_2/rewards 3"),
    "unequal arrays": (
        "data.npz", lambda path: np.savez(path, **(flat_steps() | {"rewards": np.zeros(9)})), "rewards 9",
    ),
    "only a header": ("data.csv", text(HEADER), "holds no step"),
    "an odd flag": ("data.csv", text(HEADER + "1,0,0,maybe,0\n" * 3), "column 'terminal' must hold numbers"),
    "unknown names": ("data.csv", text("a,b\n1,2\n"), "cannot tell which column is the observation; it has 'a', 'b'"),
    "another suffix": ("data.abc", text(""), "has an unknown suffix"),
    "a spreadsheet": ("data.xlsx", text(""), "is a spreadsheet; save it as CSV"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "write", "words"), FILES.values(), ids=FILES)
def test_a_bad_file_is_named_and_nothing_is_written(tmp_path, root, name, write, words):
    write(tmp_path / name)
    message = refusal(root, [tmp_path / name])
    assert re.search(words, message), message
    assert name in message


def test_what_is_not_there_is_refused(tmp_path, root):
    assert "does not exist" in refusal(root, [tmp_path / "absent.npz"])
    (tmp_path / "empty").mkdir()
    assert "holds no file that can be read" in refusal(root, [tmp_path / "empty"])
    assert "no file was named" in refusal(root, [])
    write_npz(tmp_path / "data.npz", flat_steps())
    assert "has no 'pixels'; it has 'observations'" in refusal(
        root, [tmp_path / "data.npz"], {"observation": ["pixels"]}
    )


def test_more_than_the_limit_or_the_disk_is_refused_before_reading(tmp_path, root):
    write_npz(tmp_path / "data.npz", flat_steps())
    assert "--max-bytes allows 100 bytes" in refusal(root, [tmp_path / "data.npz"], max_bytes=100)
    files = open_files([tmp_path / "data.npz"], {})
    files[0].nbytes = 1 << 62
    assert re.search(
        r"the files hold .* GB, and .* has .* free; make room first", refusal_of(check_size, files, root, None)
    )


def damage(content: bytes, data) -> bytes:
    """Return content that is truncated or has up to four changed bytes."""
    if data.draw(st.booleans()):
        return content[: data.draw(st.integers(0, len(content) - 1))]
    changed = bytearray(content)
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4, unique=True)):
        changed[position] ^= data.draw(st.integers(1, 255))
    return bytes(changed)


def import_damaged(folder, kind, data):
    """The dataset that damaged files give; None if they are refused."""
    name, write = FORMATS[kind]
    path, root = folder / name, folder / "datasets"
    write(path, flat_steps())
    path.write_bytes(damage(path.read_bytes(), data))
    try:
        return import_files([path], "mine", root=root, validation=0)
    except InputError:
        assert not root.exists()
        return None


@settings(deadline=None, max_examples=60)
@given(data=st.data(), kind=st.sampled_from(["npz", "compressed npz"]))
def test_damage_to_an_npz_file_is_refused_or_changes_nothing(tmp_path_factory, expected, data, kind):
    stored = import_damaged(tmp_path_factory.mktemp("damaged"), kind, data)
    assert stored is None or stored.manifest["splits"]["train"]["fingerprint"] == expected


@settings(deadline=None, max_examples=60)
@given(data=st.data(), kind=st.sampled_from(["hdf5", "csv", "parquet"]))
def test_damage_to_a_file_without_checksums_is_refused_or_gives_usable_numbers(tmp_path_factory, data, kind):
    """A digit of a CSV file that became another cannot be noticed, but nothing else than numbers may come of it."""
    stored = import_damaged(tmp_path_factory.mktemp("damaged"), kind, data)
    if stored is not None:
        stored.verify("train")
        loaded = Dataset.from_rows(**{name: np.array(array) for name, array in stored.arrays("train").items()})
        assert 0 < loaded.size <= COUNT
        assert loaded.spec.action_size <= 2
        assert loaded.fingerprint() == stored.manifest["splits"]["train"]["fingerprint"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a good dataset."""
    root = tmp_path_factory.mktemp("whole")
    stored = write_dataset(root, random_rows((5, 3, 4)), validation=0.5)
    return {path.relative_to(root): path.read_bytes() for path in sorted(stored.folder.rglob("*.*"))}


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_damage_to_a_dataset_is_refused_or_changes_nothing(tmp_path_factory, whole, data):
    root = tmp_path_factory.mktemp("damaged")
    damaged = data.draw(st.sampled_from(sorted(whole)))
    for name, content in whole.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(damage(content, data) if name == damaged else content)
    try:
        audit = audit_stored("mine", root)
    except InputError:
        return
    manifest = json.loads(whole[Path("mine/dataset.json")])
    assert json.loads(json.dumps(audit.stored.manifest)) == manifest  # a pair is a list in JSON
    assert audit.statistics.transitions == sum(split["transitions"] for split in manifest["splits"].values())
