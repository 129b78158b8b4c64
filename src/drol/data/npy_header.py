"""Read and check the header of an array in NumPy's format, in an untrusted file."""

import math
import tokenize
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from drol.errors import InputError

VERSIONS = ((1, 0), (2, 0), (3, 0))
NO_HEADER = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, OverflowError, tokenize.TokenError)


NUMBERS, NUMBERS_AND_TEXTS = "biuf", "biufU"  # kinds of NumPy's types


@dataclass(frozen=True)
class Header:
    """The shape and type of an array; the file has exactly the bytes that they declare."""

    shape: tuple[int, ...]
    dtype: np.dtype
    column_major: bool  # Fortran order: columns are contiguous, so a row is spread over the array
    data_offset: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: Any, size: int, kinds: str = NUMBERS) -> Header:
    """Read the header of an array without its data.

    Args:
        stream: The file, at its beginning; on return it is at the beginning of the data.
        size: The size of the file in bytes. The array must fill it exactly, so a header cannot declare more data.
        kinds: The allowed kinds of NumPy's types.

    Raises:
        InputError: If the type is not allowed or the size does not match. The caller puts the name of the array in
            front of the message.
    """
    shape, fortran_order, dtype = parse(stream)
    offset = stream.tell()
    if dtype.hasobject:
        raise InputError(
            "holds pickled Python objects, which could run code; save it as plain arrays of numbers with numpy.savez"
        )
    if dtype.kind not in kinds or min(shape, default=0) < 0 or not dtype.itemsize:
        raise InputError(f"has type {dtype} and shape {shape}; it must be numbers")
    header = Header(tuple(map(int, shape)), dtype, fortran_order and len(shape) > 1, offset)
    if header.nbytes != size - offset:
        raise InputError(f"declares {header.nbytes:,} bytes (shape {shape}) where the file has {size - offset:,}")
    return header


def parse(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, order and type; convert every error that NumPy raises for a damaged header to `InputError`."""
    try:
        version = np.lib.format.read_magic(stream)
        if version not in VERSIONS:
            raise InputError(f"has the unknown npy version {version}")
        read: Any = getattr(np.lib.format, f"read_array_header_{min(version[0], 2)}_0")
        with warnings.catch_warnings():  # Python's parser warns about text that is not a header
            warnings.simplefilter("ignore")
            return read(stream)
    except InputError:
        raise
    except NO_HEADER as error:
        raise InputError(f"has a damaged header ({str(error)[:200]})") from error
