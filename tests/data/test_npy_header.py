"""Every header of an array is read or rejected in one line."""

import io

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from step_files import refusal

from drol.data.npy_header import read_header
from drol.errors import InputError

ARRAY = np.arange(12, dtype=np.float32).reshape(4, 3)


def content(array=ARRAY) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


WHOLE = content()


def read(data: bytes):
    return read_header(io.BytesIO(data), len(data))


@pytest.mark.parametrize(
    "array", [ARRAY, np.asfortranarray(ARRAY), np.arange(3, dtype=">i8"), np.float64(1), ARRAY[:0]]
)
def test_a_header_says_what_the_array_is(array):
    data = content(array)
    header = read(data)
    assert (header.shape, header.dtype) == (array.shape, array.dtype)
    assert header.column_major == (array.ndim > 1 and not array.flags.c_contiguous)
    assert header.nbytes == array.nbytes == len(data) - header.data_offset


def with_header(text: str) -> bytes:
    """A file whose header is this text, before the bytes of the array."""
    padded = text.encode("latin1").ljust(117) + b"\n"
    return WHOLE[:8] + len(padded).to_bytes(2, "little") + padded + ARRAY.tobytes()


HEADERS = {
    "an open bracket": ("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3 , }", "has a damaged header"),
    "deep nesting": ("(" * 5000, "has a damaged header"),
    "no dictionary": ("[1, 2]", "has a damaged header"),
    "a list as key": ("{[]: 1}", "has a damaged header"),
    "a null": ("{'descr': '<f4\0'}", "has a damaged header"),
    "no type": ("{'descr': 'zz', 'fortran_order': False, 'shape': (4, 3)}", "has a damaged header"),
    "a huge shape": (f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({10**12}, 3)}}", "declares 12,000,000,000"),
    "a negative shape": ("{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -3)}", "it must be numbers"),
    "an endless shape": (f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({10**60}, 0)}}", "declares 0 bytes"),
    "objects": ("{'descr': '|O', 'fortran_order': False, 'shape': (4, 3)}", "holds pickled Python objects"),
    "text": ("{'descr': '<U3', 'fortran_order': False, 'shape': (4,)}", "it must be numbers"),
    "records": ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (12,)}", "it must be numbers"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_is_none_is_refused_in_one_line(text, words):
    message = refusal(read, with_header(text))
    assert words in message
    assert len(message) < 400


def test_every_cut_and_another_version_are_refused():
    for length in range(len(WHOLE)):
        refusal(read, WHOLE[:length])
    refusal(read, WHOLE + b"\0")
    assert "has the unknown npy version (9, 0)" in refusal(read, WHOLE[:6] + b"\x09" + WHOLE[7:])


@settings(deadline=None, max_examples=300)
@given(changes=st.dictionaries(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), min_size=1, max_size=3))
@example(changes={WHOLE.index(b")"): ord(" ")})  # tokenize.TokenError
def test_a_changed_header_is_refused_or_fits_the_bytes_that_are_there(changes):
    data = bytearray(WHOLE)
    for place, value in changes.items():
        data[place] = value
    try:
        header = read(bytes(data))
    except InputError:
        return
    assert header.nbytes == len(data) - header.data_offset
    assert header.dtype.kind in "biuf"


def test_nobody_is_warned_of_text_that_is_no_header(recwarn):
    """`0or` makes Python's parser warn, which would be a line on the screen of a user."""
    refusal(read, with_header("{'descr': 0or 1}"))
    assert not recwarn
