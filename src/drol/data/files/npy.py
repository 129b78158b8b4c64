"""The header of an array in NumPy's format, in a file that anybody may have written."""

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
    """Shape and type of an array of numbers, whose bytes are all there."""

    shape: tuple[int, ...]
    dtype: np.dtype
    column_major: bool  # Fortran order: the numbers of a column follow one another, so a row is spread over the array
    data_offset: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: Any, size: int, kinds: str = NUMBERS) -> Header:
    """Read the header of an array and nothing of its data.

    Args:
        stream: The file, at its beginning; it is left where the data begins.
        size: The bytes that the file has; the array must fill them exactly, so no header can claim more than is there.
        kinds: The kinds of NumPy's types that are allowed.

    Raises:
        InputError: If these are not plain numbers; the message is to follow the name of the array.
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
    """Return shape, order and type; what NumPy raises over a damaged header depends on where the damage is."""
    try:
        version = np.lib.format.read_magic(stream)
        if version not in VERSIONS:
            raise InputError(f"has the unknown npy version {version}")
        read: Any = getattr(np.lib.format, f"read_array_header_{min(version[0], 2)}_0")
        with warnings.catch_warnings():  # of Python's parser, about text that is no header
            warnings.simplefilter("ignore")
            return read(stream)
    except InputError:
        raise
    except NO_HEADER as error:
        raise InputError(f"has a damaged header ({str(error)[:200]})") from error
