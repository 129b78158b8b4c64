"""Names stay in their folder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from step_files import write_dataset
from toys import random_rows

from drol.data.store.layout import data_root, dataset_folder, dataset_names
from drol.data.store.stored import StoredDataset
from drol.data.store.writer import DatasetWriter
from drol.errors import InputError

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
    write_dataset(tmp_path / "elsewhere", random_rows((5, 3)))
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "mine").symlink_to(tmp_path / "elsewhere" / "mine")
    with pytest.raises(InputError, match="is a link that leads out"):
        StoredDataset.open("mine", tmp_path / "root")


def test_the_root_is_that_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("DROL_DATA", str(tmp_path))
    assert data_root() == tmp_path
    monkeypatch.delenv("DROL_DATA")
    assert str(data_root()) == "datasets"


def test_every_whole_dataset_is_listed(tmp_path):
    assert dataset_names(tmp_path / "absent") == []
    for name in ("b", "a.old", "c"):
        write_dataset(tmp_path, random_rows((5, 3)), name)
    (tmp_path / ".d.partial").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "c").rename(tmp_path / ".c.old")  # of a process that was killed while it replaced c
    assert dataset_names(tmp_path) == ["a.old", "b", "c"]
