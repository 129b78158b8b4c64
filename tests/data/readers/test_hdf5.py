import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from step_files import refusal as refusal_of

from drol.data.readers.hdf5 import open_hdf5, read_hdf5, write_hdf5
from drol.errors import InputError

h5py = pytest.importorskip("h5py")

NAMES = ("observations", "terminals")
ARRAYS = {
    "observations": np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32),
    "terminals": np.arange(40) % 7 == 0,
    "infos/steps": np.arange(40),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hdf5")


@pytest.fixture(scope="module")
def whole(folder):
    """Return the bytes of a compressed and of an uncompressed file."""
    write_hdf5(folder / "compressed.hdf5", ARRAYS)
    with h5py.File(folder / "stored.hdf5", "w") as file:
        for name, array in ARRAYS.items():
            file.create_dataset(name, data=array)
    return {kind: (folder / f"{kind}.hdf5").read_bytes() for kind in ("compressed", "stored")}


@pytest.fixture(scope="module")
def path(folder):
    return folder / "data.hdf5"


def refusal(path) -> str:
    """The message with which a file is refused: one line that names the path."""
    message = refusal_of(read_hdf5, path, NAMES)
    assert str(path) in message
    return message


def refusal_with(path, put) -> str:
    """The refusal of a file that has `terminals`, and where `put` puts something odd."""
    with h5py.File(path, "w") as file:
        file["terminals"] = ARRAYS["terminals"]
        put(file)
    return refusal(path)


@pytest.mark.parametrize("kind", ["compressed", "stored"])
def test_the_named_arrays_are_read(path, whole, kind):
    path.write_bytes(whole[kind])
    found = read_hdf5(path, NAMES, optional=("infos/steps", "infos/absent", "terminals/absent"))
    assert found.keys() == ARRAYS.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.dtype == ARRAYS[name].dtype
    assert read_hdf5(path, NAMES).keys() == set(NAMES)


def test_groups_can_be_listed(path, whole):
    path.write_bytes(whole["stored"])
    with open_hdf5(path) as file:
        assert file.names() == ["infos", "observations", "terminals"]
        assert file.names("infos") == ["steps"]


@pytest.mark.parametrize("kind", [">f8", "<f8", "<f2", ">i4", "<u1", "?"])
@pytest.mark.parametrize("options", [{}, {"compression": "lzf"}, {"compression": "gzip", "shuffle": True}])
def test_fractions_become_float32_and_the_rest_stays(tmp_path, kind, options):
    array = np.asarray([[0, 1], [1, 0], [1, 1]]).astype(kind)
    with h5py.File(tmp_path / "data.hdf5", "w") as file:
        file.create_dataset("array", data=array, fletcher32=bool(options), **options)
    found = read_hdf5(tmp_path / "data.hdf5", ("array",))["array"]
    assert found.dtype == (np.float32 if array.dtype.kind == "f" else array.dtype.newbyteorder("="))
    np.testing.assert_array_equal(found, array)


def test_an_empty_array_is_read(tmp_path):
    write_hdf5(tmp_path / "data.hdf5", {"array": np.zeros((0, 3))})
    assert read_hdf5(tmp_path / "data.hdf5", ("array",))["array"].shape == (0, 3)


def test_no_second_copy_is_held_while_reading(tmp_path):
    rows = 200_000
    with h5py.File(tmp_path / "data.hdf5", "w") as file:
        file.create_dataset("array", data=np.random.default_rng(0).normal(size=(rows, 8)), chunks=(1000, 8))
    tracemalloc.start()
    found = read_hdf5(tmp_path / "data.hdf5", ("array",))["array"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.nbytes == rows * 8 * 4
    assert peak < 1.2 * found.nbytes


def test_a_missing_file_is_refused(tmp_path):
    assert "does not exist" in refusal(tmp_path / "absent.hdf5")
    assert "does not exist" in refusal(tmp_path)  # a folder is not a file either


def test_missing_arrays_are_named_with_those_that_are_there(path):
    message = refusal_with(path, lambda file: file.create_group("infos"))
    assert "has ['infos', 'terminals'] but lacks ['observations']" in message


@pytest.mark.parametrize("link", ["external", "soft", "soft parent"])
def test_links_are_refused_and_not_followed(tmp_path, whole, link):
    (tmp_path / "other.hdf5").write_bytes(whole["stored"])

    def put(file):
        if link == "external":
            file["observations"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "/observations")
        elif link == "soft":
            file["observations"] = h5py.SoftLink("/terminals")
        else:
            file["observations"] = h5py.SoftLink("/nowhere")

    message = refusal_with(tmp_path / "data.hdf5", put)
    assert ("a link to another file" if link == "external" else "a link") in message
    assert "'observations'" in message


def test_a_link_on_the_way_to_an_array_is_refused(tmp_path, whole):
    (tmp_path / "other.hdf5").write_bytes(whole["stored"])
    with h5py.File(tmp_path / "data.hdf5", "w") as file:
        file["infos"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "/infos")
    with pytest.raises(InputError, match="a link to another file in place of 'infos/steps'"):
        read_hdf5(tmp_path / "data.hdf5", (), optional=("infos/steps",))


def test_values_in_other_files_are_refused(tmp_path, whole):
    (tmp_path / "other.hdf5").write_bytes(whole["stored"])
    (tmp_path / "raw").write_bytes(bytes(480))
    layout = h5py.VirtualLayout(shape=(40, 3), dtype="f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.hdf5"), "observations", shape=(40, 3))
    raw = [(str(tmp_path / "raw"), 0, 480)]
    for put in (
        lambda file: file.create_virtual_dataset("observations", layout),
        lambda file: file.create_dataset("observations", (40, 3), "f4", external=raw),
    ):
        assert "keeps its values in other files" in refusal_with(tmp_path / "data.hdf5", put)


def test_a_filter_plugin_is_refused(path):
    def put(file):
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((40, 3))
        properties.set_filter(32015, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((40, 3))
        array = h5py.h5d.create(file.id, b"observations", h5py.h5t.IEEE_F32LE, space, properties)
        array.write(h5py.h5s.ALL, h5py.h5s.ALL, ARRAYS["observations"])

    assert "needs the filter plugin 32015; it must use one of gzip" in refusal_with(path, put)


@pytest.mark.parametrize(
    "values", [np.asarray([b"text"]), np.zeros(3, [("a", "f4")]), np.zeros(3, "c8"), h5py.Empty("f4")]
)
def test_anything_but_numbers_is_refused(path, values):
    refusal_with(path, lambda file: file.create_dataset("observations", data=values))


def test_variable_length_values_are_refused(path):
    kind = h5py.vlen_dtype(np.float32)
    assert "has the type object" in refusal_with(path, lambda file: file.create_dataset("observations", (3,), kind))


def test_a_group_in_place_of_an_array_is_refused(path):
    assert "is not an array" in refusal_with(path, lambda file: file.create_group("observations"))


@pytest.mark.parametrize("options", [{"chunks": (1000, 1000)}, {"chunks": (1000, 1000), "compression": "gzip"}])
def test_an_array_that_claims_more_than_it_stores_is_refused(path, options):
    def put(file):
        array = file.create_dataset("observations", (10**9, 10**3), "f4", **options)
        array[0, 0] = 1.0

    assert "declares 1000000000000 values but stores" in refusal_with(path, put)
    assert path.stat().st_size < 10**7


def test_a_constant_array_is_not_taken_for_damaged(tmp_path):
    write_hdf5(tmp_path / "data.hdf5", {"timeouts": np.zeros(2_000_000, bool), "rewards": np.zeros(2_000_000)})
    found = read_hdf5(tmp_path / "data.hdf5", ("timeouts", "rewards"))
    assert not found["timeouts"].any()
    assert not found["rewards"].any()


@settings(deadline=None, max_examples=60)
@given(kind=st.sampled_from(["compressed", "stored"]), share=st.floats(0, 1, exclude_max=True))
@example(kind="stored", share=0.9999)
def test_a_truncated_file_is_refused(path, whole, kind, share):
    content = whole[kind]
    path.write_bytes(content[: int(share * len(content))])
    refusal(path)


@settings(deadline=None, max_examples=60)
@given(content=st.binary(max_size=300), start=st.sampled_from([b"", b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"]))
def test_random_bytes_are_refused(path, content, start):
    path.write_bytes(start + content)
    refusal(path)


@settings(deadline=None, max_examples=120)
@given(
    kind=st.sampled_from(["compressed", "stored"]), share=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255)
)
def test_a_changed_byte_is_refused_in_one_line_or_numbers_are_read(path, whole, kind, share, mask):
    """HDF5 has no checksum by default, so a changed number of an array that is not compressed goes unnoticed."""
    content = bytearray(whole[kind])
    content[int(share * len(content))] ^= mask
    path.write_bytes(content)
    try:
        found = read_hdf5(path, NAMES)
    except InputError:
        refusal(path)
    else:
        assert all(array.dtype.kind in "biuf" for array in found.values())


def test_an_existing_file_is_not_written_over(tmp_path):
    (tmp_path / "mine.hdf5").write_text("mine")
    with pytest.raises(InputError, match=r"mine\.hdf5 exists already; choose another name, nothing was written"):
        write_hdf5(tmp_path / "mine.hdf5", ARRAYS)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("mine.hdf5", "mine")]


def test_a_file_that_could_not_be_finished_is_not_there(tmp_path):
    with pytest.raises(TypeError):
        write_hdf5(tmp_path / "new" / "mine.hdf5", {"good": np.ones(3), "bad": np.asarray([object()])})
    assert list((tmp_path / "new").iterdir()) == []


def test_without_h5py_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "h5py", None)
    message = refusal_of(read_hdf5, tmp_path / "data.hdf5", NAMES)
    assert message == "HDF5 files need the package h5py; install it with: pip install 'drol[hdf5]'"
