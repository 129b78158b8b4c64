import pytest
from step_files import flat_steps, refusal, write_npz

from drol.data.readers import find_files, kind_of, open_steps


def test_numbers_in_names_are_in_order(tmp_path):
    for number in (10, 2, 1):
        write_npz(tmp_path / f"run_{number}.npz", flat_steps())
    names = [path.name for path in find_files([tmp_path])]
    assert names == ["run_1.npz", "run_2.npz", "run_10.npz"]
    assert [path.name for path in find_files([tmp_path / "run_*.npz"])] == names
    assert [path.name for path in find_files([tmp_path / "run_1*.npz", tmp_path / "run_1.npz"])] == names[::2]


def test_what_is_not_clear_is_refused(tmp_path):
    assert f"no file is called {tmp_path}/*.npz" in refusal(find_files, [tmp_path / "*.npz"])
    (tmp_path / "a.csv").touch()
    (tmp_path / "b.npz").touch()
    assert "holds files of csv and npz; name one kind" in refusal(find_files, [tmp_path])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.xlsx", "is a spreadsheet; save it as CSV"),
        ("a.json", "write its rows as CSV or Parquet"),
        ("a.pkl", "can run code when opened"),
        ("a.mat", "is of MATLAB"),
        ("a.zarr", "is a Zarr store"),
        ("a.what", "has an unknown suffix; it must be one of .npz"),
    ],
)
def test_what_is_not_read_says_what_to_do(tmp_path, name, words):
    (tmp_path / name).touch()
    assert words in refusal(open_steps, tmp_path / name, {})


def test_kinds_come_from_the_ends_of_names(tmp_path):
    for name, kind in (
        ("a.csv.gz", "csv"),
        ("a.TSV", "csv"),
        ("v1.2.npz", "npz"),
        ("x.tfrecord-00000-of-00002", None),
    ):
        assert kind_of(tmp_path / name) == kind
    assert kind_of(tmp_path) is None
