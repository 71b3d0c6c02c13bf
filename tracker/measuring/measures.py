"""The tables of what was measured, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..particles.reliability import rounded
from .columns import FITTED

if TYPE_CHECKING:
    import pyarrow as pa

SHEETS = "tracks", "groups", "movies", "curves", "comparison", "regions"
"""The tables of a workbook; that of detections stands alone, for it is long."""


@dataclass(frozen=True, eq=False)
class Measures:
    """Tables of what was measured; every column has its unit in its name and in its metadata.

    Parameters
    ----------
    tracks : pyarrow.Table
        One row a track.
    groups : pyarrow.Table
        One row a group: its means over its movies, and the motion that explains its steps best.
    movies : pyarrow.Table
        One row a movie of each group.
    curves : pyarrow.Table
        Mean square displacement, velocity autocorrelation, distributions: one row a point of a curve.
    comparison : pyarrow.Table
        One row a quantity and a pair of groups; movies are what is compared, if each has several.
    regions : pyarrow.Table
        One row a region and group: how long tracks stay, and when they arrive first; empty without regions.
    detections : pyarrow.Table
        One row a detection: its velocity, the drift that was subtracted, its neighbours and regions.
    remarks : tuple of str
        What was corrected, what the errors include, and where linking is the larger part of them.
    """

    tracks: pa.Table
    groups: pa.Table
    movies: pa.Table
    curves: pa.Table
    comparison: pa.Table
    regions: pa.Table
    detections: pa.Table
    remarks: tuple[str, ...]

    @property
    def sheets(self) -> dict[str, pa.Table]:
        """The tables of a workbook by name, the one of tracks first."""
        found = {name: getattr(self, name) for name in SHEETS}
        return {name: table for name, table in found.items() if table.num_columns or name != "regions"}

    def __str__(self) -> str:
        units = {field.name: field.metadata[b"unit"].decode() for field in self.groups.schema}
        lines = []
        for row in self.groups.to_pylist():
            several = f"{row['movies']} movies, " if row["movies"] > 1 else ""
            messages = [f"{row['group']}: {several}{row['tracks']} tracks"]
            for quantity in FITTED:
                name = next(name for name in units if name.startswith(quantity))
                error = next(name for name in units if name.startswith(f"{quantity}_error"))
                if row[name] is not None:
                    within = "" if row[error] is None else f" ± {rounded(row[error])}"
                    unit = units[name].replace("um", "µm").replace("^2", "²")
                    messages.append(f"{quantity} {row[name]:.3g}{within} {unit}".rstrip())
            lines.append(", ".join(messages))
        return "\n".join(lines)

    def to_dataframe(self) -> Any:
        """The table of tracks as a pandas DataFrame."""
        from ..particles.tables import pandas_of

        return pandas_of(self.tracks)
