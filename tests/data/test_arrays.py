import io

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drol.data.arrays import read_npz
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
    with pytest.raises(InputError) as caught:
        read_npz(path, NAMES)
    message = str(caught.value)
    assert "\n" not in message
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
    assert "plain arrays" in refusal(path)
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
