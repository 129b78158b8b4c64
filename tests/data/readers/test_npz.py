import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from step_files import refusal as refusal_of

from drol.data.readers import npz
from drol.data.readers.npz import check_npz, read_npz
from drol.errors import InputError

NAMES = ("observations", "actions")
ARRAYS = {
    "observations": np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32),
    "actions": np.arange(80, dtype=np.float32).reshape(40, 2),
    "extra": np.ones(3),
}


def file_of(save) -> bytes:
    buffer = io.BytesIO()
    save(buffer, **ARRAYS)
    return buffer.getvalue()


WHOLE = {"stored": file_of(np.savez), "compressed": file_of(np.savez_compressed)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("arrays") / "data.npz"


def refusal(path) -> str:
    """The message with which a file is refused: one line that names the path."""
    message = refusal_of(read_npz, path, NAMES)
    assert str(path) in message
    return message


@pytest.mark.parametrize("kind", WHOLE)
def test_the_named_arrays_are_read(path, kind):
    path.write_bytes(WHOLE[kind])
    found = read_npz(path, NAMES, optional=("extra", "absent"))
    assert found.keys() == {"observations", "actions", "extra"}
    for name, array in found.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.dtype == ARRAYS[name].dtype
    assert read_npz(path, NAMES).keys() == set(NAMES)


def test_a_missing_file_is_refused(tmp_path):
    assert "does not exist" in refusal(tmp_path / "absent.npz")
    assert "does not exist" in refusal(tmp_path)  # a folder is not a file either


def test_an_empty_file_is_refused(path):
    path.write_bytes(b"")
    refusal(path)


def test_missing_arrays_are_named_with_those_that_are_there(path):
    np.savez(path, actions=ARRAYS["actions"], other=np.ones(2))
    message = refusal(path)
    assert "lacks ['observations']" in message
    assert "['actions', 'other']" in message


def test_a_single_array_is_refused(path):
    with path.open("wb") as file:
        np.save(file, ARRAYS["actions"])
    assert "single array" in refusal(path)


def test_pickled_arrays_are_refused_and_not_unpickled(path, tmp_path):
    class Trap:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'sprung')!r}, 'w').close()",))

    np.savez(path, observations=np.asarray([Trap()], object), actions=ARRAYS["actions"])
    message = refusal(path)
    assert "'observations' holds pickled Python objects" in message
    assert "numpy.savez" in message  # what to do instead
    with pytest.raises(InputError):
        check_npz(path, NAMES)
    assert not (tmp_path / "sprung").exists()


@settings(deadline=None, max_examples=150)
@given(kind=st.sampled_from(sorted(WHOLE)), share=st.floats(0, 1, exclude_max=True))
@example(kind="stored", share=0.999)
def test_a_truncated_file_is_refused(path, kind, share):
    content = WHOLE[kind]
    path.write_bytes(content[: int(share * len(content))])
    refusal(path)


@settings(deadline=None, max_examples=100)
@given(
    content=st.binary(max_size=300), start=st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY\x01\x00"])
)
def test_random_bytes_are_refused(path, content, start):
    path.write_bytes(start + content)
    refusal(path)


@settings(deadline=None, max_examples=400)
@given(
    kind=st.sampled_from(sorted(WHOLE)), from_end=st.booleans(), position=st.integers(0, 600), mask=st.integers(1, 255)
)
def test_a_changed_byte_is_refused_or_changes_nothing(path, kind, from_end, position, mask):
    content = bytearray(WHOLE[kind])
    content[-1 - position if from_end else position] ^= mask  # the folder of the archive is at its end
    path.write_bytes(content)
    try:
        found = read_npz(path, NAMES)
    except InputError:
        refusal(path)
    else:
        for name in NAMES:
            np.testing.assert_array_equal(found[name], ARRAYS[name])


def header(shape, dtype="<f4") -> bytes:
    """The first bytes of an npy file that declares this shape."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"shape": shape, "fortran_order": False, "descr": dtype})
    return buffer.getvalue()


def write_zip(path, members: dict[str, bytes], method=zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def refusal_and_peak(path) -> tuple[str, int]:
    """The message, and the most memory that was held while it was found."""
    tracemalloc.start()
    try:
        return refusal(path), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ACTIONS = header((1, 1)) + bytes(4)


def test_a_huge_declared_shape_is_refused_by_its_header(path):
    for shape in ((10**12, 10**3), (2**62, 4), (40, 3)):
        write_zip(path, {"observations.npy": header(shape) + bytes(100), "actions.npy": ACTIONS})
        message, peak = refusal_and_peak(path)
        assert "'observations' declares" in message
        assert "where the file has 100" in message
        assert peak < 10_000_000


def test_a_zip_bomb_is_refused_before_it_is_unpacked(path, monkeypatch):
    zeros = 20_000_000
    write_zip(path, {"observations.npy": header((zeros // 4,)) + bytes(zeros), "actions.npy": ACTIONS})
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(npz, "free_memory", lambda: 10_000_000)
    message, peak = refusal_and_peak(path)
    assert "more than the 10,000,000 bytes of memory that are free" in message
    assert peak < 2_000_000
    monkeypatch.setattr(npz, "free_memory", lambda: None)
    monkeypatch.setenv("DROL_MAX_BYTES", "1000")
    assert "more than the maximum of 1,000; $DROL_MAX_BYTES sets it" in refusal(path)
    monkeypatch.setenv("DROL_MAX_BYTES", "much")
    assert "$DROL_MAX_BYTES is 'much'; it must be a whole number of bytes" in refusal(path)
    with pytest.raises(InputError, match="maximum of 5"):
        read_npz(path, NAMES, max_bytes=5)


def test_a_lie_about_the_unpacked_size_is_refused(path):
    write_zip(path, {"observations.npy": header((40,)) + bytes(160), "actions.npy": ACTIONS})
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = struct.pack("<I", 4_000_000_000)  # the unpacked size in the list of members
    path.write_bytes(content)
    message, peak = refusal_and_peak(path)
    assert "claims 4,000,000,000 bytes, more than can be packed in its part" in message
    assert peak < 10_000_000


def test_many_members_are_refused(path):
    write_zip(path, {"observations.npy": ACTIONS, "actions.npy": ACTIONS, **{f"{n}.npy": b"" for n in range(1000)}})
    assert "1002 arrays; the limit is 1000" in refusal(path)


def test_a_list_of_members_that_is_too_long_is_not_read(path, monkeypatch):
    monkeypatch.setattr(npz, "MAX_LIST_BYTES", 100_000)
    write_zip(path, {"observations.npy": ACTIONS, "actions.npy": ACTIONS, **{f"{n:0200d}": b"" for n in range(900)}})
    message, peak = refusal_and_peak(path)
    assert "list of members is longer than 100,000 bytes" in message
    assert peak < 1_500_000


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packings_are_refused(path, method):
    write_zip(path, {"observations.npy": ACTIONS, "actions.npy": ACTIONS}, method)
    assert "only deflate is read" in refusal(path)


def test_an_encrypted_member_is_refused(path):
    write_zip(path, {"observations.npy": ACTIONS, "actions.npy": ACTIONS})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    assert "encrypted" in refusal(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(path):
    with zipfile.ZipFile(path, "w") as archive:
        for _ in range(2):
            archive.writestr("observations.npy", ACTIONS)
        archive.writestr("actions.npy", ACTIONS)
    assert "two arrays of one name" in refusal(path)


@pytest.mark.parametrize("dtype", ["<U5", "<c8", "<M8[s]", "|V4"])
def test_what_is_not_a_number_is_refused(path, dtype):
    np.savez(path, observations=np.zeros(3, dtype), actions=np.zeros(3))
    assert "must be numbers" in refusal(path)


def test_a_member_whose_name_leaves_the_folder_writes_nothing(tmp_path):
    path = tmp_path / "folder" / "data.npz"
    path.parent.mkdir()
    write_zip(path, {"../observations.npy": ACTIONS, "/actions.npy": ACTIONS})
    assert "lacks ['observations', 'actions']" in refusal(path)
    assert list(tmp_path.iterdir()) == [path.parent]
    assert list(path.parent.iterdir()) == [path]


@settings(deadline=None, max_examples=60)
@given(
    array=st_numpy.arrays(
        st_numpy.boolean_dtypes() | st_numpy.integer_dtypes() | st_numpy.floating_dtypes(),
        st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
    ),
    order=st.sampled_from("CF"),
    block=st.integers(1, 64),
    packed=st.booleans(),
)
def test_every_array_of_numbers_is_read_as_numpy_reads_it(path, array, order, block, packed):
    (np.savez_compressed if packed else np.savez)(path, observations=np.asarray(array, order=order), actions=array)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(npz, "BLOCK_BYTES", block)
        found = read_npz(path, NAMES)
        np.testing.assert_array_equal(found["observations"], array)
        np.testing.assert_array_equal(found["actions"], array)
        assert found["observations"].dtype == array.dtype.newbyteorder("=")
        if array.ndim:
            found = read_npz(path, NAMES, transforms={"observations": lambda rows: rows != 0})
            np.testing.assert_array_equal(found["observations"], array != 0)
    check_npz(path, NAMES)


def test_what_a_transform_drops_is_never_held(path):
    np.savez_compressed(path, observations=np.ones((50_000, 100), np.float32), actions=np.ones((50_000, 1)))
    tracemalloc.start()
    found = read_npz(path, NAMES, transforms={"observations": lambda rows: rows[:, :1].copy()})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found["observations"].shape == (50_000, 1)
    assert peak < 5_000_000  # of the 20 MB in the file


def test_arrays_are_aligned_so_that_jax_need_not_copy_them(path):
    path.write_bytes(WHOLE["compressed"])
    for array in read_npz(path, NAMES).values():
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous


def test_a_file_is_checked_to_its_last_byte(path):
    path.write_bytes(WHOLE["compressed"])
    check_npz(path, NAMES)
    content = bytearray(WHOLE["stored"])
    content[content.index(ARRAYS["extra"].tobytes())] ^= 1  # in an array that was not requested
    path.write_bytes(content)
    assert read_npz(path, NAMES).keys() == set(NAMES)
    with pytest.raises(InputError, match="damaged"):
        check_npz(path, NAMES)
