"""Tables of measures: a unit in every name and in the metadata of every column; CSV, Parquet and Excel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ..errors import ResourceError, SettingsError
from ..formats.files.outputs import refuse_output, write_whole
from ..formats.files.records import record_bytes, record_path, to_stand_beside
from ..formats.files.units import unit_of
from .columns import column_of
from .scales import Scale

if TYPE_CHECKING:
    import pyarrow as pa

_OF_TRACKS = ("z", "y", "x", "time")
"""Columns that have the names of tables of tracks, without a unit."""
SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".xlsx")


def table_of(columns: Mapping[str, object], scale: Scale) -> pa.Table:
    """An Arrow table whose columns have their unit in the name and in the metadata.

    Examples
    --------
    >>> table_of({"diffusion_error": [0.5], "mother": [np.nan]}, Scale("um", 2.0)).column_names
    ['diffusion_error_um2_per_s', 'mother']
    """
    import pyarrow as pa

    fields, arrays = [], []
    for name, values in columns.items():
        declared = column_of(name)
        unit = declared.unit or scale.unit(declared.length, declared.time)
        array = np.asarray(values)
        column = pa.array(array if array.dtype.kind == "f" else array.tolist(), from_pandas=True)
        column = column.cast(pa.int64()) if declared.whole else column
        suffix = unit.replace("^", "").replace("/", "_per_").replace("1_per", "per")
        if name in _OF_TRACKS:
            unit, suffix = scale.time if name == "time" else unit_of(scale.length), ""
        fields.append(pa.field(f"{name}_{suffix}" if suffix else name, column.type, metadata={"unit": unit}))
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def refuse_table(path: Path, *, overwrite: bool, inputs: Sequence[Path]) -> None:
    """Raise now if a table cannot be written later.

    Raises
    ------
    SettingsError
        If the suffix is unknown, or the output exists and may not be replaced.
    """
    if not path.name.lower().endswith(SUFFIXES):
        raise SettingsError(
            f"{path} is a table of an unknown kind. Let its name end in {', '.join(SUFFIXES)}."
        )
    record = None if path.suffix.lower() == ".parquet" else record_path(path)
    refuse_output(path, overwrite=overwrite, inputs=inputs, record=record)


def write_table(
    path: Path, sheets: Mapping[str, pa.Table], *, record: Mapping[str, object], overwrite: bool = False
) -> None:
    """Write tables; all into one Excel workbook, or the first one into another file.

    The run record is inside a Parquet file, and next to other files.

    Raises
    ------
    SettingsError
        As `refuse_table`.
    ResourceError
        If openpyxl is not installed, for Excel.
    """
    refuse_table(path, overwrite=overwrite, inputs=[])
    if {"track_id", "x"} <= set((one := next(iter(sheets.values()))).column_names):  # readable as tracks
        record = {**record, "unit": one.schema.field("x").metadata[b"unit"].decode()}
    first, suffix = next(iter(sheets.values())), path.suffix.lower()
    if suffix == ".parquet":
        import pyarrow.parquet as parquet

        from ..formats.tables.parquet import RECORD

        first = first.replace_schema_metadata({RECORD: record_bytes(record)})
        write_whole(path, lambda file: parquet.write_table(first, file), overwrite=overwrite)
        return
    beside = to_stand_beside(path, record)
    if suffix == ".xlsx":
        write_whole(path, _workbook(sheets).save, overwrite=overwrite, beside=beside)
    else:
        from pyarrow import csv

        from ..formats.tables.csv_gz import packed

        tabs = path.name.lower().removesuffix(".gz").endswith(".tsv")
        form = csv.WriteOptions(delimiter="\t" if tabs else ",", quoting_style="needed")

        def write(file: BinaryIO) -> None:
            if suffix == ".gz":
                with packed(file) as inner:
                    csv.write_csv(first, inner, form)
            else:
                csv.write_csv(first, file, form)

        write_whole(path, write, overwrite=overwrite, beside=beside)


def _workbook(sheets: Mapping[str, pa.Table]) -> Any:
    try:
        from openpyxl import Workbook
    except ImportError:
        raise ResourceError("Excel needs openpyxl. Install it: pip install 'outbid[excel]'.") from None
    book = Workbook(write_only=True)
    for name, table in sheets.items():
        sheet = book.create_sheet(name)
        sheet.append(table.column_names)
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            sheet.append(row)
    return book
