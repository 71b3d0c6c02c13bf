"""`Rows`: a table as read from a file, with the roles of its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InputError
from ...particles.arrow import is_number
from .columns import alike, roles_of


@dataclass(frozen=True)
class Rows:
    """A table as read from a file."""

    path: Path  # for messages
    table: pa.Table  # with the column names of the file
    cell: Callable[[int, str], str]  # describes a value by its row and column: "line 7: x is 'abc'"
    unit: str | None = None  # of the positions, if the file states it outside the table
    given: Mapping[str, str] = field(default_factory=dict)  # columns by role that the caller named
    clock: float = 0.0  # seconds in the unit of POSITION_T, if the file states it
    first: bool = True  # whether these are the first rows of the file: then unusual columns are reported
    roles: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "table", _one_of_each(_plain(self.table)))
            object.__setattr__(self, "roles", roles_of(self.table.column_names, self.given))
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from None

    @property
    def axes(self) -> dict[str, str]:
        """The columns of z, y, x that the table has."""
        return {axis: self.roles[axis] for axis in "zyx" if axis in self.roles}

    def wrong(self, row: int, column: str, remedy: str) -> InputError:
        """The error about one value."""
        return InputError(f"{self.path}, {self.cell(row, column)}; {remedy}")


def cells_of(table: pa.Table, first: int = 0) -> Callable[[int, str], str]:
    """What describes a value by its row, of which the first has this number, and column."""

    def cell(row: int, column: str) -> str:
        value = table[column][row].as_py()
        return f"row {first + row}: {column} is {'blank' if value is None else repr(value)[:60]}"

    return cell


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds lists of numbers."""
    lists = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    return any(test(kind) for test in lists) and is_number(kind.value_type)


def _plain(table: pa.Table) -> pa.Table:
    """The table with categories of numbers as numbers, and lists of n numbers as columns NAME_0 to NAME_n-1.

    Raises InputError if lists of a column have different lengths.
    """
    found: list[tuple[str, pa.ChunkedArray]] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if is_list(column.type):
            length = pc.min_max(pc.list_value_length(column)).as_py()
            if length["min"] != length["max"]:
                raise InputError(f"column {name} has lists of {length['min']} to {length['max']} numbers.")
            found += [(f"{name}_{k}", pc.list_element(column, k)) for k in range(length["max"] or 0)]
        else:
            number = pa.types.is_dictionary(column.type) and is_number(column.type.value_type)
            found.append((name, column.cast(column.type.value_type) if number else column))
    return pa.table([column for _, column in found], names=[name for name, _ in found])


def _one_of_each(table: pa.Table) -> pa.Table:
    """The table without columns that repeat another of the same name, as written with their index."""
    found = alike(table.column_names).values()
    twice = [at for first, *more in found for at in more if table[at].equals(table[first])]
    return table.select([at for at in range(table.num_columns) if at not in twice]) if twice else table
