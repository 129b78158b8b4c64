"""Names of files and addresses are checked before anything is fetched or made."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drol.data.download import download, target_path
from drol.errors import InputError


def check(path: Path) -> None:
    raise AssertionError(path)


@pytest.mark.parametrize("name", ["../x.npz", "a/b.npz", "/etc/x", "..", ".hidden", "", "a\n.npz", "x..npz", "a" * 300])
def test_a_name_that_could_leave_its_folder_is_refused_before_anything_is_made(name, tmp_path):
    with pytest.raises(InputError, match="is not a file name"):
        download(name, tmp_path / "new", ["http://127.0.0.1:9/x"], check)
    assert list(tmp_path.iterdir()) == []


@given(name=st.text(max_size=30))
def test_any_name_stays_in_its_folder_or_is_refused(name):
    folder = Path("/data/folder")
    try:
        path = target_path(name, folder)
    except InputError:
        return
    assert path.resolve().parent == folder
    assert path.name == name


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://host/x", "data.npz", "http://", "http://[::1/x"])
def test_only_the_web_is_fetched_from(address, tmp_path):
    with pytest.raises(InputError, match="must begin with http"):
        download("data.npz", tmp_path, [address], check)
