"""Reuse rows of earlier runs of an experiment, which need not be measured again."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from outbid.errors import InputError, SettingsError
from outbid.formats import read_record

from .experiment import QUANTITIES, Row, Size, Trial


def kept_rows(tables: Sequence[Path], name: str, cell: tuple[str, ...], size: Size) -> list[Row]:
    """The rows of earlier tables; of several rows for the same movie and linker the first is kept.

    Parameters
    ----------
    tables : sequence of Path
        NAME.csv, with its record next to it.
    name : str
        Of the experiment.
    cell : tuple of str
        Columns that identify a cell.
    size : Size
        Frames and particles that their movies must have.

    Raises
    ------
    InputError
        If a file is not such a table.
    SettingsError
        If a table is of another experiment or of other movies.
    """
    rows: dict[tuple[object, ...], Row] = {}
    for table in tables:
        record = read_record(table)
        if record.get("experiment") != name:
            raise SettingsError(f"{table} is not a table of the experiment {name}. Give one of its runs.")
        settings = record.get("settings", {})
        for what in ("frames", "particles"):
            other = settings.get(what)
            if other != getattr(size, what):
                raise SettingsError(
                    f"{table} has movies of {other} {what}, not {getattr(size, what)}. Give --{what} {other}."
                )
        for row in _rows(table):
            if not {*cell, "seed"} <= set(row):
                raise InputError(f"{table} lacks columns. Give the table of single seeds, not the summary.")
            rows.setdefault(_key(row, cell), row)
    return list(rows.values())


def missing(trials: Sequence[Trial], rows: list[Row], cell: tuple[str, ...]) -> list[Trial]:
    """The trials, with only those seeds for which there is no row.

    Raises
    ------
    SettingsError
        If the rows of this experiment do not identify their trial.
    """
    if not rows:
        return list(trials)
    if not set(cell) <= set(QUANTITIES):
        raise SettingsError("Rows of this experiment cannot be kept: run it as a whole.")
    known = {_key(row, cell) for row in rows}
    left = []
    for trial in trials:
        of = trial.cell(cell)
        seeds = tuple(seed for seed in trial.seeds if _key(of | {"seed": seed}, cell) not in known)
        if seeds:
            left.append(replace(trial, seeds=seeds))
    return left


def _key(row: Row, cell: tuple[str, ...]) -> tuple[object, ...]:
    return (*(row[name] for name in cell), row["seed"])


def _rows(table: Path) -> list[Row]:
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if any(None in row or None in row.values() for row in rows):
        raise InputError(f"{table} has a line that is too short or too long. Remove the line and run again.")
    return [{name: _value(text) for name, text in row.items()} for row in rows]


def _value(text: str) -> float | int | str:
    """The number that a text stands for, or else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
