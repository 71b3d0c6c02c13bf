"""Convert between NumPy arrays and pyarrow columns without a copy where possible.

pyarrow's own ways (`pyarrow.array`, `to_numpy`, `pyarrow.scalar`; before version 26 `to_pandas_dtype`) load
pandas where it is installed, which takes a quarter of a second; they are used only on the way to an error,
and for text.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds numbers, or only nulls."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(test(kind) for test in tests)


def column_of(values: NDArray, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers as an Arrow column, with nulls where `missing` is True.

    Examples
    --------
    >>> column_of(np.array([1.5, 2.5]), np.array([False, True])).to_pylist()
    [1.5, None]
    """
    valid = None if missing is None else np.packbits(~missing, bitorder="little")
    return packed_column(np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")), valid)


def packed_column(values: NDArray, valid: NDArray[np.uint8] | None) -> pa.Array:
    """Contiguous numbers as an Arrow column, with nulls where a bit of `valid` (lowest first) is not set."""
    bits = None if valid is None else pa.py_buffer(valid)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bits, pa.py_buffer(values)])


def floats_of(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """A column of numbers as floats, with NaN for nulls.

    Examples
    --------
    >>> floats_of(pa.chunked_array([[1, None], [3]])).tolist()
    [1.0, nan, 3.0]
    >>> from decimal import Decimal
    >>> floats_of(pa.chunked_array([[Decimal("0.830")]])).tolist()
    [0.83]
    """
    if pa.types.is_decimal(column.type):  # the cast of those is wrong in the last bit
        column = column.cast(pa.string())
    return _values(column.cast(pa.float64(), safe=False), np.nan)


def integers_of(column: pa.ChunkedArray, blank: int) -> NDArray[np.int64]:
    """A column as whole numbers below 2^63, with `blank` for nulls."""
    return _values(column.cast(pa.int64()), blank)


def feature_of(column: pa.ChunkedArray) -> NDArray | None:
    """A column as a NumPy array of its own type; numbers with nulls become floats, dates become text.

    None if it holds something else, or nothing.
    """
    kind = column.type
    if pa.types.is_temporal(kind) or pa.types.is_dictionary(kind):
        column = column.cast(pa.string())
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return (
            None if column.null_count == len(column) else np.array(column.fill_null("").to_pylist(), object)
        )
    if pa.types.is_boolean(kind) and column.null_count == 0:
        return _values(column.cast(pa.uint8()), 0).astype(bool)
    if not (is_number(kind) or pa.types.is_boolean(kind)) or (pa.types.is_null(kind) and len(column)):
        return None
    if pa.types.is_floating(kind) or (pa.types.is_integer(kind) and column.null_count == 0):
        return _values(column, np.nan)
    return floats_of(column)


def feature_column(name: str, values: NDArray) -> pa.Array:
    """Numbers, booleans or text as an Arrow column.

    Raises
    ------
    InputError
        If they are something else.
    """
    if values.dtype.kind in "iuf":
        return column_of(values.astype(np.float32) if values.dtype == np.float16 else values)
    if values.dtype.kind == "b":
        return column_of(values.astype(np.uint8)).cast(pa.bool_())
    try:
        column = pa.array(values) if len(values) else pa.array([], pa.string())  # of texts that none has
    except (pa.ArrowException, TypeError, ValueError):
        column = pa.nulls(0)
    if not pa.types.is_string(column.type):
        raise InputError(
            f"The feature {name!r} holds {values.dtype}; files take numbers and text. Convert it."
        )
    return column


def _values(column: pa.ChunkedArray, blank: float) -> NDArray:
    if column.null_count:
        empty = pa.Array.from_buffers(column.type, 0, [None, pa.py_buffer(b"")])
        filler = np.full(len(column), blank, np.from_dlpack(empty).dtype)
        column = pc.coalesce(column, column_of(filler))
    return np.from_dlpack(column.combine_chunks())
